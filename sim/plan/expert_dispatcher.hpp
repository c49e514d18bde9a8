#pragma once

#include <string>
#include <vector>

namespace orrery {

/// How the tokens of one layer reach the ranks that hold their experts, and come back.
enum class ExpertDispatcher {
  all_to_all,          ///< NCCL: a copy for each of a token's experts, pairwise.
  all_gather,          ///< NCCL: all tokens to all ranks; results are reduce-scattered.
  hierarchical,        ///< NCCL all-to-all in two hops: inside the domain, then along the rails.
  deepep,              ///< DeepEP's normal kernels: once for each domain, forwarded over NVLink.
  deepep_low_latency,  ///< DeepEP's low-latency kernels: pairwise, by the GPUs themselves.
  hybridep             ///< NVIDIA's Hybrid-EP: as deepep, with bulk copies by few multiprocessors.
};
const std::vector<std::string>& expert_dispatcher_names();
const std::string& name(ExpertDispatcher dispatcher);

/// A token is sent as it is, and copied for its experts where it arrives; the others send a copy
/// for each of its experts (Megatron Core, token_dispatcher.py, MoEFlexTokenDispatcher).
bool copies_on_arrival(ExpertDispatcher dispatcher);

}  // namespace orrery
