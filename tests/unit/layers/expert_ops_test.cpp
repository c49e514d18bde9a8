#include "sim/layers/expert_ops.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "sim/collectives/collective_time.hpp"
#include "sim/layers/layer_activations.hpp"
#include "sim/layers/layer_ops.hpp"
#include "sim/layers/memory.hpp"
#include "sim/layers/rank_parameters.hpp"
#include "tests/support/scenarios.hpp"

namespace orrery::expert_ops_test {
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

// With one rank a group nothing is exchanged; four exchange dispatch and combine each way.
TEST(ExpertOps, NothingIsExchangedWithOneRankAGroup) {
  const auto exchanges = [](int ep) {
    const Scenario scenario = scenario_of_experts(1, ep, 1);
    std::vector<std::ptrdiff_t> count;
    for (const Ops& ops :
         {experts_forward(LayerSizes{scenario}), experts_backward(LayerSizes{scenario})})
      count.push_back(std::count_if(ops.begin(), ops.end(),
                                    [](const Op& op) { return op.kind == Op::Kind::collective; }));
    return count;
  };
  EXPECT_EQ(exchanges(1), (std::vector<std::ptrdiff_t>{0, 0}));
  EXPECT_EQ(exchanges(4), (std::vector<std::ptrdiff_t>{2, 2}));
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

// Whole stages first, then what is left; refused where more than the last one would be empty.
TEST(PredictionLayers, StagesBeforeTheLastAreFilledFirst) {
  for (int layers = 1; layers <= 61; ++layers)
    for (int stages : {2, 4, 8, 16}) {
      Model model = small_gpt(layers, 512, 16, 1024);
      model.prediction_layers = 1;
      const PlanRequest request = plan_request(1, stages, 1, 1, 64, "megatron-core");
      const auto split = [&]() -> std::vector<int> {
        try {
          return scenario_of(model, read_system("four-by-four", test_place), request, stages)
              .layers_of;
        } catch (const Error&) {
          return {};
        }
      }();
      SCOPED_TRACE(std::to_string(layers) + " layers, " + std::to_string(stages) + " stages");
      const int each = (layers + stages - 1) / stages;
      ASSERT_EQ(split.empty(), layers <= each * (stages - 2));
      if (split.empty()) continue;
      EXPECT_EQ(std::accumulate(split.begin(), split.end(), 0), layers);
      for (int stage = 0; stage + 2 < stages; ++stage)
        EXPECT_EQ(split[static_cast<std::size_t>(stage)], each);
      EXPECT_TRUE(std::is_sorted(split.rbegin(), split.rend()));
    }
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

std::string names(const Ops& ops) {
  std::string all;
  for (const Op& op : ops) all += (all.empty() ? "" : " ") + std::string{op.name};
  return all;
}

// Each part of a layer of experts with latent attention, by its forward ops.
TEST(RecomputeOps, PartsRepeatTheirForwardOps) {
  Scenario scenario = scenario_of_experts(1, 2, 1, 512);
  scenario.model.latent =
      LatentAttention{.q_rank = 96, .kv_rank = 64, .nope_dim = 32, .rope_dim = 16, .v_dim = 32};
  scenario.model.head_dim = 48;
  const auto repeated = [&](RecomputeModule module, LayerKind kind = LayerKind::experts) {
    scenario.plan.recompute = std::set{module};
    return names(layer_recompute(scenario, kind));
  };
  EXPECT_EQ(repeated(RecomputeModule::core_attn), "attention");
  EXPECT_EQ(repeated(RecomputeModule::layernorm), "norm norm");
  EXPECT_EQ(repeated(RecomputeModule::mla_up_proj), "q_norm q_up kv_norm kv_up rope");
  EXPECT_EQ(repeated(RecomputeModule::moe_act), "activation");
  EXPECT_EQ(repeated(RecomputeModule::shared_experts),
            "shared_fc1 shared_activation shared_fc2 shared_sum");
  EXPECT_EQ(repeated(RecomputeModule::moe), names(experts_forward(LayerSizes{scenario})));
  EXPECT_EQ(repeated(RecomputeModule::mlp), "");
  EXPECT_EQ(repeated(RecomputeModule::mlp, LayerKind::dense), "fc1 activation fc2");
  EXPECT_EQ(repeated(RecomputeModule::moe, LayerKind::dense), "");
}

// T = 64 tokens of h = 512, R = 128 rows of g = 1,024, no gate, shared width S = 512; latent
// attention as above with 8 heads. What each part no longer keeps, by hand.
TEST(RecomputeOps, PartsDoNotKeepTheirOutputs) {
  Scenario scenario = scenario_of_experts(1, 2, 1, 512);
  scenario.model.latent =
      LatentAttention{.q_rank = 96, .kv_rank = 64, .nope_dim = 32, .rope_dim = 16, .v_dim = 32};
  scenario.model.head_dim = 48;
  const auto saved = [&](std::set<RecomputeModule> modules) {
    return (layer_activations(scenario, Recompute::none, LayerKind::experts) -
            layer_activations(scenario, modules, LayerKind::experts))
        .si();
  };
  const double norms = 2 * 2.0 * 64 * 512;
  const double heads = 2.0 * 64 * 8 * (2 * 48 + 32);  // Queries, keys and values.
  const double activation = 2.0 * 128 * 1024;
  const double shared = 2.0 * 64 * 2 * 512;
  // Rows that arrive, both sides of the activation, the router.
  const double moe = 2.0 * 512 * 128 + 2 * activation + shared + 6.0 * 64 * 8;
  EXPECT_DOUBLE_EQ(saved({RecomputeModule::layernorm}), norms);
  EXPECT_DOUBLE_EQ(saved({RecomputeModule::mla_up_proj}), heads);
  EXPECT_DOUBLE_EQ(saved({RecomputeModule::moe_act}), activation);
  EXPECT_DOUBLE_EQ(saved({RecomputeModule::shared_experts}), shared);
  EXPECT_DOUBLE_EQ(saved({RecomputeModule::moe}), moe);
  EXPECT_DOUBLE_EQ(saved({RecomputeModule::layernorm, RecomputeModule::moe_act}),
                   norms + activation);
  EXPECT_DOUBLE_EQ(saved({RecomputeModule::mlp}), 0.0);
}

double bytes_of(const Ops& ops, std::string_view name) {
  double bytes = 0.0;
  for (const Op& op : ops)
    if (op.name == name) bytes += op.bytes.si();
  return bytes;
}

// 64 tokens of h = 512 visit 2 of 8 experts on 4 ranks, two experts each: a token misses a rank
// with (6 x 5) / (8 x 7) and so reaches 4 (1 - 30/56) = 13/7 of them; 128 rows.
TEST(ExpertOps, TokensBecomeRowsBeforeTheyLeaveOrWhereTheyArrive) {
  Scenario scenario = scenario_of_experts(1, 4, 1);
  const double token = 2.0 * 512;
  const LayerSizes s{scenario};
  EXPECT_DOUBLE_EQ(bytes_of(experts_forward(s), "permute"), (64 + 128) * token);
  EXPECT_DOUBLE_EQ(bytes_of(experts_forward(s), "sort_rows"), 2 * 128 * token);
  for (const ExpertDispatcher dispatcher : {ExpertDispatcher::deepep, ExpertDispatcher::hybridep}) {
    scenario.plan.moe_dispatcher = dispatcher;
    const LayerSizes sizes{scenario};
    for (const Ops& ops : {experts_forward(sizes), experts_backward(sizes)})
      for (std::string_view name : {"permute", "unpermute", "permute_bwd", "unpermute_bwd"})
        EXPECT_EQ(bytes_of(ops, name), 0.0);
    const double arrived = 64 * 13.0 / 7.0;
    for (std::string_view name : {"sort_rows", "unsort_rows"})
      EXPECT_DOUBLE_EQ(bytes_of(experts_forward(sizes), name), (arrived + 128) * token);
    for (std::string_view name : {"sort_rows_bwd", "unsort_rows_bwd"})
      EXPECT_DOUBLE_EQ(bytes_of(experts_backward(sizes), name), (arrived + 128) * token);
  }
}

// R = 128 rows of h = 512 and g = 1,024 without a gate. Nothing but what the software does: rows
// padded in 8 bits, copied out of fixed buffers (fp8: 1 + 1/32 bytes an operand), biases.
TEST(ExpertOps, WhatSoftwareDoesToTheRowsOfExperts) {
  Scenario scenario = scenario_of_experts(1, 2, 1);
  scenario.model.mlp_bias = true;
  const double rows = 128;
  const auto both = [&](std::string_view forward, std::string_view backward) {
    const LayerSizes s{scenario};
    return std::pair{bytes_of(experts_forward(s), forward) / rows,
                     bytes_of(experts_backward(s), backward) / rows};
  };
  EXPECT_EQ(both("expert_bias", "expert_bias_bwd"), (std::pair{28.0 * 512, 40.0 * 512}));
  EXPECT_EQ(both("pad_rows", "pad_rows_bwd"), (std::pair{0.0, 0.0}));
  EXPECT_EQ(both("stash_rows", "unstash_rows"), (std::pair{0.0, 0.0}));
  scenario.plan.dtype = Dtype::fp8;
  EXPECT_EQ(both("pad_rows", "pad_rows_bwd"), (std::pair{4.0 * 512, 4.0 * 512}));
  EXPECT_EQ(both("unpad_rows", "unpad_rows_bwd"), (std::pair{4.0 * 512, 4.0 * 512}));
  scenario.plan.moe_dispatcher = ExpertDispatcher::hybridep;
  EXPECT_EQ(both("pad_rows", "pad_rows_bwd"), (std::pair{0.0, 0.0}));

  EXPECT_EQ(both("clamp", "clamp_bwd"), (std::pair{0.0, 0.0}));
  scenario.model.clamped_activation = true;
  EXPECT_EQ(both("clamp", "clamp_bwd"), (std::pair{16.0 * 1024, 30.0 * 1024}));

  // Elements and bytes, a row's channel, of kernels with broadcast or strided operands.
  const auto indexed = [&](const Ops& ops, std::string_view name) {
    for (const Op& op : ops)
      if (op.name == name)
        return std::pair{op.indexed.elements / rows, op.indexed.bytes.si() / rows};
    return std::pair{-1.0, -1.0};
  };
  const LayerSizes s{scenario};
  EXPECT_EQ(indexed(experts_forward(s), "expert_bias"), (std::pair{512.0, 4.0 * 512}));
  EXPECT_EQ(indexed(experts_backward(s), "expert_bias_bwd"), (std::pair{1024.0, 16.0 * 512}));
  EXPECT_EQ(indexed(experts_forward(s), "clamp"), (std::pair{2.0 * 1024, 8.0 * 1024}));
  EXPECT_EQ(indexed(experts_backward(s), "clamp_bwd"), (std::pair{5.0 * 1024, 19.0 * 1024}));

  scenario.software.fused_experts = scenario.software.stashes_experts = true;
  EXPECT_EQ(both("clamp", "clamp_bwd"), (std::pair{0.0, 0.0}));
  EXPECT_EQ(both("expert_bias", "expert_bias_bwd"), (std::pair{0.0, 0.0}));
  EXPECT_EQ(both("activation", "activation_bwd"), (std::pair{0.0, 0.0}));
  const double stashed = 2.0 * (33.0 / 32.0 * (512 + 1024) + 2.0 * 1024);
  EXPECT_EQ(both("stash_rows", "unstash_rows"), (std::pair{stashed, stashed}));
}

// fp8: what enters each linear layer's products is quantised once, forward its input and backward
// its gradient; router and head stay in 16 bits.
TEST(QuantisedOps, OperandsOfLinearLayersOnly) {
  Scenario scenario = scenario_of_experts(1, 2, 1, 512);
  scenario.system = read_system("dgx-h100", test_place);
  scenario.plan.dtype = Dtype::fp8;
  const auto elements = [&](const Ops& ops) {
    double bytes = 0.0;
    for (const Op& op : ops)
      if (op.name == "quantise") bytes += op.bytes.si();
    return bytes / scenario.software.quantise_bytes;
  };
  // Inputs of qkv, proj, shared fc1 and fc2 a token; of fc1 and fc2 a row.
  const double forward = 64 * (512 + 512 + 512 + 512) + 128 * (512 + 1024);
  EXPECT_DOUBLE_EQ(elements(layer_forward(scenario, LayerKind::experts)), forward);
  // Gradients of their outputs: 3 x 512, 512, 512, 512 a token; 1,024 and 512 a row.
  const double backward = 64 * (3 * 512 + 512 + 512 + 512) + 128 * (1024 + 512);
  EXPECT_DOUBLE_EQ(elements(layer_backward(scenario, LayerKind::experts)), backward);
  for (const Ops& ops : {head_forward(scenario), head_backward(scenario)}) {
    EXPECT_EQ(elements(ops), 0.0);
    for (const Op& op : ops) {
      if (op.kind == Op::Kind::gemm) {
        EXPECT_TRUE(op.sixteen_bit) << op.name;
      }
    }
  }
  for (const Op& op : layer_forward(scenario, LayerKind::experts)) {
    if (op.kind == Op::Kind::gemm) {
      EXPECT_EQ(op.sixteen_bit, op.name == "router") << op.name;
    }
  }

  scenario.plan.dtype = Dtype::bf16;
  EXPECT_EQ(elements(layer_forward(scenario, LayerKind::experts)), 0.0);
}

}  // namespace
}  // namespace orrery::expert_ops_test
