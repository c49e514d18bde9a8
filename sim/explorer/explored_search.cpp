#include "sim/explorer/explored_search.hpp"

#include "sim/core/quantity_text.hpp"
#include "sim/core/shell_word.hpp"
#include "sim/explorer/knobs.hpp"
#include "sim/plan/plan_keys.hpp"

namespace orrery {
namespace {

// What is of the state's own number of replicas or stages, or has an option of its own.
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
  request.pareto = pareto;
  request.top = top;
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
  if (!pareto && top != SearchRequest{}.top) add("top", std::to_string(top));
  for (const char* key : {"tokens", "economics"}) add(key, state.word(key));
  return text;
}

ExploredState ExploredSearch::state_of(const std::string& flags, int of_gpus,
                                       std::int64_t of_gbs) const {
  ExploredState plan;
  for (const std::string& key : keys_beside_the_plan())
    if (state.says(key)) plan = plan.with(key, state.word(key));
  for (const auto& [key, word] : changes_of(flags, {})) plan = plan.with(key, word);
  return plan.with("gpus", std::to_string(of_gpus)).with("gbs", std::to_string(of_gbs));
}

}  // namespace orrery
