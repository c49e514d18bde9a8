#include "sim/explorer/explored_sweep.hpp"

#include <algorithm>

#include "sim/core/number_text.hpp"
#include "sim/core/quantity_text.hpp"
#include "sim/core/shell_word.hpp"

namespace orrery {
namespace {

// What counts combinations looks at each.
constexpr std::int64_t most_combinations = 100'000;

// One value of a state is one value of a sweep.
void add_word(SweepBuilder& builder, const std::string& key, const std::string& word) {
  const Place at{"", "--" + key};
  if (word.find(',') != word.npos || word.find("..") != word.npos)
    fail_input(at, "'" + shown_text(word) + "' would be several values in a sweep",
               "leave the key open to sweep others");
  builder.add_axis(key, word, at);
}

}  // namespace

ExploredSweep ExploredSweep::read(const std::string& json, const NamesAllowed& names) {
  const JsonValue object = JsonValue::parse(json, "sweep");
  if (!object.is_object())
    object.fail("is no object", "write {\"state\": {...}, \"axes\": {\"tp\": \"1,2\"}}");
  object.allow_only({"state", "axes"});
  ExploredSweep asked;
  asked.state = ExploredState::read(object.at("state").compact(), names);
  const JsonValue axes = object.at("axes");
  if (!axes.is_object() || axes.keys().empty())
    axes.fail("names no key to vary", "write {\"tp\": \"1,2,4\"}");
  axes.allow_only(axis_keys());
  SweepBuilder builder;
  for (const std::string& key : axes.keys()) {
    const std::string text = axes.at(key).text();
    builder.add_axis(key, text, {"", "--" + key});
    asked.asked_[key] = text;
  }
  for (const std::string& key : axis_keys())
    if (asked.state.says(key) && !asked.asked_.contains(key))
      add_word(builder, key, asked.state.word(key));
  if (asked.state.says("tokens"))
    builder.set_tokens(parse_tokens(asked.state.word("tokens"), {"--tokens", ""}));
  if (asked.state.says("economics")) builder.set_economics(asked.state.word("economics"));
  asked.sweep = builder.sweep();
  for (const Dimension& dimension : asked.sweep.dimensions)
    for (const Axis& axis : dimension.axes) {
      if (!asked.asked_.contains(axis.key)) continue;
      asked.keys.push_back(axis.key);
      for (const AxisValue& value : axis.values) names.require(axis.key, value.text);
    }
  const Grid grid{asked.sweep};
  const std::int64_t points =
      grid.combinations() > most_combinations ? grid.combinations() : grid.count_points();
  if (points > most_points)
    fail_input({"sweep", ""}, "has " + grouped(points) + " points",
               "take fewer values: a page computes at most " + grouped(most_points) +
                   ", and orrery sweep run as many as you like");
  return asked;
}

std::string ExploredSweep::command() const {
  std::string text = "sweep run", axes;
  for (const std::string& key : axis_keys())
    if (const auto found = asked_.find(key); found != asked_.end())
      axes += (axes.empty() ? "" : " ") + key + "=" + found->second;
    else if (state.says(key))
      text += " --" + key + " " + shell_word(state.word(key));
  text += " --sweep " + shell_word(axes);
  for (const char* key : {"tokens", "economics"})
    if (state.says(key)) text += std::string{" --"} + key + " " + shell_word(state.word(key));
  return text + " --out sweep";
}

std::vector<const Axis*> ExploredSweep::axes() const {
  std::vector<const Axis*> list;
  for (const Dimension& dimension : sweep.dimensions)
    for (const Axis& axis : dimension.axes)
      if (asked_.contains(axis.key)) list.push_back(&axis);
  return list;
}

ExploredState ExploredSweep::state_at(const Grid& grid, std::int64_t number) const {
  ExploredState plan = state;
  const std::vector<const AxisValue*> values = grid.values(number);
  for (std::size_t i = 0; i < values.size(); ++i)
    if (const std::string& key = grid.axes()[i]->key; asked_.contains(key))
      plan = plan.with(key, values[i]->text);
  return plan;
}

}  // namespace orrery
