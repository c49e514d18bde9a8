#include "sim/formats/nanotron/nanotron_model.hpp"

#include <algorithm>

#include "sim/core/json_value.hpp"
#include "sim/core/number_text.hpp"
#include "sim/formats/recipe/model_sizes.hpp"

namespace orrery {
namespace {

// Which class of models_config.py a configuration is of, by the key that is true in it.
struct Kind {
  const char* key;
  const char* unpriced;  ///< What nothing prices; null: it is read.
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
                       " hides documents from one another; priced is attention over the whole "
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

}  // namespace orrery
