#include "sim/formats/recipe/other_launchers.hpp"

#include <algorithm>

#include "sim/core/json_value.hpp"
#include "sim/core/text_file.hpp"

namespace orrery {
namespace {

constexpr const char* by_hand =
    "write the plan by hand: orrery estimate --model NAME with --tp, --pp, --zero and the like";
constexpr const char* both_halves =
    "give lengths, batch and both plans to orrery post (docs/guides/post-train.md)";
constexpr const char* by_verl = "read it by orrery import verl, for orrery post";

constexpr const char* as_server =
    "write the deployment by hand for an engine of orrery list engines: orrery serve --model NAME "
    "--tp N";

// A command by one of its words and, if there is one, the word that follows it.
struct OtherCommand {
  std::string_view word;  ///< Beginning of the name of a program or a module.
  std::string_view next;
  const char* what;
  const char* remedy;
};
constexpr OtherCommand other_commands[] = {
    {"verl.trainer.main_", "", "verl, a loop of reinforcement learning", by_verl},
    {"verl.trainer.", "", "verl, whose settings are not read", by_hand},
    {"openrlhf.cli.train_sft", "", "OpenRLHF, whose settings are not read", by_hand},
    {"openrlhf.cli.train_ppo", "", "OpenRLHF, a loop of reinforcement learning",
     "read it by orrery import openrlhf, for orrery post"},
    {"openrlhf.cli.", "", "OpenRLHF, of which nothing prices texts that are compared", by_hand},
    {"swift", "rlhf", "ms-swift, whose reinforcement learning is not read", both_halves},
    {"swift", "sft", "ms-swift on Transformers, whose settings are not read",
     "import a script of `megatron sft` by orrery import megatron, or write the plan by hand: "
     "orrery estimate --model NAME"},
    {"swift", "pt", "ms-swift on Transformers, whose settings are not read",
     "import a script of `megatron pt` by orrery import megatron, or write the plan by hand: "
     "orrery estimate --model NAME"},
    {"megatron", "sft", "ms-swift on Megatron-LM", "read it by orrery import megatron"},
    {"megatron", "pt", "ms-swift on Megatron-LM", "read it by orrery import megatron"},
    {"llamafactory-cli", "train", "LLaMA-Factory",
     "give the YAML that it names: orrery import deepspeed FILE"},
    {"axolotl", "train", "axolotl", "give the YAML that it names: orrery import deepspeed FILE"},
    {"axolotl.cli.train", "", "axolotl",
     "give the YAML that it names: orrery import deepspeed FILE"},
    {"nemo", "llm", "a factory of NeMo, which is Python",
     "give the YAML that it writes with --to-yaml FILE: orrery import nemo FILE"},
    {"text-generation-launcher", "", "TGI, an engine that is not modelled", as_server},
    {"text-generation-inference", "", "TGI, an engine that is not modelled", as_server},
    {"lmdeploy", "serve", "LMDeploy, an engine that is not modelled", as_server},
    {"torchtitan.train", "", "torchtitan",
     "give its job file (TOML): orrery import torchtitan FILE; of a config registry write the "
     "plan by hand: orrery estimate --model NAME"},
};

// A file by the beginning of one of its lines; and of another, where one is not enough.
struct OtherFile {
  std::string_view begins, other;
  const char* what;
  const char* reader;  ///< The importer that reads it; "": none.
  const char* remedy;
};
constexpr OtherFile other_files[] = {
    {"from torchtitan", "", "Python of torchtitan (a config registry), which is never run", "",
     "write the plan by hand: orrery estimate --model NAME --tp N and the like, with its "
     "ParallelismConfig's degrees; job files (TOML) of until February 2026 are read"},
    {"from nemo", "", "Python of NeMo, which is never run", "",
     "give the YAML that it writes (--to-yaml FILE of NeMo-Run): orrery import nemo FILE"},
    {"import nemo_run", "", "Python of NeMo, which is never run", "",
     "give the YAML that it writes (--to-yaml FILE of NeMo-Run): orrery import nemo FILE"},
    {"from megatron.bridge", "", "Python of Megatron-Bridge, which is never run", "",
     "give a log of the run, which prints its configuration: orrery import nemo FILE"},
    {"actor_rollout_ref:", "", "a configuration of verl", "verl", by_verl},
    {"grpo:", "policy:", "a configuration of NeMo-RL", "nemo-rl",
     "read it by orrery import nemo-rl, for orrery post"},
    {"dist_config:", "model:", "a configuration of LLaMA-Factory's v1, which is not read", "",
     by_hand},
    {"apiVersion:", "kind:", "a Kubernetes manifest, which is not read", "",
     "give the command of its container in a script; its replicas are --replicas"},
    {"services:", "", "a file of Docker Compose, which is not read", "",
     "give the command of its container in a script"},
    {"  _component_: torchtune", "", "a configuration of torchtune, which is not read", "",
     by_hand},
    {"train_loader:", "optimizer:", "a configuration of LLM Foundry, which is not read", "",
     by_hand},
    {"base_model:", "sequence_len:", "a configuration of axolotl", "deepspeed",
     "read it by orrery import deepspeed"},
    {"step_scheduler:", "model:", "a recipe of NeMo AutoModel", "automodel",
     "read it by orrery import automodel"},
    {"model_name_or_path:", "", "a file of arguments of Hugging Face's Trainer or LLaMA-Factory",
     "deepspeed", "read it by orrery import deepspeed"},
};

// Keys of GPT-NeoX are written with - and with _, in quotes or without.
bool is_line_of_neox(std::string_view line) {
  const std::size_t first = line.find_first_not_of(" \t{\"'");
  if (first == line.npos) return false;
  line.remove_prefix(first);
  return line.starts_with("pipe_parallel_size") || line.starts_with("pipe-parallel-size");
}

}  // namespace

void refuse_other_launcher(const ShellScript& script) {
  for (const auto& command : script.commands)
    for (std::size_t i = 0; i < command.size(); ++i) {
      const std::string& written = command[i].text;
      const std::string name = written.substr(written.rfind('/') + 1);
      for (const OtherCommand& other : other_commands) {
        const bool fits = other.next.empty() ? name.starts_with(other.word)
                                             : name == other.word && i + 1 < command.size() &&
                                                   command[i + 1].text == other.next;
        if (fits)
          fail_input(line_place(script.files[command[i].file], command[i].line),
                     "starts " + shown_text(name) + ", of " + other.what, other.remedy);
      }
    }
}

void refuse_other_file(const std::string& text, const std::string& file,
                       const std::string& reader) {
  const auto lines = lines_of(text);
  const auto line_of = [&](std::string_view begins) -> std::optional<std::size_t> {
    for (std::size_t i = 0; i < lines.size(); ++i)
      if (lines[i].starts_with(begins)) return i;
    return std::nullopt;
  };
  for (const OtherFile& other : other_files) {
    const auto line = line_of(other.begins);
    if (!line || reader == other.reader) continue;
    if (!other.other.empty() && !line_of(other.other)) continue;
    fail_input(line_place(file, *line), std::string{"is "} + other.what, other.remedy);
  }
  const auto neox = std::find_if(lines.begin(), lines.end(), is_line_of_neox);
  if (neox != lines.end())
    fail_input(line_place(file, static_cast<std::size_t>(neox - lines.begin())),
               "is a configuration of GPT-NeoX, which is not read",
               "write the plan by hand, with its model_parallel_size as --tp, its "
               "pipe_parallel_size as --pp and its zero_optimization.stage as --zero: orrery "
               "estimate --model NAME");
}

}  // namespace orrery
