#pragma once

#include <map>
#include <optional>
#include <string>

#include "sim/core/json_value.hpp"
#include "sim/core/units.hpp"
#include "sim/plan/plan_values.hpp"
#include "sim/posttraining/rl_packing.hpp"
#include "sim/posttraining/rollout.hpp"

namespace orrery {

/// The way of new weights from the trainer to the engine: a fixed time, one for each tensor of the
/// checkpoint, and the bytes of the model at the rate at which each receiver takes all of them.
struct WeightTransfer {
  Seconds start, each_tensor;
  BytesPerSecond rate;

  Seconds time(double tensors, Bytes bytes) const {
    return start + tensors * each_tensor + bytes / rate;
  }
};

/// How a framework runs its engine.
struct RolloutMode {
  SampleRouting routing = SampleRouting::groups;
  /// Time of a token of an answer between two iterations: texts and log-probabilities that are made
  /// in the engine's own process.
  Seconds each_token;
  std::optional<std::int64_t> max_seqs, budget;  ///< In place of the engine's defaults.
};

/// A framework for reinforcement learning of some release: workloads/frameworks/<name>.json
/// ("orrery.rl-framework/1"), where each figure names its source.
struct RlFramework {
  std::string name, title;
  std::string software;  ///< Software that trains (workloads/software), unless a job names one.
  RecomputeChoice recompute;  ///< Activations that its training computes again, likewise.
  std::string engine;         ///< Engine that generates (workloads/engines), likewise.
  double kv_share = 0.0;      ///< Share of a GPU's memory that the engine takes.
  /// The engine runs in the process that calls it, or beside it with one call a sample.
  RolloutMode in_process, asynchronous;
  bool async_engine = true;  ///< Which of them, unless a job says so.
  /// A loop that generates while it trains begins the samples of a step when all samples of the
  /// step before have ended; otherwise a prompt begins wherever one has ended.
  bool whole_batches = false;
  SamplePacking packing = SamplePacking::bins;
  std::int64_t round_tokens = 1;  ///< Packed samples are padded to a multiple of it.
  bool old_logprobs = true;       ///< The policy's log-probabilities are computed again.
  bool reference = true;          ///< Those of a reference model are computed.
  bool frees_weights = true;      ///< Colocated: the trainer's weights leave the GPU for a rollout,
  bool frees_optimizer = true;    ///< and its optimizer's state.
  /// The reference's weights come from the host for its pass, in place of the policy's.
  bool swaps_reference = true;
  /// The weights of the reference model stay in the GPUs, unless the policy's leave them.
  bool reference_stays = false;
  BytesPerSecond host_copies;  ///< Of a GPU, between its memory and pages of the host.
  Seconds optimizer_step;      ///< Of an optimizer step, beside its passes: data, memory pools.
  std::map<std::string, WeightTransfer> transfers;
  /// Names of those that it takes, unless a job names one, where the same GPUs do both, and not.
  std::string colocated, apart;
  Seconds loop;             ///< Of a step, in neither phase.
  double loop_share = 0.0;  ///< The same, as a share of the other phases.

  std::optional<JsonValue> document;  ///< The JSON that it was read from.
};

/// `word`: a name in workloads/frameworks or a path. Errors (bad_input): unknown or missing keys,
/// figures without a source or out of range.
RlFramework read_rl_framework(const std::string& word, const Place& at);
RlFramework parse_rl_framework(const JsonValue& json);

}  // namespace orrery
