#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/core/error_list.hpp"
#include "sim/core/json_value.hpp"

namespace orrery {

/// Reads the keys of an object one by one and goes on after an error, so that a user hears of all
/// of them at once. What was not read keeps the value that it had.
class ObjectReader {
 public:
  /// Errors that it keeps: keys that are not in `known`.
  ObjectReader(const JsonValue& json, const std::vector<std::string>& known) : json_{json} {
    has_unknown_ = !errors_.attempt([&] { json.allow_only(known); });
  }

  /// `read(value)` of a key that must be there. Where other keys are unknown, one of them is
  /// probably this one misspelt, and says so.
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

  /// What is wrong with values together; only asked while each by itself is right.
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
