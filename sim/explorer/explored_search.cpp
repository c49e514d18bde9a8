#include "sim/explorer/explored_search.hpp"

#include <algorithm>

#include "sim/core/number_text.hpp"
#include "sim/core/quoting.hpp"
#include "sim/explorer/state_parameters.hpp"
#include "sim/plan/plan_keys.hpp"

namespace orrery {
namespace {

// These keys follow from the state's number of replicas or stages, or have an option of their own.
bool follows(const std::string& key) { return key == "gbs" || key == "dp" || key == "layers"; }

}  // namespace

ExploredSearch ExploredSearch::read(const std::string& json, const NamesAllowed& names) {
  const JsonValue object = JsonValue::parse(json, "search");
  if (!object.is_object()) object.fail("is no object", "write {\"state\": {...}}");
  object.allow_only({"state", "gpus", "gbs", "hold", "objective", "pareto", "top"});
  ExploredSearch search;
  search.state = ExploredState::read(object.at("state").compact(), names);
  const auto text = [&](const char* key) {
    const auto value = object.find(key);
    return value ? value->text() : "";
  };
  search.gpus = text("gpus").empty() ? search.state.word("gpus") : text("gpus");
  search.gbs = text("gbs").empty() ? search.state.word("gbs") : text("gbs");
  search.objective = text("objective");
  if (const auto pareto = object.find("pareto")) search.pareto = pareto->boolean();
  if (const auto top = object.find("top")) search.top = static_cast<int>(top->integer(1, 1000));
  if (const auto hold = object.find("hold"))
    for (const JsonValue& key : hold->elements()) {
      if (!find_plan_key(key.text())) key.fail("is no key of a plan", "hold keys of the state");
      search.hold.insert(key.text());
    }
  return search;
}

std::vector<std::string> ExploredSearch::fixed_keys() const {
  std::vector<std::string> keys;
  for (const PlanKey& key : plan_keys())
    if (state.says(key.name) && !follows(key.name) && (!key.searched || hold.contains(key.name)))
      keys.push_back(key.name);
  return keys;
}

SearchRequest ExploredSearch::request(WarmInputs& inputs) const {
  for (const auto& [key, word] : {std::pair{"model", state.word("model")},
                                  {"system", state.word("system")},
                                  {"gpus", gpus},
                                  {"gbs", gbs}})
    if (word.empty())
      fail_input({"search", ""}, "the key '" + std::string{key} + "' is missing", "name one");
  SearchRequest request;
  request.model = inputs.model(state.word("model"));
  request.systems = {inputs.context(state.word("system"), state.word("calibration")).system()};
  for (const std::int64_t n : parse_numbers(gpus, "gpus"))
    request.gpus.push_back(static_cast<int>(n));
  request.gbs = parse_numbers(gbs, "gbs");
  for (const std::string& key : fixed_keys())
    request.fixed.push_back(parse_fixed(key + "=" + state.word(key), request.gpus));
  if (!objective.empty()) request.goal = parse_goal(objective);
  if (request.goal == Goal::gpus)
    fail_input({"", "--objective"}, "the fewest GPUs for what?",
               "a deadline is an option of orrery search");
  if (state.says("tokens")) request.tokens = parse_tokens(state.word("tokens"), {"--tokens", ""});
  if (request.goal == Goal::training_time && !request.tokens)
    fail_input({"", "--objective"}, "the time for how much training?", "add --tokens 15T");
  request.economics = state.word("economics");
  if (pareto) request.list.kind = BestList::Kind::front;
  request.list.most = top;
  return request;
}

std::string ExploredSearch::command() const {
  std::string text = "search";
  const auto add = [&](const std::string& option, const std::string& word) {
    if (!word.empty()) text += " --" + option + " " + shell_word(word);
  };
  for (const char* key : {"model", "system", "calibration"}) add(key, state.word(key));
  add("gpus", gpus);
  add("gbs", gbs);
  for (const std::string& key : fixed_keys()) add("fix", key + "=" + state.word(key));
  if (!objective.empty() && objective != "step_time") add("objective", objective);
  if (pareto) text += " --pareto";
  if (!pareto && top != BestList{}.most) add("top", std::to_string(top));
  for (const char* key : {"tokens", "economics"}) add(key, state.word(key));
  return text;
}

ExploredState ExploredSearch::state_of(const std::string& flags, int of_gpus,
                                       std::int64_t of_gbs) const {
  ExploredState plan;
  for (const std::string& key : keys_outside_plan())
    if (state.says(key)) plan = plan.with(key, state.word(key));
  for (const auto& [key, word] : changes_of(flags, {})) plan = plan.with(key, word);
  return plan.with("gpus", std::to_string(of_gpus)).with("gbs", std::to_string(of_gbs));
}

namespace {

// Counting looks at each combination.
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
  ExploredSweep query;
  query.state = ExploredState::read(object.at("state").compact(), names);
  const JsonValue axes = object.at("axes");
  if (!axes.is_object() || axes.keys().empty())
    axes.fail("names no key to vary", "write {\"tp\": \"1,2,4\"}");
  axes.allow_only(axis_keys());
  SweepBuilder builder;
  for (const std::string& key : axes.keys()) {
    const std::string text = axes.at(key).text();
    builder.add_axis(key, text, {"", "--" + key});
    query.typed_[key] = text;
  }
  for (const std::string& key : axis_keys())
    if (query.state.says(key) && !query.typed_.contains(key))
      add_word(builder, key, query.state.word(key));
  if (query.state.says("tokens"))
    builder.set_tokens(parse_tokens(query.state.word("tokens"), {"--tokens", ""}));
  if (query.state.says("economics")) builder.set_economics(query.state.word("economics"));
  query.sweep = builder.sweep();
  for (const Dimension& dimension : query.sweep.dimensions)
    for (const Axis& axis : dimension.axes) {
      if (!query.typed_.contains(axis.key)) continue;
      query.keys.push_back(axis.key);
      for (const AxisValue& value : axis.values) names.require(axis.key, value.text);
    }
  const Grid grid{query.sweep};
  const std::int64_t points =
      grid.combinations() > most_combinations ? grid.combinations() : grid.count_points();
  if (points > most_points)
    fail_input({"sweep", ""}, "has " + grouped(points) + " points",
               "take fewer values: a page computes at most " + grouped(most_points) +
                   ", and orrery sweep run as many as you like");
  return query;
}

std::string ExploredSweep::command() const {
  std::string text = "sweep run", axes;
  for (const std::string& key : axis_keys())
    if (const auto found = typed_.find(key); found != typed_.end())
      axes += (axes.empty() ? "" : " ") + key + "=" + found->second;
    else if (state.says(key))
      text += " --" + key + " " + shell_word(state.word(key));
  text += " --sweep " + shell_word(axes);
  for (const char* key : {"tokens", "economics"})
    if (state.says(key)) text += std::string{" --"} + key + " " + shell_word(state.word(key));
  return text + " --output sweep";
}

std::vector<const Axis*> ExploredSweep::axes() const {
  std::vector<const Axis*> list;
  for (const Dimension& dimension : sweep.dimensions)
    for (const Axis& axis : dimension.axes)
      if (typed_.contains(axis.key)) list.push_back(&axis);
  return list;
}

ExploredState ExploredSweep::state_at(const Grid& grid, std::int64_t number) const {
  ExploredState plan = state;
  const std::vector<const AxisValue*> values = grid.values(number);
  for (std::size_t i = 0; i < values.size(); ++i)
    if (const std::string& key = grid.axes()[i]->key; typed_.contains(key))
      plan = plan.with(key, values[i]->text);
  return plan;
}

}  // namespace orrery
