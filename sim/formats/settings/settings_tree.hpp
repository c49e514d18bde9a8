#pragma once

#include <string>
#include <vector>

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

}  // namespace orrery
