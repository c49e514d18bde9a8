#include "sim/cost/kernel_model.hpp"

namespace orrery {
namespace {

// Without tables. GEMM: the roofline's share of the peak is a training share already, so nothing is
// taken off again; wgrad as on the A100, whose ratio of layouts SimuMax measured (0.957 there; its
// source stands in calibration/data/kernels/stand_ins.json). Copies: the lower end of the 0.85 to
// 0.93 that they reach on A100, H100 and H200.
constexpr double default_wgrad_efficiency = 0.96;
constexpr double default_copy_efficiency = 0.85;

}  // namespace

KernelModel::KernelModel(const Gpu& gpu, Dtype dtype, const KernelTables* tables)
    : gemm_{gpu, dtype, tables},
      attention_{gpu, tables},
      sustained_{tables ? tables->sustained : 1.0},
      wgrad_efficiency_{tables ? tables->wgrad_efficiency : default_wgrad_efficiency},
      copy_rate_{(tables ? tables->copy_efficiency : default_copy_efficiency) *
                 gpu.memory_bandwidth},
      copy_tag_{tables && tables->copy_measured ? Tag::interpolated : Tag::default_value} {}

KernelTime KernelModel::gemm(GemmPass pass, std::int64_t m, std::int64_t n, std::int64_t k) const {
  const KernelTime benchmark = gemm_.without_cast(m, n, k);
  double speed = sustained_;
  if (pass == GemmPass::wgrad) speed *= wgrad_efficiency_;
  // A factor turns a measured time into a derived one.
  const bool derived = speed != 1.0 && benchmark.tag == Tag::measured;
  return {benchmark.time / speed, derived ? Tag::interpolated : benchmark.tag};
}

KernelTime KernelModel::attention_forward(const AttentionShape& shape) const {
  return attention_.forward(shape);
}

KernelTime KernelModel::attention_backward(const AttentionShape& shape) const {
  return attention_.backward(shape);
}

KernelTime KernelModel::memory(Bytes moved) const { return {moved / copy_rate_, copy_tag_}; }

}  // namespace orrery
