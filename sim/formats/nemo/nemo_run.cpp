#include "sim/formats/nemo/nemo_run.hpp"

#include <algorithm>
#include <array>

#include "sim/core/json_value.hpp"
#include "sim/core/text_file.hpp"
#include "sim/core/value_list.hpp"
#include "sim/formats/megatron/megatron_run.hpp"
#include "sim/formats/nemo/performance_script.hpp"
#include "sim/formats/recipe/decisive_keys.hpp"
#include "sim/formats/recipe/other_launchers.hpp"
#include "sim/formats/settings/settings_files.hpp"

namespace orrery {
namespace {

// An argument of arguments.py and the settings that mean the same and take the same words.
struct SameMeaning {
  const char* argument;
  const char* paths;
};

// Degrees belong to the model, except in NeMo 2, whose strategy has them.
const WordPairs of_ranks = pairs_in(R"(
    tensor_model_parallel_size pipeline_model_parallel_size virtual_pipeline_model_parallel_size
    pipeline_model_parallel_layout
    decoder_first_pipeline_num_layers=num_layers_in_first_pipeline_stage
    decoder_last_pipeline_num_layers=num_layers_in_last_pipeline_stage
    account_for_embedding_in_pipeline_split account_for_loss_in_pipeline_split
    context_parallel_size cp_comm_type expert_model_parallel_size expert_tensor_parallel_size
    sequence_parallel)");

// The model's keys, likewise.
const WordPairs of_model = pairs_in(R"(
    num_layers hidden_size ffn_hidden_size num_attention_heads num_query_groups kv_channels
    make_vocab_size_divisible_by qk_layernorm softmax_type window_attn_skip_freq
    activation_func_clamp_value mtp_num_layers multi_latent_attention q_lora_rank kv_lora_rank
    qk_head_dim qk_pos_emb_head_dim v_head_dim num_experts=num_moe_experts moe_router_topk
    moe_ffn_hidden_size moe_shared_expert_intermediate_size moe_router_num_groups
    moe_router_group_topk moe_router_enable_expert_bias moe_layer_freq moe_token_dispatcher_type
    moe_flex_dispatcher_backend moe_shared_expert_overlap moe_expert_capacity_factor
    overlap_moe_expert_parallel_comm delay_wgrad_compute cuda_graph_impl cuda_graph_scope
    cuda_graph_modules enable_cuda_graph external_cuda_graph cpu_offloading
    cpu_offloading_num_layers fine_grained_activation_offloading offload_modules
    activation_offload_fraction min_offloaded_tensor_size activation_func_fp8_input_store
    is_hybrid_model
    hybrid_override_pattern hybrid_layer_pattern mtp_hybrid_override_pattern
    mtp_use_repeated_layer mamba_state_dim mamba_head_dim mamba_num_groups mamba_num_heads
    linear_num_key_heads linear_num_value_heads linear_key_head_dim linear_value_head_dim
    linear_conv_kernel_dim moe_latent_size attention_output_gate
    experimental_attention_variant recompute_modules
    recompute_granularity recompute_method recompute_num_layers)");

// Whole paths.
constexpr SameMeaning of_run[] = {
    {"micro_batch_size", "train.micro_batch_size|model.micro_batch_size|data.micro_batch_size"},
    {"global_batch_size", "train.global_batch_size|model.global_batch_size|data.global_batch_size"},
    {"rampup_batch_size", "train.rampup_batch_size|model.rampup_batch_size|data.rampup_batch_size"},
    {"seq_length",
     "dataset.sequence_length|dataset.seq_length|data.seq_length|model.encoder_seq_length|"
     "model.data.seq_length|model.seq_length|model.config.seq_length"},
    {"max_position_embeddings",
     "model.max_position_embeddings|model.seq_length|model.config.seq_length"},
    {"vocab_size",
     "model.vocab_size|model.config.vocab_size|tokenizer.vocab_size|model.override_vocab_size"},
    {"recompute_granularity", "model.activations_checkpoint_granularity"},
    {"recompute_method", "model.activations_checkpoint_method"},
    {"recompute_num_layers", "model.activations_checkpoint_num_layers"},
    {"use_megatron_fsdp",
     "ddp.use_megatron_fsdp|dist.use_megatron_fsdp|ddp.use_custom_fsdp|"
     "trainer.strategy.ddp.use_custom_fsdp|model.fsdp"},
    {"data_parallel_sharding_strategy",
     "ddp.data_parallel_sharding_strategy|trainer.strategy.ddp.data_parallel_sharding_strategy"},
    {"overlap_grad_reduce",
     "comm_overlap.overlap_grad_reduce|ddp.overlap_grad_reduce|"
     "trainer.strategy.ddp.overlap_grad_reduce|model.optim.overlap_grad_sync"},
    {"overlap_param_gather", "comm_overlap.overlap_param_gather|ddp.overlap_param_gather"},
    {"tp_comm_overlap",
     "comm_overlap.tp_comm_overlap|model.tp_comm_overlap|model.ub_tp_comm_overlap"},
    {"overlap_p2p_comm",
     "comm_overlap.overlap_p2p_comm|model.overlap_p2p_comm|trainer.strategy.overlap_p2p_comm"},
    {"num_distributed_optimizer_instances", "ddp.num_distributed_optimizer_instances"},
    {"optimizer_cpu_offload", "optimizer.optimizer_cpu_offload"},
    {"optimizer_offload_fraction", "optimizer.optimizer_offload_fraction"},
    {"overlap_cpu_optimizer_d2h_h2d", "optimizer.overlap_cpu_optimizer_d2h_h2d"},
    {"use_precision_aware_optimizer", "optimizer.use_precision_aware_optimizer"},
    {"fp8_param_gather",
     "mixed_precision.fp8_param_gather|ddp.fp8_param_gather|model.fp8_params|"
     "trainer.plugins.fp8_params"},
    {"fp4", "mixed_precision.fp4|model.fp4"},
    {"first_last_layers_bf16",
     "mixed_precision.first_last_layers_bf16|model.first_last_layers_bf16"},
    {"num_layers_at_start_in_bf16",
     "mixed_precision.num_layers_at_start_in_bf16|model.num_layers_at_start_in_bf16"},
    {"num_layers_at_end_in_bf16",
     "mixed_precision.num_layers_at_end_in_bf16|model.num_layers_at_end_in_bf16"},
};

// Where other layers stand that nothing prices.
const WordPairs unpriced = words_by_meaning({
    {"an image encoder",
     "model.mm_cfg model.vision model.language_transformer_config model.vision_transformer_config"},
    {"an encoder and a decoder", "model.encoder.num_layers model.encoder"},
    {"an encoder (BERT)", "model.bert_binary_head"},
    {"retrieval (RETRO)", "model.retro"},
    {"Mamba layers", "model.mamba_ngroups_dim"},
    {"recurrent layers", "model.griffin"},
});

using Values = std::map<std::string, MegatronArguments::Value>;

class Translator {
 public:
  Translator(const Settings& settings, std::optional<std::int64_t> gpus)
      : s_{settings}, gpus_{gpus} {}

  Values read() {
    refuse();
    for (const auto& [argument, name] : of_ranks)
      take(argument, path("model.", name) + "|" + path("trainer.strategy.", name));
    for (const auto& [argument, name] : of_model)
      take(argument, path("model.", name) + "|" + path("model.config.", name));
    for (const auto& [argument, paths] : of_run) take(argument, paths);
    layers();
    precision();
    optimizer();
    shards();
    refuse_others();
    size();
    return std::move(values_);
  }

 private:
  static std::string path(const std::string& of, const std::string& name) { return of + name; }

  void refuse() {
    for (const char* adapters : {"peft", "model.peft.peft_scheme"})
      if (is_on(s_, adapters))
        s_.fail(adapters, "trains adapters, whose settings are not read here",
                std::string{"import the run without them (--set "} + adapters +
                    "=null), and add --finetune lora to `orrery estimate --plan`");
    for (const auto& [paths, what] : unpriced)
      if (is_on(s_, paths))
        s_.fail(paths, "means " + what + ", which nothing prices",
                "import a run that trains all weights of a GPT-like model");
  }

  // The value with the recipe's name for it and its place.
  MegatronArguments::Value value(const std::string& paths, std::vector<std::string> words) const {
    s_.find(paths);  // Marks it as read.
    return {std::move(words), s_.name(paths), s_.place_of(paths)};
  }
  void put(const std::string& argument, const std::string& paths, const std::string& word) {
    values_.insert_or_assign(argument, value(paths, {word}));
  }
  void put(const std::string& argument, const std::string& paths, bool is_on) {
    put(argument, paths, std::string{is_on ? "True" : "False"});
  }

  void take(const std::string& argument, const std::string& paths) {
    const SettingsTree* tree = s_.find(paths);
    if (!tree || tree->kind == SettingsTree::Kind::map) return;
    if (tree->kind == SettingsTree::Kind::list) {
      std::string list;  // Python's printed form, which serves for one word and for several.
      for (const SettingsTree& item : tree->items) list += (list.empty() ? "" : ", ") + item.text;
      values_.insert_or_assign(argument, value(paths, {"[" + list + "]"}));
      return;
    }
    std::string word = tree->text == "true" ? "True" : tree->text == "false" ? "False" : tree->text;
    if (word.find("${") != word.npos || word == "???")
      s_.fail(paths, "is " + shown_text(word) + ", which the file does not say",
              "give it: --set " + s_.name(paths) + "=VALUE");
    values_.insert_or_assign(argument, value(paths, {word}));
  }

  void layers() {
    const std::string groups = "model.num_query_groups|model.config.num_query_groups";
    if (s_.has(groups)) put("group_query_attention", groups, true);
    const std::string activation = s_.word("model.activation", "gelu");
    const bool gated = activation.ends_with("glu");
    put("swiglu", "model.gated_linear_unit|model.config.gated_linear_unit|model.activation",
        s_.flag("model.gated_linear_unit|model.config.gated_linear_unit", gated));
    const std::string bias = "model.add_bias_linear|model.config.add_bias_linear|model.bias";
    put("add_bias_linear", bias, s_.flag(bias, true));
    const std::string qkv = "model.add_qkv_bias|model.config.add_qkv_bias|model.qkv_bias";
    if (s_.has(qkv)) put("add_qkv_bias", qkv, s_.flag(qkv, false));
    const std::string tied =
        "model.share_embeddings_and_output_weights|model.config.share_embeddings_and_output_"
        "weights";
    put("untie_embeddings_and_output_weights", tied, !s_.flag(tied, true));
    const std::string norm = "model.normalization|model.config.normalization";
    put("normalization", norm,
        s_.choice(norm, {{"layernorm", "LayerNorm"},
                         {"layernorm1p", "LayerNorm"},
                         {"low_precision_layernorm", "LayerNorm"},
                         {"rmsnorm", "RMSNorm"}}));
    const std::string positions =
        "model.position_embedding_type|model.config.position_embedding_type";
    put("position_embedding_type", positions, s_.word(positions, "learned_absolute"));
    const std::string window = "model.window_size|model.config.window_size";
    if (const std::vector<std::string> sides = s_.words(window); !sides.empty()) {
      std::string text;
      for (const std::string& side : sides) text += (text.empty() ? "(" : ", ") + side;
      put("window_size", window, text + ")");
    }
    if (s_.flag("model.moe_enable_deepep|model.config.moe_enable_deepep", false)) {
      put("moe_token_dispatcher_type", "model.moe_enable_deepep", std::string{"flex"});
      put("moe_flex_dispatcher_backend", "model.moe_enable_deepep", std::string{"deepep"});
    }
    tokenizer();
    const std::string engine = "model.transformer_engine";
    if (!s_.flag(engine, true) && !s_.flag("model.use_flash_attention", false))
      put("transformer_impl", engine, std::string{"local"});
    s_.find("model.use_flash_attention");
  }

  void tokenizer() {
    if (!s_.flag("model.should_pad_vocab", true) && s_.has("model.vocab_size"))
      put("padded_vocab_size", "model.vocab_size", s_.word("model.vocab_size", ""));
    const std::string own = "tokenizer.tokenizer_type";
    if (s_.has(own)) put("tokenizer_type", own, s_.word(own, ""));
    const std::string type = "tokenizer.tokenizer_model|model.tokenizer.type|model.tokenizer.model";
    const std::string name = s_.word(type, "");
    if (name.ends_with("BPETokenizer") || name.starts_with("BertWordPiece"))
      put("tokenizer_type", type, name);
    else if (!name.empty() && name.find("${") == name.npos)
      put("tokenizer_model", type, name);
  }

  // "bf16", "bf16-mixed", "16-mixed", "32", "bf16_with_fp8_current_scaling_mixed".
  void precision() {
    const SettingsTree* mixed = s_.find("mixed_precision");
    const bool is_name = mixed && mixed->kind == SettingsTree::Kind::scalar;
    const std::string paths =
        is_name ? "mixed_precision" : "trainer.plugins.precision|trainer.precision";
    const std::string word = s_.word(paths, "");
    const bool fp16 = s_.flag(is_name ? "model.fp16" : "mixed_precision.fp16|model.fp16",
                              word.starts_with("16") || word.starts_with("fp16"));
    const bool bf16 = s_.flag(is_name ? "model.bf16" : "mixed_precision.bf16|model.bf16",
                              word.starts_with("bf16"));
    const bool says_none = word.empty() && !fp16 && !bf16;
    if (!says_none) put(fp16 ? "fp16" : "bf16", paths, fp16 || bf16);
    const std::string fp8 =
        is_name ? "model.fp8" : "mixed_precision.fp8|trainer.plugins.fp8|model.fp8";
    const bool names_fp8 = word.find("fp8") != word.npos;
    if (word.find("nvfp4") != word.npos) put("fp4", paths, std::string{"e2m1"});
    if (is_on(s_, fp8) || names_fp8)
      put("fp8", is_on(s_, fp8) ? fp8 : paths, std::string{"hybrid"});
    const std::string recipe =
        is_name ? "model.fp8_recipe" : "mixed_precision.fp8_recipe|trainer.plugins.fp8_recipe";
    if (word.find("mxfp8") != word.npos)
      put("fp8_recipe", paths, std::string{"mxfp8"});
    else if (s_.has(recipe))
      put("fp8_recipe", recipe, s_.word(recipe, ""));
  }

  void optimizer() {
    const std::string sharded =
        "ddp.use_distributed_optimizer|optimizer.use_distributed_optimizer|"
        "trainer.strategy.ddp.use_distributed_optimizer|optim.config.use_distributed_optimizer";
    const std::string name = s_.word("model.optim.name", "");
    put("use_distributed_optimizer", s_.has(sharded) ? sharded : "model.optim.name",
        s_.flag(sharded, name.starts_with("distributed_") || name.starts_with("mcore_distr")));
    // NeMo, megatron_base_model.py, setup_optimization: store_param_remainders with bf16 weights.
    if (name == "distributed_fused_adam")
      put("use_precision_aware_optimizer", "model.optim.name", true);
    // NeMo, megatron_gpt_model.py: fp32 unless grad_sync_dtype says otherwise; Megatron-Bridge and
    // NeMo 2, mixed_precision: grad_reduce_in_fp32.
    const std::string wide =
        s_.find("mixed_precision") && s_.find("mixed_precision")->kind == SettingsTree::Kind::scalar
            ? "ddp.grad_reduce_in_fp32"
            : "mixed_precision.grad_reduce_in_fp32|ddp.grad_reduce_in_fp32|"
              "trainer.plugins.grad_reduce_in_fp32|trainer.strategy.ddp.grad_reduce_in_fp32";
    const std::string type = s_.word("model.optim.grad_sync_dtype", "fp32");
    const bool is_wide = s_.flag(wide, type == "fp32" || type == "32");
    put(is_wide ? "accumulate_allreduce_grads_in_fp32" : "grad_reduce_in_bf16", wide, true);
    for (const char* of :
         {"main_params_dtype", "exp_avg_dtype", "exp_avg_sq_dtype", "main_grads_dtype"}) {
      const std::string at = std::string{"optimizer."} + of;
      const std::string given = s_.word(at + "._target_|" + at, "");
      if (!given.empty()) put(of, at, short_type(given));
    }
  }

  // A printed configuration has hundreds of keys: these decide the step and are refused or read.
  void refuse_others() {
    const std::string name = s_.word("optimizer.optimizer|optim.config.optimizer", "adam");
    if (name != "adam" && name != "adamw")
      refuse_decisive("optimizer.optimizer", "is " + shown_text(name),
                      s_.place_of("optimizer.optimizer|optim.config.optimizer"));
    for (const char* path :
         {"dist.use_torch_fsdp2", "ddp.use_torch_fsdp2", "trainer.strategy.fsdp"})
      if (is_on(s_, path) && s_.word(path, "") != "megatron")
        refuse_decisive(path, "shards by PyTorch's FSDP", s_.place_of(path));
    if (s_.word("trainer.strategy.fsdp", "") == "megatron") {
      put("use_megatron_fsdp", "trainer.strategy.fsdp", true);
      if (!s_.has("trainer.strategy.ddp.data_parallel_sharding_strategy"))
        put("data_parallel_sharding_strategy", "trainer.strategy.fsdp",
            std::string{"optim_grads_params"});
    }
    const std::string backend = "model.attention_backend|model.config.attention_backend";
    if (const std::string word = s_.word(backend, ""); !word.empty())
      put("attention_backend", backend, word.substr(word.rfind('.') + 1));
  }

  // NeMo 1: PyTorch's FSDP. NeMo itself refuses "hybrid" (nlp_overrides.py, NLPFSDPStrategy).
  void shards() {
    if (!s_.flag("model.fsdp", false)) return;
    const std::string path = "model.fsdp_sharding_strategy";
    put("data_parallel_sharding_strategy", path,
        s_.choice(path, {{"full", "optim_grads_params"}, {"grad", "optim_grads"}}));
  }

  // "torch.float32" as "fp32".
  static std::string short_type(const std::string& type) {
    if (type.ends_with("bfloat16")) return "bf16";
    if (type.ends_with("float16")) return "fp16";
    return type.find("float8") != type.npos || type.ends_with("uint8") ? "fp8" : "fp32";
  }

  void size() {
    const std::string nodes = "trainer.num_nodes", devices = "trainer.devices";
    std::optional<std::int64_t> gpus = gpus_;
    if (!gpus && s_.has(nodes) && s_.has(devices))
      gpus = product_of({s_.number(nodes, 1), s_.number(devices, 1)});
    if (gpus && *gpus > 0 && *gpus < (1 << 24)) put("world_size", nodes, std::to_string(*gpus));
  }

  const Settings& s_;
  std::optional<std::int64_t> gpus_;
  Values values_;
};

}  // namespace

MegatronArguments nemo_arguments(const Settings& settings, std::optional<std::int64_t> gpus,
                                 const std::map<std::string, std::string>& nccl) {
  Values values = Translator{settings, gpus}.read();
  std::map<std::string, std::string> spelling;
  for (const auto& [argument, name] : of_model) spelling[argument] = "model." + name;
  for (const auto& [argument, paths] : of_run)
    spelling[argument] = std::string_view{paths}.substr(0, std::string_view{paths}.find('|'));
  spelling["vocab_size"] = "model.vocab_size";
  spelling["bf16"] = settings.has("trainer") ? "trainer.precision" : "mixed_precision";
  return MegatronArguments::of_recipe(settings.file(), std::move(values), std::move(spelling),
                                      nccl);
}

namespace {

// Classes of NeMo 2 (nemo/collections/llm/gpt/model) that a recipe names instead of their sizes.
const WordPairs classes = pairs_in(R"(
    GPTConfig175B=gpt3-175b Llama2Config7B=llama2-7b Llama2Config13B=llama2-13b
    Llama2Config70B=llama2-70b Llama3Config8B=llama3-8b Llama3Config70B=llama3-70b
    Llama31Config8B=llama3.1-8b Llama31Config70B=llama3.1-70b Llama31Config405B=llama3.1-405b
    Llama32Config1B=llama3.2-1b MixtralConfig8x7B=mixtral-8x7b Nemotron4Config15B=nemotron-4-15b
    Nemotron4Config340B=nemotron-4-340b GemmaConfig7B=gemma-7b Gemma2Config9B=gemma-2-9b
    GPTOSSConfig120B=gpt-oss-120b Qwen25Config7B=qwen2.5-7b Qwen25Config14B=qwen2.5-14b
    Qwen25Config32B=qwen2.5-32b Qwen3Config8B=qwen3-8b Qwen3Config14B=qwen3-14b
    Qwen3Config32B=qwen3-32b DeepSeekV3Config=deepseek-v3)");

// They change neither time nor memory of a step, or are what Megatron-Core does anyway.
const std::vector<std::string> harmless_nemo_keys = words_in(R"(
    data. defaults exp_manager. hydra env_vars. name log. model.apex_transformer_log_level
    model.apply_query_key_layer_scaling model.apply_rope_fusion model.attention_dropout
    model.attention_type model.batch_p2p_comm model.bias_activation_fusion
    model.bias_dropout_add_fusion model.cross_entropy_loss_fusion model.cpu_offloading_
    model.data. model.defer_embedding_wgrad_compute model.deterministic_mode model.dist_ckpt
    model.enable_megatron_timers model.do_layer_norm_weight_decay model.ffn_dropout
    model.fp16_lm_cross_entropy model.fp32_residual_connection model.fp8_ model.fsdp_
    model.gc_interval model.get_attention_mask_from_fusion model.grad_ model.gradient_
    model.headscale model.hidden_dropout model.hysteresis model.init_method_std model.layernorm_
    model.masked_softmax_fusion model.mcore_ model.megatron_ model.megatron_amp_
    model.moe_aux_loss_coeff model.moe_grouped_gemm model.moe_pad_expert_input_to_capacity
    model.name model.native_amp_ model.normalize_attention_scores model.nsys_profile
    model.onnx_safe model.openai_gelu model.optim model.persist_layer_norm model.post_process
    model.pre_process model.precision model.reduce_amax model.resume_from_checkpoint
    model.rotary_ model.scale_positional_embedding model.seed model.seq_len_interpolation_factor
    model.sharp model.sync_batch_comm model.tokenizer. model.tp_comm_
    model.ub_tp_comm_overlap_cfg model.use_cpu_initialization model.use_emha
    model.use_scaled_init_method model.use_te_rng_tracker model.use_tp_pp_dp_mapping
    model.validation_param_sync_overlap model.wgrad_deferral_limit optim resume run.
    s3_checkpointing. tokenizer. trainer)");

constexpr PricedOtherwise recipe_differences[] = {
    {"model.mcore_customization_config.parallel_attention",
     "runs attention and MLP side by side; assumed: one after the other"},
    {"model.sync_batch_comm", "waits for transfers between stages; assumed: no such wait"},
    {"model.activations_checkpoint_layers_per_pipeline",
     "computes fewer layers again on later stages; assumed: the same on all"},
    {"model.num_micro_batches_with_partial_activation_checkpoints",
     "computes fewer layers of some micro-batches again; assumed: the same for all"},
};

constexpr std::string_view log_begins = "Task Configuration";

// The configuration in a log of Megatron-Bridge, between lines of dashes, on the same line numbers;
// any other text is returned whole.
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
    if (name == known) return read_model(model, {"", ""});
  return std::nullopt;
}

// The user's settings have a dot; the other answers are variables of the script.
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
  note_unread(run.settings, harmless_nemo_keys, imported.notes);
  return imported;
}

}  // namespace

ImportedRun import_nemo_run(const std::string& text, const std::string& file,
                            const RecipeAnswers& answers) {
  require_text(text, file, "a recipe of NeMo or Megatron-Bridge");
  refuse_other_file(text, file, "nemo");
  if (auto run = read_performance_run(text, file, answers))
    return import_performance_run(std::move(*run), answers);
  Settings settings{read_yaml(configuration_of(text), file), file};
  take_answers(settings, answers);
  resolve_references(settings);
  const std::string layers = "model.num_layers|model.config.num_layers";
  std::optional<Model> model = model_of_answer(answers);
  const std::string hidden = "model.hidden_size|model.config.hidden_size";
  if (!model && !settings.has(hidden)) {
    model = model_of_class(settings);
    // The class's sizes with as many layers as the recipe says.
    if (model && settings.has(layers))
      model = parse_model(model->document->with(
          "layers", JsonValue::parse(std::to_string(settings.number(layers, 1)), file)));
  }
  const MegatronArguments arguments = nemo_arguments(settings, answers.gpus);
  if (!model && !settings.has(layers))
    fail_input(settings.place(), "has no model.num_layers, and names no model that is known",
               "give a whole recipe, not one that overrides another, or its model: --model NAME or "
               "a config.json");
  ImportedRun run = import_megatron_run(arguments, answers.name, model);
  // A configuration that its program printed has hundreds of defaults.
  const bool is_printed = settings.has("_target_") || settings.has("model._target_");
  note_otherwise(settings, recipe_differences, run.notes);
  if (const std::string order = settings.word("model.transformer_block_type", "pre_ln");
      order != "pre_ln")
    run.notes.push_back("model.transformer_block_type is " + shown_text(order) +
                        "; assumed: pre_ln");
  if (!is_printed) note_unread(settings, harmless_nemo_keys, run.notes);
  const std::string software = JsonValue::parse(run.json, file).at("software").text();
  run.notes.push_back("the nearest software is " + software +
                      ": NeMo and Megatron-Bridge start Megatron-Core" +
                      (model && model->experts ? "; megatron-bridge also has their host's time for "
                                                 "experts"
                                               : ""));
  return run;
}

}  // namespace orrery
