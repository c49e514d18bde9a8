#pragma once

#include <string>
#include <utility>
#include <vector>

namespace orrery {

/// A value of a YAML document, which knows its line.
struct YamlTree {
  enum class Kind { scalar, list, map };
  Kind kind = Kind::scalar;
  std::string text;        ///< Of a scalar, as it is written, without quotes.
  bool is_quoted = false;  ///< Then "true" and "null" are words.
  std::size_t line = 0;    ///< From 0.
  std::vector<YamlTree> items;
  std::vector<std::pair<std::string, YamlTree>> entries;  ///< In the order of the document.

  /// Of a map, where a key stands twice the later; null: it has none.
  const YamlTree* find(const std::string& key) const;
  bool is_null() const {
    return kind == Kind::scalar && !is_quoted && (text.empty() || text == "null" || text == "~");
  }
};

/// The first document of a text. Anchors, aliases and merged maps (<<) are followed; tags are not.
/// Errors (bad_input): no YAML, by its line; nested too deep, or aliases that grow without end.
YamlTree read_yaml(const std::string& text, const std::string& file);

}  // namespace orrery
