#include <gtest/gtest.h>

#include <algorithm>

#include "sim/kernels/attention_time.hpp"
#include "sim/layers/attention_ops.hpp"
#include "sim/layers/layer_ops.hpp"
#include "sim/layers/step_cost.hpp"
#include "tests/support/scenarios.hpp"

namespace orrery::attention_window_test {
namespace {

AttentionShape queries_of(std::int64_t queries, std::int64_t keys, std::int64_t window) {
  return {.batch = 1,
          .seq_q = queries,
          .seq_kv = keys,
          .heads = 1,
          .kv_heads = 1,
          .head_dim = 1,
          .window = window};
}

// The i-th token sees min(i, w) keys, and of its own counts half.
TEST(AttentionWindow, KeysAreCountedRowByRow) {
  for (std::int64_t keys = 1; keys <= 12; ++keys)
    for (std::int64_t queries = 1; queries <= keys; ++queries)
      for (std::int64_t window = 0; window <= keys + 2; ++window) {
        double twice = -static_cast<double>(queries);
        std::int64_t cut = 0;
        for (std::int64_t i = keys - queries + 1; i <= keys; ++i) {
          twice += 2.0 * static_cast<double>(window > 0 ? std::min(i, window) : i);
          cut += window > 0 && i > window;
        }
        const AttentionShape shape = queries_of(queries, keys, window);
        const auto q = static_cast<double>(queries);
        SCOPED_TRACE(std::to_string(queries) + " of " + std::to_string(keys) + " in " +
                     std::to_string(window));
        EXPECT_NEAR(q * attention_keys(shape), twice, 1e-12);
        EXPECT_NEAR(q * (attention_edges(shape) - 1.0), static_cast<double>(cut), 1e-12);
      }
}

// Tiles of B queries by B keys that a mask leaves something of, counted one by one, against the
// formula: keys and half a tile for each edge. Beyond the window an edge cuts off B (B + 1) / 2
// scores of a tile instead of B^2 / 2: half a key more for each query there.
TEST(AttentionWindow, AnEdgeCostsHalfATileOfKeys) {
  for (std::int64_t tile : {2, 4, 8})
    for (std::int64_t tiles = 1; tiles <= 8; ++tiles)
      for (std::int64_t wide = 1; wide <= tiles; ++wide) {
        const std::int64_t s = tile * tiles, w = tile * wide;
        std::int64_t computed = 0;
        for (std::int64_t row = 0; row < s; row += tile)
          for (std::int64_t column = 0; column < s; column += tile) {
            bool seen = false;
            for (std::int64_t i = row; i < row + tile; ++i)
              for (std::int64_t j = column; j < column + tile; ++j) seen |= j <= i && i - j < w;
            computed += seen ? tile * tile : 0;
          }
        const AttentionShape shape = queries_of(s, s, w);
        const double formula =
            static_cast<double>(s) / 2.0 *
            (attention_keys(shape) + attention_edges(shape) * static_cast<double>(tile));
        EXPECT_NEAR(static_cast<double>(computed), formula + static_cast<double>(s - w) / 2.0, 1e-9)
            << "tile " << tile << ", sequence " << s << ", window " << w;
      }
}

// H200 and the rest have tables; the test GPU has none.
TEST(AttentionWindow, TimeRisesWithTheWindowToThatOfTheWhole) {
  for (const std::string name : {"h100-sxm", "gb200", "a100-sxm-80gb", "test-gpu"}) {
    const auto tables = read_kernel_tables(name);
    const AttentionTime attention{read_gpu(name, test_place), tables ? &*tables : nullptr};
    AttentionShape shape{1, 4096, 4096, 64, 8, 64, true};
    const Seconds whole = attention.forward(shape).time;
    Seconds before;
    for (shape.window = 1; shape.window < 4096; shape.window *= 2) {
      const KernelTime time = attention.forward(shape);
      EXPECT_GE(time.time, before) << name << " " << shape.window;
      EXPECT_LT(time.time, whole) << name << " " << shape.window;
      EXPECT_EQ(time.tag, Tag::default_value);
      before = time.time;
    }
    shape.window = 4095;  // One key fewer does not save a tile.
    EXPECT_LE(attention.forward(shape).time, whole);
  }
}

// Nor does any other shape, also where the tables have the whole sequence faster than the formula.
TEST(AttentionWindow, NoneTakesLongerThanTheWhole) {
  for (const std::string name : {"h100-sxm", "h200-sxm", "gb200", "b200-sxm", "a100-sxm-80gb"}) {
    const auto tables = read_kernel_tables(name);
    const AttentionTime attention{read_gpu(name, test_place), tables ? &*tables : nullptr};
    for (const std::int64_t head_dim : {64, 128, 256})
      for (const std::int64_t seq : {2048, 4096, 8192, 16384}) {
        AttentionShape shape{1, seq, seq, 32, 8, head_dim, true};
        const Seconds forward = attention.forward(shape).time;
        const Seconds backward = attention.backward(shape).time;
        for (shape.window = seq - 64; shape.window > seq / 4; shape.window -= 256) {
          EXPECT_LE(attention.forward(shape).time, forward) << name << " " << shape.window;
          EXPECT_LE(attention.backward(shape).time, backward) << name << " " << shape.window;
        }
      }
  }
}

// 100 TFLOP/s and 1 TB/s, half of the peak: 4096 tokens in a window of 1024 see 1792 - 1/4 x 3 keys
// twice over, (1024 x 1025 + 2 x 3072 x 1024 - 4096) / 4096. Flop 2 x 16 x 4096 x that x 64.
TEST(AttentionWindow, WithoutATableTheKeysAreTheTime) {
  const AttentionTime attention{read_gpu("test-gpu", test_place), nullptr};
  AttentionShape shape{1, 4096, 4096, 16, 16, 64, true};
  shape.window = 1024;
  const double keys = (1024.0 * 1025 + 2.0 * 3072 * 1024 - 4096) / 4096;
  EXPECT_EQ(keys, 1791.25);
  EXPECT_NEAR(attention.forward(shape).time.si() * 1e6, 2.0 * 16 * 4096 * keys * 64 / 5e7 + 5,
              1e-9);
}

// cuDNN 9.22 and 9.26 with a window of 128 tokens: two sequences, 128 heads of 64 and as many keys
// (NVIDIA/cudnn-frontend, benchmark/sdpa_benchmark_training/results/gpt_oss/gb200, 2026-04-24, and
// benchmark/attention_training/results/gpt_oss/h200, 2026-08-26). Microseconds. Nothing was fitted
// to them: short loops over keys reach half to three quarters of the rate of long ones, which the
// formula does not know. A whole sequence of 4096 tokens would take 3 to 7 times as long.
TEST(AttentionWindow, IsFasterThanWhatWasMeasuredByHalfAtMost) {
  struct Measured {
    std::string gpu;
    std::int64_t sequence;
    double forward, backward;
  };
  for (const Measured& one : std::vector<Measured>{{"h200-sxm", 2048, 135, 464},
                                                   {"h200-sxm", 4096, 263, 916},
                                                   {"h200-sxm", 8192, 520, 1828},
                                                   {"gb200", 2048, 109, 237},
                                                   {"gb200", 4096, 210, 465},
                                                   {"gb200", 8192, 414, 911}}) {
    const auto tables = read_kernel_tables(one.gpu);
    const AttentionTime attention{read_gpu(one.gpu, test_place), &*tables};
    AttentionShape shape{2, one.sequence, one.sequence, 128, 128, 64, true};
    shape.window = 128;
    const double forward = attention.forward(shape).time.si() * 1e6 / one.forward;
    const double backward = attention.backward(shape).time.si() * 1e6 / one.backward;
    SCOPED_TRACE(one.gpu + " " + std::to_string(one.sequence));
    EXPECT_GT(std::min(forward, backward), 0.48);
    EXPECT_LT(std::max(forward, backward), 1.0);
  }
}

constexpr std::int64_t seq = 512;

Scenario local_layers(std::int64_t window, int cp = 1,
                      ContextExchange exchange = ContextExchange::all_gather, bool fused = true) {
  Model model = small_gpt(4, 512, 8, 1200);
  model.window = window;
  model.layer_is_local = {true, true, false, true};
  PlanRequest request = plan_request(2, 1, 1, 2, seq, "megatron-core");
  request.cp = cp;
  request.cp_comm = exchange;
  request.fused_attention = fused;
  return scenario_of(model, read_system("four-by-four", test_place), request, 2 * cp);
}

double flop(const Ops& ops) {
  double sum = 0.0;
  for (const Op& op : ops) sum += op.flop().si();
  return sum;
}

TEST(AttentionWindow, LayersDifferWhereAWindowLeavesKeysOut) {
  const LayerKind local{false, 100};
  EXPECT_EQ(local_layers(100).kinds(), (std::vector<LayerKind>{local, LayerKind::dense}));
  EXPECT_EQ(local_layers(100).kind_of(3), local);
  EXPECT_EQ(local_layers(seq).kinds(), std::vector<LayerKind>{LayerKind::dense});
  EXPECT_EQ(local_layers(2 * seq).kinds(), std::vector<LayerKind>{LayerKind::dense});
  EXPECT_EQ(local_layers(100, 1, ContextExchange::p2p, false).kinds(),
            std::vector<LayerKind>{LayerKind::dense});
}

// 4 flop a score and channel forward, 10 backward; 4 heads of 64 on a rank. All else is as without.
TEST(AttentionWindow, OnlyTheAttentionOfALayerDiffers) {
  const Scenario scenario = local_layers(100);
  const LayerKind local = scenario.kind_of(0);
  double scores = -0.5 * seq;
  for (std::int64_t i = 1; i <= seq; ++i)
    scores += static_cast<double>(std::min<std::int64_t>(i, 100));
  EXPECT_DOUBLE_EQ(flop(core_attention_forward(scenario, local)), 4 * scores * 4 * 64);
  EXPECT_DOUBLE_EQ(flop(core_attention_backward(scenario, local)), 10 * scores * 4 * 64);
  for (const auto& [with, without] :
       {std::pair{layer_forward(scenario, local), layer_forward(scenario)},
        std::pair{layer_backward(scenario, local), layer_backward(scenario)}}) {
    ASSERT_EQ(with.size(), without.size());
    for (std::size_t i = 0; i < with.size(); ++i) {
      EXPECT_EQ(with[i].name, without[i].name);
      EXPECT_EQ(with[i].bytes.si(), without[i].bytes.si());
      if (with[i].kind == Op::Kind::attention) {
        EXPECT_EQ(with[i].window, 100);
        EXPECT_LT(with[i].flop(), without[i].flop());
      } else {
        EXPECT_EQ(with[i].flop().si(), without[i].flop().si());
      }
    }
  }
  Scenario again = scenario;
  again.plan.recompute = Recompute::selective;
  ASSERT_EQ(layer_recompute(again, local).size(), 1u);
  EXPECT_EQ(layer_recompute(again, local)[0].window, 100);
}

// Each rank has parts i and 2 cp - 1 - i of the sequence. With a window the ranks' shares differ;
// what is priced is the largest, counted token by token.
TEST(AttentionWindow, GatheredPartsAreThoseOfTheBusiestRank) {
  for (int cp : {2, 4})
    for (std::int64_t window : {1, 10, 64, 100, 128, 200, 256, 300, 511}) {
      const Scenario scenario = local_layers(window, cp);
      const std::int64_t part = seq / (2 * cp);
      const auto scores = [&](std::int64_t index) {
        double sum = -0.5 * static_cast<double>(part);
        for (std::int64_t i = index * part + 1; i <= (index + 1) * part; ++i)
          sum += static_cast<double>(std::min(i, window));
        return sum;
      };
      double busiest = 0.0;
      for (int rank = 0; rank < cp; ++rank)
        busiest = std::max(busiest, scores(rank) + scores(2 * cp - 1 - rank));
      EXPECT_NEAR(flop(core_attention_forward(scenario, scenario.kind_of(0))), 4 * busiest * 4 * 64,
                  1e-6)
          << "cp " << cp << ", window " << window;
      const Scenario swapped = local_layers(window, cp, ContextExchange::a2a);
      double all = 0.0;
      for (int index = 0; index < 2 * cp; ++index) all += scores(index);
      EXPECT_NEAR(flop(core_attention_forward(swapped, swapped.kind_of(0))), 4 * all * 4 * 64 / cp,
                  1e-6);
    }
}

// Half of a query's own key counts in neither convention of the published FLOP rates: s / 2 scores
// of s^2 / 2.
TEST(AttentionWindow, ModelFlopCountsWhatALayerSees) {
  Model model = small_gpt(2, 512, 8, 1024);
  for (std::int64_t s : {1, 7, 64})
    for (std::int64_t window : {1, 5, 64, 100}) {
      model.window = window;
      model.layer_is_local = {false, false};
      const double global = model_flop(model, 3, s, true).si();
      const double global_full = model_flop(model, 3, s, false).si();
      model.layer_is_local = {true, false};
      double hidden = 0.0;  // Scores that the window hides from one layer.
      for (std::int64_t i = 1; i <= s; ++i)
        hidden += static_cast<double>(std::max<std::int64_t>(0, i - window));
      EXPECT_NEAR(global - model_flop(model, 3, s, true).si(), 3 * 3 * 4.0 * hidden * 512,
                  1e-12 * global);
      const double narrower = static_cast<double>(s - std::min(s, window));
      EXPECT_NEAR(global_full - model_flop(model, 3, s, false).si(),
                  3 * 3 * 4.0 * static_cast<double>(s) * narrower * 512, 1e-12 * global_full);
    }
}

}  // namespace
}  // namespace orrery::attention_window_test
