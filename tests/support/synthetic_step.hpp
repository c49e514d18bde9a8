#pragma once

#include <cmath>

#include "tests/support/synthetic_trace.hpp"

namespace orrery {

/// Two steps of rank 0 of llama3.2-1b on 8 GPUs, tp 2 with sequence parallelism, 1 micro-batch of
/// 8,192 tokens, as Megatron-LM runs them: kernels in their order, with times of a formula that no
/// GPU has. It serves documents, and tests that know the result.
class SyntheticStep {
 public:
  static constexpr std::int64_t tokens = 8192, hidden = 2048, ffn = 8192, heads = 16, kv_heads = 4,
                                head_dim = 64, vocab = 64128, layers = 16;  // Of one tensor rank.

  /// Nanoseconds of C[m,n] = A[m,k] B[k,n]: 4 us and 600 TFLOP/s.
  static std::int64_t product_ns(std::int64_t m, std::int64_t n, std::int64_t k) {
    return 4000 + whole(2.0 * as_double(m) * as_double(n) * as_double(k) / 600e12);
  }
  /// Of fused causal attention forward: 6 us and 450 TFLOP/s.
  static std::int64_t attention_ns() {
    return 6000 + whole(2.0 * as_double(tokens) * as_double(tokens) * as_double(heads * head_dim) /
                        450e12);
  }

  static std::string text() {
    SyntheticStep step;
    step.run(1);
    step.run(2);
    return step.trace_.text();
  }

 private:
  enum Stream { compute = 7, tensor = 20, data = 24 };
  static double as_double(std::int64_t value) { return static_cast<double>(value); }
  static std::int64_t whole(double seconds) { return std::llround(1e9 * seconds); }

  void run(int number) {
    const std::int64_t begin = host_;
    host_ += 400'000;  // Reading the batch, while the GPU waits.
    stream("void at::native::(anonymous namespace)::vectorized_gather_kernel<16, long>", 1);
    for (int layer = 0; layer < layers; ++layer) forward();
    head();
    for (int layer = layers; layer-- > 0;) backward(layer);
    collect("ReduceScatter", "_reduce_scatter_base", data, hidden * vocab * 2, true);
    gpu_[compute] = std::max(gpu_[compute], gpu_[data]);
    stream("void multi_tensor_apply_kernel<TensorListMetadata<1>, L2NormFunctor<float>>", 2);
    for (int chunk = 0; chunk < 24; ++chunk)
      stream("void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctorMaster<float>>", 1);
    collect("AllGather", "_allgather_base", data, hidden * vocab * 2, true);
    gpu_[compute] = std::max(gpu_[compute], gpu_[data]);
    stream("void in_house::audit_weights<float>(float*, int)", 1);
    // The host waits for the loss before the next step.
    trace_.step(number, begin, host_ - begin);
    host_ = std::max(host_, gpu_[compute]);
  }
  void forward() {
    stream("void transformer_engine::normalization::rmsnorm_fwd_tuned_kernel<bf16>", 1);
    collect("AllGather", "_allgather_base", tensor, tokens * hidden * 2, false);
    product(tokens, (heads + 2 * kv_heads) * head_dim, hidden);
    stream("void fused_rope_forward<bf16>(int, float const*)", 1);
    attention();
    product(tokens, hidden, heads * head_dim);
    collect("ReduceScatter", "_reduce_scatter_base", tensor, tokens * hidden * 2, false);
    stream("void transformer_engine::normalization::rmsnorm_fwd_tuned_kernel<bf16>", 1);
    collect("AllGather", "_allgather_base", tensor, tokens * hidden * 2, false);
    product(tokens, ffn, hidden);
    stream("triton_poi_fused_mul_silu_0", 2);
    product(tokens, hidden, ffn / 2);
    collect("ReduceScatter", "_reduce_scatter_base", tensor, tokens * hidden * 2, false);
    stream("void at::native::vectorized_elementwise_kernel<4, CUDAFunctor_add<bf16>>", 1);
  }
  void head() {
    product(tokens, vocab, hidden);
    stream("triton_red_fused_cross_entropy_1", 8);
    product(tokens, hidden, vocab);
    product(vocab, hidden, tokens);
  }
  void backward(int layer) {
    collect("AllGather", "_allgather_base", tensor, tokens * hidden * 2, false);
    product(tokens, ffn / 2, hidden);
    product(hidden, ffn / 2, tokens);
    stream("triton_poi_fused_mul_silu_backward_2", 3);
    product(tokens, hidden, ffn);
    product(ffn, hidden, tokens);
    collect("ReduceScatter", "_reduce_scatter_base", tensor, tokens * hidden * 2, false);
    stream("void transformer_engine::normalization::rmsnorm_bwd_tuned_kernel<bf16>", 2);
    product(tokens, heads * head_dim, hidden);
    product(hidden, heads * head_dim, tokens);
    attention_backward();
    stream("void fused_rope_backward<bf16>(int, float const*)", 1);
    product(tokens, hidden, (heads + 2 * kv_heads) * head_dim);
    product((heads + 2 * kv_heads) * head_dim, hidden, tokens);
    collect("ReduceScatter", "_reduce_scatter_base", tensor, tokens * hidden * 2, false);
    stream("void transformer_engine::normalization::rmsnorm_bwd_tuned_kernel<bf16>", 2);
    // Gradients of four layers, concurrent with the layers below.
    if (layer % 4 == 0)
      collect("ReduceScatter", "_reduce_scatter_base", data, 4 * 30'000'000 * 2, true);
  }

  void product(std::int64_t m, std::int64_t n, std::int64_t k) {
    const auto pair = [](std::int64_t a, std::int64_t b) {
      return "[" + std::to_string(a) + ", " + std::to_string(b) + "]";
    };
    place("nvjet_tst_256x128_64x4_1x2_h_bz_coopA_TNT", product_ns(m, n, k), compute, "", "aten::mm",
          "[" + pair(m, k) + ", " + pair(k, n) + "]");
  }
  void attention() {
    const std::string q = "[1, 16, 8192, 64]", k = "[1, 4, 8192, 64]";
    place("void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4>>",
          attention_ns(), compute, "", "aten::_scaled_dot_product_flash_attention",
          "[" + q + ", " + k + ", " + k + ", [], [], [], []]",
          R"(["", "", "", "0.", "True", "False", ""])");
  }
  void attention_backward() {
    const std::string q = "[1, 16, 8192, 64]", k = "[1, 4, 8192, 64]";
    place("void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<64, 128>",
          whole(2.8e-9 * as_double(attention_ns())), compute, "",
          "aten::_scaled_dot_product_flash_attention_backward",
          "[" + q + ", " + q + ", " + k + ", " + k + ", " + q +
              ", [1, 16, 8192], [], [], [], [], [], [], [], [], []]",
          R"(["", "", "", "", "", "", "", "", "8192", "8192", "0.", "True", "", "", ""])");
  }
  // Of `passes` over the activations of a layer: 5 us and 2.4 TB/s.
  void stream(const std::string& name, int passes) {
    place(name, 5000 + whole(as_double(passes * tokens * hidden * 2) / 2.4e12), compute);
  }
  // 20 us and 330 GB/s; concurrent with compute, or with compute waiting.
  void collect(const std::string& kind, const std::string& called, Stream stream,
               std::int64_t bytes, bool concurrent) {
    gpu_[stream] = std::max(gpu_[stream], gpu_[compute]);
    const std::string group =
        stream == tensor ? "TENSOR_MODEL_PARALLEL_GROUP" : "DATA_PARALLEL_GROUP_WITH_CP";
    place("ncclDevKernel_" + kind + (kind == "AllGather" ? "" : "_Sum_bf16") +
              "_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
          20'000 + whole(as_double(bytes) / 330e9), stream,
          ", \"Collective name\": \"" + called +
              "\", \"dtype\": \"BFloat16\", \"Group size\": " + (stream == tensor ? "2" : "4") +
              ", \"Process Group Description\": \"" + group + "\"");
    if (!concurrent) gpu_[compute] = gpu_[stream];
  }
  void place(const std::string& name, std::int64_t length, Stream stream,
             const std::string& args = "", const std::string& operation = "",
             const std::string& shapes = "", const std::string& values = "[]") {
    if (!operation.empty()) {
      std::string types = "[";
      for (int i = 0; i < 3; ++i) types += std::string{i ? ", " : ""} + "\"c10::BFloat16\"";
      trace_.operation(operation, host_ + 1'000, 11'000, shapes, types + "]", values);
    }
    trace_.launch(++correlation_, host_ + 4'000, 6'000);
    host_ += 14'000;
    std::int64_t& gpu = gpu_[stream];
    const std::int64_t begin = std::max(gpu + 1'500, host_);
    gpu = begin + length;
    trace_.kernel(name, begin, length, stream, correlation_, args);
  }

  TraceText trace_{std::string{TraceText::h100} +
                   "\"distributedInfo\": {\"backend\": \"nccl\", \"rank\": 0, \"world_size\": 8, "
                   "\"nccl_version\": \"2.27.5\"},\n"};
  std::int64_t host_ = 0, correlation_ = 0;
  std::int64_t gpu_[32] = {};
};

}  // namespace orrery
