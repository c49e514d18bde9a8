#include "sim/formats/megatron/megatron_run.hpp"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <set>

#include "sim/cluster/dtype.hpp"
#include "sim/core/json_value.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/text_file.hpp"
#include "sim/core/value_list.hpp"
#include "sim/formats/megatron/hybrid_pattern.hpp"
#include "sim/formats/megatron/layer_split.hpp"
#include "sim/formats/megatron/megatron_parts.hpp"
#include "sim/formats/recipe/decisive_keys.hpp"
#include "sim/formats/recipe/recipe.hpp"
#include "sim/plan/plan_keys.hpp"

namespace orrery {
namespace {

// Prefixes of arguments that do not affect the simulation.
const std::vector<std::string> harmless_megatron_keys = words_in(R"(
    adam_ adaptive_muon apply_layernorm async_ attention_softmax_in_fp32 auto_detect bert
    calculate_per_token check_ ckpt_ ckpt_fully_parallel ckpt_load_validate_sharding clip_grad
    cuda_device data_args data_cache data_parallel_random data_path dataloader
    deallocate_pipeline_outputs decoupled deepspeed deepspeed_activation_checkpointing deterministic
    disable_bf16_reduced_precision_matmul disable_gloo disable_straggler dist_ dist_ckpt_optim
    distrib_optim distributed_ empty_unused enable_experimental enable_ft enable_gpt_oss encoder_seq
    end_weight eod_mask eval_ exit_ export_ finetune fp16_lm_cross_entropy fp32_residual_connection
    fp8_amax fsdp_double_buffer fsdp_manual_registration fully_parallel_ glu_linear_offset grpo_
    high_priority hysteresis inference inference_batch_times_seqlen
    inference_dynamic_batching_block_size inference_max_seq_len inference_moe_disable_fused_quant
    inference_shards init_ initial_loss kv_channels langrl load load_optim log_
    log_optimizer_states_to_tensorboard logging logits_save_dtype loss_scale lr manual_gc master
    max_restarts merge_file min_loss_scale min_lr mmap mock_data modelopt moe_aux_loss
    moe_grouped_gemm moe_per_layer moe_permute_fusion moe_router_bias moe_router_dtype
    moe_router_force moe_router_fusion moe_router_load_balancing moe_router_padding_for_fp8
    moe_router_padding_for_quantization moe_router_pre_softmax moe_router_score
    moe_router_topk_scaling moe_z_loss mscale mtp_loss muon_
    no_async_tensor_model_parallel_allreduce no_check no_create no_initialization no_load
    no_load_optim no_mmap no_pin_cpu no_pipeline_parallel no_position_embedding no_save
    no_save_optim no_use_tokenizer node_rank non_persistent norm_epsilon num_dataset num_workers
    override_ per_split perform_initialization phase_transition pretrained_checkpoint profile rdzv
    reuse_grad_buf_for_mxfp8_param_ag
    record_memory rerun reset_ rl_ rope_scaling rope_type rotary_ rotary_seq_len save save_optim
    seed sft special_tokens split start_weight straggler strict_fsdp_dtensor_load suggested te_rng
    tee tensorboard test_data test_mode tiktoken timing tokenizer train_ use_checkpoint
    use_dist_ckpt use_mcore use_persistent use_pytorch_profiler use_rope valid_ vocab_file wandb
    weight_decay)");

struct Difference {
  const char* argument;
  std::string_view what;
};
constexpr const char* batch_grows =
    "lets the batch grow; assumed: a step of the largest (orrery run knows all)";
constexpr Difference differences[] = {
    {"activation_func_fp8_input_store", "keeps activations' inputs in fp8"},
    {"modelopt_enabled", "may quantise or distil (ModelOpt), of which nothing is priced"},
    {"overlap_param_gather_with_optimizer_step", "gathers weights during the optimizer"},
    {"perform_rl_step", "generates text between steps (RL); assumed: its training steps"},
    {"rampup_batch_size", batch_grows},
    {"step_batch_size_schedule", batch_grows},
};

// Transformer Engine keeps a weight in fp8 for both directions from the first micro-batch on.
void note_weights(const MegatronArguments& run, std::vector<std::string>& sentences) {
  const bool fp8 = run.has("fp8");
  if (fp8 && !run.flag("fp8_param_gather"))
    sentences.push_back(
        "without --fp8-param-gather the layers' weights are kept in fp8, once for each direction, "
        "with 16 bits: 2 bytes a parameter more than are counted");
}

}  // namespace

std::vector<std::string> priced_otherwise(const MegatronArguments& run) {
  std::vector<std::string> sentences;
  for (const Difference& difference : differences) {
    const auto* value = run.find(difference.argument);
    if (!value || value->text() == "none" || !run.flag(difference.argument)) continue;
    refuse_decisive(value->name, difference.what, value->place);
    sentences.push_back(value->name + " " + std::string{difference.what});
  }
  note_weights(run, sentences);
  return sentences;
}

bool changes_nothing(std::string_view name) { return is_covered(name, harmless_megatron_keys); }

bool is_printed_default(std::string_view name, std::string_view value) {
  // arguments.py and the configurations of Megatron Core from 2020 to 2026.
  static const std::vector<std::string> true_unless_given = words_in(R"(
      async_tensor_model_parallel_allreduce cpu_offloading_activations cpu_offloading_weights
      data_sharding fp8_wgrad fsdp_all_gather_in_start_param_sync preserve_fp32_weights
      scatter_gather_tensors_in_pipeline torch_fsdp2_reshard_after_forward)");
  return (value != "True" && value != "true") || changes_nothing(name) ||
         std::find(true_unless_given.begin(), true_unless_given.end(), name) !=
             true_unless_given.end();
}

std::optional<std::string> captured_in_graphs(const MegatronArguments& arguments, bool experts,
                                              std::vector<std::string>& notes) {
  std::string flag;
  if (arguments.word("cuda_graph_impl", "none") != "none") flag = "--cuda-graph-impl";
  for (const auto& [older, written] : {std::pair{"enable_cuda_graph", "--enable-cuda-graph"},
                                       std::pair{"external_cuda_graph", "--external-cuda-graph"}})
    if (arguments.flag(older)) flag = written;
  std::set<std::string> scope;
  for (const char* name : {"cuda_graph_scope", "cuda_graph_modules"})  // The second is newer.
    if (const auto* words = arguments.find(name))
      for (const std::string& part : items_of(words->text())) scope.insert(part);
  if (flag.empty()) return std::nullopt;

  if (scope.contains("full_iteration") || arguments.word("cuda_graph_impl", "") == "full_iteration")
    return "step";
  // Mixers with a state are launched as attention is.
  const bool attention = experts && (scope.contains("attn") || scope.contains("mamba"));
  const bool router = experts && scope.contains("moe_router");
  for (const char* stated : {"attn", "mamba", "moe_router", "moe_preprocess"})
    if (experts) scope.erase(stated);
  if (!scope.empty() || !(attention || router))
    notes.push_back(flag +
                    " launches kernels by CUDA graphs; assumed: a host that launches those of each "
                    "layer" +
                    (attention || router ? ", but for attention and router" : ""));
  if (!attention && !router) return std::nullopt;
  return attention && router ? "attention+router" : attention ? "attention" : "router";
}

namespace {

using Json = nlohmann::ordered_json;

Dtype format_of(const Json& plan) {
  return *format_named(std::string{plan.at("dtype")}, FormatUse::products);
}

class RunReader {
 public:
  RunReader(const MegatronArguments& arguments, const std::string& name,
            const std::optional<Model>& model)
      : a_{arguments}, notes_{arguments.notes()} {
    plan_["model"] =
        model ? Json::parse(model->document->compact()) : megatron_model(a_, name, notes_);
    layers_ = model ? model->layers : 0;
    if (model) {
      has_experts_ = model->experts.has_value();
      has_shared_experts_ = has_experts_ && model->experts->shared_ffn > 0;
      return;
    }
    const Json& read = plan_["model"];
    const Json experts = read.contains("ffns") ? read["ffns"].value("moe", Json::object()) : read;
    has_experts_ = experts.contains("experts");
    has_shared_experts_ = experts.contains("shared_expert_ffn");
  }

  ImportedRun read() {
    degrees();
    pipeline();
    batch();
    sharding();
    precision();
    optimizer_state();
    recompute();
    if (has_experts_) experts();
    gpus();
    overlaps();
    if (const auto graphs = captured_in_graphs(a_, has_experts_, notes_))
      plan_["cuda_graphs"] = *graphs;
    gradients();
    take_the_rest();
    note_unread();
    if (const auto& steps = a_.measured())
      plan_["measured"] = {{"step_s", steps->median.si()}, {"iterations", steps->counted}};
    // Export changes those arguments that another plan needs, and keeps all others.
    if (!a_.is_complete() && a_.model_name().empty()) plan_["arguments"] = a_.written();
    return {plan_.dump(2, ' ', false, Json::error_handler_t::replace) + "\n", std::move(notes_)};
  }

 private:
  /// Megatron-LM's name of a key that needs no translation, as in arguments.py.
  static std::string argument(const PlanKey& key) {
    std::string name = key.megatron;
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
  }
  void take_number(const char* key, std::int64_t otherwise) {
    plan_[key] = a_.number(argument(plan_key(key)), otherwise);
  }
  /// A switch, a number or a word, as the key's values are.
  void take(const PlanKey& key) {
    switch (key.access.form) {
      case Form::truth:
        plan_[key.name] = a_.flag(argument(key));
        break;
      case Form::number:
        plan_[key.name] = a_.required(argument(key));
        break;
      case Form::word:
        plan_[key.name] = a_.word(argument(key), "");
    }
  }
  /// Takes arguments that no other code has read. Degrees of experts mean nothing without them.
  void take_the_rest() {
    for (const PlanKey& key : plan_keys())
      if (!key.megatron.empty() && key.part != PlanPart::degrees && key.part != PlanPart::experts &&
          !plan_.contains(key.name) && a_.has(argument(key)))
        take(key);
  }

  void degrees() {
    for (const char* key : {"tp", "pp", "cp"}) take_number(key, 1);
    tp_ = plan_["tp"];
    pp_ = plan_["pp"];
    if (tp_ == 0 || pp_ == 0)
      a_.fail(argument(plan_key(tp_ == 0 ? "tp" : "pp")), "is 0", "write 1 for none");
    const std::string exchange = a_.choice("cp_comm_type", {{"p2p", "p2p"},
                                                            {"allgather", "all_gather"},
                                                            {"all_gather", "all_gather"},
                                                            {"a2a", "a2a"}});
    if (plan_["cp"] > 1) plan_["cp_comm"] = exchange;
    // Megatron-DeepSpeed's ranks of a sequence swap heads (Ulysses, arXiv 2309.14509).
    if (const std::int64_t ranks = a_.number("ds_sequence_parallel_size", 1); ranks > 1) {
      plan_["cp"] = ranks;
      plan_["cp_comm"] = "a2a";
    }
    take(plan_key("sp"));
    if (tp_ == 1) plan_["sp"] = false;
  }

  // A script for one node may be an example for more: a note then asks for the number.
  void gpus() {
    std::int64_t stated = a_.gpus().value_or(0);
    if (a_.is_complete() && a_.has("world_size")) stated = a_.required("world_size");
    const std::int64_t given = plan_["cp"], cp = std::max<std::int64_t>(given, 1);
    const std::int64_t needed =
        ranks_needed(tp_, pp_, cp, plan_.value("ep", std::int64_t{1}), plan_.value("etp", tp_));
    if (stated > 0 && stated % needed == 0) {
      plan_["gpus"] = stated;
      // arguments.py: without a size of it, the global batch has one micro-batch a replica.
      const std::int64_t mbs = plan_["mbs"];
      if (!plan_.contains("gbs")) plan_["gbs"] = product_of({mbs, stated / (tp_ * cp * pp_)});
    } else if (stated > 0) {
      notes_.push_back("the run starts " + std::to_string(stated) + " GPUs, but its ranks need " +
                       std::to_string(needed) + " or a multiple of that: give --gpus");
    } else {
      notes_.push_back("the file does not say how many GPUs it uses: give --gpus");
    }
    if (!plan_.contains("gbs"))
      fail_input(a_.place(),
                 "has no " + a_.spelled("global_batch_size") +
                     ", which is then the micro-batch times the replicas, whose number it does not "
                     "say",
                 a_.how_to_add("global_batch_size"));
  }

  void pipeline() {
    const auto pattern = hybrid_pattern(a_);
    const std::int64_t layers = layers_ > 0 ? layers_
                                : pattern   ? static_cast<std::int64_t>(pattern->layers.size())
                                            : a_.required("num_layers");
    if (pattern && pattern->cuts_itself) refuse_other_cuts(*pattern);
    const PipelineSplit split = pattern && pattern->chunks.size() > 1
                                    ? split_by_pattern(*pattern)
                                    : pipeline_split(a_, layers, pp_, notes_);
    if (pp_ > 1) plan_["schedule"] = split.vpp > 1 ? "interleaved" : "1f1b";
    if (split.vpp > 1) plan_["vpp"] = split.vpp;
    if (split.layers.chosen()) plan_["layers"] = stage_layers_text(split.layers);
  }

  // Megatron-LM refuses these arguments together with a pattern (training/arguments.py), and layers
  // that do not divide (models/hybrid/hybrid_layer_allocation.py).
  void refuse_other_cuts(const HybridPattern& pattern) const {
    for (const char* cut :
         {"num_layers_per_virtual_pipeline_stage", "num_virtual_stages_per_pipeline_rank",
          "pipeline_model_parallel_layout", "account_for_embedding_in_pipeline_split",
          "account_for_loss_in_pipeline_split"})
      if (a_.flag(cut))
        a_.fail(cut, "cannot be combined with a pattern of layers in Megatron-LM",
                "cut the pattern by | instead");
    const auto layers = static_cast<std::int64_t>(pattern.layers.size());
    const bool ends =
        a_.has("decoder_first_pipeline_num_layers") || a_.has("decoder_last_pipeline_num_layers");
    if (pattern.chunks.size() == 1 && pp_ > 1 && !ends && layers % pp_ != 0)
      fail_input(a_.place(),
                 "has a pattern of " + std::to_string(layers) + " layers, which " +
                     std::to_string(pp_) + " stages do not divide",
                 "cut the pattern by |");
  }

  // The pattern's chunks go round the stages.
  PipelineSplit split_by_pattern(const HybridPattern& pattern) {
    const auto chunks = static_cast<std::int64_t>(pattern.chunks.size());
    if (pp_ < 2 || chunks % pp_ != 0)
      fail_input(a_.place(),
                 "cuts its pattern of layers into " + std::to_string(chunks) + " chunks for " +
                     std::to_string(pp_) + (pp_ == 1 ? " stage" : " stages"),
                 "write as many chunks as stages, or a multiple of several stages");
    PipelineSplit split{chunks / pp_, {}};
    split.layers.of = pattern.chunks;
    return split;
  }

  void batch() {
    for (const char* key : {"mbs", "seq"}) plan_[key] = a_.required(argument(plan_key(key)));
    if (a_.has("global_batch_size"))
      plan_["gbs"] = a_.required("global_batch_size");
    else if (const auto last = last_batch_size())
      plan_["gbs"] = *last;
    for (const char* ramp : {"rampup_batch_size", "step_batch_size_schedule"})
      if (const auto* value = a_.find(ramp)) take_ramp(value->text());
  }

  // Takes the form of `orrery run`. Scripts may write 9_765_625, lists ['192', '16', '9765625'].
  void take_ramp(const std::string& text) {
    std::string words;
    for (const char letter : text) {
      const bool stated =
          std::isalnum(static_cast<unsigned char>(letter)) || letter == ':' || letter == '.';
      if (stated)
        words += letter;
      else if (letter != '_' && !words.empty() && words.back() != ' ')
        words += ' ';
    }
    if (words.ends_with(' ')) words.pop_back();
    if (!words.empty() && std::isdigit(static_cast<unsigned char>(words.front())))
      plan_["ramp"] = words;
  }

  // "0:384 200B:768 400B:1152": the size of the batch after so many tokens.
  std::optional<int> last_batch_size() const {
    const auto* schedule = a_.find("step_batch_size_schedule");
    if (!schedule) return std::nullopt;
    const std::string text = schedule->text();
    return plain_integer(text.substr(text.rfind(':') + 1), 1 << 30);
  }

  void sharding() {
    plan_["zero"] = a_.flag("use_distributed_optimizer") ? 1 : 0;
    const std::int64_t stage = a_.number("zero_stage", 0);
    if (stage > 3) a_.fail("zero_stage", "is " + std::to_string(stage), "write 0 to 3");
    if (a_.flag("deepspeed") && stage > 0) plan_["zero"] = stage;
    if (a_.flag("deepspeed") && !a_.has("zero_stage"))
      notes_.push_back("the configuration of DeepSpeed is not read: --zero-stage says its stage");
    if (const std::int64_t instances = a_.number("num_distributed_optimizer_instances", 1);
        instances > 1)
      plan_["dp_replicate"] = instances;
    // Without one of these, how it shards has no effect (distributed_data_parallel_config.py).
    a_.find("data_parallel_sharding_strategy");
    if (!a_.flag("use_megatron_fsdp") && !a_.flag("use_custom_fsdp") && !a_.flag("use_torch_fsdp2"))
      return;
    const std::string sharded = a_.choice(
        "data_parallel_sharding_strategy",
        {{"no_shard", "0"}, {"optim", "1"}, {"optim_grads", "2"}, {"optim_grads_params", "3"}});
    plan_["zero"] = a_.flag("use_torch_fsdp2") ? 3 : std::stoi(sharded);
  }

  void precision() {
    const bool fp16 = a_.flag("fp16");
    const bool wide = !fp16 && !a_.flag("bf16");
    if (wide && a_.is_recipe() && !a_.has("bf16"))
      fail_input(a_.place(), "does not say in which format it trains",
                 "give --set " + a_.spelled("bf16") + "=bf16");
    const std::string fp8 = a_.choice("fp8", {{"", ""}, {"e4m3", "fp8"}, {"hybrid", "fp8"}});
    const std::string recipe = a_.choice(
        "fp8_recipe",
        {{"delayed", "fp8"}, {"tensorwise", "fp8"}, {"mxfp8", "mxfp8"}, {"blockwise", "fp8"}});
    const std::string fp4 = a_.choice("fp4", {{"", ""}, {"e2m1", "nvfp4"}});
    a_.choice("fp4_recipe", {{"nvfp4", "nvfp4"}});
    plan_["dtype"] = !fp4.empty() ? fp4 : !fp8.empty() ? recipe : fp16 ? "fp16" : "bf16";
    if (wide && (!fp8.empty() || !fp4.empty()))
      fail_input(a_.place(),
                 "multiplies in " + plan_.at("dtype").get<std::string>() +
                     " weights of 32 bits, which has no prices",
                 a_.is_recipe() ? "give --set " + a_.spelled("bf16") + "=bf16" : "add --bf16");
    if (a_.flag("fp8_dot_product_attention")) plan_["fp8_attention"] = true;
    sixteen_bit_layers(!fp8.empty() || !fp4.empty());
    const std::string backend = a_.word("attention_backend", "auto");
    const bool local = a_.word("transformer_impl", "transformer_engine") == "local";
    const bool flash = a_.flag("use_flash_attn");
    const bool unfused =
        backend == "unfused" || backend == "local" || (local && !flash) || is_of_2021();
    // "auto" takes a fused kernel where the GPU has one, as does a plan that says nothing.
    if (wide || (unfused && backend != "flash"))
      plan_["attention"] = "unfused";
    else if (backend != "auto" || flash)
      plan_["attention"] = "flash";
    if (wide) in_fp32(local || is_of_2021());
  }

  // Megatron-LM keeps one layer at each end in bf16 unless told; Megatron-Bridge's configuration
  // none (training/mixed_precision.py).
  void sixteen_bit_layers(bool narrow) {
    const std::int64_t usual = a_.is_recipe() ? 0 : 1;
    const std::int64_t start = a_.number("num_layers_at_start_in_bf16", usual);
    const std::int64_t end = a_.number("num_layers_at_end_in_bf16", usual);
    if (!a_.flag("first_last_layers_bf16") || !narrow) return;
    if (a_.has("fp8") && a_.word("fp8_recipe", "delayed") == "delayed")
      a_.fail("first_last_layers_bf16", "cannot be combined with delayed scaling in Megatron-LM",
              "write another " + a_.spelled("fp8_recipe") + ", such as tensorwise");
    if (start > 0) plan_["bf16_start_layers"] = start;
    if (end > 0) plan_["bf16_end_layers"] = end;
  }

  // Transformer Engine multiplies operands of 32 bits in tf32 (common/gemm/cublaslt_gemm.cu,
  // cublas_gemm), PyTorch in fp32 unless allow_tf32 is set.
  void in_fp32(bool by_pytorch) {
    plan_["dtype"] = by_pytorch ? "fp32" : "tf32";
    notes_.push_back(
        std::string{a_.is_recipe() ? a_.spelled("bf16") + " is 32 bits"
                                   : "neither --bf16 nor --fp16 is given"} +
        ": it trains in fp32" +
        (by_pytorch ? "; where PyTorch may use tf32 (allow_tf32) give --dtype tf32"
                    : ", and Transformer Engine multiplies in tf32, as all products are priced"));
  }

  // Transformer Engine keeps the masters of bf16 weights as their lower 16 bits; where layers'
  // weights are quantised by another recipe than delayed scaling, Megatron Core keeps them itself,
  // whole (optimizer_config.py, use_precision_aware_optimizer_no_fp8_or_ds_fp8; optimizer/
  // __init__.py, store_param_remainders).
  void optimizer_state() {
    const std::string dtype = plan_.at("dtype");
    const bool of_8_bits = facts(format_of(plan_)).bits == 8;
    const bool gathers = a_.flag("fp8_param_gather");
    const bool in_shards = plan_.value("zero", 0) > 1;
    if (of_8_bits && gathers && !in_shards) plan_["fp8_params"] = true;
    if (of_8_bits && gathers && in_shards)
      notes_.push_back(
          "--fp8-param-gather keeps shards of the weights in 8 bits; they are counted in 16");
    const bool aware = a_.flag("use_precision_aware_optimizer");
    // Megatron-Core's own state is in fp32 whatever the arguments of the other optimizer say.
    if (!aware)
      for (const char* format :
           {"main_grads_dtype", "main_params_dtype", "exp_avg_dtype", "exp_avg_sq_dtype"})
        if (a_.word(format, "fp32") != "fp32")
          a_.fail(format, "needs --use-precision-aware-optimizer", "add the flag, or leave it out");
    if (on_host() || !aware) return;
    const bool delayed = a_.word("fp8_recipe", "delayed") == "delayed" && !gathers;
    const bool by_engine = dtype == "bf16" || (dtype == "fp8" && delayed);
    const std::string masters =
        a_.choice("main_params_dtype", {{"fp32", "fp32"}, {"fp16", "fp16"}});
    const auto keep = [&](const char* key, const std::string& format) {
      if (format != "fp32") plan_[key] = format;
    };
    keep("main_params", masters == "fp32" && by_engine ? "remainders" : masters);
    for (const char* moment : {"exp_avg", "exp_avg_sq"})
      keep(moment,
           a_.choice(std::string{moment} + "_dtype",
                     {{"fp32", "fp32"}, {"fp16", "fp16"}, {"bf16", "bf16"}, {"fp8", "fp8"}}));
  }

  // Megatron Core, optimizer/__init__.py: the host's Adam has masters and moments in fp32.
  bool on_host() {
    const std::string share = a_.word("optimizer_offload_fraction", "1.0");
    const bool overlapped = a_.flag("overlap_cpu_optimizer_d2h_h2d");
    a_.find("use_torch_optimizer_for_cpu_offload");
    if (!a_.flag("optimizer_cpu_offload")) return false;
    const auto percent = percent_of(share);
    if (!percent)
      a_.fail("optimizer_offload_fraction", "is '" + shown_text(share) + "'", "write 0 to 1");
    plan_["offload_optimizer"] = *percent;
    if (overlapped)
      notes_.push_back(
          "--overlap-cpu-optimizer-d2h-h2d copies gradients and weights while the host updates; "
          "assumed: one after the other");
    return *percent > 0;
  }

  // Its arguments were renamed or dropped in 2022.
  bool is_of_2021() const {
    return a_.has("DDP_impl") || a_.flag("checkpoint_activations") ||
           a_.has("activations_checkpoint_method");
  }

  void recompute() {
    const std::string kind = a_.choice(
        "recompute_granularity", {{"", "none"}, {"selective", "selective"}, {"full", "full"}});
    const auto* modules = a_.find("recompute_modules");
    std::string parts;
    if (kind == "selective" && modules)
      for (const std::string& part : items_of(modules->text()))
        parts += (parts.empty() ? ":" : "+") + part;
    const bool of_2021 =
        a_.flag("checkpoint_activations") || a_.has("activations_checkpoint_method");
    plan_["recompute"] = of_2021 ? "full" : kind + parts;
    if (a_.flag("cpu_offloading"))
      plan_["offload_layers"] = a_.number("cpu_offloading_num_layers", 0);
    if (a_.flag("fine_grained_activation_offloading")) offload_modules();
    if (kind != "full") return;
    // "block": the first layers of each chunk; "uniform": all, in groups that keep one input.
    const bool block = a_.word("recompute_method", "uniform") == "block";
    const auto layers = a_.number("recompute_num_layers", 1);
    if (block)
      plan_["recompute"] = "full:" + std::to_string(layers);
    else if (layers != 1)
      notes_.push_back(
          "--recompute-num-layers is not read: every layer keeps its input, not one in a group");
  }

  void offload_modules() {
    const auto* modules = a_.find("offload_modules");
    const std::string parts = modules ? joined(items_of(modules->text()), "+") : "";
    if (parts.empty())
      a_.fail("fine_grained_activation_offloading", "does not say which parts of a layer",
              a_.how_to_add("offload_modules"));
    // A word that is none is refused here, where its line is known.
    plan_["offload_modules"] = offload_text(
        read_offload(JsonValue::parse(nlohmann::ordered_json(parts).dump(), a_.place().file)));
    const std::string share = a_.word("activation_offload_fraction", "1.0");
    if (percent_of(share) != 100) {
      const auto* of = a_.find("activation_offload_fraction");
      refuse_decisive(of->name, "is " + shown_text(share), of->place);
    }
    constexpr std::int64_t usual = 1 << 20;  // Elements, of Megatron Core.
    if (const auto least = a_.number("min_offloaded_tensor_size", usual); least > usual)
      notes_.push_back("--min-offloaded-tensor-size keeps tensors of fewer than " + grouped(least) +
                       " elements on the GPU; assumed: all of " + parts + " is offloaded");
  }

  void experts() {
    take_number("ep", 1);
    take_number("etp", tp_);
    const std::string type = a_.choice("moe_token_dispatcher_type", {{"allgather", "allgather"},
                                                                     {"alltoall", "alltoall"},
                                                                     {"alltoall_seq", "alltoall"},
                                                                     {"flex", "flex"}});
    plan_["moe_dispatcher"] = type == "flex"
                                  ? a_.choice("moe_flex_dispatcher_backend",
                                              {{"deepep", "deepep"}, {"hybridep", "hybridep"}})
                                  : type;
    for (const PlanKey& key : plan_keys())
      if (key.part == PlanPart::experts && !key.megatron.empty()) take(key);
    if (!has_shared_experts_) plan_.erase("shared_expert_overlap");  // Nothing to overlap.
    if (a_.has("moe_expert_capacity_factor"))
      notes_.push_back(
          "--moe-expert-capacity-factor is not read: a routing file says it "
          "(docs/explanation/moe.md)");
  }

  void overlaps() {
    take(plan_key("dp_overlap"));
    const bool tp_overlap = a_.flag("tp_comm_overlap");
    if (tp_ > 1 && plan_["sp"] == true) plan_["tp_overlap"] = tp_overlap;
    for (const char* known :
         {"overlap_param_gather", "no_gradient_accumulation_fusion", "overlap_p2p_comm",
          "attention_dropout", "hidden_dropout", "make_vocab_size_divisible_by",
          "cross_entropy_loss_fusion", "cross_entropy_fusion_impl"})
      a_.find(known);  // The software description covers it, or it has no effect.
  }

  // arguments.py reduces bf16 runs' gradients in fp32 unless set otherwise, as performance recipes
  // do and the software that a plan has by default.
  void gradients() {
    const bool wide = a_.flag("accumulate_allreduce_grads_in_fp32");
    // arguments.py: main gradients in 16 bits are gradients that are reduced in 16 bits.
    const bool reduced = a_.flag("grad_reduce_in_bf16");
    const bool narrow = narrow_main_gradients() || reduced;
    if (is_of_2021()) {
      plan_["software"] = a_.flag("deepspeed")         ? "megatron-deepspeed-2022"
                          : plan_.value("zero", 0) > 0 ? "megatron-2022"
                                                       : "megatron-2021";
      return;
    }
    const bool fp32 = is_wide(format_of(plan_));
    if (!fp32 && (a_.flag("fp16") ? !wide : narrow)) {
      plan_["software"] = "megatron-core";
      return;
    }
    const bool overlaps_tp = plan_.value("tp_overlap", false);
    const bool overlaps_pp = plan_.contains("vpp") && a_.flag("overlap_p2p_comm", true);
    if (overlaps_tp) {
      plan_["software"] = "megatron-core-fp32-reduce-overlap";
      return;
    }
    plan_["software"] =
        overlaps_pp ? "megatron-core-fp32-reduce-interleaved" : "megatron-core-fp32-reduce";
    plan_.erase("tp_overlap");  // This software needs no flag for it: gradients' traffic.
  }

  bool narrow_main_gradients() const {
    const bool narrow = a_.word("main_grads_dtype", "fp32") != "fp32";
    return narrow && a_.flag("use_precision_aware_optimizer");
  }

  void note_unread() {
    for (std::string& note : priced_otherwise(a_)) notes_.push_back(std::move(note));
    if (const auto* optimizer = a_.find("optimizer"); optimizer && optimizer->text() != "adam")
      refuse_decisive(optimizer->name, "is " + shown_text(optimizer->text()), optimizer->place);
    NcclSettings nccl = nccl_settings(a_.nccl(), a_.place());
    if (nccl.nccl_algo != "any") plan_["nccl_algo"] = nccl.nccl_algo;
    if (nccl.nccl_proto != "any") plan_["nccl_proto"] = nccl.nccl_proto;
    for (std::string& note : nccl.notes) notes_.push_back(std::move(note));
    std::string names;
    Unpriced unpriced;
    for (const std::string& name : a_.unread()) {
      if (changes_nothing(name)) continue;
      const auto* value = a_.find(name);
      if (!value) continue;
      if (a_.is_complete()) {
        if (!is_printed_default(name, value->text())) unpriced.add(value->name, value->place);
        continue;
      }
      names += " " + shown_text(value->name);
      if (value->words.empty() || !switches_off(name, value->words[0]))
        unpriced.add(value->name, value->place);
    }
    refuse(unpriced);
    if (!names.empty()) notes_.push_back("not read:" + names);
  }

  const MegatronArguments& a_;
  std::vector<std::string> notes_;
  // An object from the start: operator[] of a null calls it one before it has the memory.
  Json plan_ = Json::object();
  std::int64_t tp_ = 1;
  std::int64_t pp_ = 1;
  std::int64_t layers_ = 0;  ///< Layers of a model that replaces the arguments'; 0: there is none.
  bool has_experts_ = false, has_shared_experts_ = false;
};

}  // namespace

ImportedRun import_megatron_run(const MegatronArguments& arguments, const std::string& name,
                                const std::optional<Model>& model) {
  if (model || arguments.model_name().empty()) return RunReader{arguments, name, model}.read();
  RecipeAnswers files;
  files.other_file = [&](const std::string& path) { return arguments.other_file(path); };
  const auto own = model_by_name(arguments.model_name(), files);
  if (!own)
    fail_input(arguments.place(),
               "--model is " + shown_text(arguments.model_name()) + ", a model that is not known",
               "give its shape: --model NAME or a config.json");
  return RunReader{arguments, name, own}.read();
}

}  // namespace orrery
