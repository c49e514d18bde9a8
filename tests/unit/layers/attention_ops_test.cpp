#include "sim/layers/attention_ops.hpp"

#include <gtest/gtest.h>

#include "sim/layers/layer_activations.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/scenarios.hpp"

namespace orrery::attention_ops_test {
namespace {

// Two sequences of 512 tokens; 8 heads of 64 and 8 key/value heads over 2 tensor ranks.
constexpr double b = 2, s = 512, a = 4, k = 4, d = 64;

Scenario shared_by(int cp, ContextExchange exchange) {
  PlanRequest request = plan_request(2, 1, 2, 2, 512, "megatron-core");
  request.cp = cp;
  request.cp_comm = exchange;
  return scenario_of(small_gpt(2, 512, 8, 1200), read_system("four-by-four", test_place), request,
                     2 * cp);
}

double flop(const Ops& ops) {
  double sum = 0.0;
  for (const Op& op : ops) sum += op.flop().si();
  return sum;
}

// Bytes that a rank puts on the wire.
double wire_bytes(const Ops& ops, int cp) {
  double sum = 0.0;
  for (const Op& op : ops) {
    if (op.kind != Op::Kind::collective) continue;
    EXPECT_EQ(op.group, GroupKind::context);
    sum += op.bytes.si() *
           (op.collective == CollectiveKind::send_recv ? 1.0 : static_cast<double>(cp - 1) / cp);
  }
  return sum;
}

// A causal square has 2 b a s^2 d flop forward, five halves of it backward (arXiv 2205.14135). Each
// rank does a cp-th, however keys and values come to it: the parts are balanced.
TEST(AttentionOps, RanksShareTheFlopOfTheSequenceEvenly) {
  for (ContextExchange exchange :
       {ContextExchange::p2p, ContextExchange::all_gather, ContextExchange::a2a})
    for (int cp : {1, 2, 4}) {
      SCOPED_TRACE(name(exchange) + " " + std::to_string(cp));
      const Scenario scenario = shared_by(cp, exchange);
      EXPECT_DOUBLE_EQ(flop(core_attention_forward(scenario)), 2 * b * a * s * s * d / cp);
      EXPECT_DOUBLE_EQ(flop(core_attention_backward(scenario)), 5 * b * a * s * s * d / cp);
    }
}

// Keys and values of a rank's own s / cp tokens: 2 tensors of 2 bytes.
double own_key_values(int cp) { return 2 * 2 * b * (s / cp) * k * d; }

// Forward they visit the cp - 1 other ranks; backward once more, and their gradients come home in
// cp - 1 hops. A hop overlaps a kernel.
TEST(AttentionOps, ARingPassesKeysAndValuesOn) {
  for (int cp : {2, 4, 8}) {
    const Scenario scenario = shared_by(cp, ContextExchange::p2p);
    const Ops forward = core_attention_forward(scenario);
    EXPECT_EQ(wire_bytes(forward, cp), (cp - 1) * own_key_values(cp));
    EXPECT_EQ(wire_bytes(core_attention_backward(scenario), cp), 2 * (cp - 1) * own_key_values(cp));
    for (const Op& op : forward) {
      const bool travels = op.kind == Op::Kind::collective;
      EXPECT_EQ(op.hidden, travels ? 1.0 : 0.0);
    }
  }
}

// A gather brings each rank the other cp - 1 ranks' keys and values, and so backward; then their
// gradients are reduced: the ring's bytes in one piece.
TEST(AttentionOps, AGatherSendsTheRingsBytesAtOnce) {
  for (int cp : {2, 4, 8}) {
    const Scenario ring = shared_by(cp, ContextExchange::p2p);
    const Scenario gather = shared_by(cp, ContextExchange::all_gather);
    EXPECT_DOUBLE_EQ(wire_bytes(core_attention_forward(gather), cp),
                     wire_bytes(core_attention_forward(ring), cp));
    EXPECT_DOUBLE_EQ(wire_bytes(core_attention_backward(gather), cp),
                     wire_bytes(core_attention_backward(ring), cp));
  }
}

// Ulysses (arXiv 2309.14509, section 3.2): queries, keys, values and outputs of s / cp tokens, of
// which a cp-th stays: 4 T a d activations for equally many heads of each, whatever cp is.
TEST(AttentionOps, SwappingHeadsForTokensSendsFourTensors) {
  for (int cp : {2, 4}) {
    const Scenario scenario = shared_by(cp, ContextExchange::a2a);
    const double sent = 4.0 * 2 * b * (s / cp) * a * d * (cp - 1) / cp;
    EXPECT_DOUBLE_EQ(wire_bytes(core_attention_forward(scenario), cp), sent);
    EXPECT_DOUBLE_EQ(wire_bytes(core_attention_backward(scenario), cp), sent);
    for (const Op& op : core_attention_forward(scenario))
      if (op.kind == Op::Kind::attention) {
        EXPECT_EQ(op.queries, s);
        EXPECT_EQ(op.heads, a / cp);
      }
  }
}

// DeepSpeed, ulysses_sp.py: with 2 key/value heads four ranks get a copy of one each (8 a rank's
// 8 queries, copies of keys and of values, and back 8), made of 2 x 2 heads and written as 2 x 4.
TEST(AttentionOps, UlyssesCopiesKeysForMoreRanksThanTheyHaveHeads) {
  Model model = small_gpt(2, 512, 8, 1200);
  PlanRequest request = plan_request(1, 1, 2, 2, 512, "deepspeed");
  request.cp = 4;
  request.cp_comm = ContextExchange::a2a;
  const double tokens = b * s / 4;
  const auto scenario_with = [&](std::int64_t key_heads) {
    model.kv_heads = key_heads;
    return scenario_of(model, read_system("four-by-four", test_place), request, request.cp);
  };
  for (const std::int64_t key_heads : {1, 2, 4, 8}) {
    const Scenario scenario = scenario_with(key_heads);
    const double sent = static_cast<double>(std::max<std::int64_t>(4, key_heads));
    for (const bool backward : {false, true}) {
      const Ops ops =
          backward ? core_attention_backward(scenario) : core_attention_forward(scenario);
      EXPECT_DOUBLE_EQ(wire_bytes(ops, 4), 2 * tokens * d * (8 + 2 * sent + 8) * 3 / 4);
      double copied = 0.0;
      for (const Op& op : ops) {
        if (op.kind == Op::Kind::memory) copied += op.bytes.si();
        if (op.kind != Op::Kind::attention) continue;
        EXPECT_EQ(op.queries, s);
        EXPECT_EQ(op.heads, 2);
        EXPECT_EQ(op.kv_heads, std::max<std::int64_t>(1, key_heads / 4));
      }
      const double heads = static_cast<double>(key_heads);
      EXPECT_DOUBLE_EQ(copied, key_heads < 4 ? 2 * tokens * d * 2 * (heads + sent) : 0.0);
    }
  }
  // Kept: two more heads of keys and of values for the rank's tokens.
  EXPECT_DOUBLE_EQ((layer_activations(scenario_with(2), Recompute::none) -
                    layer_activations(scenario_with(4), Recompute::none))
                       .si(),
                   0.0);
  EXPECT_DOUBLE_EQ((layer_activations(scenario_with(8), Recompute::none) -
                    layer_activations(scenario_with(2), Recompute::none))
                       .si(),
                   2 * tokens * d * 2 * (8 - 4));
  model.kv_heads = 3, model.heads = 6, model.head_dim = 64, model.hidden = 384;
  request.cp = 2;
  EXPECT_NE(error_text([&] { scenario_with(3); })
                .find("cp=2 to divide the 3 key/value heads of a tensor-parallel rank, or these to "
                      "divide cp"),
            std::string::npos);
  request.software = "megatron-core";  // Transformer Engine has no copies.
  EXPECT_NE(error_text([&] { scenario_with(3); })
                .find("cp=2 to divide the 3 key/value heads of a tensor-parallel rank; use "
                      "cp_comm=all_gather, or another cp"),
            std::string::npos);
}

// Transformer Engine, dot_product_attention/utils.py, get_attention_backend, and
// common/fused_attn/fused_attn.cpp.
TEST(AttentionOps, DeterministicKernelsAreFlashAttention2WhereCudnnHasNone) {
  Scenario scenario = shared_by(1, ContextExchange::p2p);
  const auto kernel = [&](Architecture architecture, bool dropout, bool deterministic) {
    scenario.system.gpu.architecture = architecture;
    scenario.software.dropout = dropout;
    scenario.software.deterministic = deterministic;
    return core_attention_backward(scenario).front().attention_kernel;
  };
  scenario.software.attention_library = AttentionLibrary::flash_attention_2;
  EXPECT_EQ(kernel(Architecture::hopper, false, false), AttentionKernel::flash_attention_2);
  scenario.software.attention_library = {};
  EXPECT_EQ(kernel(Architecture::hopper, false, false), AttentionKernel::of_tables);
  EXPECT_EQ(kernel(Architecture::ampere, false, false), AttentionKernel::flash_attention_2);
  scenario.software.attention_library = AttentionLibrary::tables;
  EXPECT_EQ(kernel(Architecture::ampere, false, false), AttentionKernel::of_tables);
  scenario.software.attention_library = AttentionLibrary::cudnn;
  using enum Architecture;
  for (const Architecture architecture : {ampere, hopper, blackwell})
    for (const bool dropout : {false, true}) {
      EXPECT_EQ(kernel(architecture, dropout, false), architecture == ampere
                                                          ? AttentionKernel::flash_attention_2
                                                          : AttentionKernel::cudnn);
      const bool flash = architecture == ampere || (architecture == blackwell && dropout);
      EXPECT_EQ(kernel(architecture, dropout, true),
                flash ? AttentionKernel::deterministic_flash_attention_2 : AttentionKernel::cudnn);
    }
}

}  // namespace
}  // namespace orrery::attention_ops_test
