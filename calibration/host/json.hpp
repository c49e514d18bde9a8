#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "sim/core/error.hpp"

namespace orrery::calibration {

/// A JSON value (RFC 8259). The machines that have GPUs often have CUDA and a compiler and nothing
/// else, so that this part of the project reads and writes its own files with the standard library
/// alone. Numbers are doubles: whole ones are exact up to 2^53. Objects keep their order.
class Json {
 public:
  using Array = std::vector<Json>;
  using Object = std::vector<std::pair<std::string, Json>>;

  Json() = default;
  Json(bool value) : value_{value} {}
  Json(double value) : value_{value} {}
  Json(std::int64_t value) : value_{static_cast<double>(value)} {}
  Json(int value) : value_{static_cast<double>(value)} {}
  Json(std::string value) : value_{std::move(value)} {}
  Json(const char* value) : value_{std::string{value}} {}
  Json(Array value) : value_{std::move(value)} {}
  Json(Object value) : value_{std::move(value)} {}

  /// The one value that `text` holds. Errors (bad_input) name `file` and line: no JSON, a key twice
  /// in one object, nesting deeper than 32, a number beyond a double, text behind the value.
  static Json parse(const std::string& text, const std::string& file);
  /// One line, numbers as short as they can be read back.
  std::string text() const;

  const bool* boolean() const { return std::get_if<bool>(&value_); }
  const double* number() const { return std::get_if<double>(&value_); }
  const std::string* string() const { return std::get_if<std::string>(&value_); }
  const Array* array() const { return std::get_if<Array>(&value_); }
  const Object* object() const { return std::get_if<Object>(&value_); }
  const Json* find(const std::string& key) const;  ///< Null where this is no object or has no key.

 private:
  std::variant<std::nullptr_t, bool, double, std::string, Array, Object> value_{nullptr};
};

/// A value and where it stands, for readers that say what is wrong with a file. All getters throw
/// Error (bad_input).
class JsonPlace {
 public:
  JsonPlace(const Json& value, Place place) : value_{&value}, place_{std::move(place)} {}

  const Place& place() const { return place_; }
  bool has(const std::string& key) const { return value_->find(key) != nullptr; }
  JsonPlace at(const std::string& key) const;
  std::vector<std::string> keys() const;
  void allow_only(const std::vector<std::string>& known) const;
  std::vector<JsonPlace> elements() const;

  std::string text() const;
  bool boolean() const;
  double number(double least, double most) const;
  std::int64_t integer(std::int64_t least, std::int64_t most) const;
  /// The index of the one of `names` that stands here.
  std::size_t choice(const std::vector<std::string>& names) const;

  [[noreturn]] void fail(const std::string& problem, const std::string& remedy) const {
    fail_input(place_, problem, remedy);
  }

 private:
  const Json* value_;
  Place place_;
};

}  // namespace orrery::calibration
