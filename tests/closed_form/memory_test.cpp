// Bytes of a GPT layer and of its states, against the papers' formulas.
#include "sim/layers/memory.hpp"

#include <gtest/gtest.h>

#include "sim/layers/layer_activations.hpp"
#include "sim/layers/layer_ops.hpp"
#include "sim/layers/rank_parameters.hpp"
#include "tests/support/scenarios.hpp"

namespace orrery::memory_test {
namespace {

constexpr double b = 3, s = 64, h = 512, a = 8;

Scenario gpt(int tp, int pp, int dp, bool sp, Recompute recompute = Recompute::none, int zero = 0,
             int microbatches = 4) {
  PlanRequest request = plan_request(tp, pp, 3, 3 * microbatches * dp, 64, "megatron-2021");
  request.sp = sp;
  request.recompute = recompute;
  request.zero = zero;
  return scenario_of(small_gpt(8, 512, 8, 1024), read_system("four-by-four", test_place), request,
                     tp * pp * dp);
}

// Korthikanti et al. (arXiv 2205.05198), equations (1), (2) and (4).
TEST(LayerActivations, AreKorthikantis) {
  for (double t : {1.0, 2.0, 4.0}) {
    SCOPED_TRACE(t);
    const int tp = static_cast<int>(t);
    EXPECT_DOUBLE_EQ(layer_activations(gpt(tp, 1, 1, false), Recompute::none).si(),
                     s * b * h * (10 + 24 / t + 5 * a * s / (h * t)));
    if (tp == 1) continue;
    EXPECT_DOUBLE_EQ(layer_activations(gpt(tp, 1, 1, true), Recompute::none).si(),
                     s * b * h / t * (34 + 5 * a * s / h));
  }
}

// Their table 2: selective recomputation drops the scores' 5 a s / h, full keeps the input, 2 sbh.
TEST(LayerActivations, Recomputed) {
  EXPECT_DOUBLE_EQ(layer_activations(gpt(2, 1, 1, true), Recompute::selective).si(),
                   34 * s * b * h / 2);
  EXPECT_DOUBLE_EQ(layer_activations(gpt(2, 1, 1, false), Recompute::full).si(), 2 * s * b * h);
  EXPECT_DOUBLE_EQ(layer_activations(gpt(2, 1, 1, true), Recompute::full).si(), 2 * s * b * h / 2);
}

// Transformer Engine keeps a product's input in 8 bits. Of Llama 3 8B's layer, bytes a token in
// bf16: both blocks' inputs 4 x 4096; queries and output 4 x 4096, keys and values 4 x 1024; both
// norms' outputs 4 x 4096; the MLP's gate, other half and product 6 x 14336; log-sum-exps 4 x 32.
// In fp8 the norms' outputs and the MLP's product halve, and the output is kept a second time.
// mxfp8 adds a byte of scale to 32 elements.
TEST(LayerActivations, InputsOfProductsInEightBits) {
  const auto of = [](Dtype dtype, const std::string& software) {
    PlanRequest request = plan_request(1, 1, 1, 8, 8192, software);
    request.dtype = dtype;
    const Scenario scenario = scenario_of(read_model("llama3-8b", test_place),
                                          read_system("dgx-b200", test_place), request, 8);
    return layer_activations(scenario, Recompute::none).si() / 8192.0;
  };
  constexpr double rest = 4 * 4096 + 4 * 4096 + 4 * 1024 + 4 * 14336 + 4 * 32;
  constexpr double inputs = 2 * 4096 + 14336;  // The norms' outputs, the MLP's product.
  EXPECT_DOUBLE_EQ(of(Dtype::bf16, "megatron-core"), rest + 2 * inputs);
  EXPECT_DOUBLE_EQ(of(Dtype::fp8, "megatron-core"), rest + inputs + 4096);
  EXPECT_DOUBLE_EQ(of(Dtype::mxfp8, "megatron-core"), rest + (inputs + 4096) * 33 / 32);
  // DeepSeek-V3 keeps what SwiGLU reads in 8 bits as well: both inputs of 14336 lose a byte.
  EXPECT_DOUBLE_EQ(of(Dtype::fp8, "dualpipe"), of(Dtype::fp8, "megatron-core") - 2 * 14336);
  // torchao's Float8Linear keeps them in 16 bits.
  EXPECT_DOUBLE_EQ(of(Dtype::fp8, "torchtitan"), of(Dtype::bf16, "torchtitan"));
}

// Of every other product kept: the layer's input, queries, values and attention's output (3 h), the
// first product of the MLP (4 h), and 4 bytes a query and head.
TEST(LayerActivations, OfAlternateProducts) {
  Scenario half = gpt(2, 1, 1, true, Recompute::selective);
  half.software.selective_recompute = SelectiveRecompute::alternate_products;
  EXPECT_DOUBLE_EQ(layer_activations(half, Recompute::selective).si(),
                   s * b * h * (2.0 + 14.0) / 2 + 4 * a * s * b / 2);
}

// Mixed-precision Adam: 2 bytes weight, 4 gradient, 12 optimizer (fp32 weight, two moments), 18 a
// parameter. ZeRO-1 spreads the 12 over dp: 6 + 12/dp (Rajbhandari et al., arXiv 1910.02054, with
// fp32 gradients).
TEST(Memory, StatesOfAParameter) {
  for (int dp : {1, 2, 4})
    for (int zero : {0, 1}) {
      const Scenario scenario = gpt(2, 2, dp, false, Recompute::none, zero);
      const MemoryReport report = memory_of(scenario);
      ASSERT_EQ(report.stages.size(), 2u);
      for (int stage : {0, 1}) {
        const StageMemory& memory = report.stages[static_cast<std::size_t>(stage)];
        const auto parameters = static_cast<double>(parameters_on_rank(scenario, stage).sum());
        EXPECT_DOUBLE_EQ((memory.weights + memory.gradients + memory.optimizer).si(),
                         parameters * (zero ? 6.0 + 12.0 / dp : 18.0));
      }
    }
}

struct ParameterState {
  MainParams main_params = MainParams::fp32;
  Dtype exp_avg = Dtype::fp32, exp_avg_sq = Dtype::fp32;
  bool fp8_params = false;
};

Scenario in_formats_of(Dtype dtype, const ParameterState& state, const std::string& software,
                       const std::string& system = "dgx-h100", int zero = 0) {
  PlanRequest request = plan_request(1, 1, 1, 8, 64, software);
  request.dtype = dtype;
  request.main_params = state.main_params;
  request.exp_avg = state.exp_avg;
  request.exp_avg_sq = state.exp_avg_sq;
  request.fp8_params = state.fp8_params;
  request.zero = zero;
  return scenario_of(small_gpt(8, 512, 8, 1024), read_system(system, test_place), request, 8);
}
double bytes_a_parameter(const Scenario& scenario) {
  const StageMemory memory = memory_of(scenario).stages[0];
  return (memory.weights + memory.gradients + memory.optimizer).si() /
         static_cast<double>(parameters_on_rank(scenario, 0).sum());
}

// megatron-core reduces and keeps gradients in 16 bits: 2 + 2 and masters and moments. The low 16
// bits of a master complete a bf16 weight: 10 of 12 bytes (NeMo, store_param_remainders; Megatron
// Core, optimizer_config.py). DeepSeek-V3 keeps moments in bf16: 8 (arXiv 2412.19437, 3.3.3).
// torch's DistributedDataParallel holds a 16-bit copy of the gradients in its buckets, in addition
// to the fp32 sums of nanotron, which uses it without ZeRO and with replicas.
TEST(Memory, BucketsHoldACopyOfTheGradients) {
  const auto bytes_each = [](int dp, int zero) {
    PlanRequest request = plan_request(1, 1, 1, 4 * dp, 64, "nanotron");
    request.zero = zero;
    const Scenario scenario = scenario_of(small_gpt(8, 512, 8, 1024),
                                          read_system("four-by-four", test_place), request, dp);
    return memory_of(scenario).stages[0].gradients.si() /
           static_cast<double>(parameters_on_rank(scenario, 0).sum());
  };
  EXPECT_DOUBLE_EQ(bytes_each(2, 0), 4 + 2);
  EXPECT_DOUBLE_EQ(bytes_each(1, 0), 4);
  EXPECT_DOUBLE_EQ(bytes_each(2, 1), 4);
}

TEST(Memory, FormatsOfTheOptimizersState) {
  using enum MainParams;
  using Moment = Dtype;
  const auto of = [](MainParams masters, Moment first, Moment second) {
    return bytes_a_parameter(
        in_formats_of(Dtype::bf16, {masters, first, second, false}, "megatron-core"));
  };
  EXPECT_DOUBLE_EQ(of(fp32, Moment::fp32, Moment::fp32), 4.0 + 12.0);
  EXPECT_DOUBLE_EQ(of(remainders, Moment::fp32, Moment::fp32), 4.0 + 10.0);
  EXPECT_DOUBLE_EQ(of(remainders, Moment::bf16, Moment::bf16), 4.0 + 6.0);
  EXPECT_DOUBLE_EQ(of(fp32, Moment::bf16, Moment::bf16), 4.0 + 8.0);
  EXPECT_DOUBLE_EQ(of(fp16, Moment::fp8, Moment::fp16), 4.0 + 2.0 + 1.0 + 2.0);
  EXPECT_DOUBLE_EQ(of(bf16, Moment::bf16, Moment::bf16), 4.0 + 6.0);
  EXPECT_DOUBLE_EQ(of(none, Moment::bf16, Moment::bf16), 4.0 + 4.0);
  // A byte and a float for each 256 elements.
  EXPECT_DOUBLE_EQ(of(fp32, Moment::int8_block, Moment::int8_block),
                   4.0 + 4.0 + 2.0 * (1.0 + 4.0 / 256.0));
}

// Gradients of fp32 stay where masters do, and are of 16 bits where weights are updated in place.
TEST(Memory, GradientsOfWeightsWithoutMasters) {
  const ParameterState in_place{MainParams::none, Dtype::bf16, Dtype::bf16, false};
  const std::string wide = "megatron-core-fp32-reduce";
  EXPECT_DOUBLE_EQ(bytes_a_parameter(in_formats_of(Dtype::bf16, {}, wide)), 2.0 + 4.0 + 12.0);
  EXPECT_DOUBLE_EQ(bytes_a_parameter(in_formats_of(Dtype::bf16, in_place, wide)), 2.0 + 2.0 + 4.0);
  // ZeRO-1 shards everything but weights and gradients over 8 ranks.
  EXPECT_DOUBLE_EQ(bytes_a_parameter(in_formats_of(Dtype::bf16, in_place, wide, "dgx-h100", 1)),
                   4.0 + 4.0 / 8);
}

// Adam's step, bytes a parameter: gradient read for its norm, read and written for clipping, read
// again; masters and moments read and written.
TEST(Memory, OptimizersTrafficFollowsTheFormats) {
  using enum MainParams;
  using Moment = Dtype;
  const auto of = [](MainParams masters, Moment moment) {
    return in_formats_of(Dtype::bf16, {masters, moment, moment, false}, "megatron-core")
        .software.optimizer_bytes;
  };
  EXPECT_EQ(of(fp32, Moment::fp32), 52.0);  // As the file says.
  EXPECT_EQ(of(fp32, Moment::bf16), 52.0 - 2 * 4);
  EXPECT_EQ(of(remainders, Moment::fp32), 4 * 2 + 2 * 4 + 2 * 8);
  EXPECT_EQ(of(remainders, Moment::bf16), 4 * 2 + 2 * 4 + 2 * 4);
  EXPECT_EQ(of(fp16, Moment::fp8), 4 * 2 + 2 * 2 + 2 + 2 * 2);
  EXPECT_EQ(of(none, Moment::bf16), 4 * 2 + 2 * 2 + 2 * 4);
}

// A weight of 8 bits: Hopper keeps one for each direction, Blackwell one for both, mxfp8 two with a
// byte for 32 elements. Embedding and head, 2 x 1024 x 512, stay in 16 bits. fp8 is gathered as it
// is, mxfp8 made of what is gathered in 16 bits.
TEST(Memory, WeightsInEightBits) {
  const auto weights = [](Dtype dtype, const std::string& system) {
    const Scenario scenario = in_formats_of(dtype, {.fp8_params = true}, "megatron-core", system);
    const double tables = 2.0 * 1024 * 512;
    const auto all = static_cast<double>(parameters_on_rank(scenario, 0).sum());
    return (memory_of(scenario).stages[0].weights.si() - 2.0 * tables) / (all - tables);
  };
  EXPECT_DOUBLE_EQ(weights(Dtype::fp8, "dgx-h100"), 2.0);
  EXPECT_DOUBLE_EQ(weights(Dtype::fp8, "dgx-b200"), 1.0);
  EXPECT_DOUBLE_EQ(weights(Dtype::mxfp8, "dgx-b200"), 2.0 + 2.0 / 32.0);
  const auto sent = [](Dtype dtype) {
    return in_formats_of(dtype, {.fp8_params = true}, "megatron-core", "dgx-b200")
        .software.weight_bytes;
  };
  EXPECT_EQ(sent(Dtype::fp8), 1.0);
  EXPECT_EQ(sent(Dtype::mxfp8), 2.0);
}

// Layers held x micro-batches in flight: 1F1B p - s, GPipe all m. Megatron-LM of 2021 also keeps
// the output that it has sent, 2 sbh, on all stages but the last.
TEST(Memory, ActivationsInFlight) {
  const Scenario scenario = gpt(1, 4, 1, false, Recompute::none, 0, 8);
  const double layer = layer_activations(scenario, Recompute::none).si();
  const MemoryReport report = memory_of(scenario);
  for (int stage = 0; stage < 4; ++stage)
    EXPECT_DOUBLE_EQ(report.stages[static_cast<std::size_t>(stage)].activations.si(),
                     (4 - stage) * (2 * layer + (stage < 3 ? 2 * s * b * h : 0.0)));
  Scenario all_forward = scenario;
  all_forward.plan.schedule = &gpipe();
  EXPECT_DOUBLE_EQ(memory_of(all_forward).stages[3].activations.si(), 2 * 8 * layer);
}

// Full recomputation holds the layers' inputs and what was sent, and one layer whole while it is
// computed again.
// 1,024 tokens of the vocabulary are two hidden widths: of 192 tokens, half and up to a power of
// two have logits at once.
TEST(Memory, LogitsInChunks) {
  Scenario scenario = gpt(1, 1, 1, false);
  const double whole = memory_of(scenario).stages.back().other.si();
  scenario.plan.chunked_loss = true;
  const double chunk = memory_of(scenario).stages.back().other.si();
  EXPECT_DOUBLE_EQ(whole - chunk, scenario.software.logit_held_bytes * (192 - 128) * 1024);
}

TEST(Memory, FullRecomputationHoldsOneLayerWhole) {
  const Scenario scenario = gpt(1, 4, 1, false, Recompute::full, 0, 8);
  EXPECT_DOUBLE_EQ(memory_of(scenario).stages[0].activations.si(),
                   4 * (2 + 1) * 2 * s * b * h + layer_activations(scenario, Recompute::none).si());
}

TEST(Memory, PeakIsTheFullestStages) {
  const MemoryReport report = memory_of(gpt(1, 4, 1, false));
  for (const StageMemory& stage : report.stages) EXPECT_LE(stage.peak(), report.peak());
  EXPECT_EQ(report.peak(), report.stages[static_cast<std::size_t>(report.fullest_stage())].peak());
  EXPECT_EQ(report.capacity.si(), 80e9);  // test-gpu
  EXPECT_TRUE(report.fits());
}

// Of all stages together, at tp = 1, the model's own count; a tied head on another stage than the
// embedding is a copy more.
TEST(ParametersOnRank, AddUpToTheModel) {
  for (bool tied : {false, true})
    for (int pp : {1, 2, 4}) {
      Model model = small_gpt(8, 512, 8, 1024);
      model.tied_embeddings = tied;
      model.qkv_bias = model.out_bias = model.mlp_bias = model.norm_bias = true;
      model.learned_positions = 64;
      const Scenario scenario = scenario_of(model, read_system("four-by-four", test_place),
                                            plan_request(1, pp, 1, 8, 64, "megatron-2021"), pp);
      std::int64_t sum = 0;
      for (int stage = 0; stage < pp; ++stage) sum += parameters_on_rank(scenario, stage).sum();
      const std::int64_t copy = tied && pp > 1 ? 1024 * 512 : 0;
      EXPECT_EQ(sum, count_parameters(model).total + copy);
    }
}

}  // namespace
}  // namespace orrery::memory_test
