#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "sim/core/table.hpp"
#include "sim/training/training_text.hpp"
#include "tests/unit/training/cases.hpp"

namespace orrery::summary_text_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> lines(const std::string& text) {
  std::istringstream stream{text};
  std::vector<std::string> list;
  for (std::string line; std::getline(stream, line);) list.push_back(line);
  return list;
}

// A result in round numbers: a step of 10 s, of which the critical path computes 9 s. Stage 0
// computes 7.5 s, of which 6 s for products, and idles 2.5 s; the others compute 1 s less.
Result round_result(int stages) {
  Result result;
  result.scenario = two_stages();
  result.step_time = Seconds{10.0};
  result.lower_bound = Seconds{9.5};
  result.range.step = result.range.path.at(PriceKind::gemm, Tag::interpolated) = Seconds{10.0};
  result.range.errors.training = std::log(1.25) / range_deviations;  // From 10 / 1.25 to 12.5 s.
  result.tokens_per_s = 1234567.0;
  result.tokens_per_s_per_gpu = 1205.63;
  result.model_tflops_per_gpu = 140.0;
  result.model_tflops_per_gpu_full = 150.0;
  result.mfu = 0.4487;
  result.mfu_full = 0.4808;
  result.memory.capacity = Bytes{80e9};
  for (int stage = 0; stage < stages; ++stage)
    result.memory.stages.push_back(
        {Bytes{1e9}, Bytes{2e9}, Bytes{3e9}, Bytes{stage == 2 ? 30e9 : 10e9}, Bytes{4e9}});
  TimeByPart& path = result.critical.parts;
  path.at(StepPart::products, StepPhase::forward) = Seconds{3.0};
  path.at(StepPart::products, StepPhase::backward) = Seconds{6.0};
  path.at(StepPart::optimizer, StepPhase::once) = Seconds{1.0};
  for (int stage = 0; stage < stages; ++stage) {
    Breakdown breakdown;
    breakdown.compute = Seconds{stage == 0 ? 7.5 : 6.5};
    breakdown.work.at(Work::products) = Seconds{6.0};
    breakdown.work.at(Work::streaming) = breakdown.compute - Seconds{6.0};
    breakdown.pp_bubble = Seconds{stage == 0 ? 2.5 : 3.5};
    result.stages.push_back(breakdown);
    result.critical.by_stage.push_back(Seconds{10.0 / stages});
  }
  result.idlest_stage = stages - 1;
  result.provenance = {0.5, 0.3, 0.2};
  result.links = {{"node0.nic0.up",
                   "nic",
                   Bytes{12e9},
                   {Bytes{}, Bytes{}, Bytes{}, Bytes{}, Bytes{}, Bytes{9e9}, Bytes{3e9}},
                   0.123},
                  {"node0.gpu0.nvlink.up",
                   "nvlink",
                   Bytes{4e9},
                   {Bytes{4e9}, Bytes{}, Bytes{}, Bytes{}, Bytes{}},
                   0.05}};
  result.reps = 2;
  result.tasks = 1500;
  result.simulation_wall = Seconds{0.034};
  return result;
}

TEST(SummaryText, FitsAScreenWithoutTrailingBlanks) {
  Result crowded = round_result(64);
  crowded.scenario.model.name = std::string(70, 'm');
  crowded.warnings = {
      "stage 3 may not fit: published peaks were up to 6 % above the predicted ones"};
  for (std::size_t part = 0; part < step_part_count; ++part)
    for (StepPhase phase : {StepPhase::forward, StepPhase::backward, StepPhase::recomputed})
      crowded.critical.parts.at(static_cast<StepPart>(part), phase) = Seconds{0.1};
  for (Breakdown& stage : crowded.stages)
    stage.tp_exposed = stage.cp_exposed = stage.ep_exposed = stage.pp_exposed = stage.dp_exposed =
        stage.optimizer = stage.imbalance = stage.other = Seconds{0.1};
  for (const Result& result :
       {estimate(two_stages()).result, estimate(interleaved_replicas()).result, crowded}) {
    const std::string text = summary_text(result);
    EXPECT_LE(lines(text).size(), 55u);
    for (const std::string& line : lines(text)) {
      EXPECT_LE(shown_width(line), 78) << line;
      EXPECT_FALSE(line.ends_with(' ')) << line;
    }
    for (char c : text) EXPECT_TRUE(c == '\n' || (c >= ' ' && c <= '~')) << text;
  }
}

TEST(SummaryText, ShowsWhereTheTimeGoesWithoutLinesOfNothing) {
  const std::string text = summary_text(round_result(2));
  EXPECT_THAT(text, HasSubstr("What the step waits for: its critical path, s\n"
                              "                   forward  backward     sum    share\n"
                              "  matrix products    3.000     6.000   9.000   90.0 %  ###########\n"
                              "  optimizer                            1.000   10.0 %  #\n"
                              "  step                                10.000  100.0 %\n"));
  EXPECT_THAT(text, HasSubstr("Where the time of a GPU goes, on its busiest and idlest stage, s\n"
                              "                   stage 0   share  stage 1   share\n"
                              "  compute            7.500  75.0 %    6.500  65.0 %\n"
                              "  pipeline bubble    2.500  25.0 %    3.500  35.0 %\n"
                              "  busy               7.500  75.0 %    6.500  65.0 %\n"));
  EXPECT_THAT(text, Not(HasSubstr("tensor parallel")));
  EXPECT_THAT(text, Not(HasSubstr("imbalance")));
  EXPECT_THAT(text, Not(HasSubstr("recomputed")));
}

TEST(SummaryText, ShowsEveryClassOfLinksOnRequest) {
  Result result = round_result(2);
  EXPECT_THAT(summary_text(result), Not(HasSubstr("Links:")));
  EXPECT_THAT(
      summary_text(result, {.links = true}),
      HasSubstr("Links: the busiest of each class, and by whom\n"
                "            busy   carries   tensor  pipeline    data\n"
                "  nic     12.3 %  12.00 GB    0.0 %    75.0 %  25.0 %  node0.nic0.up\n"
                "  nvlink   5.0 %   4.00 GB  100.0 %     0.0 %   0.0 %  node0.gpu0.nvlink.up\n"));
  result.links.pop_back();  // A kind of traffic without links has no column.
  EXPECT_THAT(summary_text(result, {.links = true}),
              HasSubstr("         busy   carries  pipeline    data\n"));
  result.links.clear();
  EXPECT_THAT(summary_text(result, {.links = true}), Not(HasSubstr("Links:")));
}

TEST(SummaryText, BeginsWithTheVerdict) {
  Result result = round_result(2);
  result.measured = Seconds{8.0};
  EXPECT_TRUE(summary_text(result).starts_with(
      "Fits (25 % of memory). 10.0 s a step (90 % interval 8.00 to 12.5 s), 25.0 %\n"
      "above the measured 8.00 s. Compute-bound: 90 % of the critical path computes,\n"
      "10 % is the optimizer. The pipeline bubble takes 30 % of GPU time.\n"
      "\n"))
      << summary_text(result);
}

TEST(Verdict, SaysFitTimeAndBottleneck) {
  EXPECT_EQ(verdict(round_result(2)),
            "Fits (25 % of memory). 10.0 s a step (90 % interval 8.00 to 12.5 s). Compute-bound: "
            "90 % of the critical path computes, 10 % is the optimizer. The pipeline bubble takes "
            "30 % of GPU time.");
}

TEST(Verdict, ComparesWithAMeasuredStep) {
  Result result = round_result(2);
  result.measured = Seconds{12.5};
  EXPECT_THAT(verdict(result), HasSubstr("12.5 s), 20.0 % below the measured 12.50 s. Compute"));
}

// GPUs that compute behind a collective do not make a step compute-bound.
TEST(Verdict, FollowsTheCriticalPath) {
  Result result = round_result(2);
  TimeByPart& path = result.critical.parts;
  path = {};
  path.at(StepPart::data, StepPhase::once) = Seconds{9.0};
  path.at(StepPart::attention, StepPhase::forward) = Seconds{1.0};
  for (Breakdown& stage : result.stages) {
    stage.pp_bubble = Seconds{0.3};
    stage.imbalance = Seconds{0.1};
  }
  EXPECT_TRUE(verdict(result).ends_with(
      ". Bound by data-parallel communication: 90 % of the critical path, 10 % computes."))
      << verdict(result);
  path.at(StepPart::host, StepPhase::forward) = Seconds{9.5};
  EXPECT_THAT(verdict(result), HasSubstr(". Bound by waiting for the host: 95 %"));
}

TEST(Verdict, NamesMemoryBandwidthIfMostOfTheComputationStreams) {
  Result result = round_result(1);
  TimeByPart& path = result.critical.parts;
  path = {};
  path.at(StepPart::products, StepPhase::forward) = Seconds{4.0};
  path.at(StepPart::slowed, StepPhase::forward) = Seconds{0.5};
  path.at(StepPart::streaming, StepPhase::backward) = Seconds{5.5};
  result.stages[0].pp_bubble = Seconds{};
  result.stages[0].imbalance = Seconds{2.5};
  EXPECT_TRUE(verdict(result).ends_with(
      ". Bound by memory bandwidth: 100 % of the critical path computes. Waiting for slower stages "
      "or ranks takes 25 % of GPU time."))
      << verdict(result);
}

TEST(Verdict, AdmitsWhatDoesNotFitAndWhatIsAssumed) {
  Result result = round_result(2);
  result.memory.capacity = Bytes{20.4e9};
  EXPECT_TRUE(verdict(result).starts_with("May not fit (98 % of memory). "));
  result.memory.capacity = Bytes{10e9};
  result.provenance = {0.1, 0.3, 0.6};
  EXPECT_TRUE(verdict(result).starts_with("Does not fit (200 % of memory). "));
  EXPECT_TRUE(
      verdict(result).ends_with(" Rough: 60 % of the time of kernels and collectives comes "
                                "from assumed efficiencies."));
}

TEST(SummaryText, NamesBothFlopConventions) {
  EXPECT_THAT(
      summary_text(round_result(2)),
      HasSubstr("Step time      10.000  s             8.000 .. 12.500 (90 % interval)\n"
                "Throughput  1,234,567  tokens/s      lower bound 9.500 s\n"
                "              1,205.6  tokens/s/GPU\n"
                "Model FLOP      140.0  TFLOP/s/GPU   MFU 44.9 %  causal half (as Megatron-LM)\n"
                "                150.0  TFLOP/s/GPU   MFU 48.1 %  full attention (as PaLM)\n"));
}

TEST(SummaryText, ShowsFirstFullestAndLastOfManyStages) {
  EXPECT_THAT(
      summary_text(round_result(8)),
      HasSubstr("Memory of a GPU, GB of 80.00; fullest is stage 2, 5 stages left out\n"
                "  stage  weights  grads  optim  activations  other   peak  of GPU\n"
                "      0     1.00   2.00   3.00        10.00   4.00  20.00  25.0 %  ###\n"
                "      2     1.00   2.00   3.00        30.00   4.00  40.00  50.0 %  #####\n"
                "      7     1.00   2.00   3.00        10.00   4.00  20.00  25.0 %  ###\n"));
  const std::string four = summary_text(round_result(4));
  EXPECT_THAT(four, HasSubstr("Memory of a GPU, GB of 80.00\n"));
  EXPECT_THAT(four, HasSubstr("      3     1.00"));
}

TEST(SummaryText, SaysWhatItRestsOnAndHowItWasMade) {
  Result result = round_result(2);
  EXPECT_THAT(summary_text(result, {.verbose = true}),
              HasSubstr("Times from    50.0 % measured, 30.0 % interpolated, 20.0 % default\n"
                        "Busiest link  nic 12.3 % of the step, 12.00 GB over node0.nic0.up,\n"
                        "              pipeline 75.0 %, data 25.0 %\n"
                        "Simulated     1,500 tasks on 2 ranks, every rank of the plan\n"
                        "Took          34.000 ms\n"));
  EXPECT_THAT(summary_text(result, {.verbose = true, .wall_time = false}), Not(HasSubstr("Took")));
  EXPECT_THAT(summary_text(result), Not(HasSubstr("Times from")));
  result.reps = 1;
  result.contracted = false;
  result.links.clear();
  const std::string text = summary_text(result, {.verbose = true});
  EXPECT_THAT(text, HasSubstr("Simulated     1,500 tasks on 1 rank, representing 2,\n"
                              "              each tensor-parallel collective\n"));
  EXPECT_THAT(text, Not(HasSubstr("Busiest")));
}

TEST(SummaryText, PutsWarningsLast) {
  Result result = round_result(2);
  result.warnings = {"first", "second"};
  EXPECT_TRUE(summary_text(result).ends_with("Warning       first\nWarning       second\n"));
}

TEST(SummaryText, ColoursNothingButTheSameText) {
  Result result = round_result(8);
  result.critical.parts.at(StepPart::tensor, StepPhase::forward) = Seconds{5.0};
  std::string coloured = summary_text(result, {.colour = true});
  EXPECT_THAT(coloured, HasSubstr("\x1b[32m###########\x1b[0m"));
  EXPECT_THAT(coloured, HasSubstr("\x1b[33m######\x1b[0m"));
  for (std::size_t at; (at = coloured.find('\x1b')) != std::string::npos;)
    coloured.erase(at, coloured.find('m', at) - at + 1);
  EXPECT_EQ(coloured, summary_text(result));
}

}  // namespace
}  // namespace orrery::summary_text_test
