#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/layers/memory.hpp"
#include "sim/plan/scenario.hpp"
#include "sim/posttraining/rl_job.hpp"
#include "sim/posttraining/rl_overlap.hpp"
#include "sim/training/context.hpp"
#include "sim/training/result.hpp"

namespace orrery {

/// The phases of a step, in the order in which a synchronous loop runs them.
enum class RlPhase {
  refit,
  generation,
  reward,
  old_logprobs,
  reference,
  values,
  training,
  critic,
  moves,
  loop
};
template <>
inline const std::vector<std::string> enum_words<RlPhase>{
    "weight_transfer", "generation", "reward", "old_logprobs", "reference",
    "values",          "training",   "critic", "host_copies",  "loop"};
/// Time of a model's weights in that format on their way.
Seconds transfer_time(const Model& model, Dtype format, const WeightTransfer& way);

/// As a table says it: "weights to the engine".
const std::string& phase_text(RlPhase phase);

struct RlPhaseTime {
  RlPhase phase;
  Seconds time;
  double busy = 1.0;  ///< Share of this time in which the GPUs of its pool compute.
};

/// Memory of a GPU in the two phases that fill it.
struct RlMemory {
  Bytes capacity;
  Bytes training;  ///< Peak of the trainer, with what the engine leaves behind.
  Bytes rollout;   ///< What the engine takes, with what the trainer leaves behind.
  Bytes left_by_trainer;
};

/// Both halves of a loop that generates while it trains.
struct RlOverlap {
  SteadyRollout generation;
  Seconds trainer;  ///< Of a step, without waiting for samples.
  Seconds engine;   ///< The same: generation, and weights that it stops for.
  /// Steps by which the weights that began an answer are behind those that train on it, on average:
  /// by Little's law the prompts under way and in the buffer over those of a step.
  double mean_age = 0.0;
};

/// A step, whose phases are the trainer's where both halves run at a time: generation is then the
/// time that it waits for samples.
struct RlStep {
  RlJob job;
  Rollout rollout;  ///< Of all samples at once: of a synchronous loop.
  std::optional<RlOverlap> overlap;
  Result training;  ///< Of one optimizer step.
  std::vector<RlPhaseTime> phases;
  Seconds time;
  RlMemory memory;
  Bytes weights;  ///< That the engine receives.

  Seconds time_of(RlPhase phase) const;
  double samples_per_s() const;
  /// Tokens of prompts and answers, a second and GPU.
  double tokens_per_s_per_gpu() const;
};

/// What a step needs to know of its trainer: it depends on the training plan and its GPUs alone.
struct TrainerHalf {
  Seconds pass;       ///< A forward pass over all samples.
  Result training;    ///< Of one optimizer step.
  StageMemory stage;  ///< Of the GPUs with the most, in a mean micro-batch.
  /// Weights that stay in a GPU between passes: all of its own, or its shard of them in 16 bits.
  Bytes kept_weights;
  Bytes peak;  ///< Of memory, in the largest micro-batch of training or of passes.
};
/// Errors (infeasible): it needs more than `most_memory` times the memory that there is.
TrainerHalf trainer_half(const RlJob& job, EstimateContext& context,
                         double most_memory = tolerated_share_of_memory);

/// The same of its engine: one of both.
struct GeneratorHalf {
  std::optional<Rollout> burst;         ///< Of a synchronous loop.
  std::optional<SteadyRollout> steady;  ///< Of pools that work at a time.
  Bytes weights;                        ///< Of the engine in a GPU.

  Seconds time() const { return burst ? burst->time : steady->time; }
};
/// `kernels`: see PricedServing.
/// Errors (infeasible): the KV cache does not hold the longest sample.
GeneratorHalf generator_half(const RlJob& job,
                             std::shared_ptr<const ServingKernels> kernels = nullptr);

/// A step of both halves. Errors (infeasible): they do not fit beside each other.
RlStep rl_step(const RlJob& job, const TrainerHalf& trainer, const GeneratorHalf& generator);
/// Simulates a step. Errors (infeasible): either half does not fit in memory.
RlStep rl_step(const RlJob& job);

/// The half-width of ln(measured / predicted) that holds 35 of 40 published steps
/// (tests/validation/posttraining). The draw of the longest answers, releases of a framework and
/// the spread of lengths, of which a mean alone was published, are part of it.
inline constexpr double rl_step_error = 0.26;

/// Time in which all micro-batches of a plan pass the model forward, without gradients: the passes
/// of a GPipe step until the last of them has ended, with its gathers of shards and its transfers.
/// Weights that the plan keeps whole are whole. Requires one chunk a stage (vpp 1).
Seconds forward_time(const Scenario& scenario, EstimateContext& context);

}  // namespace orrery
