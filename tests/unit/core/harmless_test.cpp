#include <gtest/gtest.h>

#include "sim/core/error.hpp"
#include "tests/support/error_text.hpp"

namespace orrery::harmless_test {
namespace {

TEST(Harmless, ControlCharactersAreWrittenOut) {
  EXPECT_EQ(harmless("plain, \xc3\xa9 and \xe2\x82\xac"), "plain, \xc3\xa9 and \xe2\x82\xac");
  EXPECT_EQ(harmless("a\nb\x1b[31m\x7f"), "a\\x0ab\\x1b[31m\\x7f");
  EXPECT_EQ(harmless("\xc2\x9b"), "\\x9b");  // U+009B begins a sequence in some terminals.
  EXPECT_EQ(harmless(harmless("\x1b")), "\\x1b");
}

// Places hold paths as they were typed.
TEST(Harmless, SoIsEveryError) {
  EXPECT_EQ(error_text([] {
              fail_input({"a\x1b/b.json", "/k\n"}, "is\ttoo\rmuch", "leave it\a");
            }),
            "a\\x1b/b.json: /k\\x0a: is\\x09too\\x0dmuch; leave it\\x07");
}

}  // namespace
}  // namespace orrery::harmless_test
