#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/core/enum_words.hpp"
#include "sim/core/json_value.hpp"
#include "sim/profile/kineto_trace.hpp"

namespace orrery {

/// What a GPU's time goes to. From `all_reduce` on: communication; before `copies`: kernels that
/// compute.
enum class GpuWork {
  products,
  attention,
  streaming,
  optimizer,
  unknown,
  copies,  ///< Between host and GPU.
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  send_recv,
  other_collective,
};
template <>
inline const std::vector<std::string> enum_words<GpuWork>{
    "matrix_products", "attention",  "memory_bound", "optimizer",
    "unknown",         "copies",     "all_reduce",   "all_gather",
    "reduce_scatter",  "all_to_all", "send_recv",    "other_collective"};
constexpr std::size_t kinds_of_gpu_work = 12;
constexpr bool computes(GpuWork work) { return work < GpuWork::copies; }
constexpr bool communicates(GpuWork work) { return work >= GpuWork::all_reduce; }

/// Which ranks of a plan a process group joins. `other`: it does not say, or several of these.
enum class GroupUse { tensor, context, expert, pipeline, data, other };
template <>
inline const std::vector<std::string> enum_words<GroupUse>{"tensor",   "context", "expert",
                                                           "pipeline", "data",    "other"};

/// What kernels are called, by the work that they do, and process groups, by what joins them:
/// workloads/kernel_names.json. The first pattern that a name contains decides, whatever its
/// letters' case.
class KernelNames {
 public:
  /// `own`: a file of the same schema whose patterns come first; "": none. Errors: what no such
  /// file says.
  explicit KernelNames(const std::string& own = "");
  GpuWork of(const std::string& kernel) const;
  /// Of an activity: what PyTorch calls its collective goes before its kernel's name, for NCCL
  /// sends all-to-alls and point-to-point messages with one kernel.
  GpuWork of(const KinetoTrace& trace, const GpuActivity& activity) const;
  /// Of a process group as its program describes it ("TENSOR_MODEL_PARALLEL_GROUP", "mesh_tp").
  GroupUse use_of(const std::string& group) const;

 private:
  void read(const JsonValue& json);
  std::vector<std::pair<std::string, GpuWork>> patterns_;
  std::vector<std::pair<std::string, GroupUse>> groups_;
};

}  // namespace orrery
