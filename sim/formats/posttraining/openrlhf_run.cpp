#include <algorithm>

#include "sim/core/number_text.hpp"
#include "sim/core/text_file.hpp"
#include "sim/core/value_list.hpp"
#include "sim/formats/posttraining/rl_recipe.hpp"
#include "sim/formats/recipe/adapter_settings.hpp"
#include "sim/formats/recipe/decisive_keys.hpp"
#include "sim/formats/shell/shell_script.hpp"

namespace orrery {
namespace {

// Releases from 0.10.2 on write --actor.num_nodes, those before --actor_num_nodes. Pages mix them,
// so each option is asked for by both names.
constexpr PricedOtherwise openrlhf_differences[] = {
    {"vllm.enforce_eager|enforce_eager",
     "launches the engine's kernels one by one; assumed: CUDA graphs"},
    {"algo.dynamic_filtering_enable|dynamic_filtering",
     "drops prompts whose answers are all right or all wrong, and generates more: give "
     "--oversampling; assumed: all are trained on"},
    {"train.agent_func_path|agent_func_path",
     "may have turns with tools; assumed: one answer to a prompt"},
    {"actor.entropy_coef|entropy_loss_coef",
     "computes the entropy of all tokens in training; assumed: without"},
    {"train.enable_ema|enable_ema", "keeps a mean of the weights on the host; assumed: none"},
    {"ds.zpg|zpg", "keeps second shards within groups of GPUs; assumed: one set of shards"},
    {"ds.load_in_4bit|load_in_4bit",
     "keeps the frozen weights of the reference in four bits, too; assumed: that its pass is the "
     "policy's"},
    {"ds.grad_accum_dtype|grad_accum_dtype",
     "keeps gradients in a format of its own; assumed: in 16 bits"},
    {"ref.offload|ref_reward_offload",
     "brings the reference's weights from the host layer by layer; assumed: they stay in memory"},
    {"vllm.sync_with_ray|vllm_sync_with_ray", "sends weights through Ray; assumed: as without"},
    {"ds.use_liger_kernel|use_liger_kernel", "has kernels of Liger; assumed: PyTorch's"},
    {"ds.deepcompile|deepcompile", "compiles the passes; assumed: not"},
};

// They change neither time nor memory of a step.
const std::vector<std::string> openrlhf_inactive_keys = words_in(R"(
    _ actor.adam. actor.aux_loss_coef actor.dual_clip actor.eps_clip actor.freeze_visual_encoder
    actor.gradient_checkpointing_reentrant actor.lr_ actor.max_norm actor.min_lr actor.muon.
    actor.optim_ actor.policy_loss_type actor_init_on_gpu actor_learning_rate adam_betas
    algo.advantage.gamma algo.advantage.is_ algo.advantage.lambd algo.advantage.no_std_norm
    algo.dynamic_filtering_range algo.kl. apply_chat_template aux_loss_coef best_metric_key bf16
    ckpt. ckpt_path critic.adam. critic.freezing_steps critic.lr_ critic.max_norm
    critic.model_name_or_path critic.save_value_network critic.value_clip critic_learning_rate
    critic_pretrain data.apply_chat_template data.dataloader_num_workers
    data.disable_fast_tokenizer data.image_key data.input_ data.label_key
    data.max_images_per_prompt data.max_samples data.prompt_ dataloader_num_workers
    disable_ds_ckpt disable_fast_tokenizer ds.experts_implementation ds.lora.alpha
    ds.ring_attn_head_stride ds.use_universal_ckpt ds.value_head_prefix dual_clip
    dynamic_filtering_reward_range ema_beta enable_vllm_is_correction eps_clip eval. eval_
    freeze_visual_encoder freezing_actor_steps full_determinism gamma
    gradient_checkpointing_use_reentrant image_key input_key input_template kl_ l2 label_key
    lambd load_checkpoint local_rank logger. logging_steps lora_alpha lr_ max_ckpt_
    max_images_per_prompt max_norm max_samples min_lr no_advantage_std_norm normalize_reward
    num_episodes overlong_ perf policy_loss_type pretrain_data pretrain_split prompt_data
    prompt_split ptx_coef reward.clip_range reward.model_name_or_path reward.normalize_enable
    reward.offload reward.overlong_ reward.stop_properly_penalty_coef reward_clip_range
    reward_pretrain ring_head_stride rollout.temperature rollout.top_p save_ seed
    stop_properly_penalty_coef temperature top_p train.ema_beta train.full_determinism_enable
    train.num_episodes train.seed use_ds_universal_ckpt use_kl_ use_ms use_tensorboard use_wandb
    value_clip value_head_prefix vllm_is_ wandb_)");

std::string first_line_of(const std::string& text) { return text.substr(0, text.find('\n')); }

// The trainer's arguments as settings: "--a.b 1", "--a=1", "--flag".
Settings openrlhf_settings(const RecipeFile& file, const RecipeAnswers& answers,
                           std::vector<std::string>& notes) {
  const ShellScript script = read_loop_script(file, answers);
  notes = script.notes;
  bool starts_more = false;
  std::optional<Settings> found;
  for (const auto& command : script.commands) {
    const auto program = std::find_if(command.begin(), command.end(), [](const ShellWord& word) {
      return word.text.ends_with("train_ppo_ray") || word.text.ends_with("train_ppo_ray.py") ||
             word.text.ends_with("openrlhf.cli.train_ppo");
    });
    if (program == command.end()) continue;
    if (found) {
      starts_more = true;
      continue;
    }
    SettingsTree tree = empty_section();
    for (auto word = program + 1; word != command.end(); ++word) {
      if (!word->text.starts_with("--") || word->text.size() < 3) continue;
      const std::size_t sign = word->text.find('=');
      const std::string path = word->text.substr(2, sign == word->text.npos ? sign : sign - 2);
      if (path.empty() || path.find_first_of("$ \"'") != path.npos) continue;
      std::string value = "true";
      const auto next = word + 1;
      if (sign != word->text.npos)
        value = word->text.substr(sign + 1);
      else if (next != command.end() && !next->text.starts_with("--"))
        value = first_line_of(next->text);
      put_setting(tree, path, value, word->line, script.files[word->file]);
    }
    found = Settings{std::move(tree), file.path};
  }
  if (!found)
    fail_input({file.path, ""}, "starts no loop of OpenRLHF",
               "give a script with python3 -m openrlhf.cli.train_ppo_ray");
  if (starts_more) notes.push_back("the script starts several runs; this is the first");
  for (const auto& [name, value] : answers.set)
    if (is_setting(name)) found->set(name, value);
  return std::move(*found);
}

class OpenRlhfReader {
 public:
  OpenRlhfReader(const Settings& settings, const RecipeAnswers& answers)
      : s_{settings}, answers_{answers}, t_{rl_.training} {}

  ImportedRun read() {
    const std::string model = "actor.model_name_or_path|pretrain";
    t_.model = named_model(s_, model, answers_);
    s_.find(model);
    algorithm();
    gpus();
    batch();
    deepspeed();
    micro_batches();
    generation();
    rl_.framework = "openrlhf";
    note_otherwise(s_, openrlhf_differences, t_.notes);
    note_unread(s_, openrlhf_inactive_keys, t_.notes);
    return written_rl_job(rl_, s_.place());
  }

 private:
  std::int64_t count(const std::string& paths, std::int64_t absent) const {
    return s_.count(paths, absent, 1 << 24);
  }

  // openrlhf/cli/train_ppo_ray.py: a critic only with gae, a reference only if its coefficient is
  // above 0.
  void algorithm() {
    const std::string estimator = "algo.advantage.estimator|advantage_estimator";
    has_critic_ = s_.choice(estimator, {{"gae", "ppo"},
                                        {"reinforce", "grpo"},
                                        {"rloo", "grpo"},
                                        {"reinforce_baseline", "grpo"},
                                        {"group_norm", "grpo"},
                                        {"dr_grpo", "grpo"}}) == "ppo";
    rl_.loop["algorithm"] = has_critic_ ? "ppo" : "grpo";
    if (has_critic_)
      t_.notes.push_back("critic: assumed of the policy's size, trained as the policy is");
    const std::string coefficient = "algo.kl.init_coef|init_kl_coef";
    const auto kl = plain_number(s_.word(coefficient, "0.01"));
    if (!kl) s_.fail(coefficient, "is no number", "write one, as 0.01");
    has_reference_ = *kl > 0.0;
    rl_.loop["reference"] = has_reference_;
    const std::string judge = s_.word("reward.remote_url|remote_rm_url", "");
    const bool is_server = judge.find("://") != judge.npos;
    has_reward_model_ = judge.empty() && !s_.has("train.agent_func_path|agent_func_path");
    if (is_server || has_reward_model_)
      t_.notes.push_back(std::string{"answers are scored by "} +
                         (is_server ? "a server" : "a model on the GPUs") +
                         ", whose time --reward of orrery post adds; assumed: none");
  }

  std::int64_t gpus_of(const std::string& role) const {
    return product_of({count(role + ".num_nodes|" + role + "_num_nodes", 1),
                       count(role + ".num_gpus_per_node|" + role + "_num_gpus_per_node", 8)});
  }

  void gpus() {
    const std::int64_t actor = gpus_of("actor");
    const std::int64_t reference = gpus_of("ref");
    gpus_of("critic");
    const bool all = s_.flag("train.colocate_all|colocate_all_models", false);
    const bool with_reference = s_.flag("train.colocate_actor_ref|colocate_actor_ref", false);
    const std::string with_critic = "train.colocate_critic_reward|colocate_critic_reward";
    if (s_.flag(with_critic, false) && has_critic_)
      s_.fail(with_critic, "puts the critic on GPUs of its own, which nothing prices",
              "colocate all models: --set " + s_.name(with_critic) +
                  "=false --set train.colocate_all=true");
    if (has_reference_ && (all || with_reference) && reference != actor)
      fail_input(s_.place(),
                 "starts the reference on " + plural(reference, "GPU") + " and the actor on " +
                     std::to_string(actor),
                 "use as many, as they are colocated");
    const bool at_a_time = s_.flag("train.async_enable|async_train", false);
    const std::string tp = "vllm.tensor_parallel_size|vllm_tensor_parallel_size";
    const std::string engines = "vllm.num_engines|vllm_num_engines";
    if (!s_.has(engines))
      fail_input(s_.place(), "starts no engines of vLLM", "say how many: --set vllm.num_engines=N");
    const std::int64_t engine_gpus = product_of({count(engines, 1), count(tp, 1)});
    if (!all && ((has_reference_ && !with_reference) || has_critic_))
      fail_input(s_.place(),
                 std::string{"puts the "} + (has_critic_ ? "critic" : "reference") +
                     " on GPUs of its own, which nothing prices",
                 "colocate all models: --set train.colocate_all=true");
    if (const std::int64_t judge = gpus_of("reward"); has_reward_model_ && !all)
      t_.notes.push_back("the reward model has " + plural(judge, "GPU") +
                         " of its own, which are not counted");
    if (all && !at_a_time) {
      if (engine_gpus != actor)
        s_.fail(engines,
                "gives the engines " + plural(engine_gpus, "GPU") + " and the actor has " +
                    std::to_string(actor),
                "give both the same number: with colocate_all they share the GPUs");
      t_.gpus = answers_.gpus.value_or(actor);
    } else {
      rl_.rollout_gpus = engine_gpus;
      t_.gpus = answers_.gpus ? *answers_.gpus - engine_gpus : actor;
      if (*t_.gpus < 1)
        s_.fail(engines, "leaves none of " + plural(*answers_.gpus, "GPU") + " to the trainer",
                "use fewer, or more --gpus");
    }
    if (!at_a_time) return;
    rl_.loop["max_staleness"] = count("train.async_queue_size|async_queue_size", 1);
    if (s_.flag("train.partial_rollout_enable|partial_rollout", false))
      rl_.loop["in_flight_updates"] = true;
  }

  // rollout.batch_size counts prompts, train.batch_size samples.
  void batch() {
    auto& job = rl_.loop;
    const std::int64_t prompts = count("rollout.batch_size|rollout_batch_size", 1024);
    const std::int64_t samples = count("rollout.n_samples_per_prompt|n_samples_per_prompt", 1);
    const std::string of_step = "train.batch_size|train_batch_size";
    const std::int64_t batch = count(of_step, 128), all = product_of({prompts, samples});
    if (batch > all || all % batch != 0)
      s_.fail(of_step,
              grouped(batch) + " does not divide the " + grouped(all) + " samples of a step",
              "write a divisor, as what is left would not be trained on");
    job["prompts"] = prompts;
    job["samples"] = samples;
    if (batch < all) job["train_batch"] = batch;
    if (const std::int64_t epochs = count("train.max_epochs|max_epochs", 1); epochs > 1)
      job["epochs"] = epochs;
    // OpenRLHF keeps the answers that it generates beyond a step's for the next step
    // (samples_generator.py).
    s_.find("rollout.vllm_generate_batch_size|vllm_generate_batch_size");
    const std::string answer = "rollout.max_new_tokens|max_new_tokens|generate_max_len";
    length_ = count("data.max_len|max_len", 2048);
    if (s_.has("prompt_max_len") || s_.has("generate_max_len"))
      length_ = count("prompt_max_len", 1024) + count("generate_max_len", 1024);
    if (s_.has(answer) || s_.has("prompt_max_len")) {
      const std::int64_t most = count(answer, 1024);
      if (most >= length_)
        s_.fail(answer, "leaves none of " + grouped(length_) + " tokens to a prompt",
                "raise data.max_len");
      job["max_response"] = most;
    }
    job["max_sample"] = length_;
    const std::string prefixes = "vllm.enable_prefix_caching|enable_prefix_caching";
    if (samples > 1 && !s_.flag(prefixes, false))
      t_.notes.push_back(
          "prefix caching is off, so that a prompt is computed for each of its samples; assumed: "
          "once (--set vllm.enable_prefix_caching=true)");
  }

  void deepspeed() {
    t_.software = "openrlhf";
    const std::string stage = "ds.zero_stage|zero_stage";
    t_.zero = s_.number(stage, 2);
    if (t_.zero < 0 || t_.zero > 3)
      s_.fail(stage, "is " + std::to_string(t_.zero), "write a stage from 0 to 3");
    // Left out, DeepSpeed overlaps gathers and reductions of stage 3 alone.
    t_.dp_overlap = s_.flag("ds.overlap_comm|overlap_comm", t_.zero == 3);
    const std::string optimizer = s_.word("actor.optim", "adam");
    if (optimizer != "adam")
      s_.fail("actor.optim", "is '" + shown_text(optimizer) + "', which nothing prices",
              "write adam: --set actor.optim=adam");
    const std::string backend = s_.word("vllm.sync_backend|vllm_sync_backend", "nccl");
    if (backend != "nccl")
      t_.notes.push_back("vllm.sync_backend is " + shown_text(backend) + "; assumed: nccl");
    const std::string ring = "ds.ring_attn_size|ring_attn_size";
    t_.cp = count(ring, 1);
    if (*t_.gpus % t_.cp != 0)
      s_.fail(ring, "does not divide " + plural(*t_.gpus, "GPU"), "write a divisor");
    t_.cp_comm = "all_gather";
    const std::string tp = "ds.tensor_parallel_size|ds_tensor_parallel_size";
    if (count(tp, 1) > 1)
      s_.fail(tp, "cuts layers in a way that nothing prices",
              "write 1: --set " + s_.name(tp) + "=1");
    if (s_.flag("actor.gradient_checkpointing_enable|gradient_checkpointing", false))
      t_.recompute = "full";
    if (s_.flag("ds.adam_offload|adam_offload", false)) t_.offload_optimizer = 100;
    const std::string dtype = s_.word("ds.param_dtype|param_dtype", "bf16");
    if (dtype != "bf16" && dtype != "fp16")
      s_.fail("ds.param_dtype|param_dtype", "is '" + shown_text(dtype) + "'", "write bf16 or fp16");
    t_.dtype = dtype;
    const std::string attention =
        s_.word("ds.attn_implementation|attn_implementation", "flash_attention_2");
    if (attention == "eager") t_.attention = "unfused";
    s_.find("flash_attn");
    rl_.loop["free_weights"] = false;
    rl_.loop["free_optimizer"] = s_.flag("ds.enable_sleep|deepspeed_enable_sleep", false);
    if (s_.number("ds.lora.rank|lora_rank", 0) > 0)
      read_adapters(s_,
                    {.rank = "ds.lora.rank|lora_rank",
                     .dropout = "ds.lora.dropout|lora_dropout",
                     .modules = "ds.lora.target_modules|target_modules",
                     .all_linear = "",
                     .usual_modules = "all-linear",
                     .section = "ds.lora."},
                    s_.flag("ds.load_in_4bit|load_in_4bit", false), t_);
  }

  void micro_batches() {
    auto& job = rl_.loop;
    const std::string train = "train.micro_batch_size|micro_train_batch_size";
    const std::string pass = "rollout.micro_batch_size|micro_rollout_batch_size";
    const std::int64_t of_train = count(train, 1), of_pass = count(pass, 1);
    const std::int64_t tokens = count("train.max_tokens_per_gpu|train_max_tokens_per_gpu", 16192);
    const std::int64_t pass_tokens =
        count("rollout.max_tokens_per_gpu|rollout_max_tokens_per_gpu", tokens);
    const bool packs = s_.flag("ds.packing_samples|packing_samples", false);
    if (s_.flag("train.dynamic_batch_enable|use_dynamic_batch", false)) {
      // A sample that is longer than the limit is a micro-batch of its own.
      job["packing"] = "balanced";
      // A limit is of a GPU: the ranks that share a sequence hold so many times it.
      job["train_tokens"] = product_of({tokens, t_.cp});
      if (pass_tokens != tokens) job["pass_tokens"] = product_of({pass_tokens, t_.cp});
      return;
    }
    job["packing"] = packs || (of_train == 1 && of_pass == 1) ? "fixed" : "padded";
    if (job["packing"] == "padded")
      t_.notes.push_back(
          "samples are padded to the longest of a micro-batch; assumed: to the longest that there "
          "may be (--set ds.packing_samples=true packs them)");
    if (!s_.has(train) || !s_.has(pass))
      t_.notes.push_back(
          "micro-batches that are not said have one sample, as since release 0.9.11; before they "
          "had 4 in training and 8 in passes (--set train.micro_batch_size=4)");
    const std::int64_t batch = job.contains("train_batch")
                                   ? job["train_batch"].get<std::int64_t>()
                                   : product_of({job["prompts"], job["samples"]});
    const std::int64_t most = std::max<std::int64_t>(1, batch / (*t_.gpus / t_.cp));
    job["micro_samples"] = std::min(of_train, most);
    if (of_pass != of_train) job["pass_samples"] = of_pass;
  }

  void generation() {
    auto& engine = rl_.rollout;
    engine["tp"] = count("vllm.tensor_parallel_size|vllm_tensor_parallel_size", 1);
    engine["kv_share"] =
        memory_share(s_, "vllm.gpu_memory_utilization|vllm_gpu_memory_utilization", "0.95");
    engine["max_length"] = length_;
    const bool sleeps = s_.flag("vllm.enable_sleep|vllm_enable_sleep", false);
    if (rl_.rollout_gpus == 0 && !sleeps)
      t_.notes.push_back(
          "vllm.enable_sleep is off, so that the engine keeps its memory during training; assumed: "
          "it is freed");
  }

  const Settings& s_;
  const RecipeAnswers& answers_;
  RlRecipe rl_;
  Recipe& t_;
  bool has_critic_ = false, has_reference_ = false, has_reward_model_ = false;
  std::int64_t length_ = 0;
};

}  // namespace

ImportedRun import_openrlhf_run(const RecipeFile& file, const RecipeAnswers& answers) {
  require_text(file.text, file.path, "a script of OpenRLHF");
  std::vector<std::string> notes;
  const Settings settings = openrlhf_settings(file, answers, notes);
  ImportedRun run = OpenRlhfReader{settings, answers}.read();
  run.notes.insert(run.notes.begin(), notes.begin(), notes.end());
  return run;
}

}  // namespace orrery
