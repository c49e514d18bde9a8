#include "sim/formats/settings/settings.hpp"

#include <algorithm>
#include <cctype>

#include "sim/core/json_value.hpp"
#include "sim/core/nearest.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/text_file.hpp"
#include "sim/core/value_list.hpp"

namespace orrery {

const SettingsTree* SettingsTree::find(const std::string& key) const {
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry)
    if (entry->key == key) return &entry->value;
  return nullptr;
}

namespace {

constexpr int largest = 1 << 30;

const SettingsTree* below(const SettingsTree& tree, const std::string& path) {
  const SettingsTree* at = &tree;
  for (const std::string& key : split(path, "."))
    if (at = at->find(key); !at) return nullptr;
  return at;
}

std::string path_of(const std::string& path, const std::string& key) {
  return path.empty() ? key : path + "." + key;
}

// Paths of all scalars and lists, in the order of the document.
void collect(const SettingsTree& tree, const std::string& path, std::vector<std::string>& paths) {
  if (tree.kind != SettingsTree::Kind::map) {
    if (!tree.is_null()) paths.push_back(path);
    return;
  }
  for (const auto& [key, value] : tree.entries) collect(value, path_of(path, key), paths);
}

using Meaning =
    std::function<std::optional<std::string>(const std::string& path, const std::string& word)>;

void replace_below(SettingsTree& tree, const std::string& path, const Meaning& meaning) {
  if (tree.kind == SettingsTree::Kind::scalar)
    if (auto word = meaning(path, tree.text)) tree.text = std::move(*word);
  for (auto& [key, value] : tree.entries) replace_below(value, path_of(path, key), meaning);
}

}  // namespace

Settings::Settings(SettingsTree tree, std::string file)
    : tree_{std::move(tree)}, file_{std::move(file)} {}

void Settings::set(const std::string& path, const std::string& value) {
  SettingsTree* at = &tree_;
  for (const std::string& key : split(path, ".")) {
    if (at->kind != SettingsTree::Kind::map) {
      *at = SettingsTree{};
      at->kind = SettingsTree::Kind::map;
    }
    auto entry = std::find_if(at->entries.rbegin(), at->entries.rend(),
                              [&](const auto& other) { return other.key == key; });
    if (entry == at->entries.rend()) {
      at->entries.push_back({key, SettingsTree{}});
      entry = at->entries.rbegin();
    }
    at = &entry->value;
  }
  *at = SettingsTree{};
  at->text = value;
  given_.insert(path);
}

void Settings::replace_words(const Meaning& meaning) { replace_below(tree_, "", meaning); }

const SettingsTree* Settings::find(const std::string& paths) const {
  for (const std::string& path : split(paths, "|")) {
    const SettingsTree* found = below(tree_, path);
    if (!found) continue;
    read_.insert(path);
    if (!found->is_null()) return found;
  }
  return nullptr;
}

const SettingsTree* Settings::look(const std::string& path) const { return below(tree_, path); }

std::string Settings::name(const std::string& paths) const {
  const std::vector<std::string> all = split(paths, "|");
  for (const std::string& path : all) {
    const SettingsTree* found = below(tree_, path);
    if (found && !found->is_null()) return path;
  }
  return all.front();
}

std::vector<std::string> Settings::names_below(const std::string& path) const {
  std::vector<std::string> paths;
  if (const SettingsTree* found = below(tree_, path)) collect(*found, path, paths);
  return paths;
}

std::string Settings::scalar(const std::string& paths, const SettingsTree& value) const {
  if (value.kind != SettingsTree::Kind::scalar)
    fail(paths, value.kind == SettingsTree::Kind::list ? "is a list" : "has settings below it",
         "write one value");
  return value.text;
}

bool Settings::flag(const std::string& paths, bool absent) const {
  const SettingsTree* value = find(paths);
  if (!value) return absent;
  const std::string word = lower_case(scalar(paths, *value));
  if (word == "true" || word == "yes" || word == "on" || word == "1") return true;
  if (word == "false" || word == "no" || word == "off" || word == "0") return false;
  fail(paths, "is '" + shown_text(value->text) + "'", "write true or false");
}

void Settings::need_set(const std::string& paths, const std::string& word,
                        const std::string& like) const {
  if (word.find("${") != word.npos || word == "???")
    fail(paths, "is " + shown_text(word) + ", which the file does not say",
         "give it: --set " + name(paths) + "=" + like);
  if (word.starts_with('$'))
    fail(paths, "is " + shown_text(word) + ", which the script does not say",
         "give it: --set " + shown_text(word.substr(1, word.find_first_of("({ ", 1) - 1)) + "=" +
             like);
}

std::int64_t Settings::number(const std::string& paths, std::int64_t absent) const {
  const SettingsTree* value = find(paths);
  if (!value) return absent;
  std::string word = scalar(paths, *value);
  need_set(paths, word, "N");
  const std::string written = word;
  std::erase(word, '_');  // 4_000 is a number of TOML, Python and YAML 1.1.
  const bool is_negative = word.starts_with('-');
  const auto number = plain_integer(word.substr(is_negative ? 1 : 0), largest);
  if (!number) fail(paths, "is '" + shown_text(written) + "'", "write a whole number");
  return is_negative ? -std::int64_t{*number} : std::int64_t{*number};
}

std::int64_t Settings::count(const std::string& paths, std::int64_t absent,
                             std::int64_t most) const {
  const std::int64_t found = number(paths, absent);
  if (found < 1 || found > most)
    fail(paths, "is " + std::to_string(found), "write a number from 1 to " + grouped(most));
  return found;
}

std::int64_t Settings::required(const std::string& paths) const {
  if (has(paths)) return number(paths, 0);
  fail_input(place(), "has no " + name(paths), "add it, or give --set " + name(paths) + "=N");
}

std::string Settings::word(const std::string& paths, const std::string& absent) const {
  const SettingsTree* value = find(paths);
  return value ? scalar(paths, *value) : absent;
}

std::vector<std::string> Settings::words(const std::string& paths) const {
  const SettingsTree* value = find(paths);
  std::vector<std::string> all;
  if (!value) return all;
  if (value->kind == SettingsTree::Kind::list) {
    for (const SettingsTree& item : value->items) all.push_back(item.text);
    return all;
  }
  return items_of(scalar(paths, *value));
}

std::string Settings::choice(
    const std::string& paths,
    const std::vector<std::pair<std::string, std::string>>& meanings) const {
  const std::string given = word(paths, meanings.front().first);
  std::vector<std::string> words;
  for (const auto& [word, meaning] : meanings) {
    if (lower_case(word) == lower_case(given)) return meaning;
    if (!word.empty()) words.push_back(word);
  }
  fail(paths, "is '" + shown_text(given) + "'", suggestion(given, words));
}

Place Settings::place_of(const std::string& paths) const {
  const std::string path = name(paths);
  const auto given = given_.lower_bound(path);
  if (given != given_.end() && (*given == path || given->starts_with(path + ".")))
    return {"--set", ""};
  const SettingsTree* value = below(tree_, path);
  return value ? line_place(value->file.empty() ? file_ : value->file, value->line) : place();
}

void Settings::fail(const std::string& paths, const std::string& problem,
                    const std::string& remedy) const {
  fail_input(place_of(paths), shown_text(name(paths)) + " " + problem, remedy);
}

std::vector<std::string> Settings::unread() const {
  std::vector<std::string> paths, left;
  collect(tree_, "", paths);
  for (const std::string& path : paths) {
    const bool is_read = std::any_of(read_.begin(), read_.end(), [&](const std::string& other) {
      return path == other || path.starts_with(other + ".");
    });
    if (!is_read) left.push_back(path);
  }
  return left;
}

namespace {

constexpr int most_steps = 8;                                    // Limit of chained references.
constexpr std::int64_t largest_product = std::int64_t{1} << 40;  // More than any plan has.

// "model.data" of "model.data.seq_length"; "" at the top.
std::string parent(const std::string& path) {
  const std::size_t dot = path.rfind('.');
  return dot == path.npos ? "" : path.substr(0, dot);
}

class ReferenceReader {
 public:
  explicit ReferenceReader(const Settings& settings) : s_{settings} {}

  // The word with all references that have a value in place of them, inner ones first.
  std::string resolved(const std::string& path, std::string word, int step) const {
    std::size_t from = word.npos;
    while (step <= most_steps) {
      const std::size_t begin = word.rfind("${", from);
      if (begin == word.npos) break;
      const std::size_t end = word.find('}', begin);
      if (end != word.npos)
        if (const auto value = value_of(path, word.substr(begin + 2, end - begin - 2), step))
          word.replace(begin, end + 1 - begin, *value);
      if (begin == 0) break;
      from = begin - 1;
    }
    return word;
  }

 private:
  std::optional<std::string> value_of(const std::string& path, const std::string& inside,
                                      int step) const {
    for (const char* product : {"multiply:", "mul:"})
      if (inside.starts_with(product))
        return computed(inside, [](std::int64_t a, std::int64_t b) {
          return std::min(a * b, largest_product);
        });
    if (inside.starts_with("div:"))
      return computed(inside, [](std::int64_t a, std::int64_t b) -> std::optional<std::int64_t> {
        if (b == 0) return std::nullopt;
        return a / b;
      });
    // The environment is unknown here: its variables have their defaults.
    if (inside.starts_with("oc.env:")) {
      const std::size_t comma = inside.find(',');
      if (comma == inside.npos) return std::nullopt;
      return std::string{trimmed(inside.substr(comma + 1))};
    }
    if (inside.find_first_of(":{}") != inside.npos) return std::nullopt;
    const std::string target = absolute(path, inside);
    if (auto found = word_at(target, step)) return found;
    const std::size_t dot = target.find('.');
    return dot == target.npos ? std::nullopt : word_at(target.substr(dot + 1), step);
  }

  static std::string absolute(const std::string& path, const std::string& reference) {
    if (!reference.starts_with('.')) return reference;
    std::string base = parent(path);
    std::size_t at = 1;
    for (; at < reference.size() && reference[at] == '.'; ++at) base = parent(base);
    return base.empty() ? reference.substr(at) : base + "." + reference.substr(at);
  }

  // A value that refers to nothing is none.
  std::optional<std::string> word_at(const std::string& path, int step) const {
    const SettingsTree* value = s_.look(path);
    if (!value || value->kind != SettingsTree::Kind::scalar) return std::nullopt;
    if (value->text.find("${") == value->text.npos) return value->text;
    std::string word = resolved(path, value->text, step + 1);
    if (word.find("${") != word.npos) return std::nullopt;
    return word;
  }

  template <class Operation>
  static std::optional<std::string> computed(const std::string& inside,
                                             const Operation& operation) {
    const auto items = split(inside.substr(inside.find(':') + 1), ",");
    if (items.size() != 2) return std::nullopt;
    const auto a = plain_integer(trimmed(items[0]), 1 << 30);
    const auto b = plain_integer(trimmed(items[1]), 1 << 30);
    if (!a || !b) return std::nullopt;
    const std::optional<std::int64_t> result = operation(*a, *b);
    if (!result) return std::nullopt;
    return std::to_string(*result);
  }

  const Settings& s_;
};

}  // namespace

void resolve_references(Settings& settings) {
  const Settings before = settings;
  const ReferenceReader reader{before};
  settings.replace_words(
      [&](const std::string& path, const std::string& word) -> std::optional<std::string> {
        if (word.find("${") == word.npos) return std::nullopt;
        return reader.resolved(path, word, 0);
      });
}

}  // namespace orrery
