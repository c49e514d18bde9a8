#include "sim/cli/command.hpp"

namespace orrery {

const std::vector<Command>& commands() {
  static const std::vector<Command> all{
      {"search", "the fastest plans for a model on a cluster", run_search},
      {"estimate", "one plan: step time, tokens/s, MFU, memory, where the time goes", run_estimate},
      {"compare", "plans side by side: which is faster, why, and is it significant", run_compare},
      {"buy", "which machine trains a model in how many days for how much money", run_buy},
      {"run", "a whole training run with failures, checkpoints and spares", run_run},
      {"serve", "a served model: what clients see, its cost, the best deployment", run_serve},
      {"post", "a step of reinforcement learning: rollout, log-probabilities, training, weights",
       run_post},
      {"explore", "an interactive page for the parameters of a plan, in a browser", run_explore},
      {"sweep", "a grid of plans: batches, degrees, GPUs; also on Slurm", run_sweep},
      {"collective", "one collective alone, in the columns of nccl-tests", run_collective},
      {"kernel", "one operation alone, or all of a step: roofs, bound, time, neighbours",
       run_kernel},
      {"schedule", "a pipeline's order of passes: print it, edit it, draw it", run_schedule},
      {"import", "scripts of training and serving, recipes, logs of nccl-tests; a cluster",
       run_import},
      {"export", "a plan as Megatron-LM's arguments, a deployment as commands of its engine",
       run_export},
      {"calibrate", "measure the GPUs of this machine; fit and show what was measured",
       run_calibrate},
      {"place-experts", "the best placement of experts for a routing trace", run_place_experts},
      {"validate", "predict published measurements and print the error", run_validate},
      {"check", "read a model or a system and print what was understood", run_check},
      {"list", "gpus, systems, models, software, schedules, collectives, routing", run_list},
      {"manual", "manual pages of all commands", run_manual},
      {"completion", "completion of commands, options and names for bash, zsh and fish",
       run_completion}};
  return all;
}

const Command* find_command(const std::string& name) {
  for (const Command& command : commands())
    if (command.name == name) return &command;
  return nullptr;
}

}  // namespace orrery
