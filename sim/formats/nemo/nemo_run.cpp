#include "sim/formats/nemo/nemo_run.hpp"

#include <algorithm>
#include <array>

#include "sim/core/json_value.hpp"
#include "sim/core/text_file.hpp"
#include "sim/formats/megatron/megatron_run.hpp"
#include "sim/formats/nemo/hydra_references.hpp"
#include "sim/formats/nemo/nemo_arguments.hpp"
#include "sim/formats/nemo/performance_script.hpp"
#include "sim/formats/settings/yaml_tree.hpp"

namespace orrery {
namespace {

// Classes of NeMo 2 (nemo/collections/llm/gpt/model) that a recipe names instead of their sizes.
constexpr std::array<std::pair<std::string_view, std::string_view>, 23> classes{{
    {"GPTConfig175B", "gpt3-175b"},
    {"Llama2Config7B", "llama2-7b"},
    {"Llama2Config13B", "llama2-13b"},
    {"Llama2Config70B", "llama2-70b"},
    {"Llama3Config8B", "llama3-8b"},
    {"Llama3Config70B", "llama3-70b"},
    {"Llama31Config8B", "llama3.1-8b"},
    {"Llama31Config70B", "llama3.1-70b"},
    {"Llama31Config405B", "llama3.1-405b"},
    {"Llama32Config1B", "llama3.2-1b"},
    {"MixtralConfig8x7B", "mixtral-8x7b"},
    {"Nemotron4Config15B", "nemotron-4-15b"},
    {"Nemotron4Config340B", "nemotron-4-340b"},
    {"GemmaConfig7B", "gemma-7b"},
    {"Gemma2Config9B", "gemma-2-9b"},
    {"GPTOSSConfig120B", "gpt-oss-120b"},
    {"Qwen25Config7B", "qwen2.5-7b"},
    {"Qwen25Config14B", "qwen2.5-14b"},
    {"Qwen25Config32B", "qwen2.5-32b"},
    {"Qwen3Config8B", "qwen3-8b"},
    {"Qwen3Config14B", "qwen3-14b"},
    {"Qwen3Config32B", "qwen3-32b"},
    {"DeepSeekV3Config", "deepseek-v3"},
}};

// They change neither time nor memory of a step, or say what Megatron-Core does anyway.
const std::vector<std::string> inactive{
    "data.",
    "defaults",
    "exp_manager",
    "hydra",
    "env_vars.",
    "name",
    "log.",
    "model.apex_transformer_log_level",
    "model.apply_query_key_layer_scaling",
    "model.apply_rope_fusion",
    "model.attention_dropout",
    "model.attention_type",
    "model.batch_p2p_comm",
    "model.bias_activation_fusion",
    "model.bias_dropout_add_fusion",
    "model.cross_entropy_loss_fusion",
    "model.cpu_offloading_",
    "model.data.",
    "model.defer_embedding_wgrad_compute",
    "model.deterministic_mode",
    "model.dist_ckpt",
    "model.enable_megatron_timers",
    "model.do_layer_norm_weight_decay",
    "model.ffn_dropout",
    "model.fp16_lm_cross_entropy",
    "model.fp32_residual_connection",
    "model.fp8_",
    "model.fsdp_",
    "model.gc_interval",
    "model.get_attention_mask_from_fusion",
    "model.grad_",
    "model.gradient_",
    "model.headscale",
    "model.hidden_dropout",
    "model.hysteresis",
    "model.init_method_std",
    "model.layernorm_",
    "model.masked_softmax_fusion",
    "model.mcore_",
    "model.megatron_",
    "model.moe_aux_loss_coeff",
    "model.moe_grouped_gemm",
    "model.moe_pad_expert_input_to_capacity",
    "model.name",
    "model.native_amp_",
    "model.normalize_attention_scores",
    "model.nsys_profile",
    "model.onnx_safe",
    "model.openai_gelu",
    "model.optim.",
    "model.persist_layer_norm",
    "model.post_process",
    "model.pre_process",
    "model.precision",
    "model.reduce_amax",
    "model.resume_from_checkpoint",
    "model.rotary_",
    "model.scale_positional_embedding",
    "model.seed",
    "model.seq_len_interpolation_factor",
    "model.sharp",
    "model.sync_batch_comm",
    "model.tokenizer.",
    "model.tp_comm_",
    "model.ub_tp_comm_overlap_cfg",
    "model.use_cpu_initialization",
    "model.use_emha",
    "model.use_scaled_init_method",
    "model.use_te_rng_tracker",
    "model.use_tp_pp_dp_mapping",
    "model.validation_param_sync_overlap",
    "model.wgrad_deferral_limit",
    "optim.",
    "resume",
    "run.",
    "s3_checkpointing.",
    "tokenizer.",
    "trainer.",
};

constexpr PricedOtherwise recipe_differences[] = {
    {"model.mcore_customization_config.parallel_attention",
     "runs attention and MLP side by side; priced is one after the other"},
    {"model.sync_batch_comm", "waits for transfers between stages; priced is no such wait"},
    {"model.activations_checkpoint_layers_per_pipeline",
     "computes fewer layers again on later stages; priced is the same on all"},
    {"model.num_micro_batches_with_partial_activation_checkpoints",
     "computes fewer layers of some micro-batches again; priced is the same for all"},
};

constexpr std::string_view log_begins = "Task Configuration";

// The configuration in a log of Megatron-Bridge, between lines of dashes, on the lines where it
// stands; any other text is all of it.
std::string configuration_of(const std::string& text) {
  const auto lines = lines_of(text);
  const auto is_begin = [](std::string_view line) {
    return line.find(log_begins) != line.npos && line.find("---") != line.npos;
  };
  const auto begin = std::find_if(lines.begin(), lines.end(), is_begin);
  if (begin == lines.end()) return text;
  std::string all(static_cast<std::size_t>(begin - lines.begin()) + 1, '\n');
  for (auto line = begin + 1; line != lines.end() && !line->starts_with("------"); ++line)
    all += std::string{*line} + "\n";
  return all;
}

std::optional<Model> model_of_class(const Settings& settings) {
  const std::string path = "model.config._target_|model._target_";
  const std::string target = settings.word(path, "");
  const std::string name = target.substr(target.rfind('.') + 1);
  for (const auto& [known, model] : classes)
    if (name == known) return read_model(std::string{model}, {"", ""});
  return std::nullopt;
}

// Of what the user gives, settings; the rest are variables of the script.
void take_settings(Settings& settings, const RecipeAnswers& answers) {
  for (const auto& [path, value] : answers.set)
    if (path.find('.') != path.npos) settings.set(path, value);
}

ImportedRun import_performance_run(PerformanceRun run, const RecipeAnswers& answers) {
  take_settings(run.settings, answers);
  std::optional<Model> model = model_of_answer(answers);
  if (!model) model = read_model(run.model, {"", ""});
  const MegatronArguments arguments =
      nemo_arguments(run.settings, answers.gpus ? *answers.gpus : run.gpus, run.nccl);
  ImportedRun imported = import_megatron_run(arguments, answers.name, model);
  imported.notes.insert(imported.notes.begin(), run.notes.begin(), run.notes.end());
  tell_unread(run.settings, inactive, imported.notes);
  return imported;
}

}  // namespace

ImportedRun import_nemo_run(const std::string& text, const std::string& file,
                            const RecipeAnswers& answers) {
  require_text(text, file, "a recipe of NeMo or Megatron-Bridge");
  if (auto run = read_performance_run(text, file, answers))
    return import_performance_run(std::move(*run), answers);
  Settings settings{read_yaml(configuration_of(text), file), file};
  take_answers(settings, answers);
  resolve_references(settings);
  const std::string layers = "model.num_layers|model.config.num_layers";
  std::optional<Model> model = model_of_answer(answers);
  if (!model && !settings.has(layers)) model = model_of_class(settings);
  const MegatronArguments arguments = nemo_arguments(settings, answers.gpus);
  if (!model && !settings.has(layers))
    fail_input(settings.place(), "has no model.num_layers, and names no model that is known",
               "give a whole recipe, not one that overrides another, or its model: --model NAME or "
               "a config.json");
  ImportedRun run = import_megatron_run(arguments, answers.name, model);
  // A configuration that its program printed has hundreds of settings that nobody gave.
  const bool is_printed = settings.has("_target_") || settings.has("model._target_");
  tell_otherwise(settings, recipe_differences, run.notes);
  if (settings.word("model.fsdp_sharding_strategy", "full") == "hybrid")
    run.notes.push_back(
        "model.fsdp_sharding_strategy is over a part of the replicas; priced is sharding over all");
  if (const std::string order = settings.word("model.transformer_block_type", "pre_ln");
      order != "pre_ln")
    run.notes.push_back("model.transformer_block_type is " + shown_text(order) +
                        "; priced is pre_ln");
  if (!is_printed) tell_unread(settings, inactive, run.notes);
  const std::string software = JsonValue::parse(run.json, file).at("software").text();
  run.notes.push_back("the nearest software is " + software +
                      ": NeMo and Megatron-Bridge start Megatron-Core" +
                      (model && model->experts ? "; megatron-bridge also has their host's time for "
                                                 "experts"
                                               : ""));
  return run;
}

}  // namespace orrery
