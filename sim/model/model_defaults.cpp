#include "sim/model/model_defaults.hpp"

#include <cctype>
#include <string_view>

#include "sim/model/model.hpp"

namespace orrery {
namespace {

// "Qwen3_30B_a3B" and "qwen3-30b-a3b" are the same name; "Qwen 32B" must not look like Qwen3.
std::string comparable(const std::string& name) {
  std::string word;
  for (const char c : name)
    word +=
        c == '_' || c == ' ' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return word;
}

// The layer of GPT-2 and GPT-3, the default of Megatron-LM.
void make_gpt_like(ModelDefaults& defaults, const JsonValue& json) {
  Model& model = defaults.model;
  model.gated = false;
  model.norm = NormKind::layer;
  model.norm_bias = true;
  model.qkv_bias = model.out_bias = model.mlp_bias = true;
  defaults.positions = Positions::learned;
  // GPT-2 and Megatron-LM until 2023 share one table. Megatron Core's benchmarks with 131,072
  // tokens and more do not: "GPT-1.7B" of 24 layers of 2048 has 1.7e9 parameters only with two
  // tables, and gpt3_7b's configuration says --untie-embeddings-and-output-weights.
  constexpr std::int64_t megatron_core_vocab = 131'072;
  const auto vocab = json.find("vocab");
  model.tied_embeddings = !vocab || vocab->integer(1, max_tokens) < megatron_core_vocab;
}

// DeepSeek-V3 (arXiv 2412.19437, section 4.2): one shared expert, dense layers 18,432 wide, 8
// groups of which a token reaches 4, correction biases. Kimi K2 (arXiv 2507.20534, section 2.3) has
// one group; DeepSeek-V2 (arXiv 2405.04434, section 3.1.2) reaches 3 of 8 and corrects nothing.
void make_deepseek_like(ModelDefaults& defaults, const std::string& word) {
  const bool second = word.find("v2") != word.npos;
  defaults.dense_ffn = 18'432;
  defaults.one_shared_expert = true;
  defaults.correction_bias = !second;
  if (!word.starts_with("deepseek")) return;
  defaults.expert_groups = 8;
  defaults.groups_per_token = second ? 3 : 4;
}

}  // namespace

bool is_latent(const JsonValue& json) {
  const auto mla = json.find("mla");
  return mla && (mla->is_object() || mla->boolean());
}

LatentAttention deepseek_latent_attention() {
  return {.q_rank = 1536, .kv_rank = 512, .nope_dim = 128, .rope_dim = 64, .v_dim = 128};
}

ModelDefaults model_defaults(const std::string& name, const JsonValue& json) {
  ModelDefaults defaults;  // Llama's layer: RMS norm, rotary, no bias, untied.
  Model& model = defaults.model;
  model.gated = true;
  const std::string word = comparable(name);
  const auto is = [&](std::string_view prefix) { return word.starts_with(prefix); };

  if (is("mpt")) {
    // llm-foundry's MPT: ALiBi, layer norms without bias, no bias at all, a tied table.
    model.gated = false;
    model.norm = NormKind::layer;
    model.tied_embeddings = true;
    defaults.positions = Positions::alibi;
  } else if (is("nemotron")) {
    // Nemotron-4 (arXiv 2402.16819, section 2): squared ReLU, no bias, rotary, untied. Its layer
    // norms (NeMo's layernorm1p) do have a bias.
    model.gated = false;
    model.norm = NormKind::layer;
    model.norm_bias = true;
  } else if (is("gpt-oss")) {
    // GPT-OSS (arXiv 2508.10925, section 2): heads of 64 for every width, biases everywhere, one
    // sink a head, both sides of the gate clamped, every other layer attends to 128 tokens only,
    // and YaRN's positions.
    model.head_dim = 64;
    model.qkv_bias = model.out_bias = model.mlp_bias = model.attention_sinks = true;
    model.clamped_activation = true;
    defaults.positions = Positions::yarn;
    model.window = 128;
    defaults.global_every = 2;
  } else if (is("gpt")) {
    // Megatron-LM's GPT also with grouped key/value heads: its gpt3_7b benchmark sets no --swiglu.
    make_gpt_like(defaults, json);
  } else if (is("qwen3")) {
    // Qwen3 (arXiv 2505.09388, section 2): heads of 128 for every width, norms on q and k.
    model.head_dim = 128;
    model.qk_norm = true;
  } else if (is("qwen2")) {
    // Qwen2 (arXiv 2407.10671, section 2.2): biases on q, k and v only.
    model.qkv_bias = true;
  } else if (is_latent(json)) {
    make_deepseek_like(defaults, word);
  } else if (!is("llama") && !json.has("experts")) {
    // Grouped heads and gated MLPs came with Llama 2; sizes without either are a GPT's.
    const auto kv_heads = json.find("kv_heads");
    const bool grouped =
        kv_heads && kv_heads->integer(1, max_heads) != json.at("heads").integer(1, max_heads);
    const auto swiglu = json.find("swiglu");
    if (!grouped && !(swiglu && swiglu->boolean())) make_gpt_like(defaults, json);
  }
  // NVIDIA's tables state for some rows if the prediction layer was trained: "DeepSeekV3 (w/ MTP)"
  // has 260 GFLOP a token there (TFLOP/s over tokens/s), "(w/o MTP)" 250. Rows without a statement
  // have 260.
  if (is("deepseekv3") && word.find("(w/o-mtp)") == word.npos) model.prediction_layers = 1;
  return defaults;
}

}  // namespace orrery
