#include "sim/formats/settings/toml_tree.hpp"

#include <toml++/toml.h>

#include <algorithm>
#include <sstream>

#include "sim/core/json_value.hpp"
#include "sim/core/text_file.hpp"

namespace orrery {
namespace {

std::size_t line_of(const toml::source_region& region) {
  return region.begin.line > 0 ? region.begin.line - 1 : 0;
}

constexpr int deepest_toml = 100;
constexpr std::ptrdiff_t most_dots = 1'000;  // In a line: each may be a level.

[[noreturn]] void fail_too_deep(const std::string& file, std::size_t line) {
  fail_input(line_place(file, line), "is nested deeper than 100 levels",
             "write TOML, as the tool did");
}

SettingsTree tree_of(const toml::node& node, const std::string& file, int depth) {
  SettingsTree tree;
  tree.line = line_of(node.source());
  if (depth > deepest_toml) fail_too_deep(file, tree.line);
  if (const toml::table* table = node.as_table()) {
    tree.kind = SettingsTree::Kind::map;
    for (const auto& [key, value] : *table)
      tree.entries.push_back({std::string{key.str()}, tree_of(value, file, depth + 1)});
    // The library keeps keys in the order of the alphabet.
    std::stable_sort(tree.entries.begin(), tree.entries.end(),
                     [](const auto& a, const auto& b) { return a.value.line < b.value.line; });
  } else if (const toml::array* array = node.as_array()) {
    tree.kind = SettingsTree::Kind::list;
    for (const toml::node& item : *array) tree.items.push_back(tree_of(item, file, depth + 1));
  } else if (const auto* word = node.as_string()) {
    tree.text = word->get();
    tree.is_quoted = true;
  } else if (const auto* number = node.as_integer()) {
    tree.text = std::to_string(number->get());
  } else if (const auto* truth = node.as_boolean()) {
    tree.text = truth->get() ? "true" : "false";
  } else {
    std::ostringstream text;
    text << toml::default_formatter{node};
    tree.text = text.str();
  }
  return tree;
}

}  // namespace

SettingsTree read_toml(const std::string& text, const std::string& file) {
  // The library bounds how deep values nest, but not the dots of a key.
  const auto lines = lines_of(text);
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (std::count(lines[i].begin(), lines[i].end(), '.') > most_dots) fail_too_deep(file, i);
  try {
    return tree_of(toml::parse(text), file, 0);
  } catch (const toml::parse_error& error) {
    std::string problem{error.description()};  // "Error while parsing key: ..."
    if (const std::size_t colon = problem.find(": "); colon != problem.npos)
      problem.erase(0, colon + 2);
    fail_input(line_place(file, line_of(error.source())), "is no TOML: " + shown_text(problem),
               "write TOML, as the tool did");
  }
}

}  // namespace orrery
