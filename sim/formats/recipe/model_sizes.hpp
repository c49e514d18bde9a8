#pragma once

#include <cstdint>
#include <string>

#include "sim/model/model.hpp"

namespace orrery {

/// Keys of a model (orrery.model/1) as a recipe says them.
class ModelSizes {
 public:
  void number(const std::string& key, std::int64_t value) { add(key, std::to_string(value)); }
  void flag(const std::string& key, bool value) { add(key, value ? "true" : "false"); }
  void word(const std::string& key, const std::string& value) { add(key, json_quoted(value)); }

  /// Errors (bad_input): sizes that no model has, as of `file`.
  Model model(const std::string& name, const std::string& source, const std::string& file) const;

 private:
  void add(const std::string& key, const std::string& json) {
    entries_ += ", " + json_quoted(key) + ": " + json;
  }
  std::string entries_;
};

/// `tokens` padded to a multiple of `multiple`, which counts as 1 where it is less. Both as a user
/// wrote them: at most 2^30.
std::int64_t padded_rows(std::int64_t tokens, std::int64_t multiple);

}  // namespace orrery
