// Questions of a user's first hour with a model, a cluster and a script, as the commands that they
// type. Messages of refusals are in tests/bad_input, examples of the pages in tests/docs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/program.hpp"
#include "tests/support/temporary_folder.hpp"

namespace orrery::first_hour_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

std::string printed(const std::string& words) {
  const Outcome outcome = run_orrery(words);
  EXPECT_EQ(outcome.code, 0) << words;
  return outcome.out;
}
json result_of(const std::string& words) { return json::parse(printed(words + " --json")); }

// The line of `estimate` is the answer of `run`: the same days, rent and spares, with those that
// are idle in the job's racks.
TEST(FirstHour, AnEstimateRentsWhatARunRents) {
  for (const std::string& words :
       {std::string{"--model llama3-8b --system dgx-h100 --gpus 512 --gbs 512 --tokens 15T "
                    "--reliability meta-llama3"},
        std::string{"--model llama3-8b --system gb200-nvl72 --gpus 128 --tp 8 --gbs 512 "
                    "--tokens 15T --reliability default"},
        std::string{"--model llama3-8b --system dgx-a100-80gb --gpus 64 --gbs 256 --tokens 1T "
                    "--reliability bloom-by-hand"}}) {
    const std::string line = printed("estimate " + words + " --no-timing");
    const std::string run = printed("run " + words);
    const json answer = result_of("run " + words);
    const auto between = [&](const std::string& from, const std::string& to) {
      const std::size_t begin = run.find(from) + from.size();
      return run.substr(begin, run.find(to, begin) - begin);
    };
    const std::string days = between("\nRun ", " (90 % interval)");
    EXPECT_THAT(line, HasSubstr(days.substr(days.rfind("days  ") + 6) + " (90 % interval)"));
    EXPECT_THAT(line, HasSubstr("; " + between("  rent           ", ":") + "\n"));
    const double gpus = answer["gpus"];
    const double hours = answer["bill"]["gpu_hours"], mean = answer["days"]["mean"];
    EXPECT_THAT(line, HasSubstr(std::to_string(std::lround(hours / mean / 24.0 - gpus)) +
                                " spare GPUs in the rent"));
  }
}

// 128 ranks fill no racks of 72: they lie on two of them, 64 on each, so that half of the copies of
// 4,096 tokens, each for 8 experts, leave their rack over the sender's NIC.
TEST(FirstHour, ExpertsExchangeBetweenRacks) {
  for (const std::string kernel : {"dispatch", "combine"})
    for (const std::string system : {"gb200-nvl72", "gb300-nvl72"})
      EXPECT_EQ(result_of("kernel " + kernel + " 4096 7168 256 8 128 --system " + system)["bytes"],
                4096.0 * 8 / 2 * 7168 * 2);
}

// A name that a spreadsheet would compute stays a text.
TEST(FirstHour, NamesAreNoFormulasInCsv) {
  const TemporaryFolder there;
  json system = json::parse(std::ifstream{ORRERY_TEST_SOURCE "/topologies/systems/dgx-h100.json"});
  system["name"] = "=cmd|calc";
  const std::string path = (there.path() / "calc.json").string();
  std::ofstream{path} << system;
  EXPECT_THAT(printed("buy --model llama3-8b --system " + path +
                      " --gpus 16 --gbs 16 --tokens 1B --fix cp=1 --csv"),
              HasSubstr("\n'=cmd|calc,"));
  EXPECT_THAT(printed("serve --search --model llama3.1-8b --system " + path +
                      " --gpus 1 --engine vllm --isl 10 --osl 10 --concurrency 1 --csv"),
              HasSubstr("\n'=cmd|calc,"));
}

// Stderr in place of stdout.
std::string said(const std::string& words) {
  return run_shell("{ '" ORRERY_TEST_BINARY_FOLDER "/orrery' " + words + " 2>&1 >&3; } 3>/dev/null")
      .out;
}

const std::string script = ORRERY_TEST_SOURCE "/tests/unit/calibration/data/llama3_8b.sh";

double sum_of(const json& parts) {
  double sum = 0.0;
  for (const auto& [name, value] : parts.items()) sum += value.get<double>();
  return sum;
}

// DeepSeek-V3 on 2,048 H800, where the stages between wait for each other's experts: the path that
// decides is a third expert traffic, which the stage that computes the longest shows least of.
TEST(FirstHour, TheStepIsExplainedByWhatItWaitsFor) {
  const json result = result_of(
      "estimate --model deepseek-v3 --system hgx-h800 --gpus 2048 --pp 16 --ep 64 --gbs 15360 "
      "--seq 4096 --recompute full --moe_dispatcher deepep");
  const double step = result["step_time_s"];
  const json& path = result["critical_path_s"];
  EXPECT_NEAR(sum_of(path), step, 1e-9 * static_cast<double>(path.size()));
  const double experts = path["expert_parallel_forward"].get<double>() +
                         path["expert_parallel_backward"].get<double>();
  EXPECT_GT(experts, 0.3 * step);
  double on_path = 0.0, busiest = 0.0;
  for (const json& stage : result["stages"]) {
    on_path += stage["on_critical_path_s"].get<double>();
    busiest = std::max(busiest, stage["busy_s"].get<double>());
  }
  EXPECT_LE(on_path, step * (1.0 + 1e-9));
  const auto& named = result["stages"][result["breakdown_stage"].get<std::size_t>()];
  EXPECT_EQ(named["busy_s"].get<double>(), busiest);
  EXPECT_LT(result["stages"][15]["busy_s"].get<double>(), busiest);
}

// Compute is no single figure: kinds of kernels, forward, backward and computed again.
TEST(FirstHour, ComputeIsSplit) {
  const std::string plan =
      "estimate --model llama3-8b --system dgx-h100 --gpus 16 --tp 2 --pp 2 --gbs 64 "
      "--recompute full";
  const json path = result_of(plan)["critical_path_s"];
  for (const char* kind : {"matrix_products", "attention", "memory_bound"})
    for (const char* pass : {"_forward", "_backward", "_recomputed"})
      EXPECT_GT(path[std::string{kind} + pass].get<double>(), 0.0) << kind << pass;
  EXPECT_THAT(printed(plan), HasSubstr("matrix products"));
  const TemporaryFolder folder;
  const std::string trace = (folder.path() / "t.json").string();
  printed(plan + " --expanded --perfetto '" + trace + "'");
  const std::string slices = run_shell("cat '" + trace + "'").out;
  EXPECT_THAT(slices, HasSubstr("layer"));
  EXPECT_THAT(slices, Not(HasSubstr("\"name\":\"kernels\"")));
}

// An export keeps the parts of a script that it does not mean to change.
TEST(FirstHour, AnExportKeepsWhatItDoesNotChange) {
  const TemporaryFolder folder;
  const std::string mine = (folder.path() / "mine.sh").string();
  const std::string run = (folder.path() / "run.json").string();
  EXPECT_EQ(run_shell("sed 's/--swiglu/--swiglu --rotary-base 1000000/' '" + script + "' > '" +
                      mine + "'")
                .code,
            0);
  printed("import megatron '" + mine + "' --set GBS=256 -o '" + run + "'");
  EXPECT_THAT(said("estimate --plan '" + run + "' --system dgx-h100"), "");
  const std::string changed = run + ".r";
  EXPECT_EQ(run_shell("'" ORRERY_TEST_BINARY_FOLDER "/orrery' estimate --plan '" + run +
                      "' --system dgx-h100 --tp 2 --pp 4 --json > '" + changed + "'")
                .code,
            0);
  const std::string all =
      printed("export megatron --plan '" + changed + "' --set GBS=256 --script '" + mine + "'");
  EXPECT_THAT(all, HasSubstr("--rotary-base 1000000"));
  EXPECT_THAT(all, Not(HasSubstr("--grad-reduce-in-bf16")));
  EXPECT_THAT(all, HasSubstr("--tensor-model-parallel-size 2"));
  const std::string difference =
      printed("export megatron --plan '" + changed + "' --set GBS=256 --diff '" + mine + "'");
  EXPECT_THAT(difference, HasSubstr("--tensor-model-parallel-size 4 -> 2"));
  EXPECT_THAT(difference, Not(HasSubstr("rotary")));
}

// Days and rent of the smallest cluster that keeps a deadline; prices are not needed for days.
TEST(FirstHour, TrainingTimesAndWhatTheyCost) {
  const std::string table = printed(
      "search --model llama3-8b --system dgx-h100 --gpus 8,16,32 --gbs 64 --objective gpus "
      "--deadline 200d --tokens 1T --fix tp=1,2 --fix pp=1 --top 1");
  EXPECT_THAT(table, HasSubstr("training"));
  EXPECT_THAT(table, HasSubstr(" days "));
  EXPECT_THAT(table, HasSubstr("thousand"));
  EXPECT_THAT(table, HasSubstr("  8 GPUs tp1"));
  const std::string unpriced = printed(
      "estimate --model llama3.2-1b --system dgx-1-v100 --gpus 8 --gbs 64 --seq 2048 "
      "--recompute full --tokens 1T");
  EXPECT_THAT(unpriced, HasSubstr(" days "));
  EXPECT_THAT(unpriced, HasSubstr("Not known are rent_usd_per_gpu_hour, "));
}

// A plan over the memory by less than a tenth gets a warning, else a refusal or a marked time.
TEST(FirstHour, MemoryVerdictsKnowTheirError) {
  const std::string over =
      "estimate --model llama3-8b --system dgx-h100 --gpus 8 --gbs 64 --seq 4096 --mbs 2";
  EXPECT_THAT(printed(over), HasSubstr("4.4 % more memory than a GPU has"));
  const std::string far = "estimate --model llama3-70b --system dgx-h100 --gpus 8 --gbs 8 --tp 8";
  EXPECT_EQ(run_orrery(far).code, 3);
  EXPECT_THAT(printed(far + " --ignore-memory"), HasSubstr("the plan cannot"));
  EXPECT_FALSE(result_of(far + " --ignore-memory")["warnings"].empty());
  // A search keeps to the memory.
  const std::string fixed =
      "search --model llama3-8b --system dgx-h100 --gpus 8 --gbs 64 --fix seq=4096 --fix mbs=2 "
      "--fix tp=1 --fix pp=1 --fix cp=1 --fix zero=1 --fix recompute=none --max-memory 1";
  EXPECT_EQ(run_orrery(fixed).code, 3);
}

// One grammar: systems and ranges, in a search as in a sweep.
TEST(FirstHour, ListsAndRangesMeanTheSameEverywhere) {
  EXPECT_THAT(printed("search --model llama3-8b --system dgx-h100,dgx-h200 --gpus 8..16 --gbs 64 "
                      "--fix tp=1 --fix pp=1 --top 1"),
              HasSubstr("llama3-8b on dgx-h100 or dgx-h200, 8 or 16 GPUs\n"));
  const TemporaryFolder folder;
  const std::string sweep = printed(
      "sweep run --model llama3-8b --system dgx-h100,dgx-h200 --gpus 8..32 --gbs 64 --output '" +
      (folder.path() / "s").string() + "' -j 1");
  EXPECT_THAT(sweep, HasSubstr("6 points"));  // Two systems, and 8, 16, 32.
}

// The heading names the software: unless requested, the nearest that can run the plan.
TEST(FirstHour, DefaultsAreNamed) {
  const std::string plan = "estimate --model llama3-8b --system dgx-h100 --gpus 8 --gbs 8 --tp 2 ";
  EXPECT_THAT(printed(plan + "--dtype fp16"), HasSubstr("software megatron-core\n"));
  EXPECT_THAT(printed(plan + "--pp 2 --schedule gpipe"),
              HasSubstr("is taken, as no software is named"));
  EXPECT_THAT(said(plan + "--pp 2 --schedule gpipe --software megatron-core"),
              HasSubstr("or software="));
  EXPECT_THAT(printed(plan + "--nccl_algo Ring"), HasSubstr("NCCL_ALGO Ring, software"));
  EXPECT_THAT(printed(plan + "--nccl-algo=Ring"), HasSubstr("NCCL_ALGO Ring, software"));
}

// Numbers, units and names of options as people write them are those of the reference.
TEST(FirstHour, NumbersAndNamesAreTakenAsPeopleWriteThem) {
  const std::string estimate = "estimate --no-timing --model llama3-8b --system dgx-h100 ";
  EXPECT_EQ(printed(estimate + "--gpus 1,024 --gbs 128k --seq 8k --tp-overlap=false"),
            printed(estimate + "--gpus 1024 --gbs 128000 --seq 8192 --tp_overlap false"));
  const std::string serve =
      "serve --model llama3.1-8b --system dgx-h100 --gpus 1 --engine vllm --requests 100 ";
  EXPECT_EQ(
      printed(serve + "--isl 1k --osl 1..0.5k --max-seqs 64 --rate 2 --slo ttft=1s,tpot=40ms"),
      printed(serve + "--isl 1024 --osl 1..512 --max_seqs 64 --rate 2 --slo ttft=1000,tpot=40"));
  EXPECT_THAT(said("collective all_reduce --system dgx-h100 --gpus 1,6 --min_bytes 8 -e 8"),
              HasSubstr("'1,6' is not such a number"));
}

// "-" is standard input, wherever a file is read.
TEST(FirstHour, StandardInputIsAFile) {
  const std::string plan = "estimate --no-timing --system dgx-h100 --plan ";
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "plan.json").string();
  std::ofstream{file} << printed(
      "estimate --no-timing --model llama3-8b --system dgx-h100 --gpus 8 --gbs 8 --tp 2 --json");
  const Outcome piped =
      run_shell("(cat '" + file + "' | '" ORRERY_TEST_BINARY_FOLDER "/orrery' " + plan + "-)");
  EXPECT_EQ(piped.code, 0);
  EXPECT_EQ(piped.out, printed(plan + "'" + file + "'"));
  EXPECT_THAT(said(plan + "-"), HasSubstr("-: is empty"));
  EXPECT_THAT(said("import nccl-tests -"), HasSubstr("-: "));
}

// A ring where NCCL would reduce in the switch takes longer, in estimates, searches and sweeps.
TEST(FirstHour, WhatNcclMayChooseIsAKeyOfThePlan) {
  const std::string asked =
      " --model llama3-8b --system dgx-h100 --gpus 8 --gbs 8 --seq 4096 --tp 8 --sp false "
      "--tp_overlap false ";
  const auto step = [&](const std::string& more) {
    return result_of("estimate" + asked + more)["step_time_s"].get<double>();
  };
  EXPECT_GT(step("--nccl_algo Ring"), 1.001 * step(""));
  EXPECT_EQ(step("--nccl_algo any"), step(""));
  EXPECT_EQ(run_orrery("estimate" + asked + "--nccl_algo CollnetChain").code, 3);
  const json found = json::parse(
      printed("search --model llama3-8b --system dgx-h100 --gpus 8 --gbs 8 --fix seq=4096 "
              "--fix tp=8 --fix sp=false --fix tp_overlap=false --fix mbs=1 --fix recompute=none "
              "--fix nccl_algo=CollnetChain,Ring,any --top 1 --json -j 1"));
  EXPECT_EQ(found["plans"][0]["plan"]["nccl_algo"], "any");
}

// What nobody means gets one line on stderr, and the answer stays as it is.
TEST(FirstHour, SaysWhatNobodyMeans) {
  const std::string plan = "--model llama3-8b --system dgx-h100 --gpus 16 --tp 2";
  const std::string batch =
      "orrery: note: --gbs 4194304 is in sequences, 34,359,738,368 tokens a step; if it is meant "
      "in tokens, write --gbs 512\n";
  EXPECT_EQ(said("estimate " + plan + " --gbs 4194304"), batch);
  EXPECT_EQ(said("estimate " + plan + " --gbs 64 --tokens 15"),
            "orrery: note: --tokens 15 is less than one sequence; 15 trillion are 15T\n");
  EXPECT_EQ(said("estimate --model llama2-7b --system dgx-h100 --gpus 16 --gbs 64 --tp 8 --seq "
                 "8192 --recompute full"),
            "orrery: note: --seq 8192 is longer than the 4,096 positions of llama2-7b\n");
  const TemporaryFolder folder;
  json system = json::parse(std::ifstream{ORRERY_TEST_SOURCE "/topologies/systems/dgx-h100.json"});
  system["nic_bandwidth"]["value"] = "400 GB/s";
  system["network_latency"] = "5 ms";
  const std::string file = (folder.path() / "mine.json").string();
  std::ofstream{file} << system;
  const std::string notes =
      "orrery: note: nic_bandwidth 400 GB/s is more than a slot carries, as the GPU's PCIe has 64 "
      "GB/s; NICs are sold by Gb/s\n"
      "orrery: note: network_latency 5.000 ms is that of another city; within a cluster it is some "
      "microseconds, written us\n";
  EXPECT_EQ(said("check --system " + file), notes);
  EXPECT_EQ(said("estimate --model llama3-8b --system " + file + " --gpus 16 --gbs 64 --tp 2"),
            notes);
  EXPECT_EQ(said("estimate " + plan + " --gbs 64 --tokens 1B"), "");
}

}  // namespace
}  // namespace orrery::first_hour_test
