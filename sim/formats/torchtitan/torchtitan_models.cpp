#include "sim/formats/torchtitan/torchtitan_models.hpp"

#include "sim/formats/recipe/recipe.hpp"

namespace orrery {
namespace {

// torchtitan, torchtitan/models/*/__init__.py and model/args.py, before its settings became Python
// (its commit 9810191bb of February 2026). Widths of MLPs are those that args.py computes from
// dim, multiple_of and ffn_dim_multiplier. Of Llama 2, models/llama/__init__.py of 2024.
struct Flavor {
  std::string_view family, flavor;
  std::string_view catalog;  ///< Its name there; empty: sizes say it.
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

// As Scout (config.json of Llama-4-Scout-17B-16E), with attention over the whole sequence.
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

}  // namespace orrery
