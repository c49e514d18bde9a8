#include "sim/formats/torchtitan/torchtitan_run.hpp"

#include <algorithm>

#include "sim/core/json_value.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/text_file.hpp"
#include "sim/core/value_list.hpp"
#include "sim/formats/recipe/decisive_keys.hpp"
#include "sim/formats/recipe/other_launchers.hpp"
#include "sim/formats/recipe/recipe.hpp"
#include "sim/formats/settings/settings_files.hpp"

namespace orrery {
namespace {

// torchtitan, torchtitan/models/*/__init__.py and model/args.py, before its settings became Python
// (its commit 9810191bb of February 2026). Widths of MLPs are those that args.py computes from
// dim, multiple_of and ffn_dim_multiplier. Of Llama 2, models/llama/__init__.py of 2024.
struct Flavor {
  std::string_view family, flavor;
  std::string_view catalog;  ///< Catalog name; empty: `sizes` describes it.
  std::string_view sizes;
};

constexpr std::string_view llama3_debug =
    R"({"layers": 6, "hidden": 256, "heads": 16, "kv_heads": 16, "head_dim": 16, "ffn": 768,
        "vocab": 2048, "seq": 131072, "swiglu": true, "norm": "rms", "positions": "rotary",
        "bias": false, "tied_embeddings": false})";

constexpr std::string_view deepseek_debug =
    R"({"layers": 6, "hidden": 256, "heads": 16, "ffn": 1024, "vocab": 2048, "seq": 16384,
        "swiglu": true, "norm": "rms", "positions": "rotary", "bias": false,
        "tied_embeddings": false,
        "mla": {"q_lora_rank": 0, "kv_lora_rank": 512, "qk_head_dim": 128,
                "qk_pos_emb_head_dim": 64, "v_head_dim": 128},
        "experts": 8, "top_k": 3, "moe_ffn": 256, "shared_expert_ffn": 512, "dense_layers": 1,
        "expert_groups": 1, "groups_per_token": 1, "correction_bias": true})";

// Sizes of Scout (config.json of Llama-4-Scout-17B-16E), with attention over the whole sequence.
constexpr std::string_view scout =
    R"({"layers": 48, "hidden": 5120, "heads": 40, "kv_heads": 8, "head_dim": 128, "ffn": 16384,
        "vocab": 202048, "seq": 10485760, "swiglu": true, "norm": "rms", "positions": "rotary",
        "bias": false, "tied_embeddings": false, "experts": 16, "top_k": 1, "moe_ffn": 8192,
        "shared_expert_ffn": 8192, "dense_layers": 0, "expert_groups": 1, "groups_per_token": 1,
        "correction_bias": true})";

// Experts in every second layer, which config.json of Llama-4-Maverick-17B-128E says.
constexpr std::string_view maverick =
    R"({"model_type": "llama4_text", "num_hidden_layers": 48, "hidden_size": 5120,
        "num_attention_heads": 40, "num_key_value_heads": 8, "head_dim": 128,
        "intermediate_size": 8192, "intermediate_size_mlp": 16384, "num_local_experts": 128,
        "num_experts_per_tok": 1, "interleave_moe_layer_step": 2, "vocab_size": 202048,
        "max_position_embeddings": 1048576, "attention_chunk_size": 1048576})";

constexpr Flavor flavors[] = {
    {"llama2", "7B", "llama2-7b", ""},
    {"llama2", "13B", "llama2-13b", ""},
    {"llama2", "70B", "llama2-70b", ""},
    {"llama3", "debugmodel", "", llama3_debug},
    {"llama3", "debugmodel_flex_attn", "", llama3_debug},
    {"llama3", "debugmodel_varlen_attn", "", llama3_debug},
    {"llama3", "8B", "llama3.1-8b", ""},
    {"llama3", "8B_flex", "llama3.1-8b", ""},
    {"llama3", "8B_varlen", "llama3.1-8b", ""},
    {"llama3", "70B", "llama3.1-70b", ""},
    {"llama3", "405B", "llama3.1-405b", ""},
    {"llama4", "17bx16e", "", scout},
    {"llama4", "17bx128e", "", maverick},
    {"deepseek_v3", "debugmodel", "", deepseek_debug},
    {"deepseek_v3", "debugmodel_flex_attn", "", deepseek_debug},
    {"deepseek_v3", "16B", "",
     R"({"layers": 27, "hidden": 2048, "heads": 16, "ffn": 10944, "vocab": 102400, "seq": 16384,
         "swiglu": true, "norm": "rms", "positions": "rotary", "bias": false,
         "tied_embeddings": false,
         "mla": {"q_lora_rank": 0, "kv_lora_rank": 512, "qk_head_dim": 128,
                 "qk_pos_emb_head_dim": 64, "v_head_dim": 128},
         "experts": 64, "top_k": 6, "moe_ffn": 1408, "shared_expert_ffn": 2816, "dense_layers": 1,
         "expert_groups": 1, "groups_per_token": 1, "correction_bias": true})"},
    {"deepseek_v3", "236B", "deepseek-v2", ""},
    {"deepseek_v3", "671B", "deepseek-v3", ""},
    {"qwen3", "debugmodel", "",
     R"({"layers": 8, "hidden": 256, "heads": 16, "kv_heads": 8, "head_dim": 128, "ffn": 3072,
         "vocab": 2048, "seq": 4096, "swiglu": true, "norm": "rms", "positions": "rotary",
         "bias": false, "tied_embeddings": true, "qk_norm": true})"},
    {"qwen3", "debugmodel_moe", "",
     R"({"layers": 8, "hidden": 256, "heads": 16, "kv_heads": 8, "head_dim": 128, "ffn": 3072,
         "vocab": 2048, "seq": 4096, "swiglu": true, "norm": "rms", "positions": "rotary",
         "bias": false, "tied_embeddings": false, "qk_norm": true, "experts": 64, "top_k": 8,
         "moe_ffn": 768, "shared_expert_ffn": 0, "dense_layers": 0, "correction_bias": true})"},
    {"qwen3", "0.6B", "qwen3-0.6b", ""},
    {"qwen3", "1.7B", "",
     R"({"layers": 28, "hidden": 2048, "heads": 16, "kv_heads": 8, "head_dim": 128, "ffn": 6144,
         "vocab": 151936, "seq": 4096, "swiglu": true, "norm": "rms", "positions": "rotary",
         "bias": false, "tied_embeddings": true, "qk_norm": true})"},
    {"qwen3", "4B", "",
     R"({"layers": 36, "hidden": 2560, "heads": 32, "kv_heads": 8, "head_dim": 128, "ffn": 9728,
         "vocab": 151936, "seq": 4096, "swiglu": true, "norm": "rms", "positions": "rotary",
         "bias": false, "tied_embeddings": true, "qk_norm": true})"},
    {"qwen3", "8B", "qwen3-8b", ""},
    {"qwen3", "14B", "qwen3-14b", ""},
    {"qwen3", "32B", "qwen3-32b", ""},
    {"qwen3", "30B-A3B", "qwen3-30b-a3b", ""},
    {"qwen3", "235B-A22B", "qwen3-235b-a22b", ""},
    {"gpt_oss", "20b", "",
     R"({"layers": 24, "hidden": 2880, "heads": 64, "kv_heads": 8, "head_dim": 64, "ffn": 2880,
         "vocab": 201088, "seq": 131072, "swiglu": true, "norm": "rms", "positions": "rotary",
         "bias": true, "tied_embeddings": false, "attention_sinks": true,
         "clamped_activation": true, "window": 128, "global_every": 2, "experts": 32, "top_k": 4,
         "moe_ffn": 2880})"},
    {"gpt_oss", "120b", "gpt-oss-120b", ""},
};

// "llama3" of "simple_fsdp.llama3" and of "llama3_ft", which train it in another way.
std::string plain(const std::string& family) {
  std::string name = family.substr(family.rfind('.') + 1);
  if (name.ends_with("_ft")) name.resize(name.size() - 3);
  return name;
}

}  // namespace

std::optional<Model> torchtitan_model(const std::string& family, const std::string& flavor,
                                      const std::string& name) {
  for (const Flavor& one : flavors) {
    if (one.family != plain(family) || one.flavor != flavor) continue;
    if (!one.catalog.empty()) return read_model(std::string{one.catalog}, {"", ""});
    return model_of_sizes(std::string{one.sizes}, name,
                          "torchtitan, models/" + std::string{one.family} + ", flavor " + flavor);
  }
  return std::nullopt;
}

std::vector<std::string> torchtitan_flavors(const std::string& family) {
  std::vector<std::string> known;
  for (const Flavor& one : flavors)
    if (one.family == plain(family)) known.emplace_back(one.flavor);
  return known;
}

namespace {

// Settings that were in [training] and [experimental] until 2025, behind their newer names.
const std::string data_replicate =
    "parallelism.data_parallel_replicate_degree|training.data_parallel_replicate_degree";
const std::string data_shard =
    "parallelism.data_parallel_shard_degree|training.data_parallel_shard_degree|"
    "training.data_parallel_degree";
const std::string async_tp =
    "parallelism.enable_async_tensor_parallel|experimental.enable_async_tensor_parallel";
const std::string pipeline = "parallelism.pipeline_parallel_";
const std::string old_pipeline = "experimental.pipeline_parallel_";
const std::string compiled = "compile.enable|training.compile";

constexpr PricedOtherwise differences[] = {
    {"parallelism.disable_loss_parallel|training.disable_loss_parallel",
     "gathers the logits of all ranks"},
    {"optimizer.early_step_in_backward", "runs the optimizer within the backward pass"},
    {"fault_tolerance.enable", "replicates by TorchFT; assumed: replicas of one job"},
    {"parallelism.module_fqns_per_model_part|experimental.pipeline_parallel_split_points|"
     "parallelism.pipeline_parallel_split_points",
     "chooses the layers of each stage"},
};

// Words in the names of models that are not supported.
struct UnpricedFamily {
  std::string_view word, what;
};
constexpr UnpricedFamily unpriced_families[] = {
    {"flux", "a generator of images"},  {"vlm", "an image encoder"},
    {"_vl", "an image encoder"},        {"siglip", "an image encoder"},
    {"qwen3_next", "linear attention"}, {"nemotron", "Mamba layers"}};

// They change neither time nor memory of a step: data, checkpoints, logs, learning rates.
const std::vector<std::string> inactive = words_in(R"(
    activation_checkpoint.debug activation_checkpoint.determinism_check
    activation_checkpoint.per_op_sac_force activation_checkpoint.preserve_rng_state
    activation_checkpoint.visualize checkpoint. comm. compile.backend debug. experimental.custom_
    fault_tolerance. float8 job. lr_scheduler. memory_estimation. metrics. model.hf_assets_path
    model.norm_type model.print_after_conversion model.tokenizer optimizer.beta optimizer.eps
    optimizer.lr optimizer.weight_decay profiling. quantize training.data_parallel_type
    training.dataloader training.dataset training.deterministic training.gc_ training.max_norm
    training.seed training.steps training.warmup_steps
    validation.)");

// "Interleaved1F1B" and "interleaved_1f1b" are the same.
std::string plain_word(const std::string& text) {
  std::string plain;
  for (const char c : text)
    if (c != '_' && c != '-')
      plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return plain;
}

class TorchtitanReader {
 public:
  TorchtitanReader(Settings& settings, const RecipeAnswers& answers)
      : s_{settings}, answers_{answers} {}

  ImportedRun read() {
    model();
    degrees();
    stages();
    batch();
    sharding();
    precision();
    recompute();
    differences_and_rest();
    return written_plan(r_, s_.place());
  }

 private:
  void note(const std::string& paths, const std::string& sentence) {
    r_.notes.push_back(s_.name(paths) + " " + sentence);
  }

  void model() {
    const std::string family = s_.word("model.name", "llama3");
    const std::string flavor = s_.word("model.flavor", "debugmodel");
    r_.model = model_of_answer(answers_);
    if (!r_.model) r_.model = torchtitan_model(family, flavor, answers_.name);
    if (!r_.model) fail_without_model(family, flavor);
    if (flavor.ends_with("_flex") || flavor.ends_with("_flex_attn") ||
        flavor.ends_with("_varlen") || flavor.ends_with("_varlen_attn"))
      note("model.flavor",
           "hides documents from one another; assumed: attention over the whole sequence");
  }

  [[noreturn]] void fail_without_model(const std::string& family, const std::string& flavor) const {
    for (const UnpricedFamily& other : unpriced_families)
      if (family.find(other.word) != family.npos)
        s_.fail("model.name",
                "is '" + shown_text(family) + "': nothing prices " + std::string{other.what},
                "import a job of a language model");
    const std::string remedy = "give its shape: --model NAME or a config.json";
    const std::string known = joined(torchtitan_flavors(family));
    if (known.empty())
      s_.fail("model.name", "is '" + shown_text(family) + "', a model that is not known", remedy);
    s_.fail(
        "model.flavor",
        "is '" + shown_text(flavor) + "', a flavor of " + shown_text(family) + " that is not known",
        "known are " + known + "; or " + remedy);
  }

  void degrees() {
    r_.tp = s_.number("parallelism.tensor_parallel_degree|training.tensor_parallel_degree", 1);
    r_.cp =
        s_.number("parallelism.context_parallel_degree|experimental.context_parallel_degree", 1);
    r_.cp_comm = s_.choice(
        "parallelism.context_parallel_rotate_method|experimental.context_parallel_rotate_method",
        {{"allgather", "all_gather"}, {"alltoall", "p2p"}});
    s_.find("parallelism.context_parallel_load_balancer");  // The estimate assumes even shares.
    r_.pp = s_.number(
        pipeline + "degree|" + old_pipeline + "degree|training.pipeline_parallel_degree", 1);
    r_.sp = true;
    r_.tp_overlap = s_.flag(async_tp, false);
    if (r_.tp_overlap && !s_.flag(compiled, false)) {
      r_.tp_overlap = false;
      if (r_.tp > 1) note(async_tp, "has no effect without compile.enable");
    }
    r_.ep = s_.number("parallelism.expert_parallel_degree", 1);
    r_.etp = s_.number("parallelism.expert_tensor_parallel_degree", 1);
    if (r_.ep == 1) r_.etp = r_.tp;  // Without expert ranks, experts are sharded like all else.
    r_.moe_dispatcher =
        s_.choice("parallelism.expert_parallel_comm_backend",
                  {{"standard", "alltoall"}, {"deepep", "deepep"}, {"hybridep", "hybridep"}});
  }

  void stages() {
    const std::string kind = pipeline + "schedule|" + old_pipeline + "schedule";
    const std::string file = pipeline + "schedule_csv|" + old_pipeline + "schedule_csv";
    const std::string word = s_.word(kind, "1F1B");
    const std::string per_stage = pipeline + "layers_per_stage";
    const std::int64_t layers_per_stage = s_.number(per_stage, 0);
    const std::int64_t first_less = s_.number(pipeline + "first_stage_less_layers", 1);
    const std::int64_t last_less = s_.number(pipeline + "last_stage_less_layers", 1);
    s_.find(pipeline + "expert_parallel_overlap");  // Only DualPipeV has it.
    if (r_.pp <= 1) return;
    if (!s_.word(file, "").empty())
      s_.fail(file, "names a schedule, which is not read",
              "write it for `orrery estimate --schedule FILE` (docs/guides/own-pipelines.md)");
    const std::string plain = plain_word(word);
    if (plain == "1f1b" || plain == "gpipe") {
      r_.schedule = plain;
    } else if (plain == "interleaved1f1b" || plain == "flexibleinterleaved1f1b" ||
               plain == "loopedbfs") {
      r_.schedule = plain == "loopedbfs" ? "looped-bfs" : "interleaved";
      r_.vpp = 2;  // distributed/pipeline_parallel.py: two stages a rank, unless layers are given.
      if (layers_per_stage > 0)
        r_.vpp = (r_.model->layers + first_less + last_less + layers_per_stage - 1) /
                 layers_per_stage / r_.pp;
      if (r_.vpp < 2)
        s_.fail(per_stage, "is " + grouped(layers_per_stage) + ", which leaves a rank one stage",
                "lower it, or write pipeline_parallel_schedule = \"1F1B\"");
    } else {
      s_.fail(kind, "is '" + shown_text(word) + "', which has no prices with torchtitan",
              "write 1F1B, GPipe, Interleaved1F1B or LoopedBFS: --set " + s_.name(kind) + "=1F1B");
    }
    r_.layers = layers_of_stages(first_less, last_less);
  }

  // Embedding and head count as layers of the first and the last stage, and those that are left
  // over go to the first ones (torchtitan, distributed/pipeline_parallel.py,
  // generate_llm_fqn_per_model_part).
  StageLayers layers_of_stages(std::int64_t first_less, std::int64_t last_less) const {
    const std::int64_t stages = r_.pp * r_.vpp;
    const std::int64_t counted = r_.model->layers + first_less + last_less;
    constexpr std::int64_t most = 20'000;  // The limit of a plan.
    if (stages > most || counted / stages <= std::max(first_less, last_less)) return {};
    StageLayers layers;
    for (std::int64_t stage = 0; stage < stages; ++stage)
      layers.of.push_back(static_cast<int>(counted / stages + (stage < counted % stages ? 1 : 0)));
    layers.of.front() -= static_cast<int>(first_less);
    layers.of.back() -= static_cast<int>(last_less);
    return layers;
  }

  // Without a pipeline the local batch is one micro-batch, and more of them fill the global batch.
  void batch() {
    const std::string local = "training.local_batch_size|training.batch_size";
    const std::int64_t own = s_.number(local, 8);
    if (own < 1) s_.fail(local, "is " + grouped(own), "write a number from 1 on");
    const std::int64_t all = s_.number("training.global_batch_size", -1);
    r_.seq = s_.number("training.seq_len", 2048);
    r_.per_replica = own;
    if (all > 0) r_.gbs = all;
    r_.mbs = own;
    const std::string size = pipeline + "microbatch_size";
    const std::string count = old_pipeline + "microbatches|" + pipeline + "microbatches";
    const std::int64_t each = s_.number(size, 1);
    // A setting of 2024 gave their number, by default as many as there are stages.
    const std::int64_t number = s_.number(count, 0);
    if (r_.pp <= 1) return;
    const bool counts = number > 0 || (!s_.has(size) && s_.has(old_pipeline + "degree"));
    const std::int64_t microbatches = number > 0 ? number : r_.pp;
    r_.mbs = counts ? own / std::max<std::int64_t>(microbatches, 1) : each;
    if (r_.mbs < 1 || own % r_.mbs != 0)
      s_.fail(local,
              "is " + grouped(own) + ", which " +
                  (counts ? grouped(microbatches) + " micro-batches do not divide"
                          : grouped(each) + ", the size of a micro-batch, does not divide"),
              "write a multiple");
    if (all > 0) r_.local_batch = own;
  }

  void sharding() {
    const std::int64_t copies = s_.number(data_replicate, 1);
    std::int64_t shards = s_.number(data_shard, -1);
    r_.gpus = answers_.gpus;
    const std::int64_t others = product_of({copies, r_.tp, r_.pp, r_.cp});
    if (!r_.gpus && shards > 0) r_.gpus = product_of({others, shards});
    if (shards < 0 && r_.gpus && others > 0) shards = *r_.gpus / others;
    // parallel_dims.py: FSDP shards over context-parallel ranks too; without both it is DDP.
    const bool shares = shards != 1 || r_.cp > 1;
    r_.zero = shares ? 3 : 0;
    const std::string when = s_.choice(
        "parallelism.fsdp_reshard_after_forward|"
        "training.fsdp_reshard_after_forward",
        {{"default", "default"}, {"always", "yes"}, {"never", "no"}});
    r_.reshard = when == "default" ? r_.pp == 1 : when == "yes";
    if (shares) r_.dp_replicate = copies;
    // fully_shard's CPUOffloadPolicy, and nothing without FSDP (parallelize.py).
    r_.offload_weights = s_.flag("training.enable_cpu_offload", false) && shares;
    if (r_.offload_weights) r_.offload_optimizer = 100;
  }

  void precision() {
    const std::string param = s_.word("training.mixed_precision_param", "bfloat16");
    if (param != "bfloat16" && param != "float32")
      s_.fail("training.mixed_precision_param",
              "is '" + shown_text(param) + "', which has no prices",
              "write bfloat16: --set training.mixed_precision_param=bfloat16");
    const std::string reduced = s_.word("training.mixed_precision_reduce", "float32");
    if (reduced != "float32")
      note("training.mixed_precision_reduce",
           "is " + shown_text(reduced) +
               ", which halves what is reduced; assumed: gradients are reduced in float32");
    if (param == "float32") {
      r_.dtype = "fp32";
      note("training.mixed_precision_param",
           "is float32: it trains in fp32; where PyTorch may use tf32 (allow_tf32) give --dtype "
           "tf32");
    }
    // Format of weights, of the optimizer's updates and of its moments.
    const std::string made = s_.choice(
        "training.dtype", {{"float32", "fp32"}, {"bfloat16", "bf16"}, {"float16", "fp16"}});
    if (made != "fp32") r_.main_params = "none";
    r_.exp_avg = r_.exp_avg_sq = made;
    if (made != "fp32" && param == "float32")
      s_.fail("training.dtype", "keeps weights in 16 bits that are computed with in 32",
              "write float32: --set training.dtype=float32");
    // "quantize.linear.float8" and "quantize.grouped_mm.float8" since 2025; before, "float8".
    const std::vector<std::string> converters = s_.words("model.converters");
    const auto converts = [&](const std::string& word) {
      return std::find(converters.begin(), converters.end(), word) != converters.end();
    };
    const bool experts = converts("quantize.grouped_mm.float8");
    const bool linear = converts("float8") || converts("quantize.linear.float8") ||
                        is_on(s_,
                              "float8.enable_float8_linear|training.enable_float8_linear|"
                              "training.enable_fp8_linear|training.fp8_linear");
    r_.software = "torchtitan";
    if (experts && !linear)
      note("model.converters", "computes experts in fp8; assumed: all products in 16 bits");
    if (linear) float8(experts);
    const bool mx_experts = converts("quantize.grouped_mm.mx");
    const bool mx_linear = converts("mx") || converts("quantize.linear.mx");
    if (mx_experts && !mx_linear)
      note("model.converters", "computes experts in mxfp8; assumed: all products in 16 bits");
    if (mx_linear) mx(mx_experts, linear);
    for (const char* settings : {"quantize", "float8", "mx"})
      s_.find(settings);  // Of converters alone.
    for (const std::string& converter : converters)
      if (converter.find("float8") == converter.npos && converter != "mx" &&
          !converter.ends_with(".mx"))
        note("model.converters",
             "has " + shown_text(converter) + ", which is not read; assumed: the model without it");
  }

  // `words`: the converters' name of the format.
  void multiply_in(const std::string& dtype, const std::string& words) {
    if (r_.dtype == "fp32")
      s_.fail("training.mixed_precision_param",
              "is 'float32' with " + words + " products, which has no prices",
              "write bfloat16: --set training.mixed_precision_param=bfloat16");
    r_.dtype = dtype;
  }

  // Layers that keep 16 bits although the plan multiplies in `r_.dtype`; `fqns`: the key that lists
  // them.
  void note_layers_in_16_bits(bool experts, const std::string& fqns) {
    if (r_.model->experts && !experts)
      note("model.converters", "leaves experts in 16 bits; assumed: all products in " + r_.dtype);
    std::string kept;
    for (const std::string& word : s_.words(fqns))
      if (word != "output" && word != "router.gate" && !word.starts_with("auto_filter"))
        kept += " " + shown_text(word);
    if (!kept.empty())
      note(fqns, "leaves" + kept + " in 16 bits; assumed: all products of layers in " + r_.dtype);
  }

  void float8(bool experts) {
    multiply_in("fp8", "float8");
    const std::string recipe = s_.choice(
        "quantize.linear.float8.recipe_name|float8.recipe_name",
        {{"", ""}, {"tensorwise", ""}, {"rowwise", "row"}, {"rowwise_with_gw_hp", "high"}});
    if (!recipe.empty()) r_.software = "torchtitan-rowwise";
    if (recipe == "high")
      note("quantize.linear.float8.recipe_name|float8.recipe_name",
           "computes gradients of weights in 16 bits; assumed: all products in fp8");
    const std::string gather =
        "quantize.linear.float8.enable_fsdp_float8_all_gather|"
        "float8.enable_fsdp_float8_all_gather";
    if (s_.flag(gather, false))
      note(gather, "gathers weights in fp8; assumed: a gather in 16 bits");
    note_layers_in_16_bits(experts, "quantize.linear.float8.filter_fqns|float8.filter_fqns");
  }

  // torchao's MXFP8, which torchtitan has from 2025 on.
  void mx(bool experts, bool float8) {
    if (float8)
      s_.fail("model.converters", "has products in float8 and in mxfp8",
              "write one of them: --set model.converters=quantize.linear.mx");
    multiply_in("mxfp8", "mxfp8");
    r_.software = "torchtitan-2026";
    note_layers_in_16_bits(experts, "quantize.linear.mx.filter_fqns|mx.filter_fqns");
  }

  void recompute() {
    const std::string mode = s_.choice("activation_checkpoint.mode", {{"selective", "selective"},
                                                                      {"full", "full"},
                                                                      {"none", "none"},
                                                                      {"memory_budget", "budget"}});
    const std::string option = s_.word("activation_checkpoint.selective_ac_option", "2");
    const bool stops = s_.flag("activation_checkpoint.early_stop", true);
    const bool simple = !r_.model->latent && !r_.model->experts;
    s_.find("activation_checkpoint.memory_budget");
    r_.recompute = mode == "none" ? "none" : "full";
    if (mode == "budget")
      note("activation_checkpoint.mode",
           "lets the compiler choose what is computed again; assumed: everything");
    if (mode == "selective" && option == "op") {
      if (simple)
        r_.recompute = "selective";
      else
        note("activation_checkpoint.selective_ac_option",
             "computes every other product again, which is known only for dense layers; assumed: "
             "everything");
    } else if (mode == "selective" && option != "1") {
      note("activation_checkpoint.selective_ac_option",
           "computes one of " + shown_text(option) + " layers again; assumed: every layer");
    }
    if (mode != "none" && !stops)
      note("activation_checkpoint.early_stop",
           "runs a layer again to its end; assumed: as far as is needed");
  }

  void differences_and_rest() {
    const std::vector<std::string> components = s_.words("compile.components");
    const bool layers = components.empty() || std::find(components.begin(), components.end(),
                                                        "model") != components.end();
    if (!s_.flag(compiled, false))
      note(compiled, "is off; assumed: kernels that torch.compile fused");
    else if (!layers)
      note("compile.components",
           "leaves out the model; assumed: kernels that torch.compile "
           "fused");
    const std::string optimizer = s_.word("optimizer.name", "AdamW");
    if (optimizer != "AdamW" && optimizer != "Adam")
      refuse_decisive("optimizer.name", "is " + shown_text(optimizer),
                      s_.place_of("optimizer.name"));
    if (const std::string how = s_.word("optimizer.implementation", "fused"); how != "fused")
      note("optimizer.implementation", "is " + shown_text(how) + "; assumed: the fused AdamW");
    s_.find("optimizer.fused");
    note_otherwise(s_, differences, r_.notes);
    note_unread(s_, inactive, r_.notes);
  }

  const Settings& s_;
  const RecipeAnswers& answers_;
  Recipe r_;
};

}  // namespace

ImportedRun import_torchtitan_run(const std::string& text, const std::string& file,
                                  const RecipeAnswers& answers) {
  require_text(text, file, "a job file of torchtitan");
  refuse_other_file(text, file, "torchtitan");
  Settings settings{read_toml(text, file), file};
  take_answers(settings, answers);
  if (settings.names_below("training").empty() && settings.names_below("model").empty())
    fail_input(settings.place(), "has neither [training] nor [model]",
               "give a job file of torchtitan");
  return TorchtitanReader{settings, answers}.read();
}

}  // namespace orrery
