#include "sim/sweep/axis.hpp"

#include <algorithm>
#include <cstdint>
#include <set>

#include "sim/core/flag_value.hpp"
#include "sim/core/nearest.hpp"
#include "sim/core/value_list.hpp"
#include "sim/plan/plan_keys.hpp"

namespace orrery {
namespace {

constexpr std::int64_t most_values = 100'000;
constexpr std::int64_t largest_number = std::int64_t{1} << 53;

JsonValue scalar(const std::string& text, const Place& at) {
  return value_of_text(text, at.file.empty() ? at.pointer : at.file + ": " + at.pointer);
}

AxisValue value_of(const JsonValue& json) {
  if (json.is_string()) return {json, json.text(), Operand::Kind::text, 0.0};
  if (json.is_boolean())
    return {json, json.boolean() ? "true" : "false", Operand::Kind::truth,
            json.boolean() ? 1.0 : 0.0};
  if (!json.is_number())
    json.fail("is not a value of an axis", "write a number, a word, true or false");
  // Every number of a plan is whole; that it is in range is what the plan's reader says.
  const std::int64_t number = json.integer(-largest_number, largest_number);
  return {json, std::to_string(number), Operand::Kind::number, static_cast<double>(number)};
}

class AxisReader {
 public:
  AxisReader(const std::string& key, const Place& at, std::int64_t most) : at_{at}, most_{most} {
    const std::vector<std::string>& known = axis_keys();
    if (std::find(known.begin(), known.end(), key) == known.end())
      fail_input(at, "'" + shown_text(key) + "' is not a key that can be swept",
                 suggestion(key, known));
    axis_.key = key;
  }

  void add_list(const std::string& text) {
    for (const std::string& item : split_list(text, at_)) add_item(item);
  }

  void add_item(const std::string& text) {
    if (text.empty()) fail_input(at_, "has an empty value", "write values with one comma between");
    // Which of these divide is known when the sweep is.
    const OpenRange open = open_range_of(axis_.key);
    const bool if_it_divides = open == OpenRange::divides && is_open_range(text, at_);
    const RangeRule rule{open, {}, if_it_divides ? most_with_yes : most_};
    for (const std::string& value : values_of_item(text, at_, rule))
      add(scalar(value, at_), if_it_divides);
  }

  void add(const JsonValue& json, bool if_it_divides = false) {
    AxisValue value = value_of(json);
    value.if_it_divides = if_it_divides;
    check(value);
    if (!texts_.insert(value.text).second)
      fail_input(at_, "has the value '" + shown_text(value.text) + "' twice", "keep one of them");
    if (std::ssize(axis_.values) == most_values) refuse_length();
    axis_.values.push_back(std::move(value));
  }

  Axis axis() {
    if (axis_.values.empty()) fail_input(at_, "has no value", "write at least one");
    return std::move(axis_);
  }

 private:
  // Model, system and calibration are read when the sweep begins.
  void check(const AxisValue& value) const {
    PlanRequest scratch;
    if (axis_.key == "model" || axis_.key == "system" || axis_.key == "calibration")
      value.json.text();
    else if (axis_.key == "gpus")
      value.json.integer(1, 1 << 24);
    else
      set_plan_key(scratch, axis_.key, value.json);
  }

  [[noreturn]] void refuse_length() const {
    fail_input(at_, "has more than 100,000 values", "use a larger step");
  }

  const Place at_;
  const std::int64_t most_;
  Axis axis_;
  std::set<std::string> texts_;
};

}  // namespace

const std::vector<std::string>& axis_keys() {
  static const std::vector<std::string> keys = [] {
    std::vector<std::string> list{"model", "system", "gpus", "calibration"};
    for (const PlanKey& key : plan_keys()) list.push_back(key.name);
    return list;
  }();
  return keys;
}

Axis parse_axis(const std::string& key, const std::string& text, const Place& at,
                std::int64_t most) {
  AxisReader reader{key, at, most};
  reader.add_list(text);
  return reader.axis();
}

Axis read_axis(const std::string& key, const JsonValue& json, std::int64_t most) {
  AxisReader reader{key, json.place(), most};
  if (json.is_string()) {
    reader.add_list(json.text());
  } else if (json.is_array()) {
    for (const JsonValue& element : json.elements())
      element.is_string() ? reader.add_item(element.text()) : reader.add(element);
  } else {
    reader.add(json);
  }
  return reader.axis();
}

}  // namespace orrery
