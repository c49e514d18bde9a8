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
  std::string text;        ///< Of a scalar, as it is written, without quotes.
  bool is_quoted = false;  ///< Then "true" and "null" are words.
  std::size_t line = 0;    ///< From 0.
  std::vector<SettingsTree> items;
  std::vector<Entry> entries;  ///< In the order of the document.

  /// Of a map, where a key stands twice the later; null: it has none.
  const SettingsTree* find(const std::string& key) const;
  bool is_null() const {
    return kind == Kind::scalar && !is_quoted && (text.empty() || text == "null" || text == "~");
  }
};

/// Of a map. No std::pair, which would have to know the whole tree before it is defined.
struct SettingsTree::Entry {
  std::string key;
  SettingsTree value;
};

/// Settings of a training program by their paths, as "training.seq_len". Where a program renamed
/// one, "training.local_batch_size|training.batch_size" asks for the first that is there. Asking
/// for a setting marks it as read, as it marks what stands in it. Errors (bad_input) name the file,
/// the line, the path and the value; --set for what was given there.
class Settings {
 public:
  Settings(SettingsTree tree, std::string file);

  /// Replaces or adds what the path says, as a command line does for --set.
  void set(const std::string& path, const std::string& value);

  /// Replaces words by what `meaning` makes of a path and its word; nothing: it stays.
  void replace_words(const std::function<std::optional<std::string>(
                         const std::string& path, const std::string& word)>& meaning);

  const std::string& file() const { return file_; }
  Place place() const { return {file_, ""}; }
  /// Of a setting: its line, or --set; of one that is not there the file.
  Place place_of(const std::string& paths) const;
  /// Null: it is not there, or says null.
  const SettingsTree* find(const std::string& paths) const;
  bool has(const std::string& paths) const { return find(paths) != nullptr; }
  /// What stands at one path, without marking it; null: nothing.
  const SettingsTree* look(const std::string& path) const;
  /// The path that is there, of several; else the first of them.
  std::string name(const std::string& paths) const;
  /// Paths of the settings below a path that begin so, in the order of the document.
  std::vector<std::string> names_below(const std::string& path) const;

  bool flag(const std::string& paths, bool absent) const;
  std::int64_t number(const std::string& paths, std::int64_t absent) const;
  std::int64_t required(const std::string& paths) const;  ///< Absent: an error too.
  std::string word(const std::string& paths, const std::string& absent) const;
  /// Words of a list; of a scalar those between its commas and blanks.
  std::vector<std::string> words(const std::string& paths) const;
  /// What the word means, by a list of all words and meanings; absent: the first of them.
  std::string choice(const std::string& paths,
                     const std::vector<std::pair<std::string, std::string>>& meanings) const;
  [[noreturn]] void fail(const std::string& paths, const std::string& problem,
                         const std::string& remedy) const;

  /// Paths of what nobody asked for and is not null, but for those that begin with one of
  /// `inactive`.
  std::vector<std::string> unread(const std::vector<std::string>& inactive) const;

 private:
  std::string scalar(const std::string& paths, const SettingsTree& value) const;

  SettingsTree tree_;
  std::string file_;
  std::set<std::string> given_;  ///< Paths that were set from outside.
  mutable std::set<std::string> read_;
};

}  // namespace orrery
