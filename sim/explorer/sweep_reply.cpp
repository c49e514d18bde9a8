#include "sim/explorer/sweep_reply.hpp"

#include <algorithm>

#include "sim/explorer/answer_json.hpp"
#include "sim/training/result_json.hpp"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

// Which of its axis's values each key has.
Json place_of(const ExploredSweep& asked, const Grid& grid, std::int64_t number) {
  const std::vector<const AxisValue*> values = grid.values(number);
  Json at = Json::array();
  for (const Axis* axis : asked.axes())
    for (std::size_t i = 0; i < values.size(); ++i)
      if (grid.axes()[i] == axis) at.push_back(values[i] - axis->values.data());
  return at;
}

// What a GPU takes for a token, as a step of one token on one GPU would: of plans of any size.
StepRange time_of_a_token(const Result& result) {
  const Plan& plan = result.scenario.plan;
  return result.range.scaled(plan.gpus() / static_cast<double>(plan.gbs * plan.seq));
}

Json figures_json(const Result& result) {
  const Json whole = Json::parse(result_json(result, {.about_this_run = false, .inputs = false}));
  Json json = Json::object();
  for (const char* key : {"step_time_s", "tokens_per_s_per_gpu", "mfu"}) json[key] = whole[key];
  json["memory_bytes"] = whole["memory"]["peak_bytes"];
  json["capacity_bytes"] = whole["memory"]["capacity_bytes"];
  if (whole.contains("bill"))
    for (const char* key : {"training_time_s", "rent_usd"}) json[key] = whole["bill"][key];
  return json;
}

}  // namespace

void sweep_reply(const ExploredSweep& asked, WarmInputs& inputs, const SendPart& send) {
  require_inputs(asked.state);
  const Grid grid{asked.sweep};
  Json axes = Json::array();
  for (const Axis* axis : asked.axes()) {
    Json values = Json::array();
    for (const AxisValue& value : axis->values) values.push_back(value.text);
    axes.push_back({{"key", axis->key}, {"values", std::move(values)}});
  }
  send(http_ok, line_of({{"command", "orrery " + asked.command()},
                         {"points", grid.count_points()},
                         {"axes", std::move(axes)}}));
  std::vector<std::pair<Json, StepRange>> found;
  for (std::int64_t number = 0; number < grid.combinations(); ++number) {
    if (!grid.is_point(number)) continue;
    const ExploredState state = asked.state_at(grid, number);
    Json line{{"at", place_of(asked, grid, number)}};
    try {
      const Result result = estimate_of(state, inputs).result;
      line.update(figures_json(result));
      line["state"] = state_json(state);
      found.emplace_back(line["at"], time_of_a_token(result));
    } catch (const Error& error) {
      line["why_not"] = error.what();
    }
    send(http_ok, line_of(line));
  }
  if (found.empty()) return;
  const auto best = std::min_element(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return a.second.step < b.second.step;
  });
  Json ties = Json::array();
  for (auto one = found.begin(); one != found.end(); ++one)
    if (one != best && difference(best->second, one->second).is_tie()) ties.push_back(one->first);
  send(http_ok, line_of({{"best", best->first}, {"ties", std::move(ties)}}));
}

}  // namespace orrery
