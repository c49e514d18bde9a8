#include "sim/formats/nanotron/nanotron_run.hpp"

#include "sim/core/json_value.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/text_file.hpp"
#include "sim/formats/nanotron/nanotron_model.hpp"
#include "sim/formats/settings/yaml_tree.hpp"
#include "sim/plan/nanotron_stages.hpp"

namespace orrery {
namespace {

constexpr PricedOtherwise nanotron_differences[] = {
    {"model.model_config.z_loss_enabled",
     "adds a loss that reads the logits again, which is not priced"},
    {"parallelism.domino", "overlaps halves of a micro-batch (Domino), which is not priced"},
};

// They change neither time nor memory of a step.
const std::vector<std::string> inactive_keys{
    "checkpoints.",
    "data.",
    "data_stages",
    "doremi",
    "experiment_logger.",
    "general.",
    "lighteval.",
    "logging.",
    "metrics_logging.",
    "model.init_method",
    "model.model_config._",
    "model.model_config.bos_token_id",
    "model.model_config.eos_token_id",
    "model.model_config.flex_attention_mask",
    "model.model_config.hidden_act",
    "model.model_config.initializer_range",
    "model.model_config.is_",
    "model.model_config.log_attn_probs",
    "model.model_config.no_rope_layer",
    "model.model_config.pad_token_id",
    "model.model_config.pretraining_tp",
    "model.model_config.ring_attn_heads_k_stride",
    "model.model_config.moe_config.router_aux_loss_coef",
    "model.model_config.rms_norm_eps",
    "model.model_config.rope_",
    "model.model_config.interleaved_rotary",
    "model.model_config.use_cache",
    "model.model_config.z_loss",
    "optimizer.adam_",
    "optimizer.clip_grad",
    "optimizer.learning_rate_scheduler",
    "optimizer.optimizer_factory.",
    "optimizer.torch_adam_is_fused",
    "optimizer.update_clipping",
    "optimizer.weight_decay",
    "profiler.",
    "s3_upload",
    "tokenizer.",
    "tokens.limit_",
    "tokens.train_steps",
    "tokens.val_check_interval",
    "validation.",
    "wandb",
};

class NanotronReader {
 public:
  NanotronReader(const Settings& settings, const RecipeAnswers& answers)
      : s_{settings}, answers_{answers} {}

  ImportedRun read() {
    parallelism();
    r_.model = model_of_answer(answers_);
    if (r_.model)
      s_.find("model.model_config");
    else
      r_.model = nanotron_model(s_, answers_.name, r_.tp, r_.notes);
    batch();
    precision();
    attention();
    optimizer();
    software();
    stages();
    tell_otherwise(s_, nanotron_differences, r_.notes);
    tell_unread(s_, inactive_keys, r_.notes);
    return written_plan(r_, s_.place());
  }

 private:
  void note(const std::string& paths, const std::string& sentence) {
    r_.notes.push_back(s_.name(paths) + " " + sentence);
  }

  // config/parallelism_config.py; parallel/context.py: tp x cp x dp x pp ranks in all.
  void parallelism() {
    r_.tp = s_.required("parallelism.tp");
    r_.pp = s_.required("parallelism.pp");
    dp_ = s_.required("parallelism.dp");
    r_.cp = s_.number("parallelism.context_parallel_size", 1);
    r_.gpus = product_of({r_.tp, r_.pp, r_.cp, dp_});
    const std::string mode =
        s_.choice("parallelism.tp_mode", {{"ALL_REDUCE", ""}, {"REDUCE_SCATTER", "shards"}});
    r_.sp = mode == "shards";
    // parallel/tensor_parallel/functional.py: beside the multiplication, if activations are shards.
    r_.tp_overlap = s_.flag("parallelism.tp_linear_async_communication", false) && r_.sp;
    const std::string order =
        s_.choice("parallelism.pp_engine", {{"afab", "gpipe"}, {"1f1b", "1f1b"}});
    runs_forward_first_ = order == "gpipe" && r_.pp > 1;
    const std::string granularity =
        s_.choice("parallelism.recompute_granularity",
                  {{"", "none"}, {"selective", "selective"}, {"full", "full"}});
    const bool experts = s_.flag("parallelism.moe_layer_recompute", false);
    r_.recompute = s_.flag("parallelism.recompute_layer", false) ? "full"
                   : experts && granularity == "none"            ? "selective:moe"
                                                                 : granularity;
    if (!s_.flag("parallelism.tp_recompute_allgather", true) && r_.sp && r_.tp > 1)
      note("parallelism.tp_recompute_allgather",
           "keeps what was gathered; priced is a second gather in the backward pass");
    if (const std::int64_t ep = s_.number("parallelism.expert_parallel_size", 1); ep != 1)
      s_.fail("parallelism.expert_parallel_size",
              "is " + grouped(ep) +
                  ": ranks of experts stand beside the replicas, not among them, "
                  "which no plan can say",
              "write 1 (--set parallelism.expert_parallel_size=1), and try --ep of `orrery "
              "estimate`");
    r_.etp = r_.tp;
  }

  void optimizer() {
    const std::string name = s_.word("optimizer.optimizer_factory.name", "adamW");
    if (name != "adamW" && name != "adam")
      note("optimizer.optimizer_factory.name", "is " + shown_text(name) + "; priced is AdamW");
  }

  void batch() {
    r_.mbs = s_.required("tokens.micro_batch_size");
    r_.seq = s_.required("tokens.sequence_length");
    const std::int64_t each = s_.number("tokens.batch_accumulation_per_replica", 1);
    r_.gbs = product_of({r_.mbs, each, dp_});
    r_.zero = s_.number("optimizer.zero_stage", 0);
    if (r_.zero > 1 || r_.zero < 0)
      s_.fail("optimizer.zero_stage", "is " + grouped(r_.zero) + ", which nanotron has not",
              "write 0 or 1");
    s_.find("model.ddp_bucket_cap_mb");
  }

  void precision() {
    const std::string type = "model.dtype";
    std::string word = s_.word(type, "bfloat16");
    if (word.starts_with("torch.")) word = word.substr(6);
    if (word == "float8") {
      s_.find("fp8");  // Formats of each tensor.
      note(type,
           "is of nanotron's branches for fp8, which keep weights and the optimizer's state "
           "in narrow formats; priced is Megatron-Core's fp8");
    } else if (word != "bfloat16" && word != "float16")
      s_.fail(type, "is '" + shown_text(word) + "', which has no prices",
              "write bfloat16: --set model.dtype=bfloat16");
    r_.dtype = word == "float8" ? "fp8" : word == "float16" ? "fp16" : "bf16";
  }

  void attention() {
    std::string how = s_.word("model.model_config._attn_implementation", "flash_attention_2");
    how = std::string{trimmed(how)};
    r_.attention = how == "eager" ? "unfused" : "flash";
    r_.cp_comm = how == "llama3_ring_attention" ? "all_gather" : "p2p";
    r_.moe_dispatcher = s_.choice("model.model_config.moe_config.token_dispatcher_type",
                                  {{"alltoall", "alltoall"}, {"allgather", "allgather"}});
  }

  // Where its own file has not what the run asks for: what Megatron-Core does with gradients of the
  // same width.
  void software() {
    const bool wide = s_.flag("optimizer.accumulate_grad_in_fp32", true);
    if (wide && r_.dtype == "bf16" && r_.cp == 1 && r_.zero <= 1) {
      r_.software = "nanotron";
      if (runs_forward_first_) r_.schedule = "gpipe";
      // Summed up after the passes (workloads/software/nanotron.json, overlap_dp_sharded).
      r_.dp_overlap = r_.zero == 0;
      r_.notes.push_back(
          "the software nanotron is described for Hopper and later; on A100 its attention is "
          "faster");
      return;
    }
    r_.software = !wide           ? "megatron-core"
                  : r_.tp_overlap ? "megatron-core-fp32-reduce-overlap"
                                  : "megatron-core-fp32-reduce";
    if (runs_forward_first_)
      note("parallelism.pp_engine",
           "runs all forward passes before all backward passes; priced is 1f1b, which takes as "
           "long and holds fewer activations");
    r_.notes.push_back("the nearest software is " + r_.software +
                       ": nanotron launches PyTorch's kernels one by one, of which it fuses fewer");
  }

  void stages() {
    if (r_.pp < 2 || r_.model->experts || r_.pp > r_.model->layers) return;
    r_.layers.of = nanotron_stages(*r_.model, static_cast<int>(r_.pp));
  }

  bool runs_forward_first_ = false;  ///< With stages: of each step, all before all backward.
  const Settings& s_;
  const RecipeAnswers& answers_;
  Recipe r_;
  std::int64_t dp_ = 1;
};

}  // namespace

ImportedRun import_nanotron_run(const std::string& text, const std::string& file,
                                const RecipeAnswers& answers) {
  require_text(text, file, "a configuration of nanotron");
  Settings settings{read_yaml(text, file), file};
  take_answers(settings, answers);
  if (settings.names_below("parallelism").empty() || settings.names_below("tokens").empty())
    fail_input(settings.place(), "has no parallelism or no tokens",
               "give a configuration of nanotron");
  return NanotronReader{settings, answers}.read();
}

}  // namespace orrery
