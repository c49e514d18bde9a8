#include "sim/core/catalog.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "sim/core/json_value.hpp"
#include "sim/core/nearest.hpp"
#include "sim/core/text_file.hpp"

namespace fs = std::filesystem;

namespace orrery {
namespace {

// A name that was cut short means one of its continuations, or one that holds it, more than it
// means a name of its length that differs in a letter: 'dgx-a100' is no misspelled 'dgx-h100'.
std::string remedy(const std::string& folder, const std::string& word,
                   const std::vector<std::string>& known) {
  constexpr std::size_t few = 4, shortest_part = 3;
  constexpr std::size_t most_in_a_line = 16;
  const std::string list = "orrery list " + fs::path{folder}.filename().string();
  std::vector<std::string> longer, holders;
  for (const std::string& name : known) {
    if (!word.empty() && name.starts_with(word)) longer.push_back(name);
    if (word.size() >= shortest_part && name.find(word) != name.npos) holders.push_back(name);
  }
  if (longer.empty() || longer.size() > few) {
    longer = holders;
    std::stable_sort(longer.begin(), longer.end(), [](const std::string& a, const std::string& b) {
      return a.size() < b.size();
    });
  }
  if (longer.empty()) {
    if (known.size() <= most_in_a_line || !nearest(word, known).empty())
      return suggestion(word, known);
    return "see " + list;
  }
  const bool has_more = longer.size() > few;
  if (has_more) longer.resize(few);
  std::string names;
  for (const std::string& name : longer)
    names += (names.empty()                        ? "'"
              : name == longer.back() && !has_more ? " or '"
                                                   : ", '") +
             name + "'";
  return "did you mean " + names + (has_more ? " or another of " + list : "") + "?";
}

// The share folder that belongs to this program's own folder, wherever a prefix was moved to.
fs::path installed_data() {
  std::error_code code;
  const fs::path program = fs::canonical("/proc/self/exe", code);
  return program.parent_path().parent_path() / "share" / "orrery";
}

bool has_catalog(const fs::path& folder) {
  std::error_code code;
  return fs::is_directory(folder / "topologies", code);
}

}  // namespace

std::string data_folder() {
  if (const char* set = std::getenv("ORRERY_DATA"); set && *set) return set;
  static const std::string found = [] {
    const fs::path installed = installed_data();
    const bool is_built_here = !has_catalog(installed) && has_catalog(ORRERY_SOURCE_DATA);
    return is_built_here ? std::string{ORRERY_SOURCE_DATA} : installed.string();
  }();
  return found;
}

std::string find_in_catalog(const std::string& folder, const std::string& word, const Place& at) {
  const bool is_folder = word == "." || word == "..";
  if (is_folder || word == standard_input || word.find('/') != word.npos || word.ends_with(".json"))
    return word;
  const fs::path path = fs::path{data_folder()} / folder / (word + ".json");
  std::error_code code;
  if (!word.empty() && fs::is_regular_file(path, code)) return path.string();
  const std::vector<std::string> known = list_catalog(folder);
  if (known.empty())
    fail_input(at, "the catalog '" + folder + "' was not found in " + data_folder(),
               "set ORRERY_DATA to the folder that holds topologies and workloads");
  if (!word.empty() && fs::exists(word, code))
    fail_input(at, "'" + shown_text(word) + "' is not in the catalog",
               "for what lies here write './" + shown_text(word) + "'");
  const std::string near = remedy(folder, word, known);
  fail_input(at, "'" + shown_text(word) + "' is not in the catalog",
             near + " (a path needs a '/' or ends in .json)" +
                 (folder == "workloads/software" && !near.starts_with("did you mean")
                      ? ", or name the nearest with --software_stands_in true"
                      : ""));
}

std::string relative_to_file(const std::string& word, const Place& at) {
  const fs::path path{word};
  if (path.extension() != ".json" || path.is_absolute()) return word;
  return (fs::path{at.file}.parent_path() / path).string();
}

JsonValue carried_or_self(const JsonValue& file, const std::string& kind) {
  const auto inputs = file.is_object() ? file.find("inputs") : std::nullopt;
  const auto held = inputs && inputs->is_object() ? inputs->find(kind) : std::nullopt;
  const std::vector<std::string> names =
      held && held->is_object() ? held->keys() : std::vector<std::string>{};
  return names.size() == 1 ? held->at(names.front()) : file;
}

std::vector<std::string> list_catalog(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator{fs::path{data_folder()} / folder, code})
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace orrery
