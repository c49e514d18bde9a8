#include <gtest/gtest.h>

#include "sim/core/error.hpp"
#include "sim/formats/settings/settings_files.hpp"

namespace orrery::yaml_tree_test {
namespace {

SettingsTree read(const std::string& text) { return read_yaml(text, "recipe.yaml"); }

TEST(YamlTree, MapsListsAndWords) {
  const SettingsTree tree = read("a: 1 # one\nb:\n  - x\n  - 'true'\nc: {d: null, e: ~, f: ''}\n");
  ASSERT_EQ(tree.kind, SettingsTree::Kind::map);
  EXPECT_EQ(tree.find("a")->text, "1");
  ASSERT_EQ(tree.find("b")->items.size(), 2u);
  EXPECT_EQ(tree.find("b")->items[1].text, "true");
  EXPECT_TRUE(tree.find("b")->items[1].is_quoted);
  EXPECT_EQ(tree.find("b")->items[1].line, 3u);
  EXPECT_TRUE(tree.find("c")->find("d")->is_null());
  EXPECT_TRUE(tree.find("c")->find("e")->is_null());
  EXPECT_FALSE(tree.find("c")->find("f")->is_null());
  EXPECT_EQ(tree.find("z"), nullptr);
  EXPECT_EQ(read("").kind, SettingsTree::Kind::scalar);
}

// Public files have such keys.
TEST(YamlTree, AKeyThatStandsTwice) {
  EXPECT_EQ(read("a: 1\na: 2\n").find("a")->text, "2");
  EXPECT_EQ(read("b: &b {a: 1}\nx: {<<: *b, a: 2}\n").find("x")->find("a")->text, "2");
}

TEST(YamlTree, OneDocument) {
  EXPECT_EQ(read("---\na: 1\n---\n").find("a")->text, "1");
  EXPECT_EQ(read("a: 1\n...\n").find("a")->text, "1");
  EXPECT_THROW(read("a: 1\n---\nb: 2\n"), Error);
  EXPECT_THROW(read("a: 1\n---\n[\n"), Error);
}

TEST(YamlTree, AnchorsAndMergedMaps) {
  const SettingsTree tree = read("base: &b {tp: 2, pp: 4}\nrun:\n  <<: *b\n  pp: 8\nagain: *b\n");
  EXPECT_EQ(tree.find("run")->find("tp")->text, "2");
  EXPECT_EQ(tree.find("run")->find("pp")->text, "8");
  EXPECT_EQ(tree.find("again")->find("pp")->text, "4");
}

TEST(YamlTree, Refusals) {
  for (const char* text :
       {"a: [1", "a: 'x", "\ta: 1", "a: *none", "a: {b: c", "? [x]\n: y", "a: b: c"})
    EXPECT_THROW(read(text), Error) << text;
  EXPECT_THROW(read(std::string(200, '[') + std::string(200, ']')), Error);
  // Each anchor has the one before nine times.
  std::string growing = "a0: &a0 x\n";
  for (int i = 1; i < 12; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    growing += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int k = 0; k < 9; ++k) growing += (k ? "," : "") + before + " ";
    growing += "]\n";
  }
  EXPECT_THROW(read(growing), Error);
}

}  // namespace
}  // namespace orrery::yaml_tree_test
