#include "sim/profile/step_operations.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "sim/layers/step_cost.hpp"
#include "sim/plan/plan_keys.hpp"

namespace orrery::step_operations_test {
namespace {

Scenario scenario_of(const std::string& model, int gpus,
                     const std::vector<std::pair<std::string, std::string>>& keys) {
  PlanRequest request;
  for (const auto& [key, value] : keys) set_plan_flag(request, key, value);
  return make_scenario(read_model(model, {}), read_system("dgx-h100", {}), request, gpus, {});
}

struct Plan1 {
  std::string model;
  int gpus;
  std::vector<std::pair<std::string, std::string>> keys;
};

const std::vector<Plan1>& plans() {
  static const std::vector<Plan1> all{
      {"llama3-8b", 16, {{"tp", "2"}, {"pp", "2"}, {"gbs", "64"}}},
      {"llama3-8b", 16, {{"tp", "2"}, {"pp", "2"}, {"gbs", "64"}, {"recompute", "full"}}},
      {"llama3-8b", 16, {{"tp", "2"}, {"cp", "2"}, {"gbs", "64"}, {"dtype", "fp8"}}},
      {"llama3-8b", 16, {{"pp", "4"}, {"vpp", "2"}, {"gbs", "64"}, {"recompute", "selective"}}},
      {"gpt3-175b", 64, {{"tp", "8"}, {"pp", "8"}, {"gbs", "64"}, {"attention", "unfused"}}},
      {"mixtral-8x7b", 64, {{"tp", "2"}, {"pp", "4"}, {"ep", "8"}, {"gbs", "256"}}},
      {"deepseek-v3",
       1024,
       {{"pp", "16"}, {"ep", "64"}, {"gbs", "1024"}, {"recompute", "full"}, {"dtype", "fp8"}}},
      // Patterns, whose mixers and experts lie in layers of their own or share them.
      {"nemotron-3-nano-30b-a3b", 16, {{"ep", "8"}, {"gbs", "64"}, {"recompute", "selective"}}},
      {"qwen3-next-80b-a3b", 64, {{"ep", "16"}, {"pp", "2"}, {"gbs", "64"}}},
      {"nemotron-h-56b", 64, {{"tp", "8"}, {"gbs", "64"}, {"recompute", "full"}}}};
  return all;
}

// The listed kernels take as long as the passes of estimates, less the time without kernels: waits
// for the host, and what kernels lose to concurrent collectives.
TEST(StepOperations, AddUpToThePassesOfAnEstimate) {
  for (const Plan1& plan : plans()) {
    const Scenario scenario = scenario_of(plan.model, plan.gpus, plan.keys);
    EstimateContext context{scenario.system};
    const Layout& layout = context.layout(Placement{scenario.plan, scenario.system});
    const StepCost cost = price_step(scenario, context.kernels(scenario.plan.dtype),
                                     context.collectives(scenario.plan), layout.shapes);
    for (int stage = 0; stage < scenario.plan.pp; stage += std::max(1, scenario.plan.pp - 1)) {
      SCOPED_TRACE(plan.model + " stage " + std::to_string(stage));
      Seconds kernels, collectives;
      for (int chunk = 0; chunk < scenario.plan.chunks(); ++chunk) {
        const auto v = static_cast<std::size_t>(scenario.plan.virtual_stage(stage, chunk));
        for (const PassCost& pass : {cost.stages[v].forward, cost.stages[v].backward}) {
          kernels += pass.compute - pass.work.at(Work::host) - pass.work.at(Work::slowed);
          collectives += pass.communication;
        }
      }
      kernels =
          scenario.plan.microbatches * kernels + cost.optimizer[static_cast<std::size_t>(stage)];
      collectives = scenario.plan.microbatches * collectives;
      const OperationList list = step_operations(scenario, context, stage);
      EXPECT_EQ(list.stage, stage);
      Seconds listed, sent;
      for (const OperationPrice& one : list.operations)
        (one.on_network ? sent : listed) += one.all_time();
      EXPECT_NEAR(listed / kernels, 1.0, 1e-9);
      if (collectives > Seconds{}) {
        EXPECT_NEAR(sent / collectives, 1.0, 1e-9);
      }
    }
  }
}

// Without recomputation the products and the attention of all ranks are the model's operations:
// 6 a parameter and token, and attention's. The vocabulary divides, so that nothing is padded.
TEST(StepOperations, ComputeWhatTheModelNeeds) {
  const Scenario scenario = scenario_of("llama3-8b", 16, {{"tp", "2"}, {"pp", "2"}, {"gbs", "64"}});
  EstimateContext context{scenario.system};
  const Layout& layout = context.layout(Placement{scenario.plan, scenario.system});
  const StepCost cost = price_step(scenario, context.kernels(scenario.plan.dtype),
                                   context.collectives(scenario.plan), layout.shapes);
  // A fused backward pass has five products where four are needed: it makes scores again.
  constexpr double needed = 4.0 / 5.0;
  double flop = 0.0;
  for (int stage = 0; stage < scenario.plan.pp; ++stage)
    for (const OperationPrice& one : step_operations(scenario, context, stage).operations)
      if (one.kind == "gemm" || one.kind == "attention")
        flop += (one.name == "attention_bwd" ? needed : 1.0) * one.count * one.roofs.flop.si();
  flop *= scenario.plan.tp * scenario.plan.dp;
  EXPECT_NEAR(flop / cost.model_flop_causal.si(), 1.0, 1e-9);
}

TEST(StepOperations, TheStageThatTakesLongestIsShown) {
  const Scenario scenario = scenario_of("llama3-8b", 16, {{"pp", "4"}, {"gbs", "64"}});
  EstimateContext context{scenario.system};
  const OperationList list = step_operations(scenario, context);
  EXPECT_EQ(list.stage, 3) << "it has the output head";
  for (std::size_t i = 1; i < list.operations.size(); ++i)
    EXPECT_GE(list.operations[i - 1].all_time(), list.operations[i].all_time());
  for (const OperationPrice& one : list.operations) {
    EXPECT_LE(one.low, one.time) << one.name;
    EXPECT_GE(one.high, one.time) << one.name;
    if (is_plotted(one)) {
      EXPECT_LT(one.share_of_roof(), 1.0) << one.name;
    }
  }
}

// Of 48 layers on one stage 36 have gated delta nets and 12 attention; experts are alike in both.
TEST(StepOperations, NameTheKindsOfLayersThatRunThem) {
  const auto runs_of = [](const std::string& model, const std::string& operation) {
    const Scenario scenario = scenario_of(model, 64, {{"ep", "16"}, {"gbs", "64"}});
    EstimateContext context{scenario.system};
    std::map<std::string, double> runs;
    for (const OperationPrice& one : step_operations(scenario, context).operations)
      if (one.name == operation && one.when != "backward")
        for (const OperationPrice::OfKind& of : one.kinds) runs[of.kind] += of.count;
    return runs;
  };
  using Runs = std::map<std::string, double>;
  const std::string model = "qwen3-next-80b-a3b";
  EXPECT_EQ(runs_of(model, "experts_fc1"), (Runs{{"gdn+moe", 36.0}, {"full+moe", 12.0}}));
  EXPECT_EQ(runs_of(model, "scan"), (Runs{{"gdn+moe", 36.0}}));
  EXPECT_EQ(runs_of(model, "attention"), (Runs{{"full+moe", 12.0}}));
  EXPECT_EQ(runs_of(model, "head"), Runs{});
  EXPECT_EQ(runs_of(model, "optimizer"), Runs{});
  EXPECT_EQ(runs_of("qwen3-30b-a3b", "experts_fc1"), Runs{}) << "its layers are alike";
}

// All that an iteration prices, and nothing else.
TEST(StepOperations, OfAnIterationAddUpToItsGpuTime) {
  const ServingSetup setup = make_serving_setup("llama3-70b", "dgx-h100", "vllm", {}, 8, {});
  Iteration iteration;
  iteration.decodes = 64;
  iteration.context = 64 * 4096;
  iteration.chunks = {{2048, 0}};
  iteration.heads = 65;
  const ServingStep step = serving_step(setup, iteration, {});
  Seconds sum;
  for (const OperationPrice& one : iteration_operations(step).operations) {
    sum += one.all_time();
    if (one.kind == "gemm") {
      EXPECT_EQ(one.format, "bf16");
    }
    if (one.kind == "attention") {
      EXPECT_TRUE(is_plotted(one)) << one.name;
    }
  }
  EXPECT_NEAR(sum / total(step.price.parts), 1.0, 1e-9);
}

}  // namespace
}  // namespace orrery::step_operations_test
