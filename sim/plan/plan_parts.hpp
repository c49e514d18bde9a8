#pragma once

#include <cstdint>

#include "sim/core/dtype.hpp"
#include "sim/plan/plan_request.hpp"

namespace orrery {

// The parts that a Plan is made of, for what needs one of them and not the rest.

/// How many ranks share what: the factors of the number of GPUs, and how a pipeline stage's ranks
/// are counted again for its experts.
struct Degrees {
  int tp = 1, pp = 1;
  int vpp = 1;  ///< Chunks of the model that a rank holds.
  int dp = 1, cp = 1;
  int ep = 1, etp = 1;

  bool operator==(const Degrees&) const = default;
  int gpus() const { return tp * pp * dp * cp; }
  /// Ranks that hold the same weights: their gradients are summed.
  int data_ranks() const { return dp * cp; }
  /// Ranks that hold the same experts.
  int expert_data_ranks() const { return tp * cp * dp / (ep * etp); }
};

/// What a step trains on.
struct Batch {
  std::int64_t mbs = 1;
  std::int64_t gbs = 1;
  std::int64_t seq = 0;
  int microbatches = 1;  ///< Per pipeline: gbs / (mbs dp).

  bool operator==(const Batch&) const = default;
};

/// In which order passes run, and what they compute twice or keep on the host.
struct ScheduleChoice {
  const Schedule* schedule = &usual_schedule(1);  ///< Never null; equal where it is the same.
  StageLayers layers;                             ///< As the user chose them, or not.
  RecomputeChoice recompute;
  /// The model's first layers, whose activations are copied to the host beside the forward pass,
  /// and back beside the backward pass.
  int offload_layers = 0;

  bool operator==(const ScheduleChoice&) const = default;
};

/// What ranks that could hold the same hold a share of.
struct Sharding {
  int zero = 0;
  /// Copies of all shards, each over as many replicas (PyTorch: HSDP; MiCS, arXiv 2205.00119).
  int dp_replicate = 1;
  bool reshard = false;  ///< ZeRO-3: weights are whole only while a pass needs them.
  bool sp = false;

  bool operator==(const Sharding&) const = default;
};

/// How the attention of a sequence is computed, and by ranks that share the sequence.
struct AttentionChoice {
  bool fused_attention = true;
  bool fp8_attention = false;  ///< Its products in 8 bits, as those of the plan's format.
  ContextExchange cp_comm = ContextExchange::p2p;

  bool operator==(const AttentionChoice&) const = default;
};

struct Precision {
  Dtype dtype = Dtype::bf16;

  bool operator==(const Precision&) const = default;
};

/// What is known of the experts beyond the user's choice.
struct RoutedExperts : ExpertChoice {
  bool experts = false;   ///< The model has routed experts; each EP x ETP ranks hold all of them.
  int routing_draws = 1;  ///< Expert groups that are drawn, and stand for all others in turn.

  bool operator==(const RoutedExperts&) const = default;
};

/// Traffic that runs beside compute.
struct Overlap {
  bool overlap_tp_gradients = false;
  double tp_hidden = 0.0;
  bool dp_overlap = false;

  bool operator==(const Overlap&) const = default;
  bool tp_overlap() const { return overlap_tp_gradients || tp_hidden > 0.0; }
};

}  // namespace orrery
