#include "sim/cost/expert_ops.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "sim/cost/collective_time.hpp"
#include "sim/cost/layer_ops.hpp"
#include "sim/cost/rank_parameters.hpp"
#include "tests/support/scenarios.hpp"

namespace orrery {
namespace {

// T = 64 tokens, h = 512, 8 experts of 1,024 channels, two a token: 128 copies.
Scenario scenario_of_experts(int tp, int ep, int etp, std::int64_t shared_ffn = 0) {
  Model model = small_mixture(2, 512, 8, 1024, 8, 2, 1);
  model.experts->shared_ffn = shared_ffn;
  PlanRequest request = plan_request(tp, 1, 1, 8 / tp, 64, "megatron-core");
  request.sp = tp > 1;
  request.ep = ep;
  request.etp = etp;
  return scenario_of(model, read_system("four-by-four", test_place), request, 8);
}

const Op& named(const Ops& ops, std::string_view name) {
  const auto found =
      std::find_if(ops.begin(), ops.end(), [&](const Op& op) { return op.name == name; });
  if (found == ops.end()) throw std::runtime_error{"no op " + std::string{name}};
  return *found;
}

std::int64_t sum(const std::vector<std::int64_t>& rows) {
  std::int64_t total = 0;
  for (std::int64_t r : rows) total += r;
  return total;
}

template <class Visit>
void for_each_split(const Visit& visit) {
  for (int tp : {1, 2, 4})
    for (int ep : {1, 2, 4, 8})
      for (int etp : {1, 2, 4})
        if (8 % (ep * etp) == 0) {
          SCOPED_TRACE("tp " + std::to_string(tp) + " ep " + std::to_string(ep) + " etp " +
                       std::to_string(etp));
          visit(scenario_of_experts(tp, ep, etp));
        }
}

// Tokens in = tokens out: each of the ep x etp ranks of a block sends T/t k copies, and an expert's
// tensor ranks process all rows of that expert.
TEST(ExpertOps, RowsAreTheCopiesThatAreSent) {
  for_each_split([](const Scenario& scenario) {
    const Plan& plan = scenario.plan;
    const std::int64_t sent = 64 / plan.tp * 2 * plan.ep * plan.etp;
    const LayerSizes s{scenario};
    for (const Ops& ops : {experts_forward(s), experts_backward(s)})
      for (const Op& op : ops)
        if (op.kind == Op::Kind::grouped_gemm) {
          EXPECT_EQ(op.rows.size(), static_cast<std::size_t>(8 / plan.ep));
          EXPECT_EQ(sum(op.rows) * plan.ep, sent);
        }
  });
}

// Uniform dispatch: k copies of h values a token; of them (ep - 1) / ep leave.
TEST(ExpertOps, DispatchCarriesACopyForEachExpertOfAToken) {
  const Scenario scenario = scenario_of_experts(2, 4, 1);
  const Ops ops = experts_forward(LayerSizes{scenario});
  for (std::string_view name : {"dispatch", "combine"}) {
    const Op& op = named(ops, name);
    EXPECT_EQ(op.group, GroupKind::expert);
    EXPECT_EQ(op.bytes.si(), 2.0 * 32 * 2 * 512);
  }
  const CollectiveTime collectives{scenario.system};
  const CollectiveCost cost =
      collectives(CollectiveKind::all_to_all, named(ops, "dispatch").bytes, {4, 1, 4});
  EXPECT_DOUBLE_EQ(cost.scale_up_bytes.si(), 0.75 * 2.0 * 32 * 2 * 512);
}

TEST(ExpertOps, NothingIsExchangedWithOneRankAGroup) {
  const Scenario scenario = scenario_of_experts(1, 1, 1);
  for (const Ops& ops :
       {experts_forward(LayerSizes{scenario}), experts_backward(LayerSizes{scenario})})
    for (const Op& op : ops) EXPECT_NE(op.kind, Op::Kind::collective) << op.name;
}

// 2 flop a weight that a token visits, and the router; backward twice that. Over all ranks of a
// replica that is the model's.
TEST(ExpertOps, FlopAreThoseOfTheActiveExperts) {
  for_each_split([](const Scenario& scenario) {
    const LayerSizes s{scenario};
    const auto flop = [](const Ops& ops) {
      double total = 0.0;
      for (const Op& op : ops) total += op.flop().si();
      return total;
    };
    // A gated-less expert has two matrices of 512 x 1024; 64/t tokens of two experts, and the
    // router's 8 columns.
    const double own = 64.0 / scenario.plan.tp;
    const double forward = 2.0 * own * (2 * 2.0 * 512 * 1024 + 512 * 8);
    EXPECT_DOUBLE_EQ(flop(experts_forward(s)), forward);
    EXPECT_DOUBLE_EQ(flop(experts_backward(s)), 2.0 * forward);
  });
}

// What the ranks hold, without copies, is the model: experts ep x etp ranks, the rest tp ranks.
TEST(RankParameters, AddUpToTheModel) {
  for_each_split([](const Scenario& scenario) {
    const Plan& plan = scenario.plan;
    const RankParameters held = parameters_on_rank(scenario, 0);
    const ParameterCount count = count_parameters(scenario.model);
    const std::int64_t experts = 8 * 2 * 512 * 1024;
    EXPECT_EQ(held.experts * plan.ep * plan.etp, experts);
    // Norms (five of h) and the router are on every tensor rank.
    const std::int64_t whole = 5 * 512 + 512 * 8;
    EXPECT_EQ((held.dense - whole) * plan.tp + whole, count.total - experts);
  });
}

TEST(RankParameters, LatentAttentionSplitsItsHeadsOnly) {
  Model model = small_gpt(1, 512, 8, 1024);
  model.latent =
      LatentAttention{.q_rank = 96, .kv_rank = 64, .nope_dim = 32, .rope_dim = 16, .v_dim = 32};
  model.head_dim = 48;
  for (int tp : {1, 2, 4}) {
    PlanRequest request = plan_request(tp, 1, 1, 8 / tp, 64, "megatron-core");
    const Scenario scenario =
        scenario_of(model, read_system("four-by-four", test_place), request, 8);
    // Down: h (96 + 64 + 16), norms 96 + 64 and three of h.
    const std::int64_t whole = 512 * (96 + 64 + 16) + 96 + 64 + 3 * 512;
    EXPECT_EQ((parameters_on_rank(scenario, 0).dense - whole) * tp + whole,
              count_parameters(model).total);
    // Every weight of a matrix once: 2 flop a token, halves of the score matrix apart.
    double products = 0.0;
    for (const Op& op : layer_forward(scenario))
      if (op.kind == Op::Kind::gemm) products += op.flop().si();
    const double down = 2.0 * 64 * 512 * (96 + 64 + 16);
    const double split =
        2.0 * 64 * (96 * 8 * 48 + 64 * 8 * (32 + 32) + 8 * 32 * 512 + 2 * 512 * 2048);
    EXPECT_DOUBLE_EQ(products, down / (scenario.plan.sp ? tp : 1) + split / tp);
  }
}

}  // namespace
}  // namespace orrery
