// Mixers with a state: operations and memory by hand, scans against published times.
#include "sim/layers/state_ops.hpp"

#include <gtest/gtest.h>

#include <algorithm>
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

// Channels of 4,096 with 16 states, time steps of rank 128: 160 channels are made of them.
Model mamba1(bool norms) {
  return model_of(
      R"({"kind": "mamba1", "inner": 4096, "state": 16, "time_rank": 128, "conv": 4, "norms": )" +
      std::string{norms ? "true}" : "false}"});
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
  for (const Model& model : {mamba(), delta_net(), kda(true), kda(false), lightning(),
                             short_convolution(), mamba1(true)}) {
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
  for (const Model& model : {mamba(), delta_net(), kda(true), kda(false), lightning(),
                             short_convolution(), mamba1(true)}) {
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
//   Mamba-1 as one operator: both halves of the first product's output, 128 + 2 x 16 channels made
//   of them, inputs and outputs of the state once more, the scan's output; a decay and a state in
//   fp32 for 2,048 tokens. With norms: besides, the convolution's output, time steps and the gated
//   output, and what the norms write in place of the copies.
TEST(StateMixer, KeepsWhatItsBackwardPassReads) {
  const double mamba_bytes = 2.0 * (4096 + 4096 + 2 * 1024 + 64 + 4096 + 4096 + 4096) + 4.0;
  const double delta_bytes =
      2.0 * (2 * 2048 + 2 * 4096 + 64 + 2 * 2048 + 4096 + 4096 + 4096) + 32.0 * (64 * 2 + 8);
  const double chunk_ends = 4096.0 * 16 * 2 * 4 / 2048;
  const double fused_bytes = 2.0 * (2 * 4096 + 160 + 2 * 16 + 4096) + chunk_ends;
  const double normed_bytes = 2.0 * (2 * 4096 + 2 * 160 + 4096 + 3 * 4096) + chunk_ends;
  for (const auto& [model, of_mixer] :
       {std::pair{mamba(), mamba_bytes}, std::pair{delta_net(), delta_bytes},
        std::pair{mamba1(false), fused_bytes}, std::pair{mamba1(true), normed_bytes}}) {
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

int count_of(const Ops& ops, std::string_view name) {
  return static_cast<int>(
      std::ranges::count_if(ops, [&](const Op& op) { return op.name == name; }));
}

// What a rank makes of its channels is a part of a sum: 160 channels in 16 bits each way. The one
// operator of layers without norms expands time steps and convolves once more, backward.
TEST(StateMixer, RanksOfASelectiveScanAddUpItsInputs) {
  const double sum = 2.0 * sequence * 160;
  for (const int tp : {1, 4}) {
    const Scenario scenario = scenario_with(mamba1(false), tp);
    const LayerSizes s{scenario, scenario.kind_of(0)};
    const Ops forward = state_mixer_forward(s), backward = state_mixer_backward(s);
    EXPECT_EQ(count_of(forward, "state_sum"), tp > 1 ? 1 : 0);
    EXPECT_EQ(count_of(backward, "state_sum_grad"), tp > 1 ? 1 : 0);
    if (tp > 1) {
      EXPECT_EQ(named(forward, "state_sum").collective, CollectiveKind::all_reduce);
      EXPECT_DOUBLE_EQ(named(forward, "state_sum").bytes.si(), sum);
      EXPECT_DOUBLE_EQ(named(backward, "state_sum_grad").bytes.si(), sum);
    }
    EXPECT_DOUBLE_EQ(product_flop(backward),
                     2.0 * product_flop(forward) + 2.0 * sequence * 128 * 4096 / tp);
    // Five passes over the channels in place of three.
    EXPECT_DOUBLE_EQ(named(backward, "convolution_bwd").bytes.si(),
                     5.0 * 2.0 * sequence * 4096 / tp);
    EXPECT_EQ(named(forward, "scan").scan.heads, 4096 / tp);
    EXPECT_EQ(named(forward, "scan").kernels, 1);
    EXPECT_EQ(count_of(forward, "gated_norm"), 0);  // The scan's kernel gates.
  }
}

// Context ranks have all tokens of a quarter of the channels where these are read: the sum is as
// large as without them, and is formed over them, too.
TEST(StateMixer, ContextRanksShareTheChannelsOfASelectiveScan) {
  const Scenario one = scenario_with(mamba1(true)), four = scenario_with(mamba1(true), 1, 4);
  const Ops alone = state_mixer_forward(LayerSizes{one, one.kind_of(0)});
  const Ops shared = state_mixer_forward(LayerSizes{four, four.kind_of(0)});
  EXPECT_EQ(named(shared, "scan").scan.heads, 1024);
  EXPECT_EQ(named(shared, "mixer_up").m, sequence);
  EXPECT_EQ(named(shared, "mixer_up").k, 1024);
  EXPECT_DOUBLE_EQ(named(shared, "cp_swap_inputs").bytes.si(), 2.0 * sequence / 4 * 2 * 4096);
  EXPECT_DOUBLE_EQ(named(shared, "state_sum").bytes.si(), 2.0 * sequence * 160);
  EXPECT_EQ(named(shared, "state_sum").group, GroupKind::context);
  EXPECT_DOUBLE_EQ(product_flop(alone), 4.0 * product_flop(shared));
}

// No rank does more work, holds more parameters or keeps more where there are more ranks.
TEST(StateMixer, MoreTensorRanksNeverMeanMoreOfASelectiveScan) {
  for (const bool norms : {false, true})
    for (int tp = 1; tp <= 4; tp *= 2) {
      const Scenario few = scenario_with(mamba1(norms), tp);
      const Scenario more = scenario_with(mamba1(norms), 2 * tp);
      const LayerSizes s{few, few.kind_of(0)}, t{more, more.kind_of(0)};
      EXPECT_LT(product_flop(state_mixer_forward(t)), product_flop(state_mixer_forward(s)));
      EXPECT_LT(product_flop(state_mixer_backward(t)), product_flop(state_mixer_backward(s)));
      EXPECT_LT(kept_by_state_mixer(t, 2.0, 2.0), kept_by_state_mixer(s, 2.0, 2.0));
      const Mixer& mixer = *few.model.pattern->mixers.front().mixer;
      EXPECT_LT(mixer.work(hidden, 2 * tp)->vectors, mixer.work(hidden, tp)->vectors);
    }
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

ScanShape selective(std::int64_t channels, std::int64_t states, std::int64_t sequences,
                    std::int64_t tokens) {
  return {{ScanKind::selective, channels, states, 1}, sequences, tokens};
}

// An H100 has 132 multiprocessors at 67e12 / (256 x 132) = 1.983 GHz, with three blocks each: 396
// channels a wave. 8,192 channels are 21 waves, each of which takes the slots of three blocks,
//   21 x 3 x 8,192 tokens x (13 x 16 + 40) / (0.53 x 128 x 1.983 GHz) = 952 us,
// 14 ps a token and channel; backward (39 x 16 + 60) / (13 x 16 + 40) times as long.
TEST(Scan, SelectiveScansTakeTheirInstructions) {
  const double clock = 67e12 / (256.0 * 132);
  const double rate = 0.53 * 128 * clock * 1e-6;  // Instructions a microsecond.
  const double us = 21.0 * 3 * 8192 * (13 * 16 + 40) / rate;
  EXPECT_NEAR(us, 952.0, 1.0);
  EXPECT_NEAR(scan_us("dgx-h100", selective(8192, 16, 1, 8192)), us, 1e-6 * us);
  EXPECT_NEAR(scan_us("dgx-h100", selective(8192, 16, 1, 8192), true), us * 684 / 248, 1e-6 * us);
  EXPECT_EQ(
      scan_time(read_system("dgx-h100", test_place).gpu, selective(8192, 16, 1, 8192), false).tag,
      Tag::default_value);
  // One wave, however few channels; short sequences run as whole blocks of 128 tokens, of which a
  // multiprocessor has twelve.
  EXPECT_DOUBLE_EQ(scan_us("dgx-h100", selective(396, 16, 1, 4096)),
                   scan_us("dgx-h100", selective(16, 16, 1, 4096)));
  EXPECT_NEAR(scan_us("dgx-h100", selective(1584, 16, 1, 16)), 12.0 * 128 * 248 / rate, 1e-9);
  EXPECT_DOUBLE_EQ(scan_us("dgx-h100", selective(1585, 16, 1, 16)),
                   2.0 * scan_us("dgx-h100", selective(1584, 16, 1, 128)));
  // Operations: 9 for each channel and state. Bytes: five tensors of the channels, and inputs and
  // outputs of the states, in 16 bits.
  EXPECT_NEAR(scan_flop(selective(8192, 16, 2, 4096), false).si(), 9.0 * 8192 * 16 * 2 * 4096, 1.0);
  EXPECT_DOUBLE_EQ(scan_bytes(selective(8192, 16, 2, 4096), false).si(),
                   2.0 * 2 * 4096 * (5 * 8192 + 2 * 16));
}

// On an A100, 16 states and twice as many channels as attention has, at 2,048 tokens: as long as
// FlashAttention-2 takes by one report (arXiv 2312.00752, section 4.5), twice as long by another
// (state-spaces/mamba, issue 27). Attention of 16 heads of 128, 8 sequences, takes 1.238 ms
// (calibration/data/kernels/a100-sxm-80gb.json).
TEST(Scan, SelectiveScansLieBetweenTwoReports) {
  const double us = scan_us("dgx-a100-80gb", selective(4096, 16, 8, 2048));
  EXPECT_GT(us, 1238.0);
  EXPECT_LT(us, 2 * 1238.0);
}

TEST(Scan, SelectiveScansAreMonotone) {
  for (const char* system : {"dgx-a100-80gb", "dgx-h100", "dgx-b200"})
    for (const bool backward : {false, true})
      for (std::int64_t channels = 64; channels <= 16384; channels *= 2)
        for (std::int64_t tokens = 32; tokens <= 65536; tokens *= 2) {
          const double us = scan_us(system, selective(channels, 16, 1, tokens), backward);
          EXPECT_GE(scan_us(system, selective(2 * channels, 16, 1, tokens), backward), us);
          EXPECT_GE(scan_us(system, selective(channels, 16, 2, tokens), backward), us);
          EXPECT_GE(scan_us(system, selective(channels, 16, 1, 2 * tokens), backward), us);
          EXPECT_GT(scan_us(system, selective(channels, 32, 1, tokens), backward), us);
          EXPECT_GT(scan_us(system, selective(channels, 16, 1, tokens), true),
                    scan_us(system, selective(channels, 16, 1, tokens), false));
        }
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
