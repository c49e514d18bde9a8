#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "sim/training/estimate.hpp"
#include "sim/training/training_text.hpp"
#include "tests/support/key_samples.hpp"

namespace orrery::plan_heading_test {
namespace {

std::string heading(const Plan& plan) {
  std::string text;
  for (const std::string& item : plan_items(plan)) text += (text.empty() ? "" : ", ") + item;
  return text;
}

TEST(PlanHeading, SaysWhatBelongsTogetherInOneItem) {
  PlanRequest request = plan_request(2, 4, 1, 1024, 2048, "megatron-core");
  request.vpp = 2;
  request.zero = 1;
  request.dp_overlap = true;
  const Scenario scenario = scenario_of(small_gpt(8, 1024, 8, 1024),
                                        read_system("four-by-four", test_place), request, 16);
  EXPECT_EQ(heading(scenario.plan),
            "tp 2 x pp 4 x dp 2, interleaved with 2 chunks a stage, 512 micro-batches of 1 x 2,048 "
            "tokens, global batch 1,024, bf16, flash attention, ZeRO-1, sequence parallel, tp "
            "overlap, dp overlap, software megatron-core");
}

// Whether weights stay between the passes of a micro-batch is said where it is not what a plan of
// these stages has anyway.
TEST(PlanHeading, NamesWeightsThatAreGatheredAgain) {
  const auto ends = [](int pp, std::optional<bool> reshard) {
    PlanRequest request = plan_request(1, pp, 1, 64, 256, "megatron-core");
    request.zero = 3;
    request.reshard = reshard;
    const std::string text =
        heading(scenario_of(small_gpt(4, 1024, 8, 1024), read_system("four-by-four", test_place),
                            request, 16)
                    .plan);
    return text.substr(text.find("ZeRO-3"));
  };
  EXPECT_EQ(ends(1, {}), "ZeRO-3, dp overlap, software megatron-core");
  EXPECT_EQ(ends(1, true), ends(1, {}));
  EXPECT_EQ(ends(1, false), "ZeRO-3, reshard false, dp overlap, software megatron-core");
  EXPECT_EQ(ends(2, {}), ends(1, {}));
  EXPECT_EQ(ends(2, false), ends(2, {}));
  EXPECT_EQ(ends(2, true), "ZeRO-3, reshard true, dp overlap, software megatron-core");
}

// One key away from a plan the heading is another one, or the answer is the same.
struct Answers {
  std::map<std::string, std::vector<Scenario>> by_heading;
  int pairs = 0;

  void add(const Scenario& scenario) {
    std::vector<Scenario>& same = by_heading[heading(scenario.plan)];
    for (const Scenario& other : same) {
      if (other.plan == scenario.plan) return;
      ++pairs;
      EXPECT_EQ(estimate(other).result.step_time, estimate(scenario).result.step_time)
          << heading(scenario.plan);
      EXPECT_EQ(memory_of(other).peak(), memory_of(scenario).peak()) << heading(scenario.plan);
    }
    same.push_back(scenario);
  }
};

TEST(PlanHeading, EveryKeyThatChangesTheAnswerIsNamed) {
  for (const KeySample& sample : key_samples()) {
    SCOPED_TRACE("--" + sample.key + " " + sample.word);
    Answers answers;
    answers.add(sample.scenario(sample.without));
    answers.add(sample.scenario(sample.with));
  }
}

// Plans with several keys sampled at once, of a dense model and of one with experts: however keys
// meet, plans of one heading have one answer.
TEST(PlanHeading, PlansOfOneHeadingHaveOneAnswer) {
  std::mt19937 draw{20240607};
  const std::vector<KeySample> samples = key_samples();
  const System system = read_system("four-by-four", test_place);
  for (const bool routed : {false, true}) {
    Model model = routed ? small_mixture(4, 1024, 8, 1024, 8, 2) : small_gpt(4, 1024, 8, 1024);
    if (routed) model.experts->shared_ffn = 1024;
    Answers answers;
    int plans = 0;
    for (int n = 0; n < 2000; ++n) {
      PlanRequest request = plan_request(1, 1, 1, 32, 256, "megatron-core");
      for (int keys = 1 + static_cast<int>(draw() % 8); keys > 0; --keys) {
        const KeySample& sample = samples[draw() % samples.size()];
        if (sample.key != "dp" && sample.key != "software")
          set_plan_flag(request, sample.key, sample.word);
      }
      try {
        answers.add(scenario_of(model, system, request, 16));
        ++plans;
      } catch (const Error&) {
        // Does not go together.
      }
    }
    EXPECT_GT(plans, 300);
    EXPECT_GT(answers.by_heading.size(), 100u);
    EXPECT_GT(answers.pairs, 0);
  }
}

}  // namespace
}  // namespace orrery::plan_heading_test
