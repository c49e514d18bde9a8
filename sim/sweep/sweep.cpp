#include "sim/sweep/sweep.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <set>
#include <sstream>

#include "sim/core/nearest.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/object_reader.hpp"
#include "sim/core/shard.hpp"
#include "sim/core/value_list.hpp"
#include "sim/plan/plan_keys.hpp"
#include "sim/training/result_figures.hpp"

namespace orrery {

SweepFigures sweep_figures(const MemoryReport& memory) {
  return {{"memory_peak_bytes", memory.peak().si()},
          {"memory_capacity_bytes", memory.capacity.si()}};
}

SweepFigures sweep_figures(const Result& result) {
  SweepFigures all;
  for (const auto& [name, value] : step_figures(result)) all.emplace_back(name, value);
  for (const auto& [name, seconds] : breakdown_figures(result.busiest()))
    all.emplace_back("breakdown_" + name + "_s", seconds);
  for (const auto& [name, share] : provenance_figures(result))
    all.emplace_back("provenance_" + name, share);
  if (const std::optional<Bill>& bill = result.bill) {
    all.emplace_back("bill_steps", bill->steps);
    all.emplace_back("bill_training_time_s", bill->time.si());
    all.emplace_back("bill_training_days", bill->time.si() / 86400.0);
    for (const auto& [name, range] : bill_ranges(*bill)) {
      const bool known = range.known();
      all.emplace_back("bill_" + name + "_low", known ? std::optional{range.low} : std::nullopt);
      all.emplace_back("bill_" + name + "_high", known ? std::optional{range.high} : std::nullopt);
    }
  }
  const SweepFigures memory = sweep_figures(result.memory);
  all.insert(all.end(), memory.begin(), memory.end());
  return all;
}

std::string figure_text(const std::string& name, double value) {
  if (name.ends_with("_bytes")) return std::to_string(std::llround(value));
  char text[64];
  return {text, std::to_chars(text, text + sizeof text, rounded_figure(name, value)).ptr};
}

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
  // Every number of a plan is whole; the plan's reader checks its range.
  const std::int64_t number = json.integer(-largest_number, largest_number);
  return {json, std::to_string(number), Operand::Kind::number, static_cast<double>(number)};
}

class AxisReader {
 public:
  /// `is_held`: the value names an input that a plan file holds.
  AxisReader(const std::string& key, const Place& at, std::int64_t most, bool is_held = false)
      : at_{at}, most_{most}, is_held_{is_held} {
    choice<std::size_t>(key, at, "is not a key that can be swept", axis_keys());
    axis_.key = key;
  }

  void add_list(const std::string& text) {
    for (const std::string& item : split_list(text, at_)) add_item(item);
  }

  void add_item(const std::string& text) {
    if (text.empty()) fail_input(at_, "has an empty value", "write values with one comma between");
    // The sweep's GPUs decide later which of these divide.
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
    if (is_held_ || axis_.key == "model" || axis_.key == "system" || axis_.key == "calibration")
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
  const bool is_held_;
  Axis axis_;
  std::set<std::string> texts_;
};

}  // namespace

const std::vector<std::string>& axis_keys() {
  static const std::vector<std::string> keys = [] {
    std::vector<std::string> list = names_of(plan_keys());
    list.insert(list.begin(), {"model", "system", "gpus", "calibration"});
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

namespace {

constexpr const char* schema = "orrery.sweep/1";

std::size_t order_of(const Axis& axis) {
  const std::vector<std::string>& keys = axis_keys();
  return static_cast<std::size_t>(std::find(keys.begin(), keys.end(), axis.key) - keys.begin());
}

bool comes_before(const Axis& a, const Axis& b) { return order_of(a) < order_of(b); }

// "gbs=256..8192*2 mbs=1,2,4"
std::vector<Axis> parse_axes(const std::string& text, const Place& at, std::int64_t most) {
  std::vector<Axis> axes;
  std::istringstream words{text};
  for (std::string word; words >> word;) {
    const std::size_t sign = word.find('=');
    if (sign == word.npos || sign == 0)
      fail_input(at, "'" + shown_text(word) + "' is not an axis", "write it like gbs=256..8192*2");
    const std::string key = word.substr(0, sign);
    axes.push_back(
        parse_axis(key, word.substr(sign + 1), {"", at.pointer + " " + shown_text(key)}, most));
  }
  if (axes.empty()) fail_input(at, "names no axis", "write it like 'gbs=256..8192*2 mbs=1,2,4'");
  return axes;
}

Dimension zipped(std::vector<Axis> axes, const Place& at) {
  for (const Axis& axis : axes)
    for (const AxisValue& value : axis.values)
      if (value.if_it_divides)
        fail_input(at,
                   "a range of '" + axis.key +
                       "' has the values that divide each point's GPUs, "
                       "which cannot move together with others",
                   "say how it goes on: " + axis.key + "=1..8*2");
  for (const Axis& axis : axes)
    if (axis.values.size() != axes.front().values.size())
      fail_input(at,
                 "'" + axes.front().key + "' has " + std::to_string(axes.front().values.size()) +
                     " values and '" + axis.key + "' " + std::to_string(axis.values.size()),
                 "axes that move together need as many values each");
  std::sort(axes.begin(), axes.end(), comes_before);
  return {std::move(axes)};
}

// Removes the values of a range of degrees that divide none of the sweep's GPUs.
void keep_what_divides(std::vector<Dimension>& dimensions, std::int64_t most) {
  std::vector<std::int64_t> gpus;
  for (const Dimension& dimension : dimensions)
    for (const Axis& axis : dimension.axes)
      for (const AxisValue& value : axis.values)
        if (axis.key == "gpus") gpus.push_back(std::llround(value.number));
  const auto divides_none = [&](const AxisValue& value) {
    const std::int64_t degree = std::llround(value.number);
    return value.if_it_divides && !gpus.empty() &&
           std::none_of(gpus.begin(), gpus.end(), [&](std::int64_t n) { return n % degree == 0; });
  };
  for (Dimension& dimension : dimensions)
    for (Axis& axis : dimension.axes) {
      const Place at{"", "--" + axis.key};
      std::erase_if(axis.values, divides_none);
      const auto left = std::count_if(axis.values.begin(), axis.values.end(),
                                      [](const AxisValue& value) { return value.if_it_divides; });
      if (axis.values.empty())
        fail_input(at, "none of its values divides the GPUs", "choose a range with a divisor");
      if (left > most) refuse_long_range(left, most, at);
    }
}

std::string json_of(const AxisValue& value) {
  return value.kind == Operand::Kind::text ? json_quoted(value.text) : value.text;
}

std::string json_of(const Axis& axis) {
  std::string text = json_quoted(axis.key) + ": ";
  // A text is a list, in which a comma ends a value; an item of an array keeps it.
  if (axis.values.size() == 1 && axis.values.front().text.find(',') == std::string::npos)
    return text + json_of(axis.values.front());
  for (const AxisValue& value : axis.values)
    text += (&value == &axis.values.front() ? "[" : ", ") + json_of(value);
  return text + "]";
}

}  // namespace

void SweepBuilder::read(const JsonValue& json) {
  require_schema(json, schema);
  json.allow_only({"schema", "axes", "zip", "where", "memory_only", "tokens", "economics", "plan",
                   "shards", "made_with", "points"});
  if (const auto plan = json.find("plan")) {
    plan->allow_only({"file", "keys", "held"});
    set_plan(plan->at("file").text());
    const JsonValue keys = plan->at("keys"), held = plan->at("held");
    for (const std::string& key : keys.keys()) add_plan_key(key, keys.at(key), held.find(key));
  }
  const JsonValue axes = json.at("axes");
  axes.allow_only(axis_keys());
  for (const std::string& key : axes.keys())
    if (const auto value = axes.find(key)) add({{read_axis(key, *value, most_)}}, value->place());
  if (const auto zips = json.find("zip"))
    for (const JsonValue& group : zips->elements()) {
      std::vector<Axis> together;
      group.allow_only(axis_keys());
      for (const std::string& key : group.keys())
        together.push_back(read_axis(key, group.at(key), most_));
      if (together.empty()) group.fail("names no axis", "write {\"gpus\": [...], \"gbs\": [...]}");
      add(zipped(std::move(together), group.place()), group.place());
    }
  if (const auto conditions = json.find("where"))
    for (const JsonValue& condition : conditions->elements())
      add_conditions(condition.text(), condition.place());
  if (const auto memory_only = json.find("memory_only"))
    sweep_.memory_only = memory_only->boolean();
  if (const auto tokens = json.find("tokens"))
    sweep_.tokens = tokens->is_string() ? parse_tokens(tokens->text(), tokens->place())
                                        : tokens->number(1, 1e18);
  if (const auto economics = json.find("economics")) sweep_.economics = economics->text();
  if (const auto shards = json.find("shards"))
    shards_ = static_cast<int>(shards->integer(1, largest_shard_count));
  for (const Dimension& dimension : sweep_.dimensions)
    for (const Axis& axis : dimension.axes) from_file_.insert(axis.key);
}

void SweepBuilder::add_plan_key(const std::string& key, const JsonValue& value,
                                const std::optional<JsonValue>& held) {
  PlanRequest unused;
  const std::vector<std::string>& known = axis_keys();
  if (std::find(known.begin(), known.end(), key) == known.end()) set_plan_key(unused, key, value);
  AxisReader reader{key, value.place(), most_, held.has_value()};
  reader.add(value);
  add({{reader.axis()}}, value.place());
  if (held) sweep_.plan.held.insert_or_assign(key, *held);
  sweep_.plan.keys.insert(key);
  from_file_.insert(key);
}

void SweepBuilder::add_axes(const std::string& text, const Place& at) {
  for (Axis& axis : parse_axes(text, at, most_)) add({{std::move(axis)}}, at);
}

void SweepBuilder::add_zip(const std::string& text, const Place& at) {
  add(zipped(parse_axes(text, at, most_), at), at);
}

void SweepBuilder::add_axis(const std::string& key, const std::string& values, const Place& at) {
  add({{parse_axis(key, values, at, most_)}}, at);
}

void SweepBuilder::add_conditions(const std::string& text, const Place& at) {
  for (Expression& part : Expression::parse(text, at)) sweep_.conditions.push_back(std::move(part));
}

void SweepBuilder::add(Dimension dimension, const Place& at) {
  for (const Axis& axis : dimension.axes) {
    const auto has_it = [&](const Dimension& other) {
      return std::any_of(other.axes.begin(), other.axes.end(),
                         [&](const Axis& there) { return there.key == axis.key; });
    };
    const auto old = std::find_if(sweep_.dimensions.begin(), sweep_.dimensions.end(), has_it);
    if (old == sweep_.dimensions.end()) continue;
    if (from_file_.erase(axis.key) == 0)
      fail_input(at, "the key '" + axis.key + "' is given twice", "keep one of them");
    if (old->axes.size() > 1)
      fail_input(at, "'" + axis.key + "' moves together with other keys in the file",
                 "change it there");
    sweep_.dimensions.erase(old);
    sweep_.plan.held.erase(axis.key);
    sweep_.plan.keys.erase(axis.key);
  }
  const auto place =
      std::find_if(sweep_.dimensions.begin(), sweep_.dimensions.end(), [&](const Dimension& other) {
        return comes_before(dimension.axes.front(), other.axes.front());
      });
  sweep_.dimensions.insert(place, std::move(dimension));
}

Sweep SweepBuilder::sweep() const {
  const auto has = [&](const std::string& key) {
    for (const Dimension& dimension : sweep_.dimensions)
      for (const Axis& axis : dimension.axes)
        if (axis.key == key) return true;
    return false;
  };
  // Every point needs these.
  if (!has("model")) fail_input({}, "the sweep names no model", "add --model: orrery list models");
  if (!has("system"))
    fail_input({}, "the sweep names no system", "add --system: orrery list systems");
  if (!has("gbs")) fail_input({}, "the sweep names no gbs", "add --gbs, sequences in a step");
  if (!has("gpus") && !has("dp"))
    fail_input({}, "the sweep names neither gpus nor dp", "add --gpus (dp follows from it)");
  if (!sweep_.economics.empty() && !sweep_.tokens)
    fail_input({"", "--economics"}, "prices of what?", "say how long to train: --tokens 15T");
  if (sweep_.memory_only && sweep_.tokens)
    fail_input({"", "--tokens"}, "what a training costs needs its step time",
               "leave --memory-only or --tokens out");
  Sweep sweep = sweep_;
  // The plan's dp belongs to its own number of replicas.
  std::set<std::string>& of_plan = sweep.plan.keys;
  const auto is_other = [&](const char* key) { return has(key) && !of_plan.contains(key); };
  if (of_plan.contains("dp") && has("gpus") &&
      (is_other("gpus") || is_other("tp") || is_other("pp") || is_other("cp"))) {
    std::erase_if(sweep.dimensions,
                  [](const Dimension& dimension) { return dimension.axes.front().key == "dp"; });
    of_plan.erase("dp");
  }
  keep_what_divides(sweep.dimensions, most_);
  return sweep;
}

std::string sweep_json(const Sweep& sweep, const std::string& more) {
  std::string text = "{\n  \"schema\": \"" + std::string{schema} + "\",\n" + more;
  text += "  \"memory_only\": " + std::string{sweep.memory_only ? "true" : "false"} + ",\n";
  if (sweep.tokens) text += "  \"tokens\": " + figure_text("tokens", *sweep.tokens) + ",\n";
  if (!sweep.economics.empty()) text += "  \"economics\": " + json_quoted(sweep.economics) + ",\n";
  const auto of_plan = [&](const Dimension& dimension) {
    return sweep.plan.keys.contains(dimension.axes.front().key);
  };
  const auto list_axes = [&](bool plan, const std::string& indent) {
    const char* between = "";
    for (const Dimension& dimension : sweep.dimensions) {
      if (dimension.axes.size() > 1 || of_plan(dimension) != plan) continue;
      const Axis& axis = dimension.axes.front();
      text += between + indent +
              (plan ? json_quoted(axis.key) + ": " + json_of(axis.values.front()) : json_of(axis));
      between = ",";
    }
  };
  if (!sweep.plan.file.empty()) {
    text += "  \"plan\": {\n    \"file\": " + json_quoted(sweep.plan.file) + ",\n    \"keys\": {";
    list_axes(true, "\n      ");
    text += "\n    },\n    \"held\": {";
    for (const auto& [key, input] : sweep.plan.held)
      text += (key == sweep.plan.held.begin()->first ? "\n      " : ",\n      ") +
              json_quoted(key) + ": " + input.compact();
    text += "\n    }\n  },\n";
  }
  text += "  \"axes\": {";
  list_axes(false, "\n    ");
  text += "\n  },\n  \"zip\": [";
  const char* comma = "";
  for (const Dimension& dimension : sweep.dimensions)
    if (dimension.axes.size() > 1) {
      text += std::string{comma} + "\n    {";
      for (const Axis& axis : dimension.axes)
        text += (&axis == &dimension.axes.front() ? "" : ", ") + json_of(axis);
      text += "}";
      comma = ",";
    }
  text += std::string{*comma ? "\n  " : ""} + "],\n  \"where\": [";
  for (const Expression& condition : sweep.conditions)
    text += (&condition == &sweep.conditions.front() ? "" : ", ") + json_quoted(condition.text());
  return text + "]\n}\n";
}

}  // namespace orrery
