#include <gtest/gtest.h>

#include "sim/formats/settings/settings.hpp"
#include "sim/formats/settings/settings_files.hpp"

namespace orrery::references_test {
namespace {

TEST(References, AreFollowed) {
  Settings settings{read_yaml("a: {x: 3, y: '${.x}', z: '${..top}', w: '${multiply:2, ${.y}}'}\n"
                              "top: '${launcher.a.x}'\nself: '${.self}'\nnow: '${now:%d}'\n"
                              "gone: '${a.none}'\nin: 'x${a.x}-${div:7, ${a.x}}y'\nhuge: "
                              "'${multiply:1073741824, 1073741824}'\n",
                              "run.yaml"),
                    "run.yaml"};
  resolve_references(settings);
  EXPECT_EQ(settings.number("a.y", 0), 3);
  EXPECT_EQ(settings.number("a.z", 0), 3);
  EXPECT_EQ(settings.number("a.w", 0), 6);
  EXPECT_EQ(settings.word("self", ""), "${.self}");
  EXPECT_EQ(settings.word("now", ""), "${now:%d}");
  EXPECT_EQ(settings.word("gone", ""), "${a.none}");
  EXPECT_EQ(settings.word("in", ""), "x3-2y");
  EXPECT_EQ(settings.word("huge", ""), "1099511627776");
}

}  // namespace
}  // namespace orrery::references_test
