#include "sim/explorer/search_reply.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "sim/explorer/answer_json.hpp"
#include "sim/search/search_json.hpp"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

// Sends what happens, several events at once where they come quickly.
class ProgressLines {
 public:
  ProgressLines(const ExploredSearch& asked, const SendPart& send) : asked_{asked}, send_{send} {}

  void hear(const SearchProgress& progress) {
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
            {"state", state_json(asked_.state_of(plan.flags, plan.gpus, plan.gbs))}};
  }

  const ExploredSearch& asked_;
  const SendPart& send_;
  SearchProgress now_;
  Json plans_ = Json::array();
  Clock::time_point sent_ = Clock::now();
};

}  // namespace

void search_reply(const ExploredSearch& asked, WarmInputs& inputs, const SendPart& send) {
  SearchRequest request = asked.request(inputs);
  request.workers = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  send(http_ok,
       line_of({{"command", "orrery " + asked.command()}, {"max_memory", request.max_memory}}));
  try {
    ProgressLines lines{asked, send};
    const SearchResult found =
        search(request, [&](const SearchProgress& progress) { lines.hear(progress); });
    lines.flush();
    const SearchNames names{
        asked.state.word("model"), {asked.state.word("system")}, asked.state.word("calibration")};
    Json states = Json::array();
    for (const Found& plan : found.plans) {
      const Plan& of = plan.result.scenario.plan;
      states.push_back(state_json(asked.state_of(plan.flags, of.gpus(), of.gbs)));
    }
    send(http_ok, line_of({{"search", Json::parse(search_json(found, request, names))},
                           {"states", std::move(states)}}));
  } catch (const Error& error) {
    send(http_ok, line_of({{"error", error.what()}}));
  }
}

}  // namespace orrery
