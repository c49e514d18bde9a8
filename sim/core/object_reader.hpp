#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/enum_words.hpp"
#include "sim/core/error.hpp"
#include "sim/core/json_value.hpp"
#include "sim/core/nearest.hpp"

namespace orrery {

/// The enumerator that a text of a file names; `names` are in the enumerators' order. Errors
/// (bad_input): another word, "'x' " + `problem`, with the nearest one.
template <class Enum>
Enum choice(const JsonValue& json, const std::vector<std::string>& names = enum_words<Enum>,
            const std::string& problem = "is unknown") {
  return choice<Enum>(json.text(), json.place(), problem, names);
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

/// The source of a figure that a user writes without one.
inline constexpr const char* own_source = "yours";

/// `json` with every plain number or quantity of a key of `keys`, at any depth, written out:
/// "nics_per_node": 8 becomes {"value": 8, "source": "yours"}. Errors in what was plain name the
/// key, not its /value.
JsonValue with_own_sources(const JsonValue& json, const std::vector<std::string>& keys);

/// Places of figures whose source is the user: "nics_per_node", "fabric_shape/spines".
std::vector<std::string> own_figures(const JsonValue& json);

/// Reads the keys of an object one by one and goes on after an error, so that a user gets all of
/// them at once. A key that was not read leaves its value as it was.
class ObjectReader {
 public:
  /// Errors that it keeps: keys that are not in `known`.
  ObjectReader(const JsonValue& json, const std::vector<std::string>& known) : json_{json} {
    has_unknown_ = !errors_.attempt([&] { json.allow_only(known); });
  }

  /// `read(value)` of a key that must be there. If other keys are unknown, one of them is probably
  /// this one misspelled, and its error is enough.
  template <class Read>
  bool required(const std::string& key, Read&& read) {
    if (has_unknown_ && !json_.has(key)) return false;
    return errors_.attempt([&] { std::forward<Read>(read)(json_.at(key)); });
  }

  template <class Read>
  bool optional(const std::string& key, Read&& read) {
    return errors_.attempt([&] {
      if (const auto value = json_.find(key)) std::forward<Read>(read)(*value);
    });
  }

  /// Checks values together, only if each of them is right by itself.
  template <class Check>
  void check(Check&& check) {
    if (errors_.empty()) errors_.attempt(std::forward<Check>(check));
  }
  template <class Read>
  bool attempt(Read&& read) {
    return errors_.attempt(std::forward<Read>(read));
  }

  const JsonValue& json() const { return json_; }
  bool is_sound() const { return errors_.empty(); }
  /// Throws what was found; nothing: all is right.
  void raise() const { errors_.raise(); }

 private:
  JsonValue json_;
  ErrorList errors_;
  bool has_unknown_ = false;
};

}  // namespace orrery
