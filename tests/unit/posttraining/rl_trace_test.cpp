#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "sim/posttraining/rl_text.hpp"

namespace orrery::rl_trace_test {
namespace {

using Json = nlohmann::json;

RlStep step_of(std::optional<int> rollout_gpus, int max_staleness, bool in_flight = false) {
  RlRequest request;
  request.prompts = 16;
  request.samples = 8;
  request.prompt_length = LengthDistribution{LengthDistribution::Kind::fixed, 128, 128};
  request.mean_response = 600.0;
  request.max_response = 1920;
  request.training.recompute = Recompute::full;
  request.rollout_gpus = rollout_gpus;
  request.max_staleness = max_staleness;
  request.in_flight_updates = in_flight;
  return rl_step(make_rl_job(read_model("llama3.1-8b", {}), read_system("dgx-h100", {}),
                             read_rl_framework("nemo-rl", {}), request, 16, {"", ""}));
}

// By process: where its last slice ends, if they follow each other without a gap.
std::map<int, double> ends_of_pools(const Json& events) {
  std::map<int, double> end;
  for (const Json& event : events) {
    if (event.at("ph") != "X") continue;
    double& so_far = end[event.at("pid").get<int>()];
    EXPECT_NEAR(event.at("ts").get<double>(), so_far, 0.01);
    so_far = event.at("ts").get<double>() + event.at("dur").get<double>();
  }
  return end;
}

// Slices of a pool fill the step: phases and waits.
TEST(RlTrace, PoolsAreFilledByPhasesAndWaits) {
  struct Case {
    std::optional<int> rollout_gpus;
    int max_staleness;
    bool in_flight;
  };
  for (const Case& one : {Case{{}, 0, false}, {8, 0, false}, {8, 1, false}, {8, 1, true}}) {
    const RlStep step = step_of(one.rollout_gpus, one.max_staleness, one.in_flight);
    const Json events = Json::parse(rl_trace(step)).at("traceEvents");
    const std::map<int, double> ends = ends_of_pools(events);
    EXPECT_EQ(ends.size(), one.rollout_gpus ? 2u : 1u);
    const double steps = one.max_staleness > 0 ? 3.0 : 1.0;
    for (const auto& [pool, end] : ends) EXPECT_NEAR(end, steps * step.time.si() * 1e6, 0.1);
  }
}

// All samples run at some time and none at the end, which is that of generation.
TEST(RlTrace, SamplesEndWithTheRollout) {
  const RlStep step = step_of(8, 0);
  const Json events = Json::parse(rl_trace(step)).at("traceEvents");
  const double begin = step.time_of(RlPhase::refit).si() * 1e6;
  const double end = begin + step.rollout.time.si() * 1e6;
  std::int64_t most = 0, last = -1, spans = 0;
  double last_answer = 0.0;
  for (const Json& event : events) {
    if (event.at("ph") == "C") {
      last = event.at("args").at("samples").get<std::int64_t>();
      most = std::max(most, last);
      EXPECT_EQ(event.at("pid"), 2);
    }
    if (event.at("ph") == "b") ++spans;
    if (event.at("ph") == "e") {
      --spans;
      last_answer = std::max(last_answer, event.at("ts").get<double>());
    }
  }
  EXPECT_EQ(most, 128);
  EXPECT_EQ(last, 0);
  EXPECT_EQ(spans, 0);
  EXPECT_NEAR(last_answer, end, 0.1);
}

}  // namespace
}  // namespace orrery::rl_trace_test
