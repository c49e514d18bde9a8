#include "sim/formats/benchmarks/benchmark_result.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "sim/core/text_file.hpp"
#include "tests/unit/calibration/sample.hpp"

namespace orrery::benchmark_result_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string text_of(const std::string& name) {
  return read_text_file(std::string{ORRERY_TEST_SOURCE} + "/tests/unit/formats/benchmarks/data/" +
                        name);
}
std::vector<BenchmarkResult> results_of(const std::string& name) {
  return read_benchmark_results(text_of(name), name);
}

// Lengths of 900 and 1,100 have the deviation 100: uniform from 1000 - 100 sqrt(3) to
// 1000 + 100 sqrt(3) has the same.
TEST(BenchmarkResult, OfVllm) {
  const BenchmarkResult result = results_of("vllm.json").at(0);
  EXPECT_EQ(result.arrival, "closed");
  EXPECT_EQ(result.concurrency, 2);
  EXPECT_EQ(result.requests, 6);
  EXPECT_NEAR(result.isl, 1000.0 + 100.0 * std::sqrt(3.0), 1e-9);
  EXPECT_NEAR(result.isl_low.value(), 1000.0 - 100.0 * std::sqrt(3.0), 1e-9);
  EXPECT_EQ(result.osl, 250.0);
  EXPECT_FALSE(result.osl_low);
  EXPECT_EQ(result.measured.at("ttft_ms"), 95.5);
  EXPECT_EQ(result.measured.at("tpot_p99_ms"), 18.6);
  EXPECT_EQ(result.measured.at("output_tokens_per_s"), 107.14);
}

TEST(BenchmarkResult, RatesOfVllmAreSampledAsItDoes) {
  const std::string head =
      R"({"completed": 10, "total_input_tokens": 100, "total_output_tokens": 50, )";
  const auto of = [&](const std::string& rest) {
    return read_benchmark_results(head + rest + "}", "r.json").at(0);
  };
  EXPECT_EQ(of(R"("request_rate": 3.5)").arrival, "poisson");
  // Burstiness is the shape of the gamma distribution, whose variation is 1 / sqrt(shape).
  EXPECT_EQ(of(R"("request_rate": 3.5, "burstiness": 4.0)").arrival, "gamma");
  EXPECT_DOUBLE_EQ(of(R"("request_rate": 3.5, "burstiness": 4.0)").cv, 0.5);
  EXPECT_EQ(of(R"("request_rate": "inf")").arrival, "burst");
  EXPECT_THAT(of(R"("request_rate": 3.5, "max_concurrency": 8)").notes,
              ElementsAre("no more than 8 requests were there at once, which is not replayed"));
}

TEST(BenchmarkResult, OfSglangALineEach) {
  const std::vector<BenchmarkResult> results = results_of("sglang.jsonl");
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[1].rate, 4.0);
  EXPECT_EQ(results[1].isl, 1024.0);
  EXPECT_EQ(results[1].measured.at("e2e_p50_ms"), 2900.0);
}

TEST(BenchmarkResult, OfAiperfInItsUnits) {
  const BenchmarkResult result = results_of("aiperf.json").at(0);
  EXPECT_EQ(result.arrival, "closed");
  EXPECT_EQ(result.concurrency, 32);
  EXPECT_EQ(result.measured.at("tpot_ms"), 19.5);
  EXPECT_DOUBLE_EQ(result.measured.at("e2e_ms"), 10150.0);
  EXPECT_EQ(result.measured.at("ttft_p95_ms"), 1200.0);
}

TEST(BenchmarkResult, OfInferencePerfInSeconds) {
  const BenchmarkResult result = results_of("inference_perf.json").at(0);
  EXPECT_EQ(result.arrival, "constant");
  EXPECT_EQ(result.rate, 10.0);
  EXPECT_DOUBLE_EQ(result.measured.at("ttft_p50_ms"), 41.0);
  EXPECT_DOUBLE_EQ(result.measured.at("tpot_ms"), 9.5);
  EXPECT_THAT(result.notes, ElementsAre("requests that failed: 1"));
}

TEST(BenchmarkResult, OfInferenceXWithWhatWasServed) {
  const std::vector<BenchmarkResult> results = results_of("inferencex.json");
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(results[0].model, "gpt-oss-120b");
  EXPECT_EQ(results[0].system, "dgx-b200");
  EXPECT_EQ(results[0].engine, "vllm");
  EXPECT_EQ(results[0].weights, "bf16");
  EXPECT_EQ(results[0].experts, "mxfp4");
  EXPECT_EQ(results[0].isl_low, 819.0);
  EXPECT_NEAR(results[2].measured.at("tpot_ms"), 5.8426, 1e-9);
}

TEST(BenchmarkResult, ADeploymentSaysWhatWasMeasured) {
  const JsonValue plan = JsonValue::parse(
      R"({"schema": "orrery.deployment/1", "model": "qwen3-8b", "engine": "vllm", "gpus": 2,
          "tp": 2, "kv": "fp8", "prefix_cache": false})",
      "d.json");
  const JsonValue cases = JsonValue::parse(
      "[" + benchmark_cases(results_of("vllm.json"), "x/vllm.json", plan, "dgx-h100") + "]", "c");
  const JsonValue one = cases.elements().at(0);
  EXPECT_EQ(one.at("id").text(), "vllm");
  EXPECT_EQ(one.at("deployment").compact(), R"({"kv":"fp8","tp":2})");
  EXPECT_FALSE(one.at("serving").at("prefix_caching").boolean());
  EXPECT_EQ(refusal_of([&] {
              benchmark_cases(results_of("vllm.json"), "x/vllm.json", std::nullopt, "dgx-h100");
            }),
            "x/vllm.json: does not say which model was measured; give --plan DEPLOYMENT, as orrery "
            "import server writes one, and --system");
}

TEST(BenchmarkResult, OtherTextsAreRefused) {
  EXPECT_EQ(refusal_of([] { read_benchmark_results("{\"a\": 1}", "r.json"); }),
            "r.json: is no result of vLLM's or SGLang's benchmark, AIPerf, inference-perf or "
            "InferenceX; give the JSON that one of them writes");
  EXPECT_THAT(
      refusal_of([] {
        read_benchmark_results(
            R"({"hw": "h200", "conc": 4, "isl": 1, "osl": 1, "model": "a", "framework": "vllm",
                        "spec_decoding": "mtp"})",
            "r.json");
      }),
      HasSubstr("drafts tokens"));
}

}  // namespace
}  // namespace orrery::benchmark_result_test
