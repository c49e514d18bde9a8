#include <gtest/gtest.h>

#include "sim/core/error.hpp"
#include "sim/formats/settings/settings_files.hpp"
#include "tests/unit/calibration/sample.hpp"

namespace orrery::toml_tree_test {
namespace {

// "a=1 b={c=[x,'true']}", with quotes where the document has them.
std::string text_of(const SettingsTree& tree) {
  std::string text;
  switch (tree.kind) {
    case SettingsTree::Kind::scalar:
      return tree.is_quoted ? "'" + tree.text + "'" : tree.text;
    case SettingsTree::Kind::list:
      for (const SettingsTree& item : tree.items) text += (text.empty() ? "" : ",") + text_of(item);
      return "[" + text + "]";
    case SettingsTree::Kind::map:
      for (const auto& [key, value] : tree.entries)
        text += (text.empty() ? "" : " ") + key + "=" + text_of(value);
      return "{" + text + "}";
  }
  return "";
}

TEST(TomlTree, TablesListsAndWords) {
  const SettingsTree tree = read_toml(
      "z = 1_000 # one\na = 'true'\n[b.c]\nd = [1, \"x\"]\ne = {f = false, g = 2.5}\nh = -1\n"
      "i = 2026-01-02\n",
      "job.toml");
  EXPECT_EQ(text_of(tree),
            "{z=1000 a='true' b={c={d=[1,'x'] e={f=false g=2.5} h=-1 i=2026-01-02}}}");
  EXPECT_EQ(tree.find("b")->find("c")->find("d")->line, 3u);
}

TEST(TomlTree, Refusals) {
  const auto refusal = [](const std::string& text) {
    return refusal_of([&] { read_toml(text, "job.toml"); });
  };
  EXPECT_EQ(
      refusal("a = 1\na = 2\n"),
      "job.toml: line 2: is no TOML: cannot redefine existing integer 'a'; write TOML, as the "
      "tool did");
  std::string deep = "a";
  for (int i = 0; i < 200; ++i) deep += ".a";
  EXPECT_EQ(refusal("x = 1\n" + deep + " = 1\n"),
            "job.toml: line 2: is nested deeper than 100 levels; write TOML, as the tool did");
  for (int i = 0; i < 100'000; ++i) deep += ".a";
  EXPECT_EQ(refusal(deep + " = 1\n"),
            "job.toml: line 1: is nested deeper than 100 levels; write TOML, as the tool did");
}

}  // namespace
}  // namespace orrery::toml_tree_test
