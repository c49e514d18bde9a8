#include "sim/cost/serving/group_reduce.hpp"

#include <algorithm>

namespace orrery {
namespace {

// Below, no engine asks NCCL while it has a kernel of its own: custom all-reduces of vLLM and
// SGLang take up to 8 MB (csrc/custom_all_reduce.cuh).
constexpr std::int64_t own_kernel_elements = 4 << 20;

}  // namespace

GroupReduce::GroupReduce(const System& system, const ServingKernels& kernels)
    : system_{system}, kernels_{&kernels} {}

KernelTime GroupReduce::by_nccl(int gpus, std::int64_t elements) const {
  if (!nccl_) nccl_ = std::make_shared<CollectiveTime>(system_);
  const int domain = std::min(gpus, system_.nvlink_domain);
  const int domains = (gpus + domain - 1) / domain;
  const CollectiveCost cost =
      (*nccl_)(CollectiveKind::all_reduce, Bytes{2.0 * static_cast<double>(elements)},
               {gpus, domains, gpus / domains});
  return {cost.time(), cost.tag};
}

KernelTime GroupReduce::operator()(int gpus, std::int64_t elements) const {
  if (gpus == 1 || elements == 0) return {Seconds{}, Tag::measured};
  if (gpus > system_.nvlink_domain) return by_nccl(gpus, elements);
  const auto own = kernels_->all_reduce(gpus, elements);
  if (!own) return by_nccl(gpus, elements);
  if (elements <= own_kernel_elements) return *own;
  const KernelTime nccl = by_nccl(gpus, elements);
  return nccl.time < own->time ? nccl : *own;
}

}  // namespace orrery
