#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/dtype.hpp"
#include "sim/pipeline/schedule.hpp"
#include "sim/plan/cuda_graphs.hpp"
#include "sim/plan/expert_dispatcher.hpp"
#include "sim/plan/optimizer_state.hpp"
#include "sim/plan/recompute.hpp"
#include "sim/plan/stage_layers.hpp"

namespace orrery {

/// How ranks that share a sequence meet each other's keys and values, by Megatron's names
/// (--cp-comm-type): around a ring beside the attention of what has come; gathered before it; or
/// heads swapped for tokens (Ulysses, arXiv 2309.14509).
enum class ContextExchange { p2p, all_gather, a2a };

const std::vector<std::string>& context_exchange_names();  ///< "p2p", "all_gather", "a2a"
const std::string& name(ContextExchange exchange);

/// How tokens reach their experts: as the user says it and as a plan has it.
struct ExpertChoice {
  std::string routing = "uniform";  ///< A name in workloads/routing, a file or a shape.
  ExpertDispatcher moe_dispatcher = ExpertDispatcher::all_to_all;
  bool shared_expert_overlap = false;  ///< Shared experts run beside dispatch and combine.
  /// A forward and a backward pass of two micro-batches run together, and the dispatch and combine
  /// of each beside the kernels of the other (layers/overlapped_passes.hpp).
  bool ep_overlap = false;
  bool delay_wgrad = false;  ///< Weight gradients fill what that leaves idle.

  bool operator==(const ExpertChoice&) const = default;
};

/// What NCCL may choose, as NCCL_ALGO and NCCL_PROTO say it, with '+' for their commas
/// (nccl_selection.hpp).
struct NcclChoice {
  std::string nccl_algo = "any";
  std::string nccl_proto = "any";

  bool operator==(const NcclChoice&) const = default;
};

/// How a model is spread over GPUs, in Megatron's short words. What the user left out is empty here
/// and filled in by make_scenario(), which knows the model and the cluster. plan_keys.hpp says how
/// each is written.
struct PlanRequest : ExpertChoice, OptimizerState, NcclChoice {
  int tp = 1, pp = 1, cp = 1, ep = 1, etp = 1;
  std::optional<int> vpp;
  std::optional<int> dp;  ///< Given: must agree with gpus / (tp pp cp).
  std::optional<std::int64_t> mbs;
  std::optional<std::int64_t> gbs;
  std::optional<std::int64_t> seq;
  std::optional<const Schedule*> schedule;
  StageLayers layers;
  RecomputeChoice recompute;
  int offload_layers = 0;
  std::optional<int> zero;
  int dp_replicate = 1;
  std::optional<bool> reshard;
  std::optional<bool> sp;
  std::optional<Dtype> dtype;
  std::optional<bool> fused_attention;
  bool fp8_attention = false;
  ContextExchange cp_comm = ContextExchange::p2p;
  std::optional<bool> tp_overlap;
  std::optional<bool> dp_overlap;
  std::optional<CudaGraphs> cuda_graphs;
  std::string software;  ///< Name in workloads/software; empty: chosen by default_software().

  bool operator==(const PlanRequest&) const = default;
};

}  // namespace orrery
