// Mixers with a state: operations and memory by hand, scans against published times.
#include "sim/layers/state_ops.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "sim/layers/layer_activations.hpp"
#include "sim/layers/layer_ops.hpp"
#include "sim/model/layer_pattern.hpp"
#include "tests/support/scenarios.hpp"

namespace orrery::state_ops_test {
namespace {

constexpr std::int64_t hidden = 2048, sequence = 4096;

Model model_of(const std::string& mixer) {
  return parse_model(JsonValue::parse(
      R"({"hidden": 2048, "vocab": 32768, "seq": 4096, "mixers": {"m": )" + mixer +
          R"(}, "ffns": {"mlp": {"width": 5632}}, "pattern": [[2, ["m+none", "none+mlp"]]]})",
      "model.json"));
}

Model mamba() {
  return model_of(
      R"({"kind": "mamba2", "heads": 64, "head_dim": 64, "state": 128, "groups": 8, "conv": 4,
          "chunk": 128})");
}
Model delta_net() {
  return model_of(
      R"({"kind": "gated_delta_net", "key_heads": 16, "value_heads": 32, "key_dim": 128,
          "value_dim": 128, "conv": 4})");
}

Model kda(bool full_rank) {
  return model_of(R"({"kind": "kda", "heads": 32, "head_dim": 128, "conv": 4, "full_rank_gate": )" +
                  std::string{full_rank ? "true}" : "false}"});
}
Model lightning() {
  return model_of(R"({"kind": "lightning", "heads": 32, "head_dim": 128, "chunk": 256})");
}

Model short_convolution() {
  return model_of(R"({"kind": "short_convolution", "taps": 3, "bias": true})");
}

Scenario scenario_with(const Model& model, int tp = 1, int cp = 1) {
  PlanRequest request;
  request.tp = tp;
  request.cp = cp;
  request.cp_comm = ContextExchange::a2a;
  request.gbs = 8;
  request.mbs = 1;
  request.seq = sequence;
  request.sp = false;
  return scenario_of(model, read_system("dgx-h100", test_place), request, 8);
}

double product_flop(const Ops& ops) {
  double sum = 0.0;
  for (const Op& op : ops)
    if (op.kind == Op::Kind::gemm) sum += op.flop().si();
  return sum;
}

const Op& named(const Ops& ops, std::string_view name) {
  for (const Op& op : ops)
    if (op.name == name) return op;
  ADD_FAILURE() << "no " << name;
  return ops.front();
}

double weights_of(const Mixer& mixer) {
  double sum = 0.0;
  for (const WeightMatrix& matrix : mixer.matrices(hidden))
    sum += static_cast<double>(matrix.in * matrix.out);
  return sum;
}

// Two operations a weight and token forward, twice that backward; tensor ranks share them.
TEST(StateMixer, ProductsAreThoseOfItsMatrices) {
  for (const Model& model :
       {mamba(), delta_net(), kda(true), kda(false), lightning(), short_convolution()}) {
    const double weights = weights_of(*model.pattern->mixers.front().mixer);
    for (const int tp : {1, 2, 8}) {
      const Scenario scenario = scenario_with(model, tp);
      const LayerSizes s{scenario, scenario.kind_of(0)};
      double whole = 0.0;  // Low ranks, which every rank has.
      for (const WeightMatrix& matrix : model.pattern->mixers.front().mixer->matrices(hidden))
        if (matrix.out == 128) whole += static_cast<double>(matrix.in * matrix.out);
      EXPECT_DOUBLE_EQ(product_flop(state_mixer_forward(s)),
                       2.0 * sequence * ((weights - whole) / tp + whole));
      EXPECT_DOUBLE_EQ(product_flop(state_mixer_backward(s)),
                       2.0 * product_flop(state_mixer_forward(s)));
    }
  }
}

TEST(StateMixer, RanksHoldItsParameters) {
  for (const Model& model :
       {mamba(), delta_net(), kda(true), kda(false), lightning(), short_convolution()}) {
    const Mixer& mixer = *model.pattern->mixers.front().mixer;
    const StateWork work = *mixer.work(hidden, 1);
    std::int64_t held = work.vectors + work.output * hidden;
    for (const std::int64_t width : work.inputs) held += width * hidden;
    for (const WeightMatrix& matrix : work.inner) held += matrix.in * matrix.out;
    EXPECT_EQ(held, mixer.parameters(hidden));
  }
}

// A layer of the mixer alone: its input, its norm's output, then by hand.
//   Mamba-2: z and x of 4,096, B and C of 8 x 128, dt of 64; the scan's output, the gated one and
//   its norm, a root mean square.
//   Delta net: q and k of 2,048, v and z of 4,096, b and a of 32; q, k, v behind the convolution,
//   the scan's output, 64 x 2 + 8 bytes a value head; the gated norm's output.
TEST(StateMixer, KeepsWhatItsBackwardPassReads) {
  const double mamba_bytes = 2.0 * (4096 + 4096 + 2 * 1024 + 64 + 4096 + 4096 + 4096) + 4.0;
  const double delta_bytes =
      2.0 * (2 * 2048 + 2 * 4096 + 64 + 2 * 2048 + 4096 + 4096 + 4096) + 32.0 * (64 * 2 + 8);
  for (const auto& [model, of_mixer] :
       {std::pair{mamba(), mamba_bytes}, std::pair{delta_net(), delta_bytes}}) {
    const Scenario scenario = scenario_with(model);
    const Bytes kept = layer_activations(scenario, Recompute::none, scenario.kind_of(0));
    EXPECT_DOUBLE_EQ(kept.si(), sequence * (2.0 * 2 * hidden + of_mixer));
  }
}

// Context ranks exchange what they have of all heads for what all have of some, and scan all
// tokens.
TEST(StateMixer, ContextRanksScanWholeSequences) {
  const Scenario one = scenario_with(mamba()), four = scenario_with(mamba(), 1, 4);
  const Ops alone = state_mixer_forward(LayerSizes{one, one.kind_of(0)});
  const Ops shared = state_mixer_forward(LayerSizes{four, four.kind_of(0)});
  EXPECT_EQ(named(alone, "scan").scan.heads, 64);
  EXPECT_EQ(named(shared, "scan").scan.heads, 16);
  EXPECT_EQ(named(shared, "scan").queries, sequence);
  EXPECT_DOUBLE_EQ(named(shared, "cp_swap_inputs").bytes.si(),
                   2.0 * sequence / 4 * (2 * 4096 + 2 * 1024 + 64));
  EXPECT_DOUBLE_EQ(named(shared, "cp_swap_heads").bytes.si(), 2.0 * sequence / 4 * 4096);
  EXPECT_DOUBLE_EQ(product_flop(alone), 4.0 * product_flop(shared));
}

double scan_us(const char* system, const ScanShape& shape, bool backward = false) {
  return scan_time(read_system(system, test_place).gpu, shape, backward).time.si() * 1e6;
}

double prompt_scan_us(const char* system, const ScanShape& shape) {
  return prompt_scan_time(read_system(system, test_place).gpu, shape).time.si() * 1e6;
}

// Both passes of this project's own record of an H100.
TEST(Scan, TakesWhatAnH100Measured) {
  const std::map<std::string, ScanKind> kinds{{"gated_delta_net", ScanKind::delta_rule},
                                              {"mamba2", ScanKind::state_space},
                                              {"kda", ScanKind::channel_delta_rule},
                                              {"lightning", ScanKind::fixed_decay}};
  std::ifstream file{std::string{ORRERY_TEST_SOURCE} +
                     "/calibration/data/records/h100-sxm/scans.csv"};
  std::string line;
  std::getline(file, line);
  int rows = 0;
  while (std::getline(file, line)) {
    std::vector<std::string> cells;
    std::stringstream parts{line};
    for (std::string cell; std::getline(parts, cell, ',');) cells.push_back(cell);
    const auto kind = kinds.find(cells[5]);
    if (kind == kinds.end() || cells[13] != "measured") continue;
    const auto number = [&](std::size_t cell) { return std::stoll(cells[cell]); };
    // The host launched slower than the GPU ran: medians far above the fastest runs.
    const double us = std::stod(cells[14]), fast = std::stod(cells[15]);
    if (us > 1.1 * fast) continue;
    ++rows;
    EXPECT_NEAR(scan_us("dgx-h100",
                        {{kind->second, number(10), number(11), number(12)}, number(7), number(8)},
                        cells[6] == "backward") /
                    us,
                1.0, kind->second == ScanKind::delta_rule ? 0.12 : 0.07)
        << line;
  }
  EXPECT_EQ(rows, 37);
}

// mamba_chunk_scan_combined of TensorRT-LLM on B200 (NVIDIA aiconfigurator, mamba2_perf, commit
// 095f58a5) and the five kernels on H100 (vLLM pull request 27299).
TEST(Scan, StateSpacesOfPromptsTakePublishedTimes) {
  struct Row {
    std::int64_t heads, sequences, tokens;
    double us;
  };
  for (const Row& row : {Row{64, 1, 32768, 2838}, Row{64, 4, 8192, 1435}, Row{64, 16, 2048, 1280},
                         Row{128, 2, 16384, 2833}, Row{128, 8, 16384, 10040},
                         Row{256, 1, 32768, 5661}, Row{256, 64, 1024, 10140}})
    EXPECT_NEAR(
        prompt_scan_us("dgx-b200",
                       {{ScanKind::state_space, row.heads, 128, 64}, row.sequences, row.tokens}) /
            row.us,
        1.0, 0.05)
        << row.heads << " " << row.sequences << " " << row.tokens;
  for (const auto& [tokens, us] :
       {std::pair{8192, 649.0}, std::pair{16384, 1267.7}, std::pair{32768, 2776.9},
        std::pair{65536, 5921.1}, std::pair{131072, 12244.6}})
    EXPECT_NEAR(prompt_scan_us("dgx-h100", {{ScanKind::state_space, 128, 128, 64}, 1, tokens}) / us,
                1.0, 0.15)
        << tokens;
  // A tensor rank of eight has an eighth of the heads, and larger states stand as more heads.
  const auto us = [](const char* system, std::int64_t heads, std::int64_t values) {
    return prompt_scan_us(system, {{ScanKind::state_space, heads, 128, values}, 1, 65536});
  };
  EXPECT_NEAR(us("dgx-h100", 16, 64) / us("dgx-h100", 128, 64), 1.0 / 8, 0.003);
  EXPECT_DOUBLE_EQ(us("dgx-h100", 16, 128), us("dgx-h100", 32, 64));
  EXPECT_DOUBLE_EQ(us("dgx-b200", 16, 128), us("dgx-b200", 32, 64));
  EXPECT_DOUBLE_EQ(us("dgx-b200", 256, 128), us("dgx-b200", 512, 64));
}

// fla's kernels on H200 and GB200 (QwenLM/FlashQLA, benchmark results, commit c18a4860).
TEST(Scan, DeltaRulesTakePublishedTimes) {
  const auto forward = [](const char* system, std::int64_t heads, std::int64_t tokens) {
    return scan_us(system, {{ScanKind::delta_rule, heads, 128, 128}, 1, tokens});
  };
  EXPECT_NEAR(forward("gb200-nvl72", 8, 16384) / 550.0, 1.0, 0.12);
  EXPECT_NEAR(forward("gb200-nvl72", 8, 8192) / 277.0, 1.0, 0.12);
  EXPECT_NEAR(forward("gb200-nvl72", 8, 4096) / 152.0, 1.0, 0.12);
}

// fla's kernels (inclusionAI/cuLA, BENCHMARK_H200.md, _GB200.md, _GB300.md, commit fa742a23).
TEST(Scan, KdaAndLightningTakePublishedTimes) {
  const auto error = [](const char* system, ScanKind kind, std::int64_t sequences,
                        std::int64_t tokens, double us) {
    return scan_us(system, {{kind, 64, 128, 128}, sequences, tokens}) / us - 1.0;
  };
  const ScanKind kda = ScanKind::channel_delta_rule, lightning = ScanKind::fixed_decay;
  EXPECT_NEAR(error("dgx-h200", kda, 1, 8192, 1819), 0.0, 0.06);
  EXPECT_NEAR(error("dgx-h200", kda, 2, 16384, 7173), 0.0, 0.06);
  EXPECT_NEAR(error("gb200-nvl72", kda, 1, 16384, 2706), 0.0, 0.06);
  EXPECT_NEAR(error("gb300-nvl72", kda, 2, 8192, 2794), 0.0, 0.06);
  EXPECT_NEAR(error("gb200-nvl72", lightning, 2, 8192, 585), 0.0, 0.12);
  EXPECT_NEAR(error("gb300-nvl72", lightning, 2, 16384, 1175), 0.0, 0.09);
}

// More tokens, heads or sequences never take less time; backward takes longer than twice forward.
TEST(Scan, IsMonotone) {
  for (const char* system : {"dgx-a100-80gb", "dgx-h100", "dgx-b200"})
    for (const ScanKind kind : {ScanKind::state_space, ScanKind::delta_rule,
                                ScanKind::channel_delta_rule, ScanKind::fixed_decay})
      for (const bool backward : {false, true})
        for (std::int64_t heads = 1; heads <= 256; heads *= 2)
          for (std::int64_t tokens = 256; tokens <= 65536; tokens *= 4) {
            const auto us = [&](std::int64_t h, std::int64_t b, std::int64_t t) {
              return scan_us(system, {{kind, h, 128, 64}, b, t}, backward);
            };
            const double time = us(heads, 1, tokens);
            EXPECT_GE(us(2 * heads, 1, tokens), time);
            EXPECT_GE(us(heads, 2, tokens), time);
            EXPECT_GT(us(heads, 1, 2 * tokens), time);
            if (!backward) {
              const double back = scan_us(system, {{kind, heads, 128, 64}, 1, tokens}, true);
              EXPECT_GT(back, heads * tokens >= 1 << 20 ? 2.0 * time : time);
            }
          }
}

}  // namespace
}  // namespace orrery::state_ops_test
