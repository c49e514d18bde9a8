#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/cluster/system.hpp"
#include "sim/core/error.hpp"
#include "sim/model/model.hpp"
#include "sim/plan/plan.hpp"
#include "sim/plan/software.hpp"

namespace orrery {

/// Properties of a layer that determine its kernels.
struct LayerKind {
  bool has_experts = false;  ///< A router and experts, or one MLP.
  /// Tokens that a query attends to, its own and those before it; 0: all that are before it.
  std::int64_t window = 0;
  /// Its activations are kept, while the plan computes those of other layers again
  /// (RecomputeChoice::layers).
  bool kept = false;
  int shape = 0;  ///< Place in LayerPattern::shapes, of a model that has a pattern.
  /// Its products stay in 16 bits, where the plan's format has fewer.
  bool sixteen_bit = false;

  bool operator==(const LayerKind&) const = default;
  static const LayerKind dense, experts;  ///< Those that attend to all.
};
inline constexpr LayerKind LayerKind::dense{};
inline constexpr LayerKind LayerKind::experts{true};

/// Everything that an estimate needs, checked; only a lack of memory is found later.
struct Scenario {
  Model model;
  System system;
  Software software;
  Plan plan;
  /// Layers of each virtual stage in order; Plan::stage_of() has its stage of ranks.
  std::vector<int> layers_of;
  int first_layer(int virtual_stage) const;
  /// A window is named only where it leaves keys out: one as long as the sequence does not, and
  /// unfused attention computes all scores and masks them.
  LayerKind kind_of(int layer) const;
  /// Kinds of the layers of a prediction module.
  std::vector<LayerKind> prediction_kinds() const;
  /// A model all of whose layers are of this kind: its sizes are those of the layer.
  const Model& shape_of(LayerKind kind) const;
  /// The shape of the layers with experts, which are alike in all of them; without any, the first.
  const Model& expert_shape() const;
  /// Layers of this kind on all virtual stages of a rank of this stage.
  int layers_of_kind(LayerKind kind, int stage) const;
  /// Kinds that the model's layers have, in the order in which they first appear, and then those of
  /// prediction modules.
  std::vector<LayerKind> kinds() const;
  int dense_layers_before(int layer) const;
  /// Vocabulary padded as Megatron does: to a multiple of 128 tp.
  std::int64_t padded_vocab = 0;
  /// The sequence length is default_sequence(), as neither the user nor the model gives one.
  bool guessed_sequence = false;
  /// Reason for a software other than the default, if the user named none; else "".
  std::string why_software = {};
  /// `software` before the plan's graphs and formats changed it; null: they did not.
  std::shared_ptr<const Software> software_without_plan = nullptr;

  /// Tokens of a micro-batch on one rank: context-parallel ranks share its sequences.
  std::int64_t tokens_per_microbatch() const { return plan.mbs * plan.seq / plan.cp; }
};

/// Sizes of the model, its system and all keys but those that change with the number of replicas
/// and with what they do in a step: equal for runs of one plan on more GPUs, or with another global
/// batch.
std::string plan_of_a_replica(const Scenario& scenario);

/// Layers of each of `stages` virtual stages, equal if they divide. If not, the last holds one
/// fewer, or first and last one fewer each, or the first one and the last two fewer, as they also
/// hold the embedding and the output head. Only these two may have none. Empty if nothing works.
std::vector<int> split_layers(int layers, int stages);

/// Fills in what `request` leaves open and checks that it divides. `gpus` 0: dp must be given. If
/// it names no software and the default does not support it, the nearest one that does is taken
/// (choose_software.hpp). Errors: bad_input for contradictions, infeasible for what does not
/// divide, with the nearest values that would.
Scenario make_scenario(const Model& model, const System& system, const PlanRequest& request,
                       int gpus, const Place& at);

/// The same on `software`, whatever the request names.
Scenario make_scenario(const Model& model, const System& system, const Software& software,
                       const PlanRequest& request, int gpus, const Place& at);

/// The same for another plan of `like`'s model, on its system and its software.
Scenario make_scenario(const Scenario& like, const PlanRequest& request, int gpus, const Place& at);

/// A scenario's software as its file has it, for another scenario on it.
const Software& software_as_read(const Scenario& scenario);

/// The part of a Scenario that make_scenario() derives from a request.
struct SettledPlan {
  Plan plan;
  std::vector<int> layers_of;  ///< See Scenario.
};

/// make_scenario() for searches over many plans: it does not copy the model, the system and the
/// software, and returns a refusal as a value.
OrRefused<SettledPlan> try_plan(const Model& model, const System& system, const Software& software,
                                const PlanRequest& request, int gpus);

/// The scenario of a plan that try_plan() settled for the same three.
Scenario scenario_of(const Model& model, const System& system, const Software& software,
                     const SettledPlan& settled);

/// Refuses offloading of activations with several stages or recomputation, and attention in 8 bits
/// without a format of 8 bits.
MaybeRefused refuse_activations(const Model& model, const Plan& plan);

}  // namespace orrery
