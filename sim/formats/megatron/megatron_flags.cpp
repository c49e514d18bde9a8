#include <algorithm>
#include <optional>
#include <set>
#include <type_traits>

#include "sim/core/value_list.hpp"
#include "sim/formats/megatron/megatron_parts.hpp"
#include "sim/nccl/nccl_selection.hpp"
#include "sim/plan/plan_keys.hpp"

namespace orrery {
namespace {

class FlagWriter {
 public:
  explicit FlagWriter(const Scenario& scenario)
      : s_{scenario}, model_{scenario.model}, plan_{scenario.plan} {
    if (!model_.pattern) return;
    hybrid_ = hybrid_flags(s_);
    model_ = hybrid_->sizes;
  }

  MegatronFlags write() {
    parallelism();
    pipeline();
    batch();
    shape();
    if (hybrid_) {
      result_.flags.insert(result_.flags.end(), hybrid_->flags.begin(), hybrid_->flags.end());
      result_.left_out.insert(result_.left_out.end(), hybrid_->left_out.begin(),
                              hybrid_->left_out.end());
    }
    if (model_.heads > 0) attention();
    if (model_.experts) experts();
    precision();
    optimizer_state();
    overlaps();
    cuda_graphs();
    nccl();
    add_other_keys();
    if (!s_.software.name.starts_with("megatron-core"))
      leave_out("software=" + s_.software.name + ": the flags are of current Megatron-Core");
    return std::move(result_);
  }

 private:
  void flag(const std::string& text) { result_.flags.push_back("--" + text); }
  template <class Value>
  void flag(const std::string& name, const Value& value) {
    if constexpr (std::is_convertible_v<Value, std::string>)
      flag(name + " " + std::string{value});
    else
      flag(name + " " + std::to_string(value));
  }
  void leave_out(const std::string& what) { result_.left_out.push_back(what); }

  /// A key that needs no translation: a number or word, or a switch that is on.
  void add_key(const PlanKey& key) {
    const FieldValue value = key.access.value(plan_);
    if (!std::holds_alternative<bool>(value))
      flag(key.megatron, text_of(value));
    else if (std::get<bool>(value))
      flag(key.megatron);
    written_.insert(key.name);
  }
  void add_key(const std::string& name) { add_key(plan_key(name)); }
  /// Writes the plan's keys that no other code has written and that need no translation.
  void add_other_keys() {
    static const std::set<std::string> translated{"offload_layers",
                                                  "offload_modules",
                                                  "bf16_start_layers",
                                                  "bf16_end_layers",
                                                  "vpp",
                                                  "dp",
                                                  "layers",
                                                  "schedule",
                                                  "recompute",
                                                  "zero",
                                                  "reshard",
                                                  "dtype",
                                                  "attention",
                                                  "cp_comm",
                                                  "moe_dispatcher",
                                                  "tp_overlap",
                                                  "routing",
                                                  "cuda_graphs",
                                                  "nccl_algo",
                                                  "nccl_proto",
                                                  "software",
                                                  "main_params",
                                                  "exp_avg",
                                                  "exp_avg_sq",
                                                  "fp8_params",
                                                  "offload_optimizer",
                                                  "offload_weights"};
    for (const PlanKey& key : plan_keys()) {
      if (written_.contains(key.name) || translated.contains(key.name)) continue;
      if (!key.needs_listing(plan_)) continue;
      if (key.megatron.empty())
        leave_out(key.name + "=" + key.text(plan_) + ": Megatron-LM has no flag for it");
      else
        add_key(key);
    }
  }

  bool has_pattern() const { return hybrid_ && hybrid_->cuts_itself; }

  void parallelism() {
    add_key("tp");
    add_key("pp");
    add_key("sp");
    if (plan_.cp > 1) {
      add_key("cp");
      static const char* const types[] = {"p2p", "allgather", "a2a"};
      flag("cp-comm-type", types[static_cast<std::size_t>(plan_.cp_comm)]);
    }
    if (plan_.zero >= 1) flag("use-distributed-optimizer");
    if (plan_.zero >= 2) {
      flag("use-megatron-fsdp");
      flag("data-parallel-sharding-strategy",
           plan_.zero == 2 ? "optim_grads" : "optim_grads_params");
      flag("no-gradient-accumulation-fusion");
      flag("ckpt-format", "fsdp_dtensor");
      if (plan_.shards_weights() && !plan_.reshard)
        leave_out("reshard=false: Megatron-FSDP frees weights after each pass");
    }
  }

  void pipeline() {
    if (!plan_.schedule->in_megatron())
      leave_out("schedule=" + plan_.schedule->name() +
                ": Megatron-LM has 1F1B and interleaved 1F1B");
    const std::vector<int>& split = s_.layers_of;
    const bool even = std::equal(split.begin() + 1, split.end(), split.begin());
    if (has_pattern()) {  // It has the chunks.
    } else if (!even)
      flag("pipeline-model-parallel-layout", "'" + layout() + "'");
    else if (plan_.vpp > 1)
      flag("num-layers-per-virtual-pipeline-stage", split.front());
    if (plan_.vpp > 1 && !s_.software.overlap_pp) flag("no-overlap-p2p-communication");
  }

  // Megatron-Core's letters: E embedding, t layer, m prediction layer, L loss, | between chunks.
  std::string layout() const {
    std::string text;
    const std::vector<int>& split = s_.layers_of;
    for (std::size_t v = 0; v < split.size(); ++v) {
      if (v > 0) text += "|";
      if (v == 0) text += "E";
      text += std::string(static_cast<std::size_t>(split[v]), 't');
      if (v + 1 == split.size())
        text += std::string(static_cast<std::size_t>(model_.prediction_layers), 'm') + "L";
    }
    return text;
  }

  void batch() {
    for (const char* key : {"mbs", "gbs", "seq"}) add_key(key);
    if (plan_.offload_layers > 0) {
      flag("cpu-offloading");
      flag("cpu-offloading-num-layers", plan_.offload_layers);
    }
    if (!plan_.offload_modules.empty()) {
      flag("fine-grained-activation-offloading");
      flag("offload-modules", joined(split(offload_text(plan_.offload_modules), "+"), " "));
      if (plan_.offloads(OffloadModule::fused_group_mlp)) flag("use-transformer-engine-op-fuser");
    }
    if (plan_.recompute.kind == Recompute::full) {
      flag("recompute-granularity", "full");
      const int some = plan_.recompute.layers;
      flag("recompute-method", some > 0 ? "block" : "uniform");
      flag("recompute-num-layers", some > 0 ? some : 1);
    } else if (plan_.recompute.kind == Recompute::selective) {
      flag("recompute-granularity", "selective");
      std::string modules;
      for (std::size_t i = 0; i < enum_words<RecomputeModule>.size(); ++i)
        if (const auto module = static_cast<RecomputeModule>(i); plan_.recompute.selects(module))
          modules += (modules.empty() ? "" : " ") + name(module);
      flag("recompute-modules", modules);
    }
  }

  void shape() {
    if (!has_pattern()) flag("num-layers", model_.layers);
    flag("hidden-size", model_.hidden);
    flag("ffn-hidden-size", model_.ffn);
    flag("num-attention-heads", model_.heads > 0 ? model_.heads : 1);
    flag("vocab-size", model_.vocab);
    padding();
    flag("max-position-embeddings",
         std::max({plan_.seq, model_.max_sequence, model_.learned_positions}));
    if (model_.learned_positions > 0 && plan_.seq > model_.learned_positions)
      leave_out("position_rows=" + std::to_string(model_.learned_positions) +
                ": Megatron-LM has as many as the sequence has tokens");
    if (model_.clamped_activation) {
      // GPT-OSS's: gpt_oss/torch/model.py, swiglu(alpha = 1.702, limit = 7.0), with 1 added.
      flag("quick-geglu");
      flag("glu-linear-offset", "1.0");
      flag("activation-func-clamp-value", "7.0");
    } else if (model_.gated) {
      flag("swiglu");
    }
    flag("normalization", model_.norm == NormKind::rms ? "RMSNorm" : "LayerNorm");
    if (model_.norm == NormKind::layer && !model_.norm_bias)
      leave_out("norm_bias=false: Megatron-LM's LayerNorm has one");
    if (model_.norms_per_layer != 2)
      leave_out("norms_per_layer=" + std::to_string(model_.norms_per_layer) +
                ": Megatron-LM has 2");
    flag("position-embedding-type", model_.learned_positions > 0 ? "learned_absolute"
                                    : model_.scaled_rotary       ? "yarn"
                                    : model_.rotary              ? "rope"
                                                                 : "none");
    if (!model_.tied_embeddings) flag("untie-embeddings-and-output-weights");
    biases();
    if (model_.parallel_residual) leave_out("parallel_residual=true: Megatron-LM has none");
    if (model_.prediction_layers > 0 && !has_pattern())
      flag("mtp-num-layers", model_.prediction_layers);
    if (!s_.software.dropout) {
      flag("attention-dropout", "0.0");
      flag("hidden-dropout", "0.0");
    }
  }

  // Megatron-LM pads the vocabulary to a multiple of 128 times tp; the model's is already padded.
  void padding() {
    if (model_.vocab % (128 * std::int64_t{plan_.tp}) == 0) return;
    std::int64_t divisor = 64;
    while (divisor > 1 && model_.vocab % (divisor * plan_.tp) != 0) divisor /= 2;
    flag("make-vocab-size-divisible-by", divisor);
  }

  void biases() {
    if (model_.qkv_bias && model_.out_bias && model_.mlp_bias) return;
    flag("disable-bias-linear");
    if (model_.qkv_bias) flag("add-qkv-bias");
    if (model_.out_bias || model_.mlp_bias)
      leave_out(std::string{model_.out_bias ? "out_bias" : "mlp_bias"} +
                "=true: Megatron-LM has both or none");
  }

  void attention() {
    if (const auto& latent = model_.latent) {
      flag("multi-latent-attention");
      if (latent->q_rank > 0) flag("q-lora-rank", latent->q_rank);
      flag("kv-lora-rank", latent->kv_rank);
      flag("qk-head-dim", latent->nope_dim);
      flag("qk-pos-emb-head-dim", latent->rope_dim);
      flag("v-head-dim", latent->v_dim);
    } else {
      if (model_.kv_heads < model_.heads) {
        flag("group-query-attention");
        flag("num-query-groups", model_.kv_heads);
      }
      if (model_.head_dim * model_.heads != model_.hidden) flag("kv-channels", model_.head_dim);
    }
    if (model_.qk_norm) flag("qk-layernorm");
    if (model_.wide_qk_norm) leave_out("wide_qk_norm=true: a norm of Megatron-LM spans one head");
    if (model_.attention_sinks) flag("softmax-type", "learnable");
    window();
    flag("attention-backend", plan_.fused_attention ? "flash" : "unfused");
  }

  // (left, right) of a query, its own token in neither; one layer of every n sees all.
  void window() {
    const std::vector<bool>& local = model_.layer_is_local;
    const auto first = std::find(local.begin(), local.end(), false);
    if (std::find(local.begin(), local.end(), true) == local.end()) return;
    const auto every = static_cast<std::size_t>(first - local.begin()) + 1;
    for (std::size_t layer = 0; layer < local.size(); ++layer)
      if (local[layer] != ((layer + 1) % every != 0))
        return leave_out("window=" + std::to_string(model_.window) +
                         ": not of all layers but every n-th; write --window-attn-skip-freq");
    flag("window-size", std::to_string(model_.window - 1) + ",0");
    if (first != local.end()) flag("window-attn-skip-freq", every);
  }

  void experts() {
    const Experts& experts = *model_.experts;
    add_key("ep");
    add_key("etp");
    flag("num-experts", experts.count);
    flag("moe-router-topk", experts.per_token);
    flag("moe-ffn-hidden-size", experts.ffn);
    if (experts.shared_ffn > 0) flag("moe-shared-expert-intermediate-size", experts.shared_ffn);
    if (experts.shared_gate) flag("moe-shared-expert-gate");
    if (experts.latent > 0) flag("moe-latent-size", experts.latent);
    const std::vector<bool>& layers = model_.layer_has_experts;
    if (!has_pattern() && std::find(layers.begin(), layers.end(), false) != layers.end())
      flag("moe-layer-freq", "'" + layer_pattern() + "'");
    if (experts.groups > 1) {
      flag("moe-router-num-groups", experts.groups);
      flag("moe-router-group-topk", experts.groups_per_token);
    }
    if (experts.correction_bias) {
      flag("moe-router-score-function", "sigmoid");
      flag("moe-router-enable-expert-bias");
    }
    flag("moe-grouped-gemm");
    for (const PlanKey& key : plan_keys())
      if (key.part == PlanPart::experts && !key.megatron.empty()) add_key(key);
    dispatcher();
    if (plan_.routing != "uniform")
      leave_out("routing=" + plan_.routing + ": the data decide which experts tokens choose");
  }

  void dispatcher() {
    switch (plan_.moe_dispatcher) {
      case ExpertDispatcher::all_to_all:
        return flag("moe-token-dispatcher-type", "alltoall");
      case ExpertDispatcher::all_gather:
        return flag("moe-token-dispatcher-type", "allgather");
      case ExpertDispatcher::deepep:
      case ExpertDispatcher::hybridep:
        flag("moe-token-dispatcher-type", "flex");
        return flag("moe-flex-dispatcher-backend", name(plan_.moe_dispatcher));
      default:
        leave_out("moe_dispatcher=" + name(plan_.moe_dispatcher) + ": Megatron-LM has none such");
    }
  }

  void cuda_graphs() {
    if (plan_.cuda_graphs == CudaGraphs::none) return;
    if (plan_.cuda_graphs == CudaGraphs::step) {
      flag("cuda-graph-impl", "local");
      return flag("cuda-graph-scope", "full_iteration");
    }
    flag("cuda-graph-impl", "transformer_engine");
    const bool router = plan_.cuda_graphs != CudaGraphs::attention;
    const bool attention = plan_.cuda_graphs != CudaGraphs::router;
    flag("cuda-graph-scope", std::string{attention ? "attn" : ""} +
                                 (attention && router ? " " : "") +
                                 (router ? "moe_router moe_preprocess" : ""));
  }

  void nccl() {
    for (const auto& [key, variable] :
         {std::pair{"nccl_algo", "NCCL_ALGO"}, std::pair{"nccl_proto", "NCCL_PROTO"}}) {
      std::string names = plan_key(key).text(plan_);
      if (names == plan_key(key).usual) continue;
      std::replace(names.begin(), names.end(), '+', ',');
      leave_out(std::string{key} + ": not a flag; export " + variable + "='" + names + "'");
    }
    const NcclSelection allowed = parse_nccl_selection(plan_.nccl_algo, "");
    for (const NcclAlgorithm* one : nccl_algorithms())
      if (!one->is_default() && allowed.allows_anywhere(*one))
        leave_out("nccl_algo: " + one->word() +
                  " is no word of NCCL_ALGO; the program itself must ask for it");
  }

  // Example: "[0]*3+[1]*58", with 1 for layers with experts.
  std::string layer_pattern() const {
    const std::vector<bool>& layers = model_.layer_has_experts;
    std::string text;
    for (std::size_t begin = 0; begin < layers.size();) {
      std::size_t end = begin;
      while (end < layers.size() && layers[end] == layers[begin]) ++end;
      text += std::string{text.empty() ? "" : "+"} + "[" + (layers[begin] ? "1" : "0") + "]*" +
              std::to_string(end - begin);
      begin = end;
    }
    return text;
  }

  void precision() {
    if (plan_.dtype == Dtype::fp16) return flag("fp16");
    if (is_wide(plan_.dtype)) {
      // Weights are of 32 bits where neither --bf16 nor --fp16 is given; Transformer Engine then
      // multiplies in tf32 (common/gemm/cublaslt_gemm.cu, cublas_gemm).
      if (plan_.dtype == Dtype::fp32) flag("transformer-impl", "local");
      return;
    }
    flag("bf16");
    if (s_.software.gradient_bytes == 2.0) flag("grad-reduce-in-bf16");
    if (plan_.dtype == Dtype::mxfp8) {
      flag("fp8-format", "e4m3");
      flag("fp8-recipe", "mxfp8");
    }
    if (plan_.dtype == Dtype::nvfp4) {
      flag("fp4-format", "e2m1");
      flag("fp4-recipe", "nvfp4");
    }
    if (plan_.keeps_layers_in_bf16()) {
      flag("first-last-layers-bf16");
      flag("num-layers-at-start-in-bf16", plan_.bf16_start_layers);
      flag("num-layers-at-end-in-bf16", plan_.bf16_end_layers);
    }
    add_key("fp8_attention");
    if (plan_.dtype != Dtype::fp8) return;
    flag("fp8-format", "hybrid");
    // Delayed scaling, the default, has no layers in bf16 (transformer_config.py).
    if (plan_.keeps_layers_in_bf16()) return flag("fp8-recipe", "tensorwise");
    leave_out("fp8: which scaling (--fp8-recipe) the plan does not say");
  }

  static std::string percent_text(int percent) {
    return percent == 100 ? "1.0" : "0." + std::to_string(100 + percent).substr(1);
  }

  // Masters of bf16 weights are then their lower 16 bits (store_param_remainders), and whole where
  // a recipe other than delayed scaling quantises the weights.
  void optimizer_state() {
    if (plan_.fp8_params) {
      flag("fp8-param-gather");
      if (plan_.dtype == Dtype::mxfp8) flag("reuse-grad-buf-for-mxfp8-param-ag");
    }
    if (plan_.offload_weights)
      leave_out("offload_weights=true: Megatron-LM keeps weights on the GPU");
    if (plan_.offload_optimizer > 0) {
      // Megatron-LM takes no other Adam on the host (training/arguments.py, validate_args).
      for (const char* needed : {"optimizer-cpu-offload", "use-precision-aware-optimizer"})
        flag(needed);
      flag("optimizer-offload-fraction", percent_text(plan_.offload_optimizer));
      if (plan_.exp_avg != Dtype::fp32 || plan_.exp_avg_sq != Dtype::fp32)
        leave_out("exp_avg=" + plan_key("exp_avg").text(plan_) +
                  ", exp_avg_sq=" + plan_key("exp_avg_sq").text(plan_) +
                  ": Megatron-LM's Adam on the host has moments in fp32");
      return;
    }
    if (plan_.has_fp32_state()) return;
    const bool has_moments =
        plan_.exp_avg != Dtype::int8_block && plan_.exp_avg_sq != Dtype::int8_block;
    if (plan_.main_params == MainParams::none || plan_.main_params == MainParams::bf16 ||
        !has_moments || is_wide(plan_.dtype))
      return leave_out("main_params=" + plan_key("main_params").text(plan_) +
                       ", exp_avg=" + plan_key("exp_avg").text(plan_) + ", exp_avg_sq=" +
                       plan_key("exp_avg_sq").text(plan_) + ": Megatron-LM has no such optimizer");
    flag("use-precision-aware-optimizer");
    if (plan_.main_params == MainParams::fp16) flag("main-params-dtype", "fp16");
    flag("exp-avg-dtype", plan_key("exp_avg").text(plan_));
    flag("exp-avg-sq-dtype", plan_key("exp_avg_sq").text(plan_));
    if (s_.software.main_gradient_bytes == 2.0) flag("main-grads-dtype", "bf16");
    if (plan_.main_params == MainParams::fp32 && plan_.dtype == Dtype::bf16)
      leave_out("main_params=fp32: with bf16 weights Megatron-LM keeps the lower 16 bits");
  }

  void overlaps() {
    add_key("dp_overlap");
    if (plan_.dp_overlap && plan_.zero >= 1) flag("overlap-param-gather");
    if (plan_.tp == 1) return;
    if (plan_.tp_hidden > 0.0 && plan_.sp) flag("tp-comm-overlap");
    // core/tensor_parallel/layers.py: allreduce_dgrad is set wherever sequence_parallel is not.
    if (!plan_.sp && !plan_.tp_overlap() && s_.software.overlap_tp_gradients)
      leave_out(
          "tp_overlap=false: without sequence parallelism Megatron-LM overlaps the gradients' "
          "all-reduce");
  }

  const Scenario& s_;
  Model model_;  ///< For a pattern of layers that of HybridFlags.
  const Plan& plan_;
  std::optional<HybridFlags> hybrid_;
  MegatronFlags result_;
  std::set<std::string> written_;
};

}  // namespace

MegatronFlags megatron_flags(const Scenario& scenario) { return FlagWriter{scenario}.write(); }

std::string megatron_text(const MegatronFlags& flags) {
  return joined(flags.flags, " \\\n") + "\n";
}

}  // namespace orrery
