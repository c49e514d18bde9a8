#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/core/enum_words.hpp"
#include "sim/core/json_value.hpp"
#include "sim/profile/kineto_trace.hpp"

namespace orrery {

/// Classes of a GPU's time: kernels that compute come before `copies`, communication from
/// `all_reduce` on.
enum class GpuWork {
  products,
  attention,
  streaming,
  optimizer,
  unknown,
  copies,  ///< Copies between host and GPU.
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

/// The ranks of a plan that a process group joins. `other`: unknown, or several of these.
enum class GroupUse { tensor, context, expert, pipeline, data, other };
template <>
inline const std::vector<std::string> enum_words<GroupUse>{"tensor",   "context", "expert",
                                                           "pipeline", "data",    "other"};

/// Classifies kernels and process groups by name: workloads/kernel_names.json. The first pattern
/// that a name contains decides; case does not matter.
class KernelNames {
 public:
  /// `own`: a file of the same schema whose patterns come first; "": none. Errors: a file with
  /// another schema.
  explicit KernelNames(const std::string& own = "");
  GpuWork of(const std::string& kernel) const;
  /// The work of an activity: PyTorch's name of a collective goes before its kernel's name, as NCCL
  /// sends all-to-alls and point-to-point messages with one kernel.
  GpuWork of(const KinetoTrace& trace, const GpuActivity& activity) const;
  /// The use of a group by its program's description ("TENSOR_MODEL_PARALLEL_GROUP",
  /// "mesh_tp").
  GroupUse use_of(const std::string& group) const;

 private:
  void read(const JsonValue& json);
  std::vector<std::pair<std::string, GpuWork>> patterns_;
  std::vector<std::pair<std::string, GroupUse>> groups_;
};

}  // namespace orrery
