#include "sim/formats/nanotron/nanotron_run.hpp"

#include <algorithm>

#include "sim/core/json_value.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/text_file.hpp"
#include "sim/core/value_list.hpp"
#include "sim/formats/recipe/decisive_keys.hpp"
#include "sim/formats/recipe/other_launchers.hpp"
#include "sim/formats/recipe/recipe.hpp"
#include "sim/formats/settings/settings_files.hpp"
#include "sim/plan/stage_layers.hpp"

namespace orrery {
namespace {

// Classes of models_config.py, by the key that is true in a configuration of it.
struct Kind {
  const char* key;
  const char* unpriced;  ///< The unsupported part; null: it is read.
};
constexpr Kind kinds[] = {
    {"is_llama_config", nullptr},        {"is_qwen2_config", nullptr},
    {"is_mistral_config", nullptr},      {"is_mixtral_config", nullptr},
    {"is_llamoe_config", nullptr},       {"is_starcoder2_config", nullptr},
    {"is_mamba_config", "Mamba layers"}, {"is_bitnet_config", "weights of one bit"},
};

class NanotronModel {
 public:
  NanotronModel(const Settings& settings, std::int64_t tp, std::vector<std::string>& notes)
      : s_{settings}, tp_{tp}, notes_{notes} {}

  Model read(const std::string& name) {
    kind();
    sizes();
    layer();
    experts();
    return json_.model(name, "a configuration of nanotron", s_.file());
  }

 private:
  static std::string key(const std::string& name) { return "model.model_config." + name; }

  void kind() {
    if (s_.names_below("model.model_config").empty())
      fail_input(s_.place(), "has no model.model_config",
                 "give a configuration of nanotron, or its model: --model NAME or a config.json");
    for (const std::string& path : s_.names_below("model.model_config")) {
      const std::string name = path.substr(path.rfind('.') + 1);
      if (!name.starts_with("is_") || !name.ends_with("_config") || !s_.flag(path, false)) continue;
      const auto* known = std::find_if(std::begin(kinds), std::end(kinds),
                                       [&](const Kind& one) { return name == one.key; });
      const std::string remedy = "give its model: --model NAME or a config.json";
      if (known == std::end(kinds)) s_.fail(path, "is of a model that is not known", remedy);
      if (known->unpriced)
        s_.fail(path, "means " + std::string{known->unpriced} + ", which nothing prices",
                "import a run of a model of attention and MLPs or experts");
      kind_ = name;
    }
  }

  bool is(const char* kind) const { return kind_ == kind; }

  void sizes() {
    const std::int64_t hidden = s_.required(key("hidden_size"));
    const std::int64_t heads = s_.required(key("num_attention_heads"));
    layers_ = s_.required(key("num_hidden_layers"));
    json_.number("layers", layers_);
    json_.number("hidden", hidden);
    json_.number("heads", heads);
    const bool one_key = is("is_starcoder2_config") && !s_.flag(key("grouped_query"), false);
    json_.number("kv_heads",
                 s_.number(key("num_key_value_heads|") + key("num_kv_heads"), one_key ? 1 : heads));
    json_.number("head_dim", heads > 0 && hidden % heads == 0 ? hidden / heads : hidden);
    ffn_ =
        s_.number(key("intermediate_size"),
                  is("is_starcoder2_config") ? 4 * hidden : s_.required(key("intermediate_size")));
    json_.number("ffn", ffn_);
    const std::string rows = key("vocab_size");
    const std::int64_t vocab = s_.required(rows);
    if (vocab < 1)
      s_.fail(rows, "is " + std::to_string(vocab) + ": the data say it",
              "give it: --set " + rows + "=N");
    const std::int64_t multiple =
        std::max<std::int64_t>(1, s_.number("model.make_vocab_size_divisible_by", 1));
    json_.number("vocab", padded_rows(vocab, multiple * std::clamp<std::int64_t>(tp_, 1, 1 << 20)));
    json_.number("seq", s_.number(key("max_position_embeddings"), 2048));
  }

  void layer() {
    const bool starcoder = is("is_starcoder2_config");
    json_.flag("swiglu", !starcoder);
    json_.word("norm", starcoder ? "layer" : "rms");
    json_.word("positions", "rotary");
    const bool bias = s_.flag(key("attention_bias"), false) || starcoder;
    json_.flag("qkv_bias", bias);
    json_.flag("out_bias", starcoder);
    json_.flag("mlp_bias", starcoder);
    json_.flag("tied_embeddings", s_.flag(key("tie_word_embeddings"), starcoder));
    const std::string window = key("sliding_window_size|") + key("sliding_window");
    json_.number("window", s_.number(window, 0));
    if (is_on(s_, key("kv_lora_rank")))
      s_.fail(key("kv_lora_rank"), "means latent attention, which is not read here",
              "give its model: --model NAME or a config.json");
    if (s_.flag(key("_use_doc_masking"), false))
      notes_.push_back(key("_use_doc_masking") +
                       " hides documents from one another; assumed: attention over the whole "
                       "sequence");
  }

  void experts() {
    const std::string count = key("moe_config.num_experts|") + key("moe_num_experts|") +
                              key("num_local_experts|") + key("num_experts");
    if (!is_on(s_, count)) return;
    json_.number("experts", s_.number(count, 0));
    const std::string in_config = key("moe_config.");
    json_.number("top_k", s_.number(in_config + "top_k|" + key("num_experts_per_tok"), 2));
    const bool nested = s_.has(key("moe_config"));
    json_.number("moe_ffn", s_.number(in_config + "moe_intermediate_size", nested ? 1408 : ffn_));
    const std::string width = in_config + "shared_expert_intermediate_size";
    const bool shared = s_.flag(in_config + "enable_shared_expert", false);
    json_.number("shared_expert_ffn", shared ? s_.number(width, 5632) : 0);
    s_.find(width);
    const std::vector<std::string> layers = s_.words(in_config + "layers");
    if (!layers.empty() && layers != std::vector<std::string>{"-1"} &&
        static_cast<std::int64_t>(layers.size()) != layers_)
      s_.fail(in_config + "layers",
              "gives experts to " + grouped(static_cast<std::int64_t>(layers.size())) + " of " +
                  grouped(layers_) + " layers, which is not read",
              "write [-1] for all layers, or give its model: --model FILE");
    json_.number("dense_layers", std::int64_t{0});
  }

  const Settings& s_;
  std::int64_t tp_;
  std::vector<std::string>& notes_;
  std::string kind_;
  ModelSizes json_;
  std::int64_t layers_ = 0, ffn_ = 0;
};

}  // namespace

Model nanotron_model(const Settings& settings, const std::string& name, std::int64_t tp,
                     std::vector<std::string>& notes) {
  return NanotronModel{settings, tp, notes}.read(name);
}

namespace {

constexpr PricedOtherwise nanotron_differences[] = {
    {"model.model_config.z_loss_enabled",
     "adds a loss that reads the logits again, which is not priced"},
    {"parallelism.domino", "overlaps halves of a micro-batch (Domino)"},
};

// They change neither time nor memory of a step.
const std::vector<std::string> inactive_keys = words_in(R"(
    checkpoints. data. data_stages doremi experiment_logger. general. lighteval. logging.
    metrics_logging. model.init_method model.model_config._ model.model_config.bos_token_id
    model.model_config.eos_token_id model.model_config.flex_attention_mask
    model.model_config.hidden_act model.model_config.initializer_range model.model_config.is_
    model.model_config.log_attn_probs model.model_config.no_rope_layer
    model.model_config.pad_token_id model.model_config.pretraining_tp
    model.model_config.ring_attn_heads_k_stride model.model_config.moe_config.router_aux_loss_coef
    model.model_config.rms_norm_eps model.model_config.rope_ model.model_config.interleaved_rotary
    model.model_config.use_cache model.model_config.z_loss optimizer.adam_ optimizer.clip_grad
    optimizer.learning_rate_scheduler optimizer.optimizer_factory. optimizer.torch_adam_is_fused
    optimizer.update_clipping optimizer.weight_decay profiler. s3_upload tokenizer. tokens.limit_
    tokens.train_steps tokens.val_check_interval validation. wandb)");

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
    note_otherwise(s_, nanotron_differences, r_.notes);
    note_unread(s_, inactive_keys, r_.notes);
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
    // parallel/tensor_parallel/functional.py overlaps it if activations are sharded.
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
           "keeps what was gathered; assumed: a second gather in the backward pass");
    if (const std::int64_t ep = s_.number("parallelism.expert_parallel_size", 1); ep != 1)
      s_.fail("parallelism.expert_parallel_size",
              "is " + grouped(ep) +
                  ": expert ranks are separate from the replicas, "
                  "which no plan can say",
              "write 1 (--set parallelism.expert_parallel_size=1), and try --ep of `orrery "
              "estimate`");
    r_.etp = r_.tp;
  }

  void optimizer() {
    const std::string name = s_.word("optimizer.optimizer_factory.name", "adamW");
    if (name != "adamW" && name != "adam")
      refuse_decisive("optimizer.optimizer_factory.name", "is " + shown_text(name),
                      s_.place_of("optimizer.optimizer_factory.name"));
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
           "in narrow formats; assumed: Megatron-Core's fp8");
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

  // The software is Megatron-Core with gradients of the same width if nanotron's own description
  // lacks what the run asks for.
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
           "runs all forward passes before all backward passes; assumed: 1f1b, which takes as "
           "long and holds fewer activations");
    r_.notes.push_back("the nearest software is " + r_.software +
                       ": nanotron launches PyTorch's kernels one by one, of which it fuses fewer");
  }

  void stages() {
    if (r_.pp < 2 || r_.model->experts || r_.pp > r_.model->layers) return;
    r_.layers.of = nanotron_stages(*r_.model, static_cast<int>(r_.pp));
  }

  bool runs_forward_first_ = false;  ///< Pipelines run all forward passes before backward ones.
  const Settings& s_;
  const RecipeAnswers& answers_;
  Recipe r_;
  std::int64_t dp_ = 1;
};

}  // namespace

ImportedRun import_nanotron_run(const std::string& text, const std::string& file,
                                const RecipeAnswers& answers) {
  require_text(text, file, "a configuration of nanotron");
  refuse_other_file(text, file, "nanotron");
  Settings settings{read_yaml(text, file), file};
  take_answers(settings, answers);
  if (settings.names_below("parallelism").empty() || settings.names_below("tokens").empty())
    fail_input(settings.place(), "has no parallelism or no tokens",
               "give a configuration of nanotron");
  return NanotronReader{settings, answers}.read();
}

}  // namespace orrery
