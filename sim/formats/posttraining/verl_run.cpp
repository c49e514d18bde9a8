#include <algorithm>

#include "sim/core/nearest.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/text_file.hpp"
#include "sim/core/value_list.hpp"
#include "sim/formats/posttraining/rl_recipe.hpp"
#include "sim/formats/recipe/adapter_settings.hpp"
#include "sim/formats/recipe/decisive_keys.hpp"
#include "sim/formats/settings/settings_files.hpp"
#include "sim/formats/shell/launched_program.hpp"
#include "sim/formats/shell/shell_script.hpp"

namespace orrery {
namespace {

constexpr PricedOtherwise verl_differences[] = {
    {"actor_rollout_ref.rollout.enforce_eager",
     "launches the engine's kernels one by one; assumed: CUDA graphs"},
    {"actor_rollout_ref.rollout.multi_turn.enable",
     "has turns with tools; assumed: one answer to a prompt"},
    {"reward_model.enable|reward.reward_model.enable",
     "scores answers by a model, whose time --reward of orrery post adds; assumed: none"},
    {"actor_rollout_ref.actor.entropy_coeff|actor_rollout_ref.actor.calculate_entropy",
     "computes the entropy of all tokens in training; assumed: without"},
    {"algorithm.filter_groups.enable",
     "drops prompts whose answers are all right or all wrong; assumed: what gen_batch_size "
     "generates beyond train_batch_size is dropped, once"},
    {"actor_rollout_ref.rollout.skip_rollout|actor_rollout_ref.rollout.skip.enable",
     "replays answers of an earlier step; assumed: they are generated"},
    {"actor_rollout_ref.model.enable_activation_offload",
     "sends activations to the host; assumed: they stay"},
    {"actor_rollout_ref.actor.fsdp_config.mixed_precision",
     "has formats of its own; assumed: products in bf16, reductions in fp32"},
    {"actor_rollout_ref.rollout.engine_kwargs.vllm.kv_cache_dtype",
     "has a format of its own for the cache (--rollout kv=fp8); assumed: bf16"},
    {"actor_rollout_ref.rollout.speculative_config|actor_rollout_ref.rollout.mtp",
     "drafts tokens; assumed: none"},
};

// They change neither time nor memory of a step.
const std::vector<std::string> verl_inactive_keys = words_in(R"(
    _ actor_rollout_ref._ actor_rollout_ref.actor._ actor_rollout_ref.actor.checkpoint.
    actor_rollout_ref.actor.calculate_sum
    actor_rollout_ref.actor.clip actor_rollout_ref.actor.entropy_checkpointing
    actor_rollout_ref.actor.entropy_from actor_rollout_ref.actor.data_loader
    actor_rollout_ref.actor.engine. actor_rollout_ref.actor.freeze
    actor_rollout_ref.actor.fsdp_config.forward_prefetch
    actor_rollout_ref.actor.fsdp_config.use_orig
    actor_rollout_ref.actor.fsdp_config.wrap_policy. actor_rollout_ref.actor.grad_clip
    actor_rollout_ref.actor.kl_ actor_rollout_ref.actor.loss
    actor_rollout_ref.actor.megatron.dist_checkpointing actor_rollout_ref.actor.megatron.use_dist
    actor_rollout_ref.actor.megatron.use_mbridge actor_rollout_ref.actor.megatron.vanilla
    actor_rollout_ref.actor.megatron.override_ddp_config.
    actor_rollout_ref.actor.megatron.override_transformer_config.
    actor_rollout_ref.actor.megatron.seed actor_rollout_ref.actor.megatron.load
    actor_rollout_ref.actor.megatron.extra. actor_rollout_ref.actor.megatron.use_megatron_fsdp
    actor_rollout_ref.actor.optim. actor_rollout_ref.actor.policy
    actor_rollout_ref.actor.profile. actor_rollout_ref.actor.profiler.
    actor_rollout_ref.actor.rollout_n actor_rollout_ref.actor.router_replay.
    actor_rollout_ref.actor.scale actor_rollout_ref.actor.shuffle
    actor_rollout_ref.actor.tau actor_rollout_ref.actor.use_prefix
    actor_rollout_ref.actor.use_rollout actor_rollout_ref.actor.use_torch_compile
    actor_rollout_ref.hybrid_engine actor_rollout_ref.model.custom
    actor_rollout_ref.model.external
    actor_rollout_ref.model.fused_kernel_options. actor_rollout_ref.model.lora_alpha
    actor_rollout_ref.model.lora. actor_rollout_ref.model.mtp.
    actor_rollout_ref.model.override_config. actor_rollout_ref.model.tiled
    actor_rollout_ref.model.tokenizer actor_rollout_ref.model.trust
    actor_rollout_ref.model.use_liger actor_rollout_ref.model.use_shm
    actor_rollout_ref.nccl_timeout actor_rollout_ref.ref.
    actor_rollout_ref.rollout._ actor_rollout_ref.rollout.agent.
    actor_rollout_ref.rollout.calculate actor_rollout_ref.rollout.checkpoint
    actor_rollout_ref.rollout.cudagraph actor_rollout_ref.rollout.custom
    actor_rollout_ref.rollout.disable_log actor_rollout_ref.rollout.do_sample
    actor_rollout_ref.rollout.enable_chunked_prefill
    actor_rollout_ref.rollout.enable_prefix actor_rollout_ref.rollout.enable_rollout
    actor_rollout_ref.rollout.enable_sleep
    actor_rollout_ref.rollout.engine_kwargs. actor_rollout_ref.rollout.ignore
    actor_rollout_ref.rollout.layer_name actor_rollout_ref.rollout.layered
    actor_rollout_ref.rollout.limit actor_rollout_ref.rollout.load_format
    actor_rollout_ref.rollout.log_prob actor_rollout_ref.rollout.logprobs
    actor_rollout_ref.rollout.multi_stage actor_rollout_ref.rollout.multi_turn.
    actor_rollout_ref.rollout.over_sample actor_rollout_ref.rollout.over_sample_rate
    actor_rollout_ref.rollout.profiler. actor_rollout_ref.rollout.prometheus.
    actor_rollout_ref.rollout.prompt actor_rollout_ref.rollout.response
    actor_rollout_ref.rollout.scheduling actor_rollout_ref.rollout.skip
    actor_rollout_ref.rollout.temperature actor_rollout_ref.rollout.top
    actor_rollout_ref.rollout.trace. actor_rollout_ref.rollout.update
    actor_rollout_ref.rollout.use actor_rollout_ref.rollout.val_kwargs.
    algorithm.filter_groups. algorithm.gamma algorithm.kl algorithm.lam algorithm.norm
    algorithm.pf algorithm.rollout_correction. algorithm.use_pf critic. custom_reward_function.
    data. global_profiler. hydra. profiler. ray_init. ray_kwargs. reward. reward_manager.
    reward_model. trainer. transfer_queue.)");

constexpr std::ptrdiff_t most_settings = 5'000;  // Far more than verl has.

// A command of verl, and what its name says.
struct VerlCommand {
  Settings settings;
  bool is_megatron = false;  ///< By the name of the configuration that it begins with.
  bool is_one_step_off = false;
  bool starts_more = false;             ///< Other runs follow.
  std::vector<std::string> notes = {};  ///< Of the script.
};

VerlCommand command_of(const RecipeFile& file, const RecipeAnswers& answers) {
  const ShellScript script = read_loop_script(file, answers);
  std::optional<VerlCommand> found;
  for (const auto& command : script.commands) {
    const auto program = std::find_if(command.begin(), command.end(), [](const ShellWord& word) {
      if (word.text.find_first_of(" \t\n") != word.text.npos) return false;
      return word.text.find("main_ppo") != word.text.npos ||
             word.text.find("main_dapo") != word.text.npos ||
             word.text.find("fully_async_main") != word.text.npos;
    });
    if (program == command.end() || program->text.find('=') != program->text.npos) continue;
    if (found) {
      found->starts_more = true;
      continue;
    }
    if (program->text.find("fully_async") != program->text.npos)
      fail_input(line_place(script.files[program->file], program->line),
                 "starts " + shown_text(program->text) +
                     ", whose steps begin when samples are enough, which is not read",
                 "give its split and staleness to orrery post: --rollout_gpus, --max_staleness, "
                 "--prompts_in_flight (docs/guides/post-train.md)");
    SettingsTree tree = empty_section();
    bool is_megatron = false;
    if (command.end() - program > most_settings)
      fail_input(line_place(script.files[program->file], program->line),
                 "has more than " + grouped(most_settings) + " settings", "leave out some");
    for (auto word = program + 1; word != command.end(); ++word) {
      const std::size_t sign = word->text.find('=');
      const Place place = line_place(script.files[word->file], word->line);
      if (word->text.starts_with("--config-name") || (word - 1)->text == "--config-name")
        is_megatron |= word->text.find("megatron") != word->text.npos;
      if (word->text.starts_with('~'))
        fail_input(place, shown_text(word->text) + " takes a default away, which is not read",
                   "write the value that it shall have");
      if (word->text.starts_with('-') || sign == word->text.npos) continue;
      if (word->text.find('{', sign) == sign + 1)
        fail_input(place, shown_text(word->text) + " is a map, which is not read",
                   "write each of its settings by its path");
      const std::string path = word->text.substr(word->text.find_first_not_of('+'),
                                                 sign - word->text.find_first_not_of('+'));
      if (path.empty() || path.find_first_of("$ \"'") != path.npos) continue;
      put_setting(tree, path, word->text.substr(sign + 1), word->line, script.files[word->file]);
    }
    found = VerlCommand{Settings{std::move(tree), file.path}, is_megatron,
                        program->text.find("one_step_off") != program->text.npos};
  }
  if (!found)
    fail_input({file.path, ""}, "starts no trainer of verl",
               "give a script with python3 -m verl.trainer.main_ppo, or its configuration");
  found->notes = script.notes;
  return std::move(*found);
}

class VerlReader {
 public:
  VerlReader(const VerlCommand& command, const RecipeAnswers& answers)
      : s_{command.settings}, command_{command}, answers_{answers}, t_{rl_.training} {}

  ImportedRun read() {
    t_.notes = command_.notes;
    need_sections(s_, {"actor_rollout_ref", "actor_rollout_ref.actor", "actor_rollout_ref.model",
                       "actor_rollout_ref.rollout", "data", "algorithm", "trainer", "rollout"});
    refuse_model_sizes(s_, "actor_rollout_ref.model.override_config", true);
    is_megatron_ =
        s_.word(actor_ + "strategy", command_.is_megatron ? "megatron" : "fsdp") == "megatron";
    model();
    gpus();
    batch();
    if (is_megatron_)
      megatron();
    else
      fsdp();
    packing();
    passes();
    generation();
    rl_.framework = is_megatron_ ? "verl-megatron" : "verl-fsdp";
    if (command_.starts_more)
      t_.notes.push_back("the script starts several runs; this is the first");
    note_otherwise(s_, verl_differences, t_.notes);
    note_unread(s_, verl_inactive_keys, t_.notes);
    return written_rl_job(rl_, s_.place());
  }

 private:
  std::int64_t count(const std::string& path, std::int64_t absent) const {
    return s_.count(path, absent, 1 << 24);
  }

  void model() {
    t_.model = named_model(s_, "actor_rollout_ref.model.path", answers_);
    s_.find("actor_rollout_ref.model.path");
  }

  void gpus() {
    const std::int64_t each = count("trainer.n_gpus_per_node", 8);
    std::int64_t all = product_of({count("trainer.nnodes", 1), each});
    if (command_.is_one_step_off) {
      rl_.rollout_gpus =
          product_of({count("rollout.nnodes", 1), count("rollout.n_gpus_per_node", each)});
      rl_.loop["max_staleness"] = 1;
      rl_.loop["whole_batches"] = true;
      all += rl_.rollout_gpus;
    }
    if (answers_.gpus) all = *answers_.gpus;
    if (rl_.rollout_gpus >= all)
      s_.fail("rollout.n_gpus_per_node", "leaves none of " + plural(all, "GPU") + " to the trainer",
              "use fewer, or more --gpus");
    t_.gpus = all - rl_.rollout_gpus;
  }

  // ppo_mini_batch_size counts prompts.
  void batch() {
    auto& job = rl_.loop;
    const std::string estimator = s_.word("algorithm.adv_estimator", "gae");
    static const std::vector<std::string> known = words_in(
        "gae grpo grpo_passk grpo_vectorized rloo rloo_vectorized opo gpg remax "
        "reinforce_plus_plus reinforce_plus_plus_baseline optimal_token_baseline "
        "tir_optimal_token_baseline gdpo");
    if (std::find(known.begin(), known.end(), estimator) == known.end())
      s_.fail("algorithm.adv_estimator", "is '" + shown_text(estimator) + "', which is unknown",
              suggestion(estimator, known));
    job["algorithm"] = estimator == "gae" ? "ppo" : "grpo";
    if (estimator == "gae")
      t_.notes.push_back(
          "critic: its settings are not read; assumed: a critic of the policy's "
          "size, trained as the policy is");
    if (estimator == "remax")
      t_.notes.push_back(
          "algorithm.adv_estimator is remax, which generates a greedy answer to "
          "each prompt, too; assumed: without");
    const std::int64_t prompts = count("data.train_batch_size", 1024);
    const std::int64_t samples = count("actor_rollout_ref.rollout.n", 1);
    job["prompts"] = prompts;
    job["samples"] = samples;
    const std::int64_t mini =
        count(actor_ + "ppo_mini_batch_size", std::min<std::int64_t>(256, prompts));
    if (mini > prompts || prompts % mini != 0)
      s_.fail(actor_ + "ppo_mini_batch_size",
              "is " + grouped(mini) + " prompts of the " + grouped(prompts) + " of a step",
              "write a divisor of data.train_batch_size");
    if (mini < prompts) job["train_batch"] = product_of({mini, samples});
    const std::int64_t generated = s_.number("data.gen_batch_size", prompts);
    if (generated < prompts)
      s_.fail("data.gen_batch_size", "is less than data.train_batch_size",
              "generate at least as many");
    if (generated > prompts)
      job["oversampling"] = static_cast<double>(generated) / static_cast<double>(prompts);
    if (const std::int64_t epochs = count(actor_ + "ppo_epochs", 1); epochs > 1)
      job["epochs"] = epochs;
    const std::int64_t prompt = count("data.max_prompt_length", 512);
    const std::string own = "actor_rollout_ref.rollout.response_length";
    const std::int64_t of_data = count("data.max_response_length", 512);
    const std::int64_t answer = s_.has(own) ? count(own, of_data) : of_data;
    length_ = prompt + answer;
    job["max_response"] = answer;
    job["max_sample"] = length_;
    dp_samples_ = product_of({prompts, samples});
  }

  void fsdp() {
    const std::string at = actor_ + "fsdp_config.";
    t_.software = "verl-fsdp";
    t_.cp = count(
        actor_ + "ulysses_sequence_parallel_size|" + at + "ulysses_sequence_parallel_size", 1);
    t_.cp_comm = "a2a";
    t_.zero = 3;
    t_.reshard = s_.flag(at + "reshard_after_forward", true);
    const std::int64_t shards = s_.number(at + "fsdp_size", -1);
    if (shards == 0 || shards < -1)
      s_.fail(at + "fsdp_size", "is " + std::to_string(shards), "write -1: all GPUs, or a divisor");
    if (shards > 0 && shards < *t_.gpus) {
      if (*t_.gpus % shards != 0)
        s_.fail(at + "fsdp_size", "does not divide " + plural(*t_.gpus, "GPU"), "write a divisor");
      t_.dp_replicate = *t_.gpus / shards;
    }
    if (s_.flag("actor_rollout_ref.model.enable_gradient_checkpointing", true))
      t_.recompute = "full";
    for (const char* key : {"dtype", "mixed_precision", "strategy"}) s_.find(at + key);
    const std::string format = s_.word(at + "model_dtype", "fp32");
    if (format != "fp32" && format != "float32")
      t_.notes.push_back(at + "model_dtype is " + shown_text(format) +
                         ": weights and Adam's state in 16 bits; assumed: fp32");
    rl_.loop["free_weights"] = s_.flag(at + "param_offload", false);
    rl_.loop["free_optimizer"] = s_.flag(at + "optimizer_offload", false);
    if (s_.flag(at + "offload_policy", false)) {
      t_.offload_weights = true;
      t_.offload_optimizer = 100;
    }
    if (s_.flag("actor_rollout_ref.model.use_fused_kernels", false)) t_.chunked_loss = true;
    if (s_.number("actor_rollout_ref.model.lora_rank", 0) > 0)
      read_adapters(s_,
                    {.rank = "actor_rollout_ref.model.lora_rank",
                     .dropout = "actor_rollout_ref.model.lora_dropout",
                     .modules = "actor_rollout_ref.model.target_modules",
                     .all_linear = "",
                     .usual_modules = "all-linear",
                     .section = "actor_rollout_ref.model."},
                    false, t_);
  }

  void megatron() {
    const std::string at = actor_ + "megatron.";
    t_.software = "megatron-core";
    t_.tp = count(at + "tensor_model_parallel_size", 1);
    t_.pp = count(at + "pipeline_model_parallel_size", 1);
    t_.cp = count(at + "context_parallel_size", 1);
    t_.ep = count(at + "expert_model_parallel_size", 1);
    t_.etp = count(at + "expert_tensor_parallel_size", t_.tp);
    if (!t_.model->experts) t_.ep = 1;
    const std::string chunks = at + "virtual_pipeline_model_parallel_size";
    if (s_.word(chunks, "null") != "null" && s_.word(chunks, "") != "None")
      t_.vpp = count(chunks, 1);
    if (t_.vpp > 1) t_.schedule = "interleaved";
    t_.sp = s_.flag(at + "sequence_parallel", true) && t_.tp > 1;
    t_.zero = s_.flag(at + "use_distributed_optimizer", true) ? 1 : 0;
    rl_.loop["free_weights"] = s_.flag(at + "param_offload", false);
    rl_.loop["free_optimizer"] = s_.flag(at + "optimizer_offload", false);
    // Gradients are freed for a rollout, not copied.
    for (const char* key : {"dtype", "param_dtype", "grad_offload"}) s_.find(at + key);
    const std::string own = at + "override_transformer_config.";
    const std::string granularity = s_.word(own + "recompute_granularity", "null");
    if (granularity == "full" || granularity == "selective") t_.recompute = granularity;
    for (const char* key : {"recompute_method", "recompute_num_layers", "recompute_modules"})
      s_.find(own + key);
    read_outer_stages(s_, own, t_);
    if (t_.model->experts) {
      const bool deep = s_.flag(own + "moe_enable_deepep", false);
      t_.moe_dispatcher = deep || s_.word(own + "moe_token_dispatcher_type", "alltoall") == "flex"
                              ? "deepep"
                              : "alltoall";
    }
    const std::string optimizer = actor_ + "optim.override_optimizer_config.";
    if (s_.flag(optimizer + "optimizer_cpu_offload", false))
      t_.offload_optimizer =
          percent_of(s_.word(optimizer + "optimizer_offload_fraction", "1")).value_or(100);
    for (const char* key : {"strategy", "param_offload", "optimizer_offload"})
      s_.find(actor_ + "fsdp_config." + key);
    s_.find("actor_rollout_ref.model.enable_gradient_checkpointing");
    s_.find("actor_rollout_ref.model.use_fused_kernels");
    if (s_.number("actor_rollout_ref.model.lora.rank|actor_rollout_ref.model.lora_rank", 0) > 0)
      s_.fail("actor_rollout_ref.model.lora.rank|actor_rollout_ref.model.lora_rank",
              "trains adapters on Megatron, which is not read",
              "give finetune=lora to --training of orrery post");
  }

  // Limits of log-probabilities are those of training where they are absent. A limit of tokens is
  // of a GPU: the ranks that share a sequence hold so many times it.
  void packing() {
    auto& job = rl_.loop;
    const std::string rollout = "actor_rollout_ref.rollout.";
    const bool dynamic = s_.flag(actor_ + "use_dynamic_bsz", false);
    const std::int64_t tokens = count(actor_ + "ppo_max_token_len_per_gpu", 16384);
    const std::int64_t pass_tokens = count(rollout + "log_prob_max_token_len_per_gpu", tokens);
    s_.find(rollout + "log_prob_use_dynamic_bsz");
    const bool removes = s_.flag("actor_rollout_ref.model.use_remove_padding", true);
    const std::int64_t ranks = std::max<std::int64_t>(1, *t_.gpus / (t_.tp * t_.pp * t_.cp));
    for (const char* key : {"ppo_micro_batch_size_per_gpu", "ppo_micro_batch_size"})
      s_.find(actor_ + key);
    if (dynamic) {
      job["packing"] = "balanced";
      job["train_tokens"] = product_of({tokens, t_.cp});
      if (pass_tokens != tokens) job["pass_tokens"] = product_of({pass_tokens, t_.cp});
      return;
    }
    job["packing"] = removes ? "fixed" : "padded";
    const auto micro = [&](const std::string& own, const std::string& of_all, std::int64_t absent) {
      if (s_.has(own)) return count(own, 1);
      if (s_.has(of_all)) return std::max<std::int64_t>(1, count(of_all, 1) / ranks);
      return absent;
    };
    const std::int64_t own =
        micro(actor_ + "ppo_micro_batch_size_per_gpu", actor_ + "ppo_micro_batch_size", 0);
    if (own == 0)
      fail_input(s_.place(), "says no micro-batch",
                 "give it: --set " + actor_ + "ppo_micro_batch_size_per_gpu=N");
    const std::int64_t pass = micro(rollout + "log_prob_micro_batch_size_per_gpu",
                                    rollout + "log_prob_micro_batch_size", own);
    const std::int64_t most = std::max<std::int64_t>(1, dp_samples_ / ranks);
    job["micro_samples"] = std::min(own, most);
    if (pass != own) job["pass_samples"] = std::min(pass, most);
  }

  void passes() {
    auto& job = rl_.loop;
    const bool in_loss = s_.flag(actor_ + "use_kl_loss", false);
    const bool in_reward = s_.flag("algorithm.use_kl_in_reward", false);
    job["reference"] = in_loss || in_reward;
    const bool bypassed = s_.flag("algorithm.rollout_correction.bypass_mode", false);
    if (bypassed) job["old_logprobs"] = false;
  }

  void generation() {
    const std::string at = "actor_rollout_ref.rollout.";
    auto& engine = rl_.rollout;
    const std::string name = s_.word(at + "name", "vllm");
    if (name != "vllm" && name != "sglang")
      s_.fail(at + "name", "is '" + shown_text(name) + "', which is not modelled",
              "write vllm or sglang: --set " + at + "name=vllm");
    if (name == "sglang") rl_.loop["engine"] = "sglang-2025";
    rl_.loop["async_engine"] = s_.word(at + "mode", "async") == "async";
    engine["tp"] = count(at + "tensor_model_parallel_size", 2);
    const std::int64_t dp = count(at + "data_parallel_size", 1);
    const std::int64_t pp = count(at + "pipeline_model_parallel_size", 1);
    const std::int64_t ep = count(at + "expert_parallel_size", 1);
    if (dp > 1 && t_.model->experts) engine["dp"] = dp;  // Else its copies are replicas.
    if (pp > 1) engine["pp"] = pp;
    if (ep > 1 && t_.model->experts) engine["ep"] = ep;
    engine["kv_share"] = memory_share(s_, at + "gpu_memory_utilization", "0.5");
    engine["max_length"] = std::max(length_, s_.number(at + "max_model_len", length_));
    const std::string own = at + "engine_kwargs.vllm.";
    engine["budget"] = count(own + "max_num_batched_tokens|" + at + "max_num_batched_tokens", 8192);
    engine["max_seqs"] = count(own + "max_num_seqs|" + at + "max_num_seqs", 256);
    s_.find(at + "dtype");
    if (s_.word(at + "quantization", "") == "fp8") engine["weights"] = "fp8";
    if (!s_.flag(at + "free_cache_engine", true))
      t_.notes.push_back(at +
                         "free_cache_engine is false, so that the KV cache stays in memory during "
                         "training; assumed: it is freed");
  }

  const Settings& s_;
  const VerlCommand& command_;
  const RecipeAnswers& answers_;
  const std::string actor_ = "actor_rollout_ref.actor.";
  RlRecipe rl_;
  Recipe& t_;
  bool is_megatron_ = false;
  std::int64_t length_ = 0, dp_samples_ = 0;
};

bool is_yaml(const std::string& path) { return path.ends_with(".yaml") || path.ends_with(".yml"); }

}  // namespace

ImportedRun import_verl_run(const RecipeFile& file, const RecipeAnswers& answers) {
  require_text(file.text, file.path, "a script or a configuration of verl");
  VerlCommand command = is_yaml(file.path)
                            ? VerlCommand{Settings{read_yaml(file.text, file.path), file.path}}
                            : command_of(file, answers);
  for (const auto& [path, value] : answers.set)
    if (path.find('.') != path.npos) command.settings.set(path, value);
  resolve_references(command.settings);
  return VerlReader{command, answers}.read();
}

}  // namespace orrery
