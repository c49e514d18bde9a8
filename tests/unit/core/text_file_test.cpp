#include "sim/core/text_file.hpp"

#include <gtest/gtest.h>

namespace orrery::text_file_test {
namespace {

TEST(ItemsOf, AShellsYamlsAndPythonsLists) {
  using Items = std::vector<std::string>;
  EXPECT_EQ(items_of(""), Items{});
  EXPECT_EQ(items_of("[]"), Items{});
  for (const char* list : {"a b", "a, b", "a,b", "[a, b]", "['a', 'b']", "[\"a\",\"b\"]", " a  b "})
    EXPECT_EQ(items_of(list), (Items{"a", "b"})) << list;
}

}  // namespace
}  // namespace orrery::text_file_test
