#include "sim/formats/megatron/megatron_model.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/core/json_value.hpp"
#include "sim/formats/megatron/layer_pattern.hpp"
#include "sim/formats/megatron/megatron_vocabulary.hpp"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

class ModelReader {
 public:
  ModelReader(const MegatronArguments& arguments, std::vector<std::string>& notes)
      : a_{arguments}, notes_{notes} {}

  Json read(const std::string& name) {
    model_["schema"] = "orrery.model/1";
    model_["name"] = name;
    model_["source"] = "arguments of Megatron-LM";
    sizes();
    layer();
    attention();
    experts();
    return std::move(model_);
  }

 private:
  void sizes() {
    const std::int64_t hidden = a_.required("hidden_size");
    model_["layers"] = layers_ = a_.required("num_layers");
    model_["hidden"] = hidden;
    model_["heads"] = heads_ = a_.required("num_attention_heads");
    const bool gated = a_.flag("swiglu") || a_.flag("quick_geglu") || a_.flag("geglu");
    // arguments.py: of a gated MLP two thirds of 4 h, in whole tiles of 64.
    ffn_ = a_.number("ffn_hidden_size", gated ? 8 * hidden / 3 / 64 * 64 : 4 * hidden);
    model_["ffn"] = ffn_;
    model_["swiglu"] = gated;
    model_["vocab"] = padded_vocabulary(a_, notes_);
    const std::int64_t seq = a_.required("seq_length");
    model_["seq"] = a_.number("max_position_embeddings", seq);
  }

  void layer() {
    model_["norm"] = a_.choice("normalization", {{"LayerNorm", "layer"}, {"RMSNorm", "rms"}});
    const bool old_rotary = a_.flag("use_rotary_position_embeddings");
    const std::string positions = a_.choice(
        "position_embedding_type",
        {{"learned_absolute", "learned"}, {"rope", "rotary"}, {"yarn", "yarn"}, {"none", "none"}});
    model_["positions"] = old_rotary ? "rotary" : positions;
    const bool bias = a_.flag("add_bias_linear", true);
    model_["qkv_bias"] = a_.flag("add_qkv_bias") || bias;
    model_["out_bias"] = bias;
    model_["mlp_bias"] = bias;
    model_["tied_embeddings"] = !a_.flag("untie_embeddings_and_output_weights");
    model_["qk_norm"] = a_.flag("qk_layernorm");
    model_["attention_sinks"] =
        a_.choice("softmax_type", {{"vanilla", ""}, {"off-by-one", ""}, {"learnable", "yes"}}) !=
        "";
    model_["clamped_activation"] = a_.has("activation_func_clamp_value");
    model_["prediction_layers"] = a_.number("mtp_num_layers", 0);
    window();
  }

  // --window-size is "(left, right)": left tokens before a query, and its own; every n-th layer by
  // --window-attn-skip-freq sees all (megatron/core/transformer/utils.py,
  // is_layer_window_attention).
  void window() {
    model_["window"] = 0;
    const auto* given = a_.find("window_size");
    if (!given) return;
    std::string text = given->text();
    std::erase_if(text, [](char c) { return c == '(' || c == ')' || c == ' '; });
    const auto comma = std::min(text.find(','), text.size());
    const std::string left = text.substr(0, comma);
    const bool causal = comma == text.size() || text.substr(comma) == ",0";
    const bool counts = !left.empty() && left.size() < 10 &&
                        left.find_first_not_of("0123456789") == std::string::npos;
    if (!causal || !counts)
      a_.fail("window_size", "is " + shown_text(given->text()),
              "write tokens before a query and 0 after it: \"127,0\"");
    model_["window"] = std::stoll(left) + 1;
    model_["global_every"] = a_.number("window_attn_skip_freq", 0);
  }

  void attention() {
    if (a_.flag("multi_latent_attention")) {
      model_["mla"] = {{"q_lora_rank", a_.number("q_lora_rank", 0)},
                       {"kv_lora_rank", a_.number("kv_lora_rank", 32)},
                       {"qk_head_dim", a_.number("qk_head_dim", 128)},
                       {"qk_pos_emb_head_dim", a_.number("qk_pos_emb_head_dim", 64)},
                       {"v_head_dim", a_.number("v_head_dim", 128)}};
      return;
    }
    const bool grouped = a_.flag("group_query_attention");
    model_["kv_heads"] = grouped ? a_.number("num_query_groups", 1) : heads_;
    const std::int64_t channels = heads_ > 0 ? a_.required("hidden_size") / heads_ : 0;
    model_["head_dim"] = a_.number("kv_channels", channels);
  }

  void experts() {
    const std::int64_t count = a_.number("num_experts", 0);
    if (count == 0) return;
    model_["experts"] = count;
    model_["top_k"] = a_.number("moe_router_topk", 2);
    model_["moe_ffn"] = a_.number("moe_ffn_hidden_size", ffn_);
    model_["shared_expert_ffn"] = a_.number("moe_shared_expert_intermediate_size", 0);
    model_["dense_layers"] = dense_layers();
    model_["expert_groups"] = a_.number("moe_router_num_groups", 1);
    model_["groups_per_token"] = a_.number("moe_router_group_topk", 1);
    model_["correction_bias"] = a_.flag("moe_router_enable_expert_bias");
  }

  std::int64_t dense_layers() {
    const auto* given = a_.find("moe_layer_freq");
    if (!given) return 0;
    const auto pattern = expert_layers(given->text(), static_cast<std::size_t>(layers_));
    const std::size_t dense = pattern ? std::min(pattern->find('1'), pattern->size()) : 0;
    if (!pattern || pattern->find('0', dense) != std::string::npos)
      a_.fail("moe_layer_freq", "is " + shown_text(given->text()),
              "only leading layers may be dense: write \"[0]*3+[1]*58\", in all as many as layers");
    return static_cast<std::int64_t>(dense);
  }

  const MegatronArguments& a_;
  std::vector<std::string>& notes_;
  // An object from the start: operator[] of a null calls it one before it has the memory.
  Json model_ = Json::object();
  std::int64_t layers_ = 0;
  std::int64_t heads_ = 0;
  std::int64_t ffn_ = 0;
};

}  // namespace

Json megatron_model(const MegatronArguments& arguments, const std::string& name,
                    std::vector<std::string>& notes) {
  return ModelReader{arguments, notes}.read(name);
}

}  // namespace orrery
