#include <algorithm>

#include "sim/core/json_value.hpp"
#include "sim/core/value_list.hpp"
#include "sim/formats/megatron/megatron_parts.hpp"
#include "sim/formats/recipe/decisive_keys.hpp"

namespace orrery {
namespace {

// Beginnings of arguments that change neither time nor memory of a step, and are not Megatron-LM's.
const std::vector<std::string> harmless_swift_arguments = words_in(R"(
    add_version agent_template align_ attn_impl cached_ columns create_checkpoint custom_ data_seed
    dataset ddp_ eval external_plugins hub_ ignore_ interleave lazy_ load_args load_from_cache
    logging_ loss_type lora_ max_epochs max_pixels mcore_model merge_lora metric model_author
    model_kwargs model_name model_type new_special no_save_rng num_train output packing
    packing_num_proc padding_free padding_side report_to response_prefix rope_scaling
    save_ safetensors shuffle split_dataset streaming swanlab system target_modules task_type
    template test_convert truncation use_hf use_chat val_ vit_lr aligner_lr)");

// freeze_vit and freeze_aligner are on by default, and language models have neither.
constexpr const char* swift_parts[] = {"freeze_llm",
                                       "freeze_parameters",
                                       "freeze_parameters_regex",
                                       "freeze_parameters_ratio",
                                       "trainable_parameters",
                                       "trainable_parameters_regex",
                                       "adapters",
                                       "mcore_adapter"};

struct SwiftDefault {
  const char* name;
  const char* word;  ///< Empty: the flag is on.
};
constexpr SwiftDefault swift_defaults[] = {{"micro_batch_size", "1"},
                                           {"global_batch_size", "16"},
                                           {"recompute_granularity", "selective"},
                                           {"attention_backend", "flash"},
                                           {"expert_tensor_parallel_size", "1"},
                                           {"moe_token_dispatcher_type", "alltoall"},
                                           {"use_distributed_optimizer", ""}};

constexpr const char* train_all_weights =
    "import a run that trains all weights of a language model";

}  // namespace

std::string swift_task(const std::vector<ShellWord>& command) {
  for (std::size_t i = 0; i + 1 < command.size(); ++i) {
    const std::string name = command[i].text.substr(command[i].text.rfind('/') + 1);
    const std::string& task = command[i + 1].text;
    if (name == "megatron" && (task == "sft" || task == "pt" || task == "rlhf" || task == "export"))
      return task;
  }
  return "";
}

std::string take_swift_arguments(const std::string& task, const Place& place,
                                 std::map<std::string, MegatronArguments::Value>& values,
                                 std::vector<std::string>& notes) {
  if (task == "export")
    fail_input(place, "starts megatron export of ms-swift, which converts a checkpoint",
               train_all_weights);
  if (task == "rlhf")
    fail_input(place,
               "starts megatron rlhf of ms-swift: nothing prices texts that are compared or "
               "generated between steps",
               train_all_weights);
  for (auto& [name, value] : values) {
    if (value.words.size() != 1) continue;
    if (value.words[0] == "true" || value.words[0] == "True")
      value.words.clear();
    else if (value.words[0] == "false")
      value.words = {"False"};
  }
  const auto word = [&](const char* name) -> std::string {
    const auto found = values.find(name);
    return found == values.end() ? "" : found->second.text();
  };
  for (const char* name : {"tuner_type", "train_type"}) {
    if (const std::string kind = word(name); !kind.empty() && kind != "full")
      fail_input(values.at(name).place,
                 "--" + std::string{name} + " is " + shown_text(kind) +
                     ": nothing prices the training of adapters",
                 train_all_weights);
    values.erase(name);
  }
  for (const char* name : swift_parts)
    if (const auto found = values.find(name);
        found != values.end() && found->second.text() != "False" && found->second.text() != "0.")
      fail_input(
          found->second.place,
          "--" + std::string{name} + ": nothing prices the training of a part of the weights",
          train_all_weights);
  const std::string model = word("model");
  if (model.empty())
    fail_input(place, "names no model (--model)",
               "add --model NAME, or give --model to the import");
  const auto length = values.find("max_length");
  if (length == values.end())
    fail_input(place, "does not say how long its sequences are",
               "add --max_length N to its command");
  values["seq_length"] = length->second;
  if (values.contains("packing") && word("packing") != "False")
    notes.emplace_back(
        "--packing ends attention with each document, whose lengths nothing says; assumed: "
        "sequences of one document");
  for (const char* name : {"model", "max_length", "freeze_vit", "freeze_aligner"})
    values.erase(name);
  std::erase_if(
      values, [](const auto& entry) { return is_covered(entry.first, harmless_swift_arguments); });
  const auto take_default = [&](const std::string& name, const std::string& text) {
    MegatronArguments::Value value{{}, "--" + name, place};
    if (!text.empty()) value.words = {text};
    values.try_emplace(name, std::move(value));
  };
  for (const SwiftDefault& one : swift_defaults) take_default(one.name, one.word);
  if (word("recompute_granularity") == "none") values.erase("recompute_granularity");
  // Models of today are published in bf16, which it takes.
  const std::string format = word("torch_dtype");
  values.erase("torch_dtype");
  if (format == "float16")
    take_default("fp16", "");
  else if (format != "float32" && !values.contains("fp16"))
    take_default("bf16", "");
  return model;
}

}  // namespace orrery
