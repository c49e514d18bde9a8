#pragma once

#include <cstdint>
#include <optional>

#include "sim/kernels/attention_time.hpp"
#include "sim/kernels/gemm_time.hpp"
#include "sim/kernels/scan_time.hpp"

namespace orrery {

/// Factors between benchmarks and training; KernelTables has their meaning.
struct KernelFactors {
  double sustained = 1.0, wgrad_efficiency = 1.0, copy_efficiency = 1.0, attention_backward = 1.0;
};
KernelFactors factors_of(const KernelTables& tables);
/// Assumed without measurements.
KernelFactors default_factors(const Gpu& gpu);

/// Times of the kernels of a training step on one kind of GPU in one number format.
///
/// A benchmark runs one kernel briefly; a training step runs hot for hours, under a power limit.
/// `sustained` of the tables is the ratio of the clocks, so a GEMM takes its benchmark time divided
/// by it, less the loss of long kernels of the benchmark to their own falling clock. Attention and
/// memory-bound kernels have no such factor: none could be identified in the published runs
/// (docs/explanation/kernels.md).
///
/// No kernel was measured in fp32 and tf32: products and attention are rooflines with the GPU's
/// peak in that format and 4 bytes an element, without a deduction for training.
class KernelModel {
 public:
  /// `tables` may be null: every answer is then a default. It is not needed afterwards. Errors: the
  /// GPU has no units for `dtype` (infeasible).
  KernelModel(const Gpu& gpu, Dtype dtype, const KernelTables* tables);

  /// A product of this pass's own (m, n, k). wgrad accumulates into fp32, which its efficiency
  /// includes. fp8 excludes the quantisation of the operands, which is charged as memory(). The
  /// product is in bf16 if `sixteen_bit` and the model's format is narrower.
  KernelTime gemm(GemmPass pass, std::int64_t m, std::int64_t n, std::int64_t k,
                  bool sixteen_bit = false) const;
  /// One linear layer of a rank's experts, expert e with `tokens[e]`. Zero without tokens.
  KernelTime grouped_gemm(const GroupedGemm& layer, std::span<const std::int64_t> tokens) const;
  /// The same if the host launches without delay.
  KernelTime grouped_kernel(const GroupedGemm& layer, std::span<const std::int64_t> tokens) const;
  /// This very product was measured on this very GPU, up to the factors of training.
  bool has_measured(std::int64_t m, std::int64_t n, std::int64_t k) const;
  KernelTime attention_forward(const AttentionShape& shape) const;
  KernelTime attention_backward(const AttentionShape& shape) const;
  KernelTime scan(const ScanShape& shape, bool backward) const;
  /// A memory-bound kernel that reads and writes `moved` in total, without launches.
  KernelTime memory(Bytes moved) const;
  /// Additional time if threads compute the address of each element that they write, as PyTorch's
  /// do with broadcast or strided operands. `moved` counts these kernels only.
  Seconds beyond_memory(double elements, Bytes moved) const;
  /// The peak for products without quantisation.
  FlopPerSecond unquantised_peak() const { return unquantised_peak_; }
  /// Loss of kernels to a concurrent collective, relative to its share of the multiprocessors.
  double overlap_loss_share() const { return overlap_loss_share_; }

 private:
  Gpu gpu_;
  GemmTime gemm_;
  std::optional<GemmTime> gemm_16_;  // Set if gemm_ is in 8 bits.
  AttentionTime attention_;
  mutable std::vector<GemmProduct> products_;  // Products of the current layer.
  double sustained_ = 1.0;
  double wgrad_efficiency_ = 1.0;
  double grouped_efficiency_ = 1.0;
  double overlap_loss_share_ = 1.0;
  FlopPerSecond unquantised_peak_;
  BytesPerSecond copy_rate_;
  double indexed_rate_ = 0.0;  // Elements a second.
  Tag copy_tag_ = Tag::default_value;
};

}  // namespace orrery
