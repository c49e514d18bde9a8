// A step in fp32 and tf32 against one in 16 bits, with prices of a GPU of round figures.
#include <gtest/gtest.h>

#include "sim/kernels/kernel_model.hpp"
#include "sim/layers/layer_activations.hpp"
#include "sim/layers/layer_ops.hpp"
#include "sim/layers/memory.hpp"
#include "sim/layers/rank_parameters.hpp"
#include "sim/layers/stage_prices.hpp"
#include "sim/measurements/calibration.hpp"
#include "tests/support/scenarios.hpp"

namespace orrery::fp32_test {
namespace {

Scenario in_format(Dtype dtype, const std::string& software, int zero = 0,
                   const Model& model = small_gpt(8, 512, 8, 1024)) {
  PlanRequest request = plan_request(2, 2, 3, 24, 64, software);
  request.dtype = dtype;
  request.zero = zero;
  request.fused_attention = false;
  return scenario_of(model, read_system("four-by-four", test_place), request, 8);
}

// A parameter: weight 4, gradient 4, two moments 4 each: 16 bytes where 16 bits take 18. ZeRO-1
// spreads the moments over dp = 2.
TEST(Fp32, StatesOfAParameter) {
  for (const Dtype dtype : {Dtype::fp32, Dtype::tf32})
    for (int zero : {0, 1}) {
      const Scenario scenario = in_format(dtype, "megatron-2022", zero);
      const MemoryReport report = memory_of(scenario);
      for (int stage : {0, 1}) {
        const StageMemory& memory = report.stages[static_cast<std::size_t>(stage)];
        const auto parameters = static_cast<double>(parameters_on_rank(scenario, stage).sum());
        EXPECT_DOUBLE_EQ((memory.weights + memory.gradients + memory.optimizer).si(),
                         parameters * (8.0 + 8.0 / (zero ? 2 : 1)));
      }
    }
}

// Everything that is kept doubles but for dropout's masks of a byte. Of a GPT layer with tp 2 and
// without sequence parallelism 10 + 24/t + 5 a s/(h t) bytes an element of T h (Korthikanti et al.,
// equation 2), of which masks are 2 and a s/(h t): a = 8, s = 64, h = 512.
TEST(Fp32, ActivationsAreTwiceAsLarge) {
  const double elements = 64.0 * 3 * 512;
  const double scores = 8.0 * 64 / (512 * 2);
  const double sixteen = 10.0 + 12.0 + 5.0 * scores, masks = 2.0 + scores;
  EXPECT_DOUBLE_EQ(layer_activations(in_format(Dtype::fp16, "megatron-2021"), Recompute::none).si(),
                   elements * sixteen);
  EXPECT_DOUBLE_EQ(layer_activations(in_format(Dtype::fp32, "megatron-2021"), Recompute::none).si(),
                   elements * (2.0 * sixteen - masks));
}

// Transfers between stages and tensor ranks, and kernels, have twice the bytes, except masks and
// tensors that had 32 bits already.
TEST(Fp32, TrafficIsTwiceAsLarge) {
  const Scenario narrow = in_format(Dtype::fp16, "megatron-2021");
  const Scenario wide = in_format(Dtype::fp32, "megatron-2021");
  EXPECT_EQ(transfer_bytes(wide), 2.0 * transfer_bytes(narrow));
  for (const auto& ops_of : {layer_forward, layer_backward}) {
    const Ops in_16 = ops_of(narrow, LayerKind::dense), in_32 = ops_of(wide, LayerKind::dense);
    ASSERT_EQ(in_16.size(), in_32.size());
    for (std::size_t i = 0; i < in_16.size(); ++i) {
      EXPECT_EQ(in_16[i].name, in_32[i].name);
      EXPECT_EQ(in_16[i].flop().si(), in_32[i].flop().si());
      const double most = 2.0 * in_16[i].bytes.si();
      EXPECT_LE(in_32[i].bytes.si(), most) << in_16[i].name;
      EXPECT_GE(in_32[i].bytes.si(), 1.3 * in_16[i].bytes.si()) << in_16[i].name;
      if (in_16[i].kind == Op::Kind::collective) {
        EXPECT_EQ(in_32[i].bytes.si(), most) << in_16[i].name;
      }
    }
  }
}

// The test GPU: 10 TFLOP/s in fp32, 50 in tf32, 1 TB/s. 0.7 of the peak and 0.85 of the bandwidth
// (Roofline), 5 us for a launch. 4096^3: 2 x 6.87e10 flop; bytes 3 x 4 x 1.68e7.
TEST(Fp32, ProductsReachAShareOfTheFormatsPeak) {
  const Gpu gpu = read_gpu("test-gpu", test_place);
  const double flop = 2.0 * 4096 * 4096 * 4096;
  for (const auto& [dtype, peak] : {std::pair{Dtype::fp32, 10e12}, {Dtype::tf32, 50e12}}) {
    const KernelModel kernels{gpu, dtype, nullptr};
    const KernelTime product = kernels.gemm(GemmPass::forward, 4096, 4096, 4096);
    EXPECT_DOUBLE_EQ(product.time.si(), flop / (0.7 * peak) + 5e-6);
    EXPECT_EQ(product.tag, Tag::default_value);
  }
  // Of few rows by bytes: 16 x 4096 and 4096 x 4096 read, 16 x 4096 written.
  const double bytes = 4.0 * (16.0 * 4096 + 4096.0 * 4096 + 16.0 * 4096);
  const KernelModel kernels{gpu, Dtype::tf32, nullptr};
  EXPECT_DOUBLE_EQ(kernels.gemm(GemmPass::forward, 16, 4096, 4096).time.si(),
                   bytes / (0.85 * gpu.memory_bandwidth.si()) + 5e-6);
}

// 16-bit measurements do not apply to fp32: H100's tables change no product and no attention.
TEST(Fp32, TablesOfOtherFormatsAreNotUsed) {
  const System system = read_system("dgx-h100", test_place);
  const std::optional<KernelTables> tables = kernel_tables_of(system);
  ASSERT_TRUE(tables);
  const KernelModel with{system.gpu, Dtype::tf32, &*tables};
  const KernelModel without{system.gpu, Dtype::tf32, nullptr};
  const AttentionShape shape{1, 4096, 4096, 32, 8, 128};
  for (const GemmPass pass : {GemmPass::forward, GemmPass::dgrad, GemmPass::wgrad})
    EXPECT_EQ(with.gemm(pass, 8192, 4096, 4096).time, without.gemm(pass, 8192, 4096, 4096).time);
  EXPECT_EQ(with.attention_forward(shape).time, without.attention_forward(shape).time);
  EXPECT_EQ(with.attention_backward(shape).tag, Tag::default_value);
}

}  // namespace
}  // namespace orrery::fp32_test
