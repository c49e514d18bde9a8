#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/error.hpp"

namespace orrery {

/// A value of a document of settings (YAML, JSON, TOML), which knows its line.
struct SettingsTree {
  struct Entry;
  enum class Kind { scalar, list, map };
  Kind kind = Kind::scalar;
  std::string text;        ///< Text of a scalar as it is written, without quotes.
  bool is_quoted = false;  ///< "true" and "null" are then words.
  std::size_t line = 0;    ///< Counted from 0.
  std::string file;        ///< Where it is not that of the Settings: of a file that these go on.
  std::vector<SettingsTree> items;
  std::vector<Entry> entries;  ///< Entries of a map in the order of the document.

  /// The value of a map's key, the later of duplicates; null: absent.
  const SettingsTree* find(const std::string& key) const;
  bool is_null() const {
    return kind == Kind::scalar && !is_quoted && (text.empty() || text == "null" || text == "~");
  }
};

/// Entry of a map. A std::pair would have to know the whole tree before it is defined.
struct SettingsTree::Entry {
  std::string key;
  SettingsTree value;
};

/// Settings of a training program by their paths, as "training.seq_len". Where a program renamed
/// one, "training.local_batch_size|training.batch_size" asks for the first that is there. Asking
/// for a setting marks it and its contents as read. Errors (bad_input) name the file, the line, the
/// path and the value; --set for what was given there.
class Settings {
 public:
  Settings(SettingsTree tree, std::string file);

  /// Replaces or adds the value at a path, like --set on a command line.
  void set(const std::string& path, const std::string& value);

  /// Replaces words by the result of `meaning` for a path and its word; nothing: it stays.
  void replace_words(const std::function<std::optional<std::string>(
                         const std::string& path, const std::string& word)>& meaning);

  const std::string& file() const { return file_; }
  Place place() const { return {file_, ""}; }
  /// The line of a setting, or --set; the file for an absent one.
  Place place_of(const std::string& paths) const;
  /// Null: it is absent or null.
  const SettingsTree* find(const std::string& paths) const;
  bool has(const std::string& paths) const { return find(paths) != nullptr; }
  /// The value at one path, without marking it; null: none.
  const SettingsTree* look(const std::string& path) const;
  /// The path that is there, of several; else the first of them.
  std::string name(const std::string& paths) const;
  /// Paths of the settings below a path that begin so, in the order of the document.
  std::vector<std::string> names_below(const std::string& path) const;

  /// Errors (bad_input): `word`, which is the value at `paths`, is a variable that nothing sets.
  /// The remedy sets it to `like`.
  void need_set(const std::string& paths, const std::string& word, const std::string& like) const;
  bool flag(const std::string& paths, bool absent) const;
  std::int64_t number(const std::string& paths, std::int64_t absent) const;
  /// A whole number from 1 to `most`. Errors (bad_input): another one.
  std::int64_t count(const std::string& paths, std::int64_t absent, std::int64_t most) const;
  std::int64_t required(const std::string& paths) const;  ///< Absent: an error too.
  std::string word(const std::string& paths, const std::string& absent) const;
  /// Words of a list; of a scalar those between its commas and blanks.
  std::vector<std::string> words(const std::string& paths) const;
  /// The meaning of the word, by a list of all words and meanings; absent: the first of them.
  std::string choice(const std::string& paths,
                     const std::vector<std::pair<std::string, std::string>>& meanings) const;
  [[noreturn]] void fail(const std::string& paths, const std::string& problem,
                         const std::string& remedy) const;

  /// Paths of settings that no code has read and that are not null.
  std::vector<std::string> unread() const;

 private:
  std::string scalar(const std::string& paths, const SettingsTree& value) const;

  SettingsTree tree_;
  std::string file_;
  std::set<std::string> given_;  ///< Paths that were set from outside.
  mutable std::set<std::string> read_;
};

/// Puts the values of other settings where a configuration of OmegaConf or Hydra refers to them:
/// "${model.seq_length}", "${.hidden_size}" of the same map, "${..x}" of the one above, products
/// "${multiply:4, ${.hidden_size}}" (also mul) and quotients "${div:8, 2}". A path that begins with
/// a name that a launcher puts before it ("training.model.x") is also looked up without it. What
/// refers to nothing, or to itself, stays as it is.
void resolve_references(Settings& settings);

}  // namespace orrery
