#include "sim/serving/group_reduce.hpp"

#include <algorithm>

namespace orrery {
namespace {

// Below, no engine asks NCCL while it has a kernel of its own: custom all-reduces of vLLM and
// SGLang take up to 8 MB (csrc/custom_all_reduce.cuh).
constexpr std::int64_t own_kernel_elements = 4 << 20;

}  // namespace

GroupReduce::GroupReduce(const System& system, const ServingKernels& kernels)
    : system_{system}, kernels_{&kernels} {}

KernelTime GroupReduce::by_nccl(CollectiveKind kind, int gpus, Bytes tensor) const {
  if (!nccl_) nccl_ = std::make_shared<CollectiveTime>(system_);
  const int domain = std::min(gpus, system_.nvlink_domain);
  const int domains = (gpus + domain - 1) / domain;
  const CollectiveCost cost = (*nccl_)(kind, tensor, {gpus, domains, gpus / domains});
  return {cost.time(), cost.tag};
}

KernelTime GroupReduce::operator()(int gpus, std::int64_t elements) const {
  if (gpus == 1 || elements == 0) return {Seconds{}, Tag::measured};
  const Bytes tensor{2.0 * static_cast<double>(elements)};
  const auto nccls = [&] { return by_nccl(CollectiveKind::all_reduce, gpus, tensor); };
  if (gpus > system_.nvlink_domain) return nccls();
  const auto own = kernels_->all_reduce(gpus, elements);
  if (!own) return nccls();
  if (elements <= own_kernel_elements) return *own;
  const KernelTime nccl = nccls();
  return nccl.time < own->time ? nccl : *own;
}

}  // namespace orrery
