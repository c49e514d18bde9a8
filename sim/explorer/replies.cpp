#include "sim/explorer/replies.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "sim/core/number_text.hpp"
#include "sim/core/quoting.hpp"
#include "sim/core/value_list.hpp"
#include "sim/explorer/answer_json.hpp"
#include "sim/explorer/state_parameters.hpp"
#include "sim/plan/plan_keys.hpp"
#include "sim/search/search_text.hpp"
#include "sim/training/result_json.hpp"

namespace orrery {

void require_inputs(const ExploredState& state) {
  for (const char* key : {"model", "system", "gpus"})
    if (!state.says(key))
      fail_input({"state", ""}, "the key '" + std::string{key} + "' is missing", "name one");
  if (state.says("economics") && !state.says("tokens"))
    fail_input({"--economics", ""}, "prices of what?", "say how long to train: --tokens 15T");
}

Estimate estimate_of(const ExploredState& state, WarmInputs& inputs) {
  const StateInputs read{state, inputs};
  const Scenario scenario = read.scenario(state);
  std::optional<Economics> economics;
  if (state.says("tokens")) economics = read_economics(scenario.system, state.word("economics"));
  Estimate answer = estimate(scenario, read.context, inputs.detail());
  if (economics)
    answer.result.bill = bill_of(scenario, answer.result.step_time,
                                 parse_tokens(state.word("tokens"), {"--tokens", ""}), *economics);
  return answer;
}

namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t most_times = 16;  // Larger and smaller batches than the state's.

std::vector<std::string> batches_of(const ExploredState& state, WarmInputs& inputs) {
  const StateInputs read{state, inputs};
  std::vector<std::string> words;
  for (const StateParameter& parameter : state_parameters(state, read)) {
    if (parameter.name != "gbs" || parameter.now.empty()) continue;
    const std::int64_t now = std::stoll(parameter.now);
    for (const ParameterValue& value : parameter.values) {
      const std::int64_t batch = std::stoll(value.word);
      if (value.why_not.empty() && batch * most_times >= now && batch <= most_times * now)
        words.push_back(value.word);
    }
  }
  return words;
}

std::string command_of(const ExploredState& state, const std::vector<std::string>& batches) {
  std::string text = "orrery sweep run";
  const auto add = [&](const std::string& key) {
    if (state.says(key)) text += " --" + key + " " + shell_word(state.word(key));
  };
  for (const char* key : {"model", "system", "calibration", "gpus"}) add(key);
  for (const PlanKey& key : plan_keys())
    if (key.name != "gbs") add(key.name);
  return text + " --sweep gbs=" + joined(batches, ",") + " --output batches";
}

}  // namespace

void batches_reply(const ExploredState& state, WarmInputs& inputs, const SendPart& send) {
  require_inputs(state);
  const std::vector<std::string> batches = batches_of(state, inputs);
  send(http_ok, line_of({{"command", command_of(state, batches)}, {"batches", batches.size()}}));
  for (const std::string& batch : batches) {
    Json line{{"gbs", std::stoll(batch)}};
    try {
      const Estimate found =
          estimate_of(state.with("gbs", batch).with("tokens", "").with("economics", ""), inputs);
      const Json result =
          Json::parse(result_json(found.result, {.about_this_run = false, .inputs = false}));
      for (const char* key : {"step_time_s", "tokens_per_s_per_gpu"}) line[key] = result[key];
      line["memory_bytes"] = result["memory"]["peak_bytes"];
      line["capacity_bytes"] = result["memory"]["capacity_bytes"];
    } catch (const Error& error) {
      line["why_not"] = error.what();
    }
    send(http_ok, line_of(line));
  }
}

namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

// Sends progress, several events at once if they come quickly.
class ProgressLines {
 public:
  ProgressLines(const ExploredSearch& query, const SendPart& send) : query_{query}, send_{send} {}

  void on_progress(const SearchProgress& progress) {
    now_ = progress;
    if (progress.plan) plans_.push_back(plan_json(*progress.plan));
    constexpr std::chrono::milliseconds pause{80};  // A reader sees no more.
    if (Clock::now() - sent_ >= pause) flush();
  }

  void flush() {
    sent_ = Clock::now();
    Json json{{"parts", now_.parts}, {"parts_done", now_.parts_done}, {"legal", now_.legal},
              {"fits", now_.fits},   {"simulated", now_.simulated},   {"best", nullptr},
              {"bound", nullptr},    {"plans", std::move(plans_)},    {"leading", now_.leading}};
    if (now_.best) json["best"] = *now_.best;
    if (now_.bound) json["bound"] = *now_.bound;
    send_(http_ok, line_of({{"progress", std::move(json)}}));
    plans_ = Json::array();
  }

 private:
  Json plan_json(const SimulatedPlan& plan) const {
    return {{"number", plan.number},
            {"gpus", plan.gpus},
            {"gbs", plan.gbs},
            {"flags", plan.flags},
            {"step_time_s", plan.step.si()},
            {"tokens_per_s_per_gpu", plan.tokens_per_s_per_gpu},
            {"memory", plan.memory},
            {"state", state_json(query_.state_of(plan.flags, plan.gpus, plan.gbs))}};
  }

  const ExploredSearch& query_;
  const SendPart& send_;
  SearchProgress now_;
  Json plans_ = Json::array();
  Clock::time_point sent_ = Clock::now();
};

}  // namespace

void search_reply(const ExploredSearch& query, WarmInputs& inputs, const SendPart& send) {
  SearchRequest request = query.request(inputs);
  request.workers = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  send(http_ok,
       line_of({{"command", "orrery " + query.command()}, {"max_memory", request.max_memory}}));
  try {
    ProgressLines lines{query, send};
    const SearchResult found =
        search(request, [&](const SearchProgress& progress) { lines.on_progress(progress); });
    lines.flush();
    const SearchNames names{
        query.state.word("model"), {query.state.word("system")}, query.state.word("calibration")};
    Json states = Json::array();
    for (const Found& plan : found.plans) {
      const Plan& of = plan.result.scenario.plan;
      states.push_back(state_json(query.state_of(plan.flags, of.gpus(), of.gbs)));
    }
    send(http_ok, line_of({{"search", Json::parse(search_json(found, request, names))},
                           {"states", std::move(states)}}));
  } catch (const Error& error) {
    send(http_ok, line_of({{"error", error.what()}}));
  }
}

namespace {

using Json = nlohmann::ordered_json;

// Index of each key's value on its axis.
Json place_of(const ExploredSweep& query, const Grid& grid, std::int64_t number) {
  const std::vector<const AxisValue*> values = grid.values(number);
  Json at = Json::array();
  for (const Axis* axis : query.axes())
    for (std::size_t i = 0; i < values.size(); ++i)
      if (grid.axes()[i] == axis) at.push_back(values[i] - axis->values.data());
  return at;
}

// Time of one token on one GPU, which is comparable between plans of any size.
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

void sweep_reply(const ExploredSweep& query, WarmInputs& inputs, const SendPart& send) {
  require_inputs(query.state);
  const Grid grid{query.sweep};
  Json axes = Json::array();
  for (const Axis* axis : query.axes()) {
    Json values = Json::array();
    for (const AxisValue& value : axis->values) values.push_back(value.text);
    axes.push_back({{"key", axis->key}, {"values", std::move(values)}});
  }
  send(http_ok, line_of({{"command", "orrery " + query.command()},
                         {"points", grid.count_points()},
                         {"axes", std::move(axes)}}));
  std::vector<std::pair<Json, StepRange>> found;
  for (std::int64_t number = 0; number < grid.combinations(); ++number) {
    if (!grid.is_point(number)) continue;
    const ExploredState state = query.state_at(grid, number);
    Json line{{"at", place_of(query, grid, number)}};
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
