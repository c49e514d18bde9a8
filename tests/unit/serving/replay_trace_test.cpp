#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "sim/serving/request_traffic.hpp"
#include "sim/serving/serving_run_text.hpp"
#include "tests/support/error_text.hpp"

namespace orrery::replay_trace_test {
namespace {

using Json = nlohmann::json;

ServingRun run_of(const char* engine, int replicas, std::int64_t requests) {
  DeploymentRequest request;
  request.tp = 1;
  const PricedServing priced{
      make_serving_setup("llama3.1-8b", "dgx-h100", engine, request, replicas, {"", ""})};
  RequestTraffic traffic;
  traffic.concurrency = 12;
  traffic.requests = requests;
  traffic.prompt = parse_length_distribution("100..900", {});
  traffic.output = parse_length_distribution("2..80", {});
  ServingLoad load;
  load.list = sample_requests(traffic);
  load.replay.keeps_times = load.replay.keeps_iterations = true;
  return serve_requests(priced, load, {"", ""});
}

TEST(ReplayTrace, ShowsEveryIterationAndEveryRequest) {
  for (const char* engine : {"vllm", "sglang", "trtllm"}) {
    const ServingRun run = run_of(engine, 2, 60);
    const ReplayTotals& totals = run.replay.counts.totals;
    const Json events = Json::parse(replay_trace(run, {"", "--perfetto"})).at("traceEvents");
    std::map<int, double> free_at;  // By process: iterations of a replica do not overlap.
    std::map<std::string, int> spans;
    std::int64_t decoded = 0, prompts = 0, iterations = 0;
    double busy_us = 0.0;
    for (const Json& event : events) {
      const std::string phase = event.at("ph");
      if (phase == "b") ++spans[event.at("name")];
      if (phase != "X") continue;
      const Json& facts = event.at("args");
      double& free = free_at[event.at("pid")];
      EXPECT_GE(event.at("ts").get<double>(), free - 0.002);
      free = event.at("ts").get<double>() + event.at("dur").get<double>();
      busy_us += event.at("dur").get<double>();
      iterations += facts.at("steps").get<std::int64_t>();
      decoded += facts.at("steps").get<std::int64_t>() * facts.at("decodes").get<std::int64_t>();
      prompts += facts.at("prompt_tokens").get<std::int64_t>();
    }
    EXPECT_EQ(free_at.size(), 2u);
    EXPECT_EQ(iterations, totals.iterations);
    // The first token of an answer comes out of its prompt.
    EXPECT_EQ(decoded, totals.output_tokens - totals.finished) << engine;
    EXPECT_EQ(prompts, totals.prompt_tokens);
    EXPECT_NEAR(busy_us, totals.busy.si() * 1e6, 0.002 * static_cast<double>(events.size()));
    for (const char* part : {"wait", "prompt", "answer"}) EXPECT_EQ(spans[part], 60);
  }
}

TEST(ReplayTrace, OfMoreThanViewersBearIsRefused) {
  ServingRun run = run_of("vllm", 1, 12);
  run.replay.times.resize(100'000);
  const std::string refusal = error_text([&] { replay_trace(run, {"", "--perfetto"}); });
  EXPECT_TRUE(refusal.starts_with("--perfetto: the trace has 800,")) << refusal;
}

}  // namespace
}  // namespace orrery::replay_trace_test
