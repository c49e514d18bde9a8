#include <gtest/gtest.h>

#include "sim/layers/memory.hpp"
#include "sim/layers/step_cost.hpp"
#include "sim/plan/placement.hpp"
#include "sim/training/estimate.hpp"
#include "tests/support/scenarios.hpp"

namespace orrery {
namespace {

PlanRequest lora(const LoraTargets& targets, int rank) {
  PlanRequest request = plan_request(1, 1, 1, 8, 2048, "megatron-core");
  request.finetune = Finetune::lora;
  request.lora_rank = rank;
  request.lora_targets = targets;
  return request;
}
const LoraTargets all{LoraTarget::qkv, LoraTarget::proj, LoraTarget::fc1, LoraTarget::fc2};

// A larger rank, more targets, dropout and a wider base are never faster or smaller, and nothing is
// larger than full training. Of all methods, pipelines and shards.
TEST(Adapters, MoreIsNeverLess) {
  const Model llama = read_model("llama3-8b", test_place);
  for (const int zero : {0, 1, 3})
    for (const int tp : {1, 2})
      for (const int pp : {1, 2}) {
        if (zero == 3 && pp > 1) continue;
        SCOPED_TRACE(std::to_string(zero) + " " + std::to_string(tp) + " " + std::to_string(pp));
        const auto both = [&](PlanRequest request) {
          request.tp = tp, request.pp = pp, request.zero = zero;
          request.seq = 2048, request.recompute = Recompute::full;
          const Scenario scenario =
              scenario_of(llama, read_system("dgx-b200", test_place), request, 8);
          return std::pair{estimate(scenario).result.step_time.si(),
                           memory_of(scenario).peak().si()};
        };
        const PlanRequest full = plan_request(tp, pp, 1, 8, 2048, "megatron-core");
        const auto [full_time, full_memory] = both(full);
        std::pair<double, double> last{0.0, 0.0};
        for (const auto& [targets, rank] : {std::pair{LoraTargets{LoraTarget::qkv}, 8},
                                            {LoraTargets{LoraTarget::qkv}, 64},
                                            {LoraTargets{LoraTarget::qkv, LoraTarget::proj}, 64},
                                            {all, 64}}) {
          const auto now = both(lora(targets, rank));
          EXPECT_GE(now.first, last.first * (1.0 - 1e-9));
          EXPECT_GE(now.second, last.second * (1.0 - 1e-9));
          EXPECT_LT(now.second, full_memory);
          last = now;
        }
        EXPECT_LT(both(lora({LoraTarget::qkv}, 8)).first, full_time);
      }
}

// A tied table that is frozen has no gradient for the other end of the pipeline.
TEST(Finetuning, FrozenTablesSendNoGradients) {
  Model tied = small_gpt(4, 1024, 8, 1024);
  tied.tied_embeddings = true;
  const System system = read_system("dgx-b200", test_place);
  const auto sent = [&](Finetune method) {
    PlanRequest request = plan_request(1, 2, 1, 8, 512, "megatron-core");
    request.finetune = method;
    const Scenario scenario = scenario_of(tied, system, request, 2);
    const Placement placement{scenario.plan, system};
    return price_step(scenario, nullptr, CollectiveTime{system}, placement.shapes())
        .tied_gradient_bytes;
  };
  EXPECT_GT(sent(Finetune::full), Bytes{});
  EXPECT_EQ(sent(Finetune::lora), Bytes{});
}

}  // namespace
}  // namespace orrery
