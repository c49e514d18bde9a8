#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "sim/core/json_value.hpp"
#include "sim/core/nearest.hpp"

namespace orrery {

/// The enumerator whose name the text of `json` is; `names` are in the enumerators' order.
/// Errors (bad_input): a word that is none of them, with the nearest one.
template <class Enum>
Enum choice(const JsonValue& json, const std::vector<std::string>& names) {
  const std::string word = json.text();
  const auto found = std::find(names.begin(), names.end(), word);
  if (found == names.end())
    json.fail("'" + shown_text(word) + "' is unknown", suggestion(word, names));
  return static_cast<Enum>(found - names.begin());
}

/// Refuses a document of another kind or version, before its keys are read.
inline void require_schema(const JsonValue& json, const std::string& schema) {
  if (!json.has("schema"))
    json.fail("the key 'schema' is missing", "add \"schema\": \"" + schema + "\"");
  const JsonValue found = json.at("schema");
  if (found.text() != schema)
    found.fail("'" + shown_text(found.text()) + "' is not what is read here",
               "write \"" + schema + "\"");
}

/// The text of `key`, which must not be empty.
inline std::string required_text(const JsonValue& json, const std::string& key) {
  const JsonValue found = json.at(key);
  if (found.text().empty()) found.fail("is empty", "write the " + key);
  return found.text();
}

}  // namespace orrery
