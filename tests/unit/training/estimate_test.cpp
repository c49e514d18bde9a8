#include "sim/training/estimate.hpp"

#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "sim/layers/step_cost.hpp"
#include "sim/plan/plan_keys.hpp"
#include "sim/training/training_step.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/scenarios.hpp"

namespace orrery::estimate_test {
namespace {

// TP8 PP8, 96 micro-batches a pipeline, whatever the number of replicas.
Scenario gpt3(int gpus) {
  PlanRequest request =
      plan_request(8, 8, 1, std::int64_t{96} * (gpus / 64), 2048, "megatron-2022");
  request.schedule = &one_f_one_b();
  request.sp = true;
  request.recompute = Recompute::selective;
  return scenario_of(read_model("gpt3-175b", test_place), read_system("dgx-a100-80gb", test_place),
                     request, gpus);
}

Scenario on_test_gpus(const Model& model, PlanRequest request, int gpus) {
  return scenario_of(model, read_system("four-by-four", test_place), request, gpus);
}

// One class a stage; and as many tasks for 131,072 GPUs as for 1,024, for the step is the same.
TEST(Estimate, WorkDoesNotGrowWithTheCluster) {
  std::set<int> tasks;
  Seconds before;
  for (int gpus : {1024, 16384, 131072}) {
    Scenario scenario = gpt3(gpus);
    scenario.plan.wait_for_others = false;  // Which grows with every doubling.
    const Estimate answer = estimate(scenario);
    EXPECT_EQ(answer.result.reps, 8);
    EXPECT_EQ(verify(answer.step, answer.result.scenario.plan), "");
    tasks.insert(answer.result.tasks);
    // More replicas lengthen the reduction of gradients and nothing else: of 2 bytes x 175e9 / 64
    // parameters, (n-1)/n twice, at 24.25 GB/s: 0.42 s of 22 s for 16 replicas, 0.45 s for 2,048.
    if (before > Seconds{}) {
      EXPECT_GE(answer.result.step_time, before);
      EXPECT_NEAR(answer.result.step_time / before, 1.0, 0.005);
    }
    before = answer.result.step_time;
  }
  EXPECT_EQ(tasks.size(), 1u);
}

// Equal stages that drain behind each local batch wait for nobody: their idle time is the bubble's.
TEST(Estimate, DrainedPipelinesIdleInTheirBubble) {
  PlanRequest request = plan_request(1, 4, 1, 32, 1024, "megatron-core");
  for (const int local : {0, 8, 4, 1}) {
    request.local_batch = local;
    const Result result = estimate(on_test_gpus(small_gpt(8, 512, 8, 1024), request, 4)).result;
    EXPECT_LT(result.busiest().imbalance / result.step_time, 0.05) << local;
    if (local == 1) {
      EXPECT_GT(result.busiest().pp_bubble / result.step_time, 0.6);
    }
  }
}

TEST(Estimate, IsTheSameTwice) {
  const Estimate first = estimate(gpt3(1024));
  const Estimate second = estimate(gpt3(1024));
  ASSERT_EQ(first.timeline.spans.size(), second.timeline.spans.size());
  // SimGrid's clock goes on between the two, so that times are rounded elsewhere.
  for (std::size_t i = 0; i < first.timeline.spans.size(); ++i)
    EXPECT_NEAR(first.timeline.spans[i].finish.seconds().si(),
                second.timeline.spans[i].finish.seconds().si(), 2e-9);
  EXPECT_NEAR(first.result.step_time.si(), second.result.step_time.si(), 2e-9);
}

TEST(Estimate, RatesFollowFromTheStep) {
  const Scenario scenario = gpt3(1024);
  const Result result = estimate(scenario).result;
  const double step = result.step_time.si();
  EXPECT_DOUBLE_EQ(result.tokens_per_s, 1536.0 * 2048 / step);
  EXPECT_DOUBLE_EQ(result.tokens_per_s_per_gpu, result.tokens_per_s / 1024);
  EXPECT_DOUBLE_EQ(result.model_tflops_per_gpu,
                   model_flop(scenario.model, 1536, 2048, true).si() / step / 1024 / 1e12);
  EXPECT_DOUBLE_EQ(result.mfu, result.model_tflops_per_gpu / 312);  // A100's dense peak.
  EXPECT_GT(result.mfu_full, result.mfu);
  EXPECT_NEAR(result.provenance[0] + result.provenance[1] + result.provenance[2], 1.0, 1e-12);
  EXPECT_LE(result.lower_bound.si(), step * (1 + 1e-9));
  for (const LinkReport& link : result.links) {
    EXPECT_GT(link.busy_fraction, 0.0) << link.name;
    EXPECT_LE(link.busy_fraction, 1.0) << link.name;
  }
}

// The load of a link does not depend on how much is simulated explicitly.
TEST(Estimate, LinksCarryTheSameHoweverExpanded) {
  PlanRequest request = plan_request(4, 2, 1, 8, 256, "megatron-core");
  request.sp = true;
  const Scenario scenario = on_test_gpus(small_gpt(8, 512, 8, 1024), request, 16);
  const Result folded = estimate(scenario).result;
  for (Detail detail : {Detail{.unfolded = true}, Detail{.expanded = true},
                        Detail{.unfolded = true, .expanded = true}}) {
    const Result other = estimate(scenario, detail).result;
    ASSERT_EQ(other.links.size(), folded.links.size());
    for (std::size_t i = 0; i < folded.links.size(); ++i) {
      EXPECT_EQ(other.links[i].kind, folded.links[i].kind);
      EXPECT_NEAR(other.links[i].bytes / folded.links[i].bytes, 1.0, 1e-9);
    }
  }
}

std::string describe_plan(const Scenario& scenario) {
  const Plan& plan = scenario.plan;
  return std::to_string(scenario.model.layers) + " layers, tp " + std::to_string(plan.tp) +
         ", pp " + std::to_string(plan.pp) + ", mbs " + std::to_string(plan.mbs) + ", zero " +
         std::to_string(plan.zero) + ", recompute " + recompute_text(plan.recompute);
}

std::string refusal(const Scenario& scenario) {
  return error_text([&] { estimate(scenario); });
}

// A plan that does not fit gets a reason and no time. 8 layers of 12 x 8192^2 weights, 16 norms
// and twice 32,000 x 8192 of embedding and head are 6.967e9 parameters with the final norm:
//     16 bytes each (2 weight, 2 gradient, 12 optimizer: 83.6)              111.47 GB
//     8 layers x (32 x 2048 x 8192 + 4 x 64 x 2048) bytes of activations      4.30 GB
//     reserve 1.5 GB, two tensors of 33.6 MB, 6 x 2048 x 32,000 of logits     1.96 GB
// With ZeRO-1 over four replicas 12 becomes 3, and 55 GB fit.
TEST(DoesNotFit, NamesStageBytesAndRemedy) {
  PlanRequest request = plan_request(1, 1, 1, 4, 2048, "megatron-core");
  request.zero = 0;
  const Model model = small_gpt(8, 8192, 64, 32000);
  EXPECT_EQ(refusal(on_test_gpus(model, request, 4)),
            "the plan does not fit: stage 0 needs 117.7 GB on each GPU (83.6 GB optimizer state, "
            "13.9 GB weights, 13.9 GB gradients), but a GPU has 80.0 GB: 37.7 GB too "
            "little; use --zero 1, or see what orrery search finds");
  request.zero = 1;
  EXPECT_EQ(refusal(on_test_gpus(model, request, 4)), "no error");
}

// 175.207e9 parameters x 16 are 2803.3 GB; 96 layers of 32 x 2048 x 12288 + 4 x 96 x 2048 bytes
// 77.4 GB; 2.2 GB as above.
TEST(DoesNotFit, SaysSoWhereNothingHelps) {
  const Model model = small_gpt(96, 12288, 96, 51200);
  EXPECT_EQ(
      refusal(on_test_gpus(model, plan_request(1, 1, 1, 1, 2048, "megatron-core"), 1)),
      "the plan does not fit: stage 0 needs 2882.9 GB on each GPU (2102.5 GB optimizer state, "
      "350.4 GB weights, 350.4 GB gradients), but a GPU has 80.0 GB: 2802.9 GB too "
      "little; use more GPUs, or GPUs with more memory");
}

// "--pp 4 --recompute full" as the command line would read it.
void change(PlanRequest& request, const std::string& flags) {
  std::istringstream words{flags};
  for (std::string flag, value; words >> flag >> value;)
    set_plan_flag(request, flag.substr(2), value);
}

// The remedy that the user gets helps, and is a change: over plans of 16 GPUs from hardly too large
// to far too large.
TEST(DoesNotFit, TheRemedyFits) {
  std::set<std::string> remedies;
  // Remedies are what the software has: neither ZeRO-3 nor, in 2021, selective recomputation.
  const auto support_of = [](const std::string& software, const std::string& key) {
    std::vector<Support> support = read_software(software, test_place).support;
    std::erase_if(support, [&](const Support& one) { return one.key->name != key; });
    return support;
  };
  const std::vector<Support> zero = support_of("megatron-2022", "zero");
  const std::vector<Support> recompute_of_2021 = support_of("megatron-2021", "recompute");
  for (int layers : {8, 16, 48})
    for (std::int64_t mbs : {1, 4, 16})
      for (int tp : {1, 4})
        for (int pp : {1, 2})
          for (const char* software : {"megatron-2021", "megatron-core"})
            for (Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
              PlanRequest request = plan_request(tp, pp, mbs, 256, 2048, software);
              request.fused_attention = false;
              request.sp = false;
              request.zero = 0;
              request.recompute = recompute;
              Scenario scenario = on_test_gpus(small_gpt(layers, 4096, 32, 32000), request, 16);
              scenario.software.support = zero;
              if (scenario.software.name == "megatron-2021")
                scenario.software.support.push_back(recompute_of_2021.front());
              if (memory_of(scenario).fits()) continue;
              SCOPED_TRACE(describe_plan(scenario));
              const std::string remedy = nearest_fit(scenario);
              if (remedy.empty()) continue;
              ASSERT_TRUE(remedy.starts_with("use --")) << remedy;
              remedies.insert(remedy);
              change(request, remedy.substr(4));
              const Scenario changed =
                  on_test_gpus(small_gpt(layers, 4096, 32, 32000), request, 16);
              EXPECT_TRUE(memory_of(changed).fits()) << remedy;
            }
  EXPECT_GE(remedies.size(), 8u);  // The loop has seen remedies of many kinds.
  for (const std::string kind :
       {"use --zero 1", "use --sp true", "use --recompute selective", "use --recompute full"})
    EXPECT_TRUE(remedies.contains(kind)) << kind;
}

}  // namespace
}  // namespace orrery::estimate_test
