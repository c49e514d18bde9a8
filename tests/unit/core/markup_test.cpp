#include <gtest/gtest.h>

#include "sim/core/quoting.hpp"

namespace orrery::markup_test {
namespace {

TEST(Markup, TextIsNoMarkup) {
  EXPECT_EQ(escaped("</script><b a=\"'&\x01"), "&lt;/script&gt;&lt;b a=&quot;'&amp;?");
}

TEST(Markup, TextTurnsNothingAround) {
  EXPECT_EQ(escaped("a\u202Eb\u2066c\u200F"), "a\\u202Eb\\u2066c\\u200F");
  // Neighbours of these marks, and what is cut off.
  EXPECT_EQ(escaped("\u2013\u202F\u2065\u206A \xe2\x80"), "\u2013\u202F\u2065\u206A \xe2\x80");
}

}  // namespace
}  // namespace orrery::markup_test
