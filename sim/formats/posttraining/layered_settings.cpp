#include "sim/formats/posttraining/layered_settings.hpp"

#include <algorithm>

#include "sim/core/text_file.hpp"
#include "sim/core/value_list.hpp"
#include "sim/formats/settings/references.hpp"
#include "sim/formats/settings/settings_files.hpp"

namespace orrery {
namespace {

constexpr int deepest = 20;

void belong_to(const std::string& file, SettingsTree& tree) {
  tree.file = file;
  for (SettingsTree& item : tree.items) belong_to(file, item);
  for (auto& [key, value] : tree.entries) belong_to(file, value);
}

void remove_key(SettingsTree& tree, const std::string& key) {
  std::erase_if(tree.entries, [&](const auto& entry) { return entry.key == key; });
}

void merge(SettingsTree& base, SettingsTree over) {
  using Kind = SettingsTree::Kind;
  const SettingsTree* replaces = over.find("_override_");
  const bool merges = base.kind == Kind::map && over.kind == Kind::map && !replaces;
  remove_key(over, "_override_");
  if (!merges) {
    base = std::move(over);
    return;
  }
  for (auto& [key, value] : over.entries) {
    const auto old = std::find_if(base.entries.begin(), base.entries.end(),
                                  [&, &name = key](const auto& one) { return one.key == name; });
    if (old == base.entries.end())
      base.entries.push_back({key, std::move(value)});
    else
      merge(old->value, std::move(value));
  }
}

class LayerReader {
 public:
  explicit LayerReader(const RecipeAnswers& answers) : answers_{answers} {}

  SettingsTree read(const RecipeFile& file, int depth) {
    SettingsTree tree = read_yaml(file.text, file.path);
    if (depth > 0) belong_to(file.path, tree);
    const SettingsTree* defaults = tree.find("defaults");
    if (!defaults) return tree;
    if (depth == deepest)
      fail_input(line_place(file.path, defaults->line),
                 "defaults name more than " + std::to_string(deepest) + " files in turn",
                 "mend those that name each other");
    SettingsTree whole;
    whole.kind = SettingsTree::Kind::map;
    const bool one = defaults->kind == SettingsTree::Kind::scalar;
    for (const SettingsTree& named : one ? std::vector<SettingsTree>{*defaults} : defaults->items)
      merge(whole, read(parent(named, file), depth + 1));
    remove_key(tree, "defaults");
    merge(whole, std::move(tree));
    return whole;
  }

 private:
  RecipeFile parent(const SettingsTree& named, const RecipeFile& by) const {
    const std::size_t slash = by.path.rfind('/');
    const bool absolute = named.text.starts_with('/') || slash == std::string::npos;
    const std::string path = absolute ? named.text : by.path.substr(0, slash + 1) + named.text;
    auto text = answers_.other_file ? answers_.other_file(path) : std::nullopt;
    if (!text)
      fail_input(line_place(by.path, named.line),
                 "goes on from '" + shown_text(named.text) + "', which is not there",
                 "import the recipe where it lies in its repository, or the whole configuration");
    return {std::move(*text), path};
  }

  const RecipeAnswers& answers_;
};

}  // namespace

Settings read_layered_settings(const RecipeFile& file, const RecipeAnswers& answers) {
  Settings settings{LayerReader{answers}.read(file, 0), file.path};
  take_answers(settings, answers);
  resolve_references(settings);
  return settings;
}

}  // namespace orrery
