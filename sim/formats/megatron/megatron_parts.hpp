#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sim/formats/megatron/megatron_arguments.hpp"
#include "sim/formats/shell/shell_values.hpp"
#include "sim/plan/scenario.hpp"
#include "sim/search/plan_space.hpp"

namespace orrery {

/// A plan and its model as arguments of Megatron-LM's pretrain_gpt.py.
struct MegatronFlags {
  std::vector<std::string> flags;     ///< "--tensor-model-parallel-size 8", one a flag.
  std::vector<std::string> left_out;  ///< Parts of the plan or model that no flag says, and why.
};

/// Names and values as Megatron-LM's arguments.py of 2025 has them. Only sizes and what differs
/// from their defaults are written. Layers that do not divide evenly become a
/// --pipeline-model-parallel-layout.
MegatronFlags megatron_flags(const Scenario& scenario);

/// One flag a line, as a shell takes them.
std::string megatron_text(const MegatronFlags& flags);

/// The task of `megatron TASK`, the launcher of ms-swift: "sft", "pt", "rlhf", "export". Empty: the
/// command is not ms-swift's.
std::string swift_task(const std::vector<ShellWord>& command);

/// Arguments of ms-swift, under Megatron-LM's names with underscores and values, as Megatron-LM's:
/// "true" has no word, the length of sequences is seq_length, and its own defaults are written out
/// (swift/megatron/arguments/megatron_args.py). Returns the name of the model, which is no argument
/// of Megatron-LM; `notes` gains a sentence on packed sequences. Errors (bad_input): another task
/// than training, adapters, a part of the weights; no model or length.
std::string take_swift_arguments(const std::string& task, const Place& place,
                                 std::map<std::string, MegatronArguments::Value>& values,
                                 std::vector<std::string>& notes);

/// The layers of a model with a pattern in Megatron-LM's arguments.
struct HybridFlags {
  /// The model as arguments describe it that are of all layers: attention's heads, an MLP's width.
  Model sizes;
  /// Either --hybrid-layer-pattern, a letter for each mixer and each feed-forward part, with the
  /// chunks of the pipeline and prediction modules; or --linear-attention-freq of pretrain_gpt.py,
  /// which has gated delta nets and attention in layers of both parts. Sizes of mixers with a
  /// state.
  std::vector<std::string> flags;
  bool cuts_itself = false;  ///< `flags` have the pipeline's chunks and prediction modules.
  std::vector<std::string> left_out;  ///< What no argument says, and why.
};

/// Requires a pattern. Errors (infeasible): layers that Megatron-LM lacks, two kinds of attention
/// or of MLPs, for which it has one argument each.
HybridFlags hybrid_flags(const Scenario& scenario);

/// Rows of the token table: --padded-vocab-size, or a vocabulary padded as Megatron-LM pads it, so
/// that every tensor-parallel rank has a multiple of --make-vocab-size-divisible-by. The vocabulary
/// is --vocab-size; else the tokenizer's by its type or the model that it is of; else that of the
/// catalog's model of the same shape. `notes` gets where it is from unless the file says it.
/// Errors (bad_input): nothing says it.
std::int64_t padded_vocabulary(const MegatronArguments& arguments, std::vector<std::string>& notes);

/// The model that Megatron-LM trains with these arguments, in our own format (orrery.model/1), all
/// of whose keys are written out. `notes` gains what was left out. Errors (bad_input): see
/// import_megatron_run.
nlohmann::ordered_json megatron_model(const MegatronArguments& arguments, const std::string& name,
                                      std::vector<std::string>& notes);

/// Refuses a run of a model, or of another kind, that is not supported, naming it: an
/// encoder, Mamba layers, linear attention, images, generation of text, ... Errors (bad_input): the
/// program or the argument.
void refuse_unpriced(const MegatronArguments& arguments);

/// An argument that a script must change, as a shell takes it. "": the script has none, or shall
/// have none.
struct ArgumentChange {
  std::string name;  ///< Name in arguments.py: "num_layers".
  std::string before, after;

  bool operator==(const ArgumentChange&) const = default;
};

/// The changes that turn a script that runs the plan of `before` into one that runs that of
/// `after`: arguments that differ and that the script lacks. The model and the precision in which
/// gradients are reduced stay as they are.
std::vector<ArgumentChange> changed_arguments(const MegatronArguments& script,
                                              const MegatronFlags& before,
                                              const MegatronFlags& after);

/// All of the script's arguments with the changes, one flag a line; new ones come last.
std::string changed_script_text(const MegatronArguments& script,
                                const std::vector<ArgumentChange>& changes);

/// The changes of a script for the last of the plans, step by step: the keys of the plan that are
/// the reason, the time of a step and how much shorter that is, and the arguments.
std::string megatron_changes_text(const MegatronArguments& script,
                                  const std::vector<PlanStep>& steps);

}  // namespace orrery
