#include "sim/kernels/kernel_model.hpp"

#include <algorithm>
#include <cmath>

namespace orrery {
namespace {

// Defaults without tables. GEMM: the roofline's share of the peak is already that of training, so
// nothing further is subtracted; wgrad as on the A100, whose ratio of layouts SimuMax measured
// (0.957 there; its source is in calibration/data/kernels/stand_ins.json). Copies: the lower end of
// the 0.85 to 0.93 that they reach on A100, H100 and H200.
constexpr double default_wgrad_efficiency = 0.96;
constexpr double default_copy_efficiency = 0.85;

// Transformer Engine's grouped GEMM launches a kernel for each expert, which limits its rate: on
// B200 no row of 80 to 256 experts takes less than 8.6 us for each (SimuMax,
// github.com/MooreThreads/SimuMax, configs/system/b200_bf16_ceperm.json, commit 4dcaae51; the
// twelve rows with fewer than 155 tokens and 1536 to 2048 channels take 8.6 to 9.4).
constexpr Seconds expert_launch = microseconds(9.0);

// Elements a second that PyTorch's kernels write whose operands are broadcast or strided. They are
// bound by instructions, some 110 an element and thread, so that only the number of threads and
// their clock matter. PReLU of 1,024 x 10,240 values in fp16 with a weight a column takes on H200 2
// + 2 bytes an element at 1.18 TB/s, while kernels without a broadcast reach 2.5 to 3.0
// (tile-ai/TileOPs, pull request 500, PyTorch 2.9.1; 537 has a sum with a bias at 0.45 of one
// without): 2.95e11, 1.13 a cycle of each of 132 multiprocessors at 1.98 GHz.
double indexed_rate(const Gpu& gpu) {
  constexpr double a_cycle = 1.13;
  // fp32 operations a cycle of a multiprocessor: two for each of its lanes.
  const double operations = gpu.architecture <= Architecture::ampere ? 128.0 : 256.0;
  return a_cycle * gpu.peak_fp32.si() / operations;
}

}  // namespace

KernelFactors factors_of(const KernelTables& tables) {
  return {tables.sustained, tables.wgrad_efficiency, tables.copy_efficiency,
          tables.attention_backward};
}

KernelFactors default_factors(const Gpu& gpu) {
  return {1.0, default_wgrad_efficiency, default_copy_efficiency,
          default_attention_backward(gpu.architecture)};
}

namespace {

// Products of this format, or of one that it is priced from, can be in tables.
bool measured(Dtype dtype, const KernelTables* tables) { return tables && !is_wide(dtype); }

}  // namespace

KernelModel::KernelModel(const Gpu& gpu, Dtype dtype, const KernelTables* tables)
    : gpu_{gpu},
      gemm_{gpu, dtype, tables},
      attention_{gpu, is_wide(dtype) ? nullptr : tables, dtype},
      sustained_{measured(dtype, tables) ? tables->sustained : 1.0},
      wgrad_efficiency_{measured(dtype, tables) ? tables->wgrad_efficiency
                                                : default_wgrad_efficiency},
      grouped_efficiency_{measured(dtype, tables) ? tables->grouped_efficiency : 1.0},
      overlap_loss_share_{tables ? tables->overlap_loss_share : 1.0},
      unquantised_peak_{gpu.peak(is_wide(dtype) ? dtype : Dtype::fp16, {})},
      copy_rate_{(tables ? tables->copy_efficiency : default_copy_efficiency) *
                 gpu.memory_bandwidth},
      indexed_rate_{indexed_rate(gpu)},
      copy_tag_{tables && tables->copy_measured ? Tag::interpolated : Tag::default_value} {
  if (is_narrow(dtype)) gemm_16_.emplace(gpu, Dtype::bf16, tables);
}

KernelTime KernelModel::gemm(GemmPass pass, std::int64_t m, std::int64_t n, std::int64_t k,
                             bool sixteen_bit) const {
  const bool wide = sixteen_bit && gemm_16_;
  const KernelTime benchmark = wide ? (*gemm_16_)(m, n, k) : gemm_.without_cast(m, n, k);
  double speed = sustained_;
  // The step's clock is `sustained`, for long kernels as well.
  if (sustained_ != 1.0) speed *= (wide ? *gemm_16_ : gemm_).throttle(m, n, k);
  if (pass == GemmPass::wgrad) speed *= wgrad_efficiency_;
  // A factor turns a measured time into a derived one.
  const bool derived = speed != 1.0 && benchmark.tag == Tag::measured;
  return {benchmark.time / speed, derived ? Tag::interpolated : benchmark.tag};
}

KernelTime KernelModel::grouped_gemm(const GroupedGemm& layer,
                                     std::span<const std::int64_t> tokens) const {
  KernelTime kernel = grouped_kernel(layer, tokens);
  const auto launched = static_cast<double>(
      std::count_if(tokens.begin(), tokens.end(), [](std::int64_t own) { return own > 0; }));
  if (!layer.together) kernel.time = std::max(kernel.time, launched * expert_launch);
  return kernel;
}

KernelTime KernelModel::grouped_kernel(const GroupedGemm& layer,
                                       std::span<const std::int64_t> tokens) const {
  products_of(layer, tokens, products_);
  const std::vector<GemmProduct>& products = products_;
  if (products.empty()) return {Seconds{}, Tag::interpolated};
  const auto launched = static_cast<double>(products.size());
  const auto& [m, n, k] = products.front();
  const GemmTime& times = layer.sixteen_bit && gemm_16_ ? *gemm_16_ : gemm_;
  const bool alone = products.size() == 1;
  KernelTime kernel = alone ? gemm(layer.pass, m, n, k, layer.sixteen_bit)
                            : times.grouped(layer, products, sustained_);
  if (layer.pass == GemmPass::wgrad && (alone || !times.one_by_one(layer))) {
    if (!alone) kernel.time = kernel.time / wgrad_efficiency_;
    if (layer.accumulate > 0.0) {
      // Few tokens leave the gradients' own traffic as the bottleneck.
      const Seconds traffic = times.streaming(
          Bytes{layer.accumulate * launched * static_cast<double>(layer.out * layer.in)});
      kernel.time =
          Seconds{std::pow(std::pow(kernel.time.si(), 4.0) + std::pow(traffic.si(), 4.0), 0.25)};
    }
  }
  if (!alone) kernel.time = kernel.time / grouped_efficiency_;
  return kernel;
}

bool KernelModel::has_measured(std::int64_t m, std::int64_t n, std::int64_t k) const {
  return gemm_(m, n, k).tag == Tag::measured;
}

KernelTime KernelModel::attention_forward(const AttentionShape& shape) const {
  return attention_.forward(shape);
}

KernelTime KernelModel::attention_backward(const AttentionShape& shape) const {
  return attention_.backward(shape);
}

KernelTime KernelModel::scan(const ScanShape& shape, bool backward) const {
  return scan_time(gpu_, shape, backward);
}

KernelTime KernelModel::memory(Bytes moved) const { return {moved / copy_rate_, copy_tag_}; }

Seconds KernelModel::beyond_memory(double elements, Bytes moved) const {
  return std::max(Seconds{}, Seconds{elements / indexed_rate_} - moved / copy_rate_);
}

}  // namespace orrery
