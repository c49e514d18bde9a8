// Bytes that ops read and write, by hand; the intensities are those of textbooks.
#include "sim/layers/op_work.hpp"

#include <gtest/gtest.h>

#include "sim/core/catalog.hpp"
#include "sim/layers/layer_ops.hpp"

namespace orrery::op_work_test {
namespace {

double intensity(const Op& op, Dtype dtype) { return op.flop().si() / traffic(op, dtype).si(); }

Op product(std::int64_t m, std::int64_t n, std::int64_t k) {
  return gemm("gemm", GemmPass::forward, m, n, k);
}

// 2 n^3 operations over three matrices of n^2 elements of 2 bytes: n / 3.
TEST(OpWork, ASquareProductHasAThirdOfItsSizeAByte) {
  for (const std::int64_t n : {64, 1024, 4096})
    EXPECT_DOUBLE_EQ(intensity(product(n, n, n), Dtype::bf16), static_cast<double>(n) / 3.0);
  // 4 bytes an element: half of it. fp8: A and B have one byte, C two: 2 n^3 / 4 n^2.
  EXPECT_DOUBLE_EQ(intensity(product(4096, 4096, 4096), Dtype::fp32), 4096.0 / 6.0);
  EXPECT_DOUBLE_EQ(intensity(product(4096, 4096, 4096), Dtype::fp8), 4096.0 / 2.0);
}

// 4096 x 8192 by 8192 x 1024: 2 (4096 8192 + 8192 1024 + 4096 1024) bytes.
TEST(OpWork, AProductReadsBothOperandsAndWritesItsResult) {
  EXPECT_EQ(traffic(product(4096, 1024, 8192), Dtype::bf16).si(),
            2.0 * (4096.0 * 8192 + 8192.0 * 1024 + 4096.0 * 1024));
  EXPECT_EQ(traffic(product(4096, 1024, 8192), Dtype::fp8).si(),
            4096.0 * 8192 + 8192.0 * 1024 + 2 * 4096.0 * 1024);
  Op head = product(4096, 1024, 8192);
  head.sixteen_bit = true;
  EXPECT_EQ(traffic(head, Dtype::fp8).si(), traffic(head, Dtype::bf16).si());
}

// A vector times a matrix reads each weight for two operations: one a byte, and never more.
TEST(OpWork, AVectorTimesAMatrixHasOneOperationAByte) {
  const double value = intensity(product(1, 8192, 8192), Dtype::bf16);
  EXPECT_LT(value, 1.0);
  EXPECT_GT(value, 0.999);
}

Op attention(std::int64_t seq, std::int64_t heads, std::int64_t kv_heads, bool backward) {
  Op op;
  op.kind = Op::Kind::attention;
  op.batch = 2;
  op.queries = op.keys = seq;
  op.heads = heads;
  op.kv_heads = kv_heads;
  op.head_dim = 128;
  op.backward = backward;
  return op;
}

// Causal: 2 b a s^2 d operations over Q, K, V and O of 2 b a s d bytes each: s / 4. With one head
// of keys for g of queries Q and O are left: towards s / 2.
TEST(OpWork, FusedAttentionHasAQuarterOfItsSequenceAByte) {
  EXPECT_DOUBLE_EQ(intensity(attention(4096, 32, 32, false), Dtype::bf16), 4096.0 / 4.0);
  EXPECT_DOUBLE_EQ(intensity(attention(4096, 32, 8, false), Dtype::bf16),
                   4096.0 / 2.0 * 32.0 / (32.0 + 8.0));
  // Backward 5 / 2 of the operations, and twice the tensors: 5 / 4 of it.
  EXPECT_DOUBLE_EQ(intensity(attention(4096, 32, 32, true), Dtype::bf16), 1.25 * 4096.0 / 4.0);
}

// Four experts of 100, 0, 20 and 8 rows: the idle one's weights stay where they are.
TEST(OpWork, ExpertsReadTheirWeightsOnceEach) {
  const Op op = grouped_gemm("experts", GemmPass::forward, {100, 0, 20, 8}, 512, 256);
  const double rows = 128.0;
  EXPECT_EQ(op.flop().si(), 2.0 * rows * 512 * 256);
  EXPECT_EQ(traffic(op, Dtype::bf16).si(), 2.0 * (rows * 256 + 3 * 256.0 * 512 + rows * 512));
  // Its weight gradient: rows of both sides read, 8 bytes an element of fp32 gradients moved.
  const Op wgrad = grouped_gemm("experts", GemmPass::wgrad, {100, 0, 20, 8}, 512, 256, 8.0);
  EXPECT_EQ(traffic(wgrad, Dtype::bf16).si(), 2.0 * rows * (512 + 256) + 3 * 8.0 * 512.0 * 256.0);
}

Scenario scenario_of(const std::string& model, const PlanRequest& request, int gpus) {
  return make_scenario(read_model(model, {}), read_system("dgx-h100", {}), request, gpus, {});
}

// RMS norm: 4 operations an element of 2 bytes that is read and written. SwiGLU: 5 over 3 elements.
TEST(OpWork, VectorKernelsHaveAboutAnOperationAByte) {
  PlanRequest request;
  request.gbs = 8;
  const Scenario scenario = scenario_of("llama3-8b", request, 8);
  const LayerSizes s{scenario};
  const auto each = [&](const Op& op) { return vector_flop(op, s)->si() / op.bytes.si(); };
  EXPECT_DOUBLE_EQ(each(norm_op(s, "norm", 1e6, false)), 4.0 / 4.0);
  EXPECT_DOUBLE_EQ(each(norm_op(s, "norm_bwd", 1e6, true)), 9.0 / 8.0);
  EXPECT_DOUBLE_EQ(each(activation_op(s, "activation", 1e6, false)), 5.0 / 6.0);
  EXPECT_DOUBLE_EQ(each(rotary_op(s, "rope", 1e6, false)), 3.0 / 4.0);
  EXPECT_FALSE(vector_flop(memory("unheard_of", 1.0), s));
  EXPECT_EQ(vector_flop(memory("permute", 1.0), s)->si(), 0.0);
}

// Eager norms move nine times the bytes for the same operations.
TEST(OpWork, EagerKernelsComputeNoMore) {
  PlanRequest request;
  request.gbs = 8;
  Scenario scenario = scenario_of("llama3-8b", request, 8);
  const LayerSizes fused{scenario};
  const double flop = vector_flop(norm_op(fused, "norm", 1e6, false), fused)->si();
  scenario.software.eager_kernels.rms_norm = true;
  const LayerSizes eager{scenario};
  const Op op = norm_op(eager, "norm", 1e6, false);
  EXPECT_EQ(op.bytes.si(), 36e6);
  EXPECT_DOUBLE_EQ(vector_flop(op, eager)->si(), flop);
}

// Every op of a catalog model's step has a known name and traffic.
TEST(OpWork, KnowsAllThatLayersAreMadeOf) {
  int seen = 0;
  for (const std::string& name : list_catalog("workloads/models")) {
    const Model model = read_model(name, {});
    for (const Dtype dtype : {Dtype::bf16, Dtype::fp8}) {
      PlanRequest request;
      request.gbs = 16;
      request.dtype = dtype;
      request.recompute = RecomputeChoice{Recompute::full};
      std::optional<Scenario> scenario;
      try {
        scenario = make_scenario(model, read_system("dgx-h100", {}), request, 8, {});
      } catch (const Error&) {
        continue;  // Not what is tested here.
      }
      const LayerSizes s{*scenario};
      for (const LayerKind kind : scenario->kinds())
        for (const Ops& ops :
             {layer_forward(*scenario, kind), layer_recompute(*scenario, kind),
              layer_backward(*scenario, kind), head_forward(*scenario), head_backward(*scenario),
              embedding_forward(*scenario), embedding_backward(*scenario)})
          for (const Op& op : ops) {
            if (op.kind == Op::Kind::collective) continue;
            ++seen;
            EXPECT_GT(traffic(op, dtype).si(), 0.0) << model.name << " " << op.name;
            if (op.kind == Op::Kind::memory) {
              EXPECT_TRUE(vector_flop(op, s)) << model.name << " " << op.name;
            }
          }
    }
  }
  EXPECT_GT(seen, 1000);
}

}  // namespace
}  // namespace orrery::op_work_test
