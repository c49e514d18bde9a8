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
using testing::IsEmpty;

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

// vllm bench serve prints neither rate nor concurrency where all requests come at once.
TEST(BenchmarkResult, OfABlockOfVllm) {
  const std::string head = R"(INFO 11-26 10:00:00 [serve.py:1] Starting
============ Serving Benchmark Result ============
Successful requests:                     100
)",
                    rest = R"(Benchmark duration (s):                  10.00
Total input tokens:                      102400
Total generated tokens:                  12800
Request throughput (req/s):              10.00
Output token throughput (tok/s):         1280.00
Total Token throughput (tok/s):          11520.00
---------------Time to First Token----------------
Mean TTFT (ms):                          400.20
Median TTFT (ms):                        390.90
P99 TTFT (ms):                           800.10
-----Time per Output Token (excl. 1st token)------
Mean TPOT (ms):                          50.00
P99 TPOT (ms):                           60.25
==================================================
)";
  const auto only = [](const std::string& text) {
    return read_benchmark_results(text, "log.txt").at(0);
  };
  // What a launcher, a container or a clock writes before each line is no part of it.
  for (const char* prefix : {"[pod/bench-7x2lp/bench] 2025-11-20T14:03:42.118Z ", "bench-1  | ",
                             "2025-11-20T14:03:42.118Z ", "0: "}) {
    const std::string plain = head + rest;
    std::string prefixed;
    for (const std::string_view line : lines_of(plain))
      prefixed += prefix + std::string{line} + "\n";
    EXPECT_EQ(only(prefixed).requests, 100) << prefix;
  }
  const BenchmarkResult burst = only(head + rest);
  EXPECT_EQ(burst.tool, "vLLM bench serve");
  EXPECT_EQ(burst.requests, 100);
  EXPECT_EQ(burst.isl, 1024.0);
  EXPECT_EQ(burst.osl, 128.0);
  EXPECT_EQ(burst.arrival, "burst");
  EXPECT_EQ(burst.measured.at("ttft_p50_ms"), 390.9);
  EXPECT_EQ(burst.measured.at("tpot_p99_ms"), 60.25);
  EXPECT_EQ(burst.measured.at("output_tokens_per_s"), 1280.0);
  EXPECT_THAT(burst.notes, ElementsAre(HasSubstr("assumed: all requests came at once")));

  const BenchmarkResult closed = only(head + "Maximum request concurrency: 16\n" + rest);
  EXPECT_EQ(closed.arrival, "closed");
  EXPECT_EQ(closed.concurrency, 16);
  EXPECT_THAT(closed.notes, IsEmpty());
  EXPECT_EQ(only("vllm bench serve --max-concurrency=32 --model m\n" + head + rest).concurrency,
            32);
  EXPECT_EQ(only("Namespace(request_rate=4.5, max_concurrency=None)\n" + head + rest).rate, 4.5);
  const std::string quoted = "> " + replaced_everywhere(head + rest, "\n", "\n> ");
  EXPECT_EQ(only(quoted).measured, burst.measured);

  // 10 requests a second of 0.4 + 127 x 0.005 = 1.04 s are 10 in the mean: not all 100 at once.
  EXPECT_EQ(
      refusal_of([&] { only(head + replaced_everywhere(rest, "50.00\n", "5.00\n")); }),
      "log.txt: line 2: does not say how requests came, and 10 of 100 were there in the mean: "
      "they came not all at once; add the line 'Maximum request concurrency: N' or 'Traffic "
      "request rate: N'");
}

TEST(BenchmarkResult, OfBlocksOfSglang) {
  const auto block = [](const std::string& rate, const std::string& clients) {
    return "#Input tokens: 1000\n============ Serving Benchmark Result ============\n"
           "Backend:                                 sglang\n"
           "Traffic request rate:                    " +
           rate + "\nMax request concurrency:                 " + clients +
           "\nSuccessful requests:                     10\n"
           "Total input tokens:                      1000\n"
           "Total generated tokens:                  500\n"
           "Total generated tokens (retokenized):    499\n"
           "Concurrency:                             3.92\n"
           "----------------End-to-End Latency----------------\n"
           "Mean E2E Latency (ms):                   2500.0\n"
           "Median E2E Latency (ms):                 2400.0\n"
           "---------------Inter-Token Latency----------------\n"
           "Max ITL (ms):                            99.0\n"
           "==================================================\n";
  };
  const std::vector<BenchmarkResult> results = read_benchmark_results(
      block("inf", "4") + block("2.5", "not set") + block("inf", "not set"), "log.txt");
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(results[0].tool, "SGLang bench_serving");
  EXPECT_EQ(results[0].osl, 50.0);
  EXPECT_EQ(results[0].concurrency, 4);
  EXPECT_EQ(results[1].arrival, "poisson");
  EXPECT_EQ(results[1].rate, 2.5);
  EXPECT_EQ(results[2].arrival, "burst");
  EXPECT_EQ(results[2].measured.at("e2e_p50_ms"), 2400.0);
  EXPECT_THAT(results[2].notes, IsEmpty());
}

TEST(BenchmarkResult, OfGenaiBenchInTheUnitThatItNames) {
  const std::string head = R"({"aggregated_metrics": {"scenario": "D",
    "num_concurrency": 16, "num_completed_requests": 160, "requests_per_second": 10.2,
    "mean_output_throughput_tokens_per_s": 1302.1, "stats": {
    "ttft": {"mean": 0.081, "p50": 0.079, "p99": 0.142}, "tpot": {"mean": 0.011, "p50": null},
    "num_input_tokens": {"mean": 1024.5}, "num_output_tokens": {"mean": 128}}})";
  const BenchmarkResult result = read_benchmark_results(head + "}", "r.json").at(0);
  EXPECT_EQ(result.arrival, "closed");
  EXPECT_EQ(result.concurrency, 16);
  EXPECT_EQ(result.requests, 160);
  EXPECT_EQ(result.isl, 1024.5);
  EXPECT_DOUBLE_EQ(result.measured.at("ttft_p99_ms"), 142.0);
  EXPECT_DOUBLE_EQ(result.measured.at("tpot_ms"), 11.0);
  EXPECT_EQ(result.measured.at("output_tokens_per_s"), 1302.1);
  EXPECT_DOUBLE_EQ(read_benchmark_results(head + R"(, "_time_unit": "ms"})", "r.json")
                       .at(0)
                       .measured.at("ttft_p99_ms"),
                   0.142);
}

// The longest of requests that all came at once took as long as the run.
TEST(BenchmarkResult, OfTrtllmBenchAsWrittenAndAsPrinted) {
  const auto json = [](const std::string& longest) {
    return R"({"engine": {"model": "m"}, "request_info": {"num_requests": 100,
      "avg_num_concurrent_requests": 31.8, "avg_input_length": 1024.0, "avg_output_length": 128.0},
      "performance": {"total_latency_ms": 10000.0, "avg_request_latency_ms": 3180.0,
      "request_throughput_req_s": 10.0, "system_output_throughput_tok_s": 1280.0,
      "request_latency_percentiles_ms": {"p99": 3300.0, "maximum": )" +
           longest + R"(}},
      "streaming_metrics": {"avg_ttft_ms": 90.5, "avg_tpot_ms": 24.3,
      "ttft_percentiles": {"p50": 80.0}}})";
  };
  const BenchmarkResult closed = read_benchmark_results(json("3400.0"), "report.json").at(0);
  EXPECT_EQ(closed.tool, "trtllm-bench");
  EXPECT_EQ(closed.arrival, "closed");
  EXPECT_EQ(closed.concurrency, 32);
  EXPECT_EQ(closed.measured.at("ttft_p50_ms"), 80.0);
  EXPECT_EQ(closed.measured.at("tpot_ms"), 24.3);
  EXPECT_EQ(closed.measured.at("e2e_p99_ms"), 3300.0);
  EXPECT_EQ(closed.measured.at("duration_s"), 10.0);
  EXPECT_EQ(read_benchmark_results(json("9990.0"), "report.json").at(0).arrival, "burst");

  const BenchmarkResult printed = read_benchmark_results(R"(
===========================================================
= REQUEST DETAILS
===========================================================
Number of requests:             100
Number of concurrent requests:  31.8000
Average Input Length (tokens):  1024.0000
Average Output Length (tokens): 128.0000
===========================================================
= PERFORMANCE OVERVIEW
===========================================================
Request Throughput (req/sec):                     10.0000
Total Output Throughput (tokens/sec):             1280.0000
Total Latency (ms):                               10000.0000
Average request latency (ms):                     3180.0000
Average time-to-first-token [TTFT] (ms):          90.5000
Average time-per-output-token [TPOT] (ms):        24.3000

[TTFT] MINIMUM: 10.0000
[TTFT] P50    : 80.0000
[Latency] P99    : 3300.0000
[Latency] MAXIMUM: 3400.0000
)",
                                                         "log.txt")
                                      .at(0);
  EXPECT_EQ(printed.measured, closed.measured);
  EXPECT_EQ(printed.concurrency, 32);
}

TEST(BenchmarkResult, OtherTextsAreRefused) {
  const std::string refusal =
      "r.json: is no result of vLLM's or SGLang's benchmark, AIPerf, GenAI-Perf, genai-bench, "
      "trtllm-bench, inference-perf or InferenceX; give the JSON that one of them writes (vllm "
      "bench serve --save-result), or the block that vllm bench serve, sglang.bench_serving or "
      "trtllm-bench prints";
  EXPECT_EQ(refusal_of([] { read_benchmark_results("{\"a\": 1}", "r.json"); }), refusal);
  EXPECT_EQ(refusal_of([] { read_benchmark_results("Throughput: 3 requests/s\n", "r.json"); }),
            refusal);
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
