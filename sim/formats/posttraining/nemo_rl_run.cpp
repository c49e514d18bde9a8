#include <algorithm>

#include "sim/core/number_text.hpp"
#include "sim/core/text_file.hpp"
#include "sim/core/value_list.hpp"
#include "sim/formats/posttraining/rl_recipe.hpp"
#include "sim/formats/recipe/adapter_settings.hpp"
#include "sim/formats/recipe/decisive_keys.hpp"
#include "sim/formats/recipe/other_launchers.hpp"
#include "sim/formats/settings/settings_files.hpp"

namespace orrery {
namespace {

constexpr int deepest = 20;

void belong_to(const std::string& file, SettingsTree& tree) {
  tree.file = file;
  for (SettingsTree& item : tree.items) belong_to(file, item);
  for (auto& [key, value] : tree.entries) belong_to(file, value);
}

void remove_key(SettingsTree& tree, const std::string& key) {
  std::erase_if(tree.entries, [&](const auto& entry) { return entry.key == key; });
}

void merge(SettingsTree& base, SettingsTree over) {
  using Kind = SettingsTree::Kind;
  const SettingsTree* replaces = over.find("_override_");
  const bool merges = base.kind == Kind::map && over.kind == Kind::map && !replaces;
  remove_key(over, "_override_");
  if (!merges) {
    base = std::move(over);
    return;
  }
  for (auto& [key, value] : over.entries) {
    const auto old = std::find_if(base.entries.begin(), base.entries.end(),
                                  [&, &name = key](const auto& one) { return one.key == name; });
    if (old == base.entries.end())
      base.entries.push_back({key, std::move(value)});
    else
      merge(old->value, std::move(value));
  }
}

class LayerReader {
 public:
  explicit LayerReader(const RecipeAnswers& answers) : answers_{answers} {}

  SettingsTree read(const RecipeFile& file, int depth) {
    SettingsTree tree = read_yaml(file.text, file.path);
    if (depth > 0) belong_to(file.path, tree);
    const SettingsTree* defaults = tree.find("defaults");
    if (!defaults) return tree;
    if (depth == deepest)
      fail_input(line_place(file.path, defaults->line),
                 "defaults name more than " + std::to_string(deepest) + " files in turn",
                 "mend those that name each other");
    if (defaults->kind == SettingsTree::Kind::map)
      fail_input(line_place(file.path, defaults->line), "defaults is a map",
                 "write the file that it goes on from, or a list of them");
    SettingsTree whole;
    whole.kind = SettingsTree::Kind::map;
    const bool one = defaults->kind == SettingsTree::Kind::scalar;
    for (const SettingsTree& named : one ? std::vector<SettingsTree>{*defaults} : defaults->items)
      merge(whole, read(parent(named, file), depth + 1));
    remove_key(tree, "defaults");
    merge(whole, std::move(tree));
    return whole;
  }

 private:
  RecipeFile parent(const SettingsTree& named, const RecipeFile& by) const {
    const std::size_t slash = by.path.rfind('/');
    const bool absolute = named.text.starts_with('/') || slash == std::string::npos;
    const std::string path = absolute ? named.text : by.path.substr(0, slash + 1) + named.text;
    auto text = answers_.other_file ? answers_.other_file(path) : std::nullopt;
    if (!text)
      fail_input(line_place(by.path, named.line),
                 "goes on from '" + shown_text(named.text) + "', which is not there",
                 "import the recipe where it lies in its repository, or the whole configuration");
    return {std::move(*text), path};
  }

  const RecipeAnswers& answers_;
};

}  // namespace

Settings read_layered_settings(const RecipeFile& file, const RecipeAnswers& answers) {
  Settings settings{LayerReader{answers}.read(file, 0), file.path};
  take_answers(settings, answers);
  resolve_references(settings);
  return settings;
}

namespace {

constexpr PricedOtherwise nemo_rl_differences[] = {
    {"policy.generation.vllm_cfg.enforce_eager",
     "launches the engine's kernels one by one; assumed: CUDA graphs"},
    {"policy.megatron_cfg.moe_shared_expert_overlap",
     "overlaps the shared expert with dispatch and combine; assumed: no overlap"},
    {"policy.megatron_cfg.use_fused_linear_logprobs",
     "computes log-probabilities without whole logits; assumed: whole logits"},
    {"policy.logprob_chunk_size",
     "computes log-probabilities in parts, with less memory; assumed: at once"},
    {"policy.megatron_cfg.mtp_num_layers", "trains prediction modules; assumed: the model's own"},
    {"policy.draft.enabled", "trains a model that drafts; assumed: none"},
    {"policy.megatron_cfg.moe_per_layer_logging", "gathers figures of each layer; assumed: none"},
    {"grpo.use_dynamic_sampling",
     "drops prompts whose answers are all right or all wrong, and generates more: give "
     "--oversampling; assumed: all are trained on"},
    {"env.should_use_nemo_gym", "has turns with tools; assumed: one answer to a prompt"},
    {"grpo.async_grpo.recompute_kv_cache_after_weight_updates",
     "computes the caches of running answers again after each update; assumed: they are kept"},
    {"policy.generation.vllm_kwargs.speculative_config",
     "drafts tokens, of which no file says how many are accepted (--rollout "
     "speculate=eagle:TOKENS:RATE); assumed: no drafts"},
    {"policy.megatron_cfg.fine_grained_activation_offloading",
     "sends activations to the host; assumed: they stay"},
};

// They change neither time nor memory of a step.
const std::vector<std::string> nemo_rl_inactive_keys = words_in(R"(
    _ async_rl.generation_fleet_health. async_rl.max_buffered async_rl.max_inflight checkpointing.
    cluster.master_port cluster.segment_size cluster.segment_topology data. data_plane.
    distillation. env. grpo.adv_ grpo.advantage grpo.async_grpo.max_generation_failures
    grpo.batch_multiplier grpo.debug grpo.deduplicate grpo.dynamic_sampling_max_gen_batches
    grpo.invalid grpo.malformed grpo.max_num grpo.max_val grpo.normalize grpo.overlong_filtering
    grpo.reward_ grpo.seed grpo.skip_reference grpo.stop grpo.use_leave grpo.val_ logger. loss_fn.
    policy.draft. policy.dtensor_cfg._v2 policy.dtensor_cfg.automodel_kwargs.
    policy.dtensor_cfg.clear policy.dtensor_cfg.custom policy.dtensor_cfg.env_vars.
    policy.dtensor_cfg.lora_cfg. policy.dynamic_batching.sequence_length_round
    policy.generation.kv_cache policy.generation.max_model_len
    policy.generation.mcore_generation_config. policy.generation.port
    policy.generation.real_quant_export_cpu_offload policy.generation.refit_cfg.
    policy.generation.sglang_cfg. policy.generation.stop policy.generation.temperature
    policy.generation.top policy.generation.trtllm_cfg. policy.generation.val_
    policy.generation.vllm_cfg.enable policy.generation.vllm_cfg.env_vars.
    policy.generation.vllm_cfg.expose policy.generation.vllm_cfg.http
    policy.generation.vllm_cfg.is_mx policy.generation.vllm_cfg.load_format
    policy.generation.vllm_cfg.logprobs policy.generation.vllm_cfg.num_first_layers_in_bf16
    policy.generation.vllm_cfg.num_last_layers_in_bf16 policy.generation.vllm_cfg.quantization
    policy.generation.vllm_cfg.reasoning policy.generation.vllm_cfg.reset
    policy.generation.vllm_cfg.skip_tokenizer policy.generation.vllm_cfg.use_
    policy.generation.vllm_cfg.vllm_ policy.generation.vllm_cfg.zmq policy.generation.vllm_kwargs.
    policy.generation_batch_size policy.hf_config_overrides. policy.make_sequence
    policy.max_grad_norm policy.megatron_cfg.apply policy.megatron_cfg.bias
    policy.megatron_cfg.checkpoint. policy.megatron_cfg.converter policy.megatron_cfg.cuda_graph
    policy.megatron_cfg.distributed_data_parallel_config.average
    policy.megatron_cfg.distributed_data_parallel_config.data_parallel
    policy.megatron_cfg.distributed_data_parallel_config.overlap_param policy.megatron_cfg.empty
    policy.megatron_cfg.env_vars. policy.megatron_cfg.force policy.megatron_cfg.freeze
    policy.megatron_cfg.fused policy.megatron_cfg.gradient_accumulation
    policy.megatron_cfg.moe_grouped policy.megatron_cfg.moe_hybridep_num_sms
    policy.megatron_cfg.moe_permute policy.megatron_cfg.moe_router
    policy.megatron_cfg.moe_router_dtype policy.megatron_cfg.mtp_
    policy.megatron_cfg.offload_modules policy.megatron_cfg.optimizer. policy.megatron_cfg.peft.
    policy.megatron_cfg.pipeline_dtype policy.megatron_cfg.scheduler. policy.megatron_cfg.track
    policy.megatron_cfg.train_iters policy.megatron_cfg.use_ policy.offload_optimizer_for_logprob
    policy.optimizer. policy.quant policy.real_quant policy.refit policy.router_replay.
    policy.scheduler policy.sequence_packing.algorithm policy.sequence_packing.fuse
    policy.sequence_packing.microbatch policy.sequence_packing.sequence_length_round
    policy.tokenizer. ppo.adv_ ppo.async_ppo. ppo.batch ppo.cliprange ppo.dynamic ppo.gae ppo.max_
    ppo.normalize ppo.overlong ppo.policy_training ppo.reward_ ppo.seed ppo.skip ppo.use_ ppo.val_
    reward_penalties. teachers. value. value_loss_fn.)");

class NemoRlReader {
 public:
  NemoRlReader(const Settings& settings, const RecipeAnswers& answers)
      : s_{settings}, answers_{answers}, t_{rl_.training} {}

  ImportedRun read() {
    need_sections(s_, {"grpo", "ppo", "loss_fn", "cluster", "policy", "policy.megatron_cfg",
                       "policy.dtensor_cfg", "policy.generation", "policy.generation.vllm_cfg",
                       "policy.sequence_packing", "policy.dynamic_batching"});
    refuse_model_sizes(s_, "policy.hf_config_overrides", true);
    kind();
    model();
    gpus();
    batch();
    is_megatron_ = s_.flag("policy.megatron_cfg.enabled", false);
    s_.flag("policy.dtensor_cfg.enabled", true);
    const std::string precision = s_.word("policy.precision", "bfloat16");
    if (precision != "bfloat16")
      s_.fail("policy.precision", "is '" + shown_text(precision) + "', which has no prices",
              "write bfloat16: --set policy.precision=bfloat16");
    if (is_megatron_)
      megatron();
    else
      dtensor();
    packing();
    passes();
    generation();
    asynchronous();
    rl_.framework = "nemo-rl";
    note_otherwise(s_, nemo_rl_differences, t_.notes);
    note_unread(s_, unused(), t_.notes);
    return written_rl_job(rl_, s_.place());
  }

 private:
  void kind() {
    for (const char* other : {"sft", "dpo", "rm", "distillation"})
      if (s_.look(other) && !s_.look("grpo") && !s_.look("ppo"))
        s_.fail(other, "makes this a recipe without a rollout, which is not read",
                "write its training by hand: orrery estimate --model NAME --lengths FILE");
    is_ppo_ = s_.look("ppo") != nullptr;
    loop_ = is_ppo_ ? "ppo." : "grpo.";
    if (!is_ppo_ && !s_.look("grpo"))
      fail_input(s_.place(), "has no section grpo or ppo",
                 "give a recipe of NeMo-RL with the files that it goes on from");
    if (s_.look("on_policy_distillation") && is_on(s_, "on_policy_distillation.enabled"))
      s_.fail("on_policy_distillation.enabled", "scores answers by teachers, which nothing prices",
              "switch it off: --set on_policy_distillation.enabled=false");
    rl_.loop["algorithm"] = is_ppo_ ? "ppo" : "grpo";
  }

  std::int64_t count(const std::string& path, std::int64_t absent) const {
    return s_.count(path, absent, 1 << 24);
  }

  void model() {
    const std::string path = "policy.model_name";
    const std::string name = s_.word(path, "");
    if (!answers_.model && name.empty())
      fail_input(s_.place(), "has no " + path, "give its model: --model NAME or its config.json");
    t_.model = named_model(s_, path, answers_);
    const std::string value = s_.word("value.model_name", name);
    if (is_ppo_ && value != name)
      t_.notes.push_back("value.model_name is " + shown_text(value) +
                         "; assumed: a critic of the policy's size");
  }

  void gpus() {
    const std::int64_t nodes = count("cluster.num_nodes", 1);
    const std::int64_t each = count("cluster.gpus_per_node", 1);
    std::int64_t all = product_of({nodes, each});
    if (answers_.gpus) all = *answers_.gpus;
    const std::string resources = "policy.generation.colocated.resources.";
    if (!s_.flag("policy.generation.colocated.enabled", true)) {
      // Within one node the number of GPUs counts, over several that of nodes.
      const std::int64_t own_nodes = s_.number(resources + "num_nodes", 0);
      const std::int64_t own = count(resources + "gpus_per_node", each);
      rl_.rollout_gpus = product_of({nodes > 1 ? std::max<std::int64_t>(own_nodes, 1) : 1, own});
      if (rl_.rollout_gpus >= all)
        s_.fail(resources + "gpus_per_node",
                "leaves none of " + plural(all, "GPU") + " to the trainer",
                "use fewer: --set " + resources + "gpus_per_node=N, or --gpus");
    }
    for (const char* key : {"num_nodes", "gpus_per_node"}) s_.find(resources + key);
    t_.gpus = all - rl_.rollout_gpus;
  }

  void batch() {
    auto& job = rl_.loop;
    length_ = count("policy.max_total_sequence_length", 512);
    const std::int64_t prompts = count(loop_ + "num_prompts_per_step", 32);
    const std::int64_t samples = count(loop_ + "num_generations_per_prompt", 16);
    const std::int64_t batch = count("policy.train_global_batch_size", 512);
    job["prompts"] = prompts;
    job["samples"] = samples;
    if (batch < product_of({prompts, samples})) job["train_batch"] = batch;
    const std::int64_t answer = count("policy.generation.max_new_tokens", length_);
    if (answer < length_) job["max_response"] = answer;
    if (s_.number(loop_ + "max_rollout_turns", 1) > 1)
      t_.notes.push_back(loop_ +
                         "max_rollout_turns has several turns; assumed: one answer to a "
                         "prompt");
    job["max_sample"] = length_;
    micro_ = count("policy.train_micro_batch_size", 4);
    pass_micro_ = count("policy.logprob_batch_size", micro_);
    if (const std::int64_t epochs = count(loop_ + "ppo_epochs", 1); epochs > 1)
      job["epochs"] = epochs;
  }

  // models/policy/workers/megatron_policy_worker.py.
  void megatron() {
    const std::string at = "policy.megatron_cfg.";
    t_.software = "megatron-core";
    t_.tp = count(at + "tensor_model_parallel_size", 1);
    t_.pp = count(at + "pipeline_model_parallel_size", 1);
    t_.cp = count(at + "context_parallel_size", 1);
    t_.ep = count(at + "expert_model_parallel_size", 1);
    t_.etp = count(at + "expert_tensor_parallel_size", 1);
    if (!t_.model->experts) t_.ep = t_.etp = 1;
    t_.sp = s_.flag(at + "sequence_parallel", false) && t_.tp > 1;
    t_.zero = s_.flag(at + "optimizer.use_distributed_optimizer", true) ? 1 : 0;
    if (s_.flag(at + "distributed_data_parallel_config.use_custom_fsdp", false)) t_.zero = 3;
    t_.dp_overlap = s_.flag(at + "distributed_data_parallel_config.overlap_grad_reduce", true);
    if (s_.flag(at + "distributed_data_parallel_config.grad_reduce_in_fp32", false))
      t_.software = "megatron-core-fp32-reduce";
    if (s_.flag(at + "optimizer.optimizer_cpu_offload", false))
      t_.offload_optimizer =
          percent_of(s_.word(at + "optimizer.optimizer_offload_fraction", "1")).value_or(100);
    s_.find(at + "optimizer.optimizer_offload_fraction");
    s_.find(at + "distributed_data_parallel_config.data_parallel_sharding_strategy");
    // Logits become fp32 within the loss or before it: either way they are there once.
    s_.find(at + "defer_fp32_logits");
    read_outer_stages(s_, at, t_);
    recomputation(at);
    if (t_.model->experts)
      dispatcher(at);
    else
      for (const std::string& path : s_.names_below("policy.megatron_cfg"))
        if (path.starts_with(at + "moe_")) s_.find(path);
    if (s_.flag(at + "fp8_cfg.enabled", false)) {
      const std::string recipe = s_.word(at + "fp8_cfg.fp8_recipe", "blockwise");
      t_.dtype = recipe == "mxfp8" ? "mxfp8" : "fp8";
    }
    for (const std::string& path : s_.names_below(at + "fp8_cfg")) s_.find(path);
    if (s_.flag(at + "peft.enabled", false)) adapters(at + "peft.");
  }

  // models/megatron/setup.py: "full" is of each layer, uniformly.
  void recomputation(const std::string& at) {
    const std::string kind = s_.word(at + "recompute_granularity", "full");
    const std::vector<std::string> modules = s_.words(at + "recompute_modules");
    if (!s_.flag(at + "activation_checkpointing", false)) return;
    if (kind == "full") {
      t_.recompute = "full";
      return;
    }
    if (kind != "selective")
      s_.fail(at + "recompute_granularity", "is '" + shown_text(kind) + "'",
              "write full or selective");
    t_.recompute = modules.empty() ? "selective" : joined(modules, "+");
    if (modules.size() == 1 && modules.front() == "core_attn") t_.recompute = "selective";
  }

  void dispatcher(const std::string& at) {
    const std::string kind = s_.word(at + "moe_token_dispatcher_type", "alltoall");
    const std::string flex = s_.word(at + "moe_flex_dispatcher_backend", "deepep");
    if (kind == "allgather" || kind == "alltoall")
      t_.moe_dispatcher = kind;
    else if (kind == "flex")
      t_.moe_dispatcher = flex == "hybridep" ? "hybridep" : "deepep";
    else
      s_.fail(at + "moe_token_dispatcher_type", "is '" + shown_text(kind) + "'",
              "write alltoall, allgather or flex");
    if (s_.flag(at + "moe_enable_deepep", false)) t_.moe_dispatcher = "deepep";
  }

  // models/policy/workers/dtensor_policy_worker_v2.py: fully_shard of every layer by AutoModel.
  void dtensor() {
    const std::string at = "policy.dtensor_cfg.";
    t_.software = "automodel";
    t_.tp = count(at + "tensor_parallel_size", 1);
    t_.cp = count(at + "context_parallel_size", 1);
    t_.ep = t_.model->experts ? count(at + "expert_parallel_size", 1) : 1;
    s_.find(at + "expert_parallel_size");
    t_.sp = s_.flag(at + "sequence_parallel", false) && t_.tp > 1;
    t_.dp_replicate = count(at + "dp_replicate_size", 1);
    t_.zero = 3;
    if (s_.flag(at + "activation_checkpointing", false)) t_.recompute = "full";
    if (s_.flag(at + "cpu_offload", false)) {
      t_.offload_weights = true;
      t_.offload_optimizer = 100;
    }
    if (s_.flag(at + "lora_cfg.enabled", false)) adapters(at + "lora_cfg.");
    t_.notes.push_back(at + "enabled: FSDP2 through DTensor is priced as that of NeMo AutoModel");
  }

  // Both of its trainers take the settings of AutoModel's adapters.
  void adapters(const std::string& section) {
    read_adapters(s_,
                  {.rank = section + "dim",
                   .dropout = section + "dropout",
                   .modules = section + "target_modules",
                   .all_linear = section + "match_all_linear",
                   .usual_rank = 8,
                   .usual_modules = "*_proj",
                   .section = section},
                  false, t_);
  }

  void packing() {
    auto& job = rl_.loop;
    const bool packed = s_.flag("policy.sequence_packing.enabled", true);
    const bool dynamic = s_.flag("policy.dynamic_batching.enabled", false);
    const std::string section = packed ? "policy.sequence_packing." : "policy.dynamic_batching.";
    const std::int64_t tokens = count(section + "train_mb_tokens", product_of({length_, micro_}));
    const std::int64_t pass_tokens =
        count(section + "logprob_mb_tokens", product_of({length_, pass_micro_}));
    for (const char* other : {"policy.sequence_packing.", "policy.dynamic_batching."})
      for (const char* key : {"train_mb_tokens", "logprob_mb_tokens"})
        s_.find(std::string{other} + key);
    if (packed || dynamic) {
      job["packing"] = packed ? "bins" : "balanced";
      job["train_tokens"] = tokens;
      if (pass_tokens != tokens) job["pass_tokens"] = pass_tokens;
      if (!packed)
        t_.notes.push_back(
            "policy.dynamic_batching pads samples of a micro-batch to its longest; "
            "assumed: micro-batches of equal work without padding");
    } else {
      job["packing"] = "padded";
      job["micro_samples"] = micro_;
      if (pass_micro_ != micro_) job["pass_samples"] = pass_micro_;
    }
  }

  // algorithms/grpo.py: a pass for the policy's own log-probabilities, unless ratios are one by
  // definition, and one for the reference, unless it is skipped.
  void passes() {
    const bool on_policy = s_.flag("loss_fn.force_on_policy_ratio", false);
    const std::string error = s_.word(loop_ + "seq_logprob_error_threshold", "null");
    if (on_policy && error == "null") rl_.loop["old_logprobs"] = false;
    rl_.loop["reference"] = !s_.flag("grpo.skip_reference_policy_logprobs_calculation", false);
  }

  void generation() {
    const std::string at = "policy.generation.";
    const std::string backend = s_.word(at + "backend", "vllm");
    auto& engine = rl_.rollout;
    if (backend != "vllm")
      s_.fail(at + "backend", "is '" + shown_text(backend) + "', whose loop is not read",
              "write vllm, or give the engine's keys to orrery post (--engine, --rollout)");
    const std::string cfg = at + "vllm_cfg.";
    const std::int64_t tp = count(cfg + "tensor_parallel_size", 1);
    engine["tp"] = tp;
    if (const std::int64_t pp = count(cfg + "pipeline_parallel_size", 1); pp > 1) engine["pp"] = pp;
    // vLLM's expert ranks are those of tensor and data parallelism together.
    const bool all_ranks = s_.flag(
        cfg + "enable_expert_parallel|policy.generation.vllm_kwargs.enable_expert_parallel", false);
    const std::int64_t ep =
        std::max(count(cfg + "expert_parallel_size", 1), all_ranks ? tp : std::int64_t{1});
    if (ep % tp != 0 && ep > 1)
      s_.fail(cfg + "expert_parallel_size", "is no multiple of tensor_parallel_size", "write one");
    if (ep > 1 && t_.model->experts) engine["ep"] = ep;
    if (ep > tp) engine["dp"] = ep / tp;
    engine["kv_share"] = memory_share(s_, cfg + "gpu_memory_utilization", "0.6");
    engine["max_length"] = s_.number(cfg + "max_model_len", length_);
    const std::string precision = s_.word(cfg + "precision", "bfloat16");
    if (precision == "fp8")
      engine["weights"] = "fp8";
    else if (precision != "bfloat16" && precision != "bf16" && precision != "auto")
      s_.fail(cfg + "precision", "is '" + shown_text(precision) + "', which nothing prices",
              "write bfloat16 or fp8");
    if (s_.word(cfg + "kv_cache_dtype", "auto").starts_with("fp8")) engine["kv"] = "fp8";
    const std::string kwargs = at + "vllm_kwargs.";
    if (s_.has(kwargs + "max_num_seqs")) engine["max_seqs"] = count(kwargs + "max_num_seqs", 1);
    if (s_.has(kwargs + "max_num_batched_tokens"))
      engine["budget"] = count(kwargs + "max_num_batched_tokens", 1);
    rl_.loop["async_engine"] = s_.flag(cfg + "async_engine", false);
  }

  void asynchronous() {
    const std::string at = loop_ + (is_ppo_ ? "async_ppo." : "async_grpo.");
    const std::int64_t age = s_.number(at + "max_trajectory_age_steps", 1);
    const bool in_flight = s_.flag(at + "in_flight_weight_updates", false);
    if (!s_.flag(at + "enabled", false) || age == 0) return;
    if (rl_.rollout_gpus == 0)
      s_.fail(at + "enabled", "generates while it trains, on the same GPUs",
              "give the engine GPUs of its own: --set policy.generation.colocated.enabled=false");
    rl_.loop["max_staleness"] = age;
    rl_.loop["in_flight_updates"] = in_flight;
  }

  // Settings of the half that does not run decide nothing.
  std::vector<std::string> unused() const {
    std::vector<std::string> all = nemo_rl_inactive_keys;
    all.push_back(is_megatron_ ? "policy.dtensor_cfg." : "policy.megatron_cfg.");
    if (is_ppo_) all.push_back("grpo.");
    return all;
  }

  const Settings& s_;
  const RecipeAnswers& answers_;
  RlRecipe rl_;
  Recipe& t_;
  std::string loop_ = "grpo.";
  bool is_ppo_ = false, is_megatron_ = false;
  std::int64_t length_ = 0, micro_ = 1, pass_micro_ = 1;
};

}  // namespace

ImportedRun import_nemo_rl_run(const RecipeFile& file, const RecipeAnswers& answers) {
  require_text(file.text, file.path, "a configuration of NeMo-RL");
  refuse_other_file(file.text, file.path, "nemo-rl");
  if (!file.path.ends_with(".yaml") && !file.path.ends_with(".yml") &&
      file.text.find("run_grpo") != file.text.npos)
    fail_input({file.path, ""}, "is a script, of which the configuration is read alone",
               "give the YAML that it names, and its settings: orrery import nemo-rl FILE --set "
               "cluster.num_nodes=4");
  const Settings settings = read_layered_settings(file, answers);
  return NemoRlReader{settings, answers}.read();
}

}  // namespace orrery
