// Questions of a serving engineer, as the commands that they type: the same question has the same
// answer however it is put. Laws over drawn deployments are in tests/properties.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/program.hpp"

namespace orrery::serving_answers_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

json answer(const std::string& words) {
  const Outcome outcome = run_orrery("serve " + words + " --json");
  EXPECT_EQ(outcome.code, 0) << words;
  return json::parse(outcome.out);
}

// What a command says on stderr.
std::string notes(const std::string& words) {
  return run_shell("{ '" ORRERY_TEST_BINARY_FOLDER "/orrery' serve " + words +
                   " 2>&1 >&3; } 3>/dev/null")
      .out;
}

const std::string chat =
    "--model llama3.1-8b --system dgx-h100 --tp 1 --engine vllm --isl lognormal:735,0.8 "
    "--osl lognormal:200,0.8 ";

double throughput(const json& of) { return of["throughput"]["output_tokens_per_s_per_gpu"]; }

TEST(ServingAnswers, AGpuServesTheSameInAnyFleet) {
  const std::string slo = chat + "--slo ttft=500,tpot=20@p90 --goodput ";
  const double one = answer(slo + "--gpus 1")["slo"]["largest_rate"];
  for (const int gpus : {64, 256}) {
    const double all = answer(slo + "--gpus " + std::to_string(gpus))["slo"]["largest_rate"];
    EXPECT_NEAR(all / gpus, one, 0.07 * one) << gpus;
  }
  const json few = answer(chat + "--gpus 1 --rate 10"),
             many = answer(chat + "--gpus 64 --rate 640");
  EXPECT_NEAR(throughput(many), throughput(few), 0.05 * throughput(few));
  const auto price = [](const json& of) -> double {
    return of["cost"]["usd_per_million_output_tokens"]["low"];
  };
  EXPECT_NEAR(price(many), price(few), 0.05 * price(few));
  // Four times what a GPU serves is too much for any fleet.
  EXPECT_TRUE(answer(chat + "--gpus 1 --rate 60")["saturated"]);
  EXPECT_TRUE(answer(chat + "--gpus 64 --rate 3840")["saturated"]);
}

// The rate that --goodput names keeps to the limits in a run at that rate, and one a tenth higher
// does not.
TEST(ServingAnswers, AGoodputHoldsAtItsRate) {
  for (const std::string& how : {std::string{}, std::string{"--router least-tokens "}}) {
    const std::string of =
        "--model llama3.1-8b --system dgx-h100 --gpus 4 --engine vllm --tp 1 "
        "--isl lognormal:735,0.8 --osl lognormal:200,0.8 "
        "--slo ttft=500,tpot=20@p90 " +
        how;
    const json found = answer(of + "--goodput");
    const double rate = found["slo"]["largest_rate"];
    const json at = answer(of + "--rate " + std::to_string(rate));
    EXPECT_NEAR(at["slo"]["attainment"], found["slo"]["attainment"].get<double>(), 0.01) << how;
    EXPECT_GE(at["slo"]["attainment"], 0.89) << how;
    EXPECT_LT(answer(of + "--rate " + std::to_string(1.1 * rate))["slo"]["attainment"], 0.9) << how;
  }
}

TEST(ServingAnswers, AWarmUpTakesTimeAndTokensTogether) {
  const std::string closed =
      "--model llama3.1-8b --system dgx-h100 --gpus 1 --engine vllm --isl 735 --osl 100 "
      "--concurrency 64 ";
  const json all = answer(closed);
  for (const char* first : {"320", "640", "1500"}) {
    const json rest = answer(closed + "--skip-first " + first);
    EXPECT_NEAR(throughput(rest), throughput(all), 0.03 * throughput(all)) << first;
  }
}

TEST(ServingAnswers, RequestsWithoutSessionsSpreadOverReplicas) {
  const std::string four =
      "--model llama3.1-8b --system dgx-h100 --gpus 4 --tp 1 --engine vllm --isl 735 --osl 200 "
      "--rate 60 --requests 3000 ";
  const double any = answer(four)["latency_ms"]["ttft"]["p50"];
  const json by_session = answer(four + "--router session");
  EXPECT_LT(by_session["latency_ms"]["ttft"]["p50"], 2.0 * any);
  EXPECT_FALSE(by_session["saturated"]);
}

// Clients that all start at once are not what limits describe, at any percentile.
TEST(ServingAnswers, TheBurstOfAStartDecidesNoSearch) {
  const auto best = [](const std::string& share) {
    return answer(
        "--search --model llama3.1-70b --system dgx-h100 --gpus 8 --engine vllm "
        "--fix weights=fp8 --isl 1500..2500 --osl 200..400 --slo ttft=1000,tpot=50@" +
        share + " --top 1")["points"][0];
  };
  const json often = best("p90");
  EXPECT_GT(often["figures"]["output_tokens_per_s_per_gpu"], 400.0);
  EXPECT_EQ(best("p95")["figures"], often["figures"]);
}

TEST(ServingAnswers, NothingServesMoreThanIsOffered) {
  const json of = answer(
      "--model llama3.1-70b --system dgx-h100 --gpus 8 --engine vllm --tp 4 --isl 2000 --osl 300 "
      "--rate 1");
  const double offered = 300.0, made = of["throughput"]["output_tokens_per_s"];
  EXPECT_LE(of["range"]["output_tokens_per_s"]["high"], made);
  EXPECT_NEAR(made, offered, 0.02 * offered);
  EXPECT_NEAR(of["throughput"]["requests_per_s"], 1.0, 0.02);
}

TEST(ServingAnswers, OneReplicaForAllIsAllOfThem) {
  const std::string two =
      "--model llama3.1-8b --system dgx-h100 --gpus 2 --engine vllm --isl 1000 --osl 200 "
      "--concurrency 64 --requests 3072 ";
  const double folded = answer(two)["kv"]["mean_share"];
  EXPECT_NEAR(answer(two + "--unfolded")["kv"]["mean_share"], folded, 0.002 * folded);
}

TEST(ServingAnswers, PlausibleMistakesAreNoted) {
  EXPECT_THAT(notes(chat + "--gpus 1 --rate 5 --requests 500 --slo ttft=0.5,tpot=0.02"),
              HasSubstr("milliseconds"));
  EXPECT_THAT(notes("--model deepseek-v3 --system dgx-h100 --gpus 16 --tp 16 --engine sglang "
                    "--step 1x1024"),
              HasSubstr("two published runs"));
}

}  // namespace
}  // namespace orrery::serving_answers_test
