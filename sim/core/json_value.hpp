#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/error.hpp"
#include "sim/core/units.hpp"

namespace orrery {

/// A value in a JSON document that knows where it stands, so that every error names file and key.
/// Copies are cheap and keep the document alive. All getters throw Error (bad_input).
class JsonValue {
 public:
  /// Reads a regular file of at most 64 MiB. Refuses duplicate keys, which JSON leaves undefined,
  /// and nesting deeper than 100 levels, which no input needs and recursion cannot bear.
  static JsonValue read_file(const std::string& path);
  static JsonValue parse(const std::string& text, const std::string& file);

  const Place& place() const { return place_; }
  bool is_object() const;
  bool is_array() const;
  bool is_string() const;
  bool is_number() const;
  bool is_boolean() const;
  bool operator==(const JsonValue& other) const;  ///< Compares values, not places.

  /// Objects. A key whose value is null counts as absent.
  std::vector<std::string> keys() const;
  bool has(const std::string& key) const;
  JsonValue at(const std::string& key) const;
  std::optional<JsonValue> find(const std::string& key) const;
  /// Refuses any key that is not in `known`, with the nearest known one.
  void allow_only(const std::vector<std::string>& known) const;

  /// A copy of this object in which `key` is `value`. What it holds stands where it stood.
  JsonValue with(const std::string& key, const JsonValue& value) const;
  std::string compact() const;  ///< JSON text in one line.

  /// Arrays.
  std::vector<JsonValue> elements() const;
  /// [[number, ...], ...]: the numbers row after row, each row of `columns` of them. For measured
  /// tables: a JsonValue for each of their tens of thousands of numbers would take longer to make
  /// than the file to parse.
  std::vector<double> number_table(std::size_t columns) const;
  /// [number, ...]: integers in [minimum, maximum], likewise.
  std::vector<std::int64_t> integers(std::int64_t minimum, std::int64_t maximum) const;

  /// Scalars. Numbers must lie in [minimum, maximum]; an integer may be written 4096.0 but not 0.5.
  std::string text() const;
  bool boolean() const;
  double number(double minimum, double maximum) const;
  std::int64_t integer(std::int64_t minimum, std::int64_t maximum) const;
  /// Quantities are strings that carry their unit: "400 GB/s", "80 GiB", "5 us", "312 TFLOP/s".
  BytesPerSecond bandwidth() const;
  Bytes bytes() const;
  Seconds duration() const;
  FlopPerSecond flop_rate() const;

  /// {"value": ..., "source": "..."}: the value, after checking that a source is named.
  JsonValue sourced() const;

  [[noreturn]] void fail(const std::string& problem, const std::string& remedy) const;

 private:
  JsonValue(std::shared_ptr<const nlohmann::json> document, const nlohmann::json* value,
            Place place)
      : document_{std::move(document)}, value_{value}, place_{std::move(place)} {}

  std::shared_ptr<const nlohmann::json> document_;
  const nlohmann::json* value_;
  Place place_;
};

/// `text` as a JSON string, in quotes. What is no UTF-8 becomes U+FFFD.
std::string json_quoted(const std::string& text);

/// `text` as it may be shown in one line of a terminal: escaped, and cut where it is very long.
std::string shown_text(const std::string& text);

}  // namespace orrery
