#pragma once

#include <cstdint>
#include <optional>

#include "sim/kernels/attention_time.hpp"
#include "sim/kernels/gemm_time.hpp"

namespace orrery {

/// What tables of kernels cannot say of training; KernelTables has what each means.
struct KernelFactors {
  double sustained = 1.0, wgrad_efficiency = 1.0, copy_efficiency = 1.0, attention_backward = 1.0;
};
KernelFactors factors_of(const KernelTables& tables);
/// Assumed where nothing was measured.
KernelFactors default_factors(const Gpu& gpu);

/// What the kernels of a training step cost on one kind of GPU in one number format.
///
/// A benchmark runs one kernel for a moment; a training step runs hot for hours, under a power
/// limit. `sustained` of the tables is the ratio of the clocks, so a GEMM here takes its benchmark
/// time divided by it, less what long kernels of the benchmark lost to their own falling clock.
/// Attention and memory-bound kernels carry no such factor: none could be told from the
/// published runs (docs/explanation/kernels.md).
///
/// In fp32 and tf32 no kernel was measured: products and attention are roofs by the GPU's peak in
/// that format and by 4 bytes an element, of which nothing is taken off for training.
class KernelModel {
 public:
  /// `tables` may be null: every answer is then a default. It is not needed afterwards.
  /// Errors: the GPU has no units for `dtype` (infeasible).
  KernelModel(const Gpu& gpu, Dtype dtype, const KernelTables* tables);

  /// A product of this pass's own (m, n, k). wgrad accumulates into fp32, which its efficiency
  /// holds. fp8: without quantising the operands, which is charged as memory().
  /// `sixteen_bit`: in bf16 where the model's format is narrower.
  KernelTime gemm(GemmPass pass, std::int64_t m, std::int64_t n, std::int64_t k,
                  bool sixteen_bit = false) const;
  /// One linear layer of a rank's experts, expert e with `tokens[e]`. Nothing to do takes no time.
  KernelTime grouped_gemm(const GroupedGemm& layer, std::span<const std::int64_t> tokens) const;
  /// The same with a host that launches at once.
  KernelTime grouped_kernel(const GroupedGemm& layer, std::span<const std::int64_t> tokens) const;
  /// Whether this very product was measured on this very GPU, by whatever factors training differs.
  bool has_measured(std::int64_t m, std::int64_t n, std::int64_t k) const;
  KernelTime attention_forward(const AttentionShape& shape) const;
  KernelTime attention_backward(const AttentionShape& shape) const;
  /// A streaming kernel that reads and writes `moved` together. Launches are not in it.
  KernelTime memory(Bytes moved) const;
  /// What it takes longer where its threads work out the address of each element that they write,
  /// as PyTorch's do whose operands are broadcast or strided. `moved` is of these kernels alone.
  Seconds beyond_memory(double elements, Bytes moved) const;
  /// Of products that nothing quantises.
  FlopPerSecond unquantised_peak() const { return unquantised_peak_; }
  /// Of the multiprocessors that a collective occupies: how many kernels beside it lose.
  double share_lost_beside() const { return share_lost_beside_; }

 private:
  GemmTime gemm_;
  std::optional<GemmTime> gemm_16_;  // Where gemm_ is of 8 bits.
  AttentionTime attention_;
  mutable std::vector<GemmProduct> products_;  // Of the layer at hand.
  double sustained_ = 1.0;
  double wgrad_efficiency_ = 1.0;
  double grouped_efficiency_ = 1.0;
  double share_lost_beside_ = 1.0;
  FlopPerSecond unquantised_peak_;
  BytesPerSecond copy_rate_;
  double indexed_rate_ = 0.0;  // Elements a second.
  Tag copy_tag_ = Tag::default_value;
};

}  // namespace orrery
