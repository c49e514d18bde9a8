#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "sim/core/catalog.hpp"
#include "sim/core/json_value.hpp"
#include "sim/core/nearest.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/value_list.hpp"
#include "sim/formats/megatron/hybrid_pattern.hpp"
#include "sim/formats/megatron/layer_split.hpp"
#include "sim/formats/megatron/megatron_parts.hpp"
#include "sim/model/model.hpp"

namespace orrery {
namespace {

struct Vocabulary {
  std::int64_t tokens = 0;
  std::string source;  ///< "of the GPT2BPETokenizer (Radford et al. 2019)"
};

struct Known {
  std::string_view begins;  ///< Prefix of the name, in small letters.
  std::int64_t tokens;
  std::string_view source;
};

// Types of tokenizers that have one vocabulary (--tokenizer-type).
constexpr Known types[] = {
    {"gpt2bpetokenizer", 50'257, "Radford et al. 2019, section 2.3"},
    {"llama2tokenizer", 32'000, "arXiv 2307.09288, section 2.2"},
    {"tiktokenizer", 131'072, "Megatron-Core, tokenizers/text/libraries/tiktoken_tokenizer.py"},
};

// Models that tokenizers are named after, if the catalog has no model of that name. Figures are
// vocab_size of the config.json next to the tokenizer: the rows that its model has.
constexpr Known families[] = {
    {"llama-2", 32'000, "arXiv 2307.09288, section 2.2"},
    {"llama-3", 128'256, "arXiv 2407.21783, section 3.2, and config.json"},
    {"meta-llama-3", 128'256, "arXiv 2407.21783, section 3.2, and config.json"},
    {"llama-4", 202'048, "config.json of Llama-4-Scout-17B-16E"},
    {"mistral-nemo", 131'072, "config.json of Mistral-Nemo-Base-2407"},
    {"mistral-7b-v0.3", 32'768, "config.json of Mistral-7B-v0.3"},
    {"mistral-7b-instruct-v0.3", 32'768, "config.json of Mistral-7B-v0.3"},
    {"mistral", 32'000, "arXiv 2310.06825, table 1"},
    {"mixtral", 32'000, "arXiv 2401.04088, table 1"},
    {"qwen3", 151'936, "config.json of Qwen3-8B"},
    {"qwen2.5-0.5b", 151'936, "config.json of Qwen2.5-0.5B"},
    {"qwen2.5-1.5b", 151'936, "config.json of Qwen2.5-1.5B"},
    {"qwen2.5-3b", 151'936, "config.json of Qwen2.5-3B"},
    {"qwen2", 152'064, "config.json of Qwen2.5-7B"},
    {"gpt-oss", 201'088, "arXiv 2508.10925, section 2.4"},
    {"deepseek-v2", 102'400, "config.json of DeepSeek-V2"},
    {"deepseek-v3", 129'280, "config.json of DeepSeek-V3"},
    {"deepseek-r1", 129'280, "config.json of DeepSeek-R1"},
    {"kimi-k2", 163'840, "config.json of Kimi-K2-Instruct"},
    {"gemma-3", 262'208, "config.json of Gemma 3, text_config"},
    {"gemma", 256'000, "config.json of Gemma 7B and Gemma 2"},
    {"nemotron_2_256k", 256'000, "arXiv 2402.16819, section 2.2"},
    {"nemotron-4", 256'000, "arXiv 2402.16819, section 2.2"},
    {"nemotron-h", 131'072, "config.json of Nemotron-H-56B-Base-8K"},
    {"nvidia-nemotron-nano", 131'072, "config.json of NVIDIA-Nemotron-Nano-9B-v2"},
    {"nvidia-nemotron-3", 131'072, "config.json of NVIDIA-Nemotron-3-Nano-30B-A3B"},
};

template <std::size_t size>
std::optional<Vocabulary> known(const Known (&list)[size], const std::string& name) {
  for (const Known& entry : list)
    if (lower_case(name).starts_with(entry.begins))
      return Vocabulary{entry.tokens, "of " + name + " (" + std::string{entry.source} + ")"};
  return std::nullopt;
}

class VocabularyFinder {
 public:
  explicit VocabularyFinder(const MegatronArguments& arguments) : a_{arguments} {}

  std::optional<Vocabulary> find() {
    if (a_.has("vocab_size")) return Vocabulary{a_.required("vocab_size"), ""};
    if (auto of_type = known(types, a_.word("tokenizer_type", ""))) return of_type;
    if (auto of_file = by_file()) return of_file;
    if (auto of_model = by_tokenizer_model()) return of_model;
    return by_shape();
  }

 private:
  // A list of tokens in a file; the usual name of a missing one tells its size.
  std::optional<Vocabulary> by_file() {
    const std::string path = a_.word("vocab_file", "");
    if (path.empty()) return std::nullopt;
    if (const auto text = a_.other_file(path)) {
      const bool is_json = path.ends_with(".json");
      const auto tokens =
          is_json ? static_cast<std::ptrdiff_t>(JsonValue::parse(*text, path).keys().size())
                  : std::count(text->begin(), text->end(), '\n');
      return Vocabulary{tokens, "counted in " + shown_text(path)};
    }
    // The only tokenizer that Megatron-LM gives a file of merges.
    if (a_.has("merge_file"))
      return Vocabulary{50'257,
                        "of GPT-2's byte pairs, as there is a --merge-file (Radford et al. 2019, "
                        "section 2.3)"};
    return std::nullopt;
  }

  // "meta-llama/Llama-3.1-8B-Instruct": a model of the catalog, or of a family.
  std::optional<Vocabulary> by_tokenizer_model() {
    std::string name = a_.word("tokenizer_model", "");
    while (name.ends_with('/')) name.pop_back();
    name = name.substr(name.rfind('/') + 1);
    std::string longest;
    for (const std::string& model : list_catalog("workloads/models"))
      if (lower_case(name).starts_with(model) && model.size() > longest.size()) longest = model;
    if (!longest.empty())
      return Vocabulary{read_model(longest, {"--tokenizer-model", ""}).vocab,
                        "of the tokenizer " + shown_text(name) + ", by the catalog's " + longest};
    return known(families, name);
  }

  // Models of one shape with different vocabularies give no answer.
  std::optional<Vocabulary> by_shape() {
    if (hybrid_pattern(a_)) return std::nullopt;  // Only models of alike layers are compared.
    std::optional<Vocabulary> found;
    const bool gated = a_.flag("swiglu") || a_.flag("quick_geglu");
    const std::int64_t heads = a_.number("num_attention_heads", 0);
    const std::int64_t kv_heads =
        a_.flag("group_query_attention") ? a_.number("num_query_groups", 1) : heads;
    for (const std::string& name : list_catalog("workloads/models")) {
      const Model model = read_model(name, {"", ""});
      const auto same = [&](const char* argument, std::int64_t size) {
        return !a_.has(argument) || a_.number(argument, 0) == size;
      };
      if (!a_.has("num_layers") || !a_.has("hidden_size")) break;
      if (!same("num_layers", model.layers) || !same("hidden_size", model.hidden) ||
          heads != model.heads || (!model.latent && kv_heads != model.kv_heads) ||
          gated != model.gated || !same("ffn_hidden_size", model.ffn) ||
          !same("num_experts", model.experts ? model.experts->count : 0))
        continue;
      if (found && found->tokens != model.vocab) return std::nullopt;
      if (!found)
        found = Vocabulary{model.vocab, "of the catalog's " + name + ", which has this shape"};
    }
    return found;
  }

  const MegatronArguments& a_;
};

}  // namespace

std::int64_t padded_vocabulary(const MegatronArguments& arguments,
                               std::vector<std::string>& notes) {
  if (const std::int64_t padded = arguments.number("padded_vocab_size", 0); padded > 0)
    return padded;
  const auto vocabulary = VocabularyFinder{arguments}.find();
  if (!vocabulary)
    fail_input(arguments.place(),
               "has no " + arguments.spelled("vocab_size") +
                   ", and neither its tokenizer nor its shape is known",
               arguments.how_to_add("vocab_size"));
  const std::int64_t multiple =
      std::max<std::int64_t>(1, arguments.number("make_vocab_size_divisible_by", 128)) *
      std::max<std::int64_t>(1, arguments.number("tensor_model_parallel_size", 1));
  const std::int64_t padded = (vocabulary->tokens + multiple - 1) / multiple * multiple;
  if (!vocabulary->source.empty())
    notes.push_back("the vocabulary has " + grouped(vocabulary->tokens) + " tokens, " +
                    vocabulary->source + "; padded to " + grouped(padded));
  return padded;
}

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
    if (const auto pattern = hybrid_pattern(a_)) {
      hybrid(*pattern);
      return std::move(model_);
    }
    sizes();
    layer();
    attention();
    experts();
    return std::move(model_);
  }

 private:
  // Layers of several kinds: what holds for all of them, and the kinds.
  void hybrid(const HybridPattern& pattern) {
    const std::int64_t hidden = a_.required("hidden_size");
    model_["hidden"] = hidden;
    model_["vocab"] = padded_vocabulary(a_, notes_);
    model_["seq"] = a_.number("max_position_embeddings", a_.required("seq_length"));
    norm();
    embeddings();
    add_hybrid_layers(a_, pattern, hidden, width_of_mlp(hidden), model_);
  }

  // arguments.py: of a gated MLP two thirds of 4 h, in whole tiles of 64.
  std::int64_t width_of_mlp(std::int64_t hidden) const {
    return a_.number("ffn_hidden_size", is_gated() ? 8 * hidden / 3 / 64 * 64 : 4 * hidden);
  }
  bool is_gated() const { return a_.flag("swiglu") || a_.flag("quick_geglu") || a_.flag("geglu"); }

  void norm() {
    model_["norm"] = a_.choice(
        "normalization",
        {{"LayerNorm", "layer"}, {"RMSNorm", "rms"}, {"layernorm", "layer"}, {"rmsnorm", "rms"}});
  }
  void embeddings() { model_["tied_embeddings"] = !a_.flag("untie_embeddings_and_output_weights"); }

  void sizes() {
    const std::int64_t hidden = a_.required("hidden_size");
    model_["layers"] = layers_ = a_.required("num_layers");
    model_["hidden"] = hidden;
    model_["heads"] = heads_ = a_.required("num_attention_heads");
    ffn_ = width_of_mlp(hidden);
    model_["ffn"] = ffn_;
    model_["swiglu"] = is_gated();
    model_["vocab"] = padded_vocabulary(a_, notes_);
    const std::int64_t seq = a_.required("seq_length");
    model_["seq"] = a_.number("max_position_embeddings", seq);
  }

  void layer() {
    norm();
    const bool old_rotary = a_.flag("use_rotary_position_embeddings");
    const std::string positions =
        a_.choice("position_embedding_type", {{"learned_absolute", "learned"},
                                              {"rope", "rotary"},
                                              {"rotary", "rotary"},
                                              {"yarn", "yarn"},
                                              {"alibi", "alibi"},
                                              {"none", "none"}});
    model_["positions"] = old_rotary ? "rotary" : positions;
    const bool bias = a_.flag("add_bias_linear", true);
    model_["qkv_bias"] = a_.flag("add_qkv_bias") || bias;
    model_["out_bias"] = bias;
    model_["mlp_bias"] = bias;
    embeddings();
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
    const char* by_deepspeed = "num_key_value_heads";  // Megatron-DeepSpeed's.
    model_["kv_heads"] = a_.has(by_deepspeed) ? a_.number(by_deepspeed, 1)
                         : grouped            ? a_.number("num_query_groups", 1)
                                              : heads_;
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
    which_layers();
    model_["expert_groups"] = a_.number("moe_router_num_groups", 1);
    model_["groups_per_token"] = a_.number("moe_router_group_topk", 1);
    model_["correction_bias"] = a_.flag("moe_router_enable_expert_bias");
  }

  // Layers without experts come first, or in front of each layer that has some (Llama 4 Maverick).
  void which_layers() {
    model_["dense_layers"] = 0;
    const auto* given = a_.find("moe_layer_freq");
    if (!given) return;
    const auto pattern = expert_layers(given->text(), static_cast<std::size_t>(layers_));
    const std::size_t dense = pattern ? std::min(pattern->find('1'), pattern->size()) : 0;
    if (pattern && pattern->find('0', dense) == std::string::npos) {
      model_["dense_layers"] = static_cast<std::int64_t>(dense);
      return;
    }
    bool in_turn = pattern.has_value() && dense > 0;
    for (std::size_t i = 0; in_turn && i < pattern->size(); ++i)
      in_turn = ((*pattern)[i] == '1') == ((i + 1) % (dense + 1) == 0);
    if (!in_turn)
      a_.fail("moe_layer_freq", "is " + shown_text(given->text()),
              "only leading layers may be dense: write \"[0]*3+[1]*58\", in all as many as layers");
    model_["moe_every"] = static_cast<std::int64_t>(dense + 1);
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

namespace {

// Programs of Megatron-LM and of its examples that train another kind of model.
const WordPairs other_kinds = words_by_meaning({
    {"an encoder and a decoder (T5)", "t5"},
    {"an encoder (BERT)", "bert"},
    {"two encoders (ICT)", "pretrain_ict"},
    {"retrieval (RETRO)", "retro"},
    {"an image encoder", "vision vlm"},
});

// Programs that train nothing are refused too.
const WordPairs others = words_by_meaning({
    {"generates text", "text_generation generate inference"},
    {"quantises a model", "quantize"},
    {"prunes a model", "prune"},
    {"exports a model", "export"},
    {"converts a checkpoint", "convert checkpoint"},
    {"evaluates a model", "mmlu validate"},
    {"stores activations", "offline_feature"},
});

// Arguments of features that GPT-like models lack.
const WordPairs arguments = words_by_meaning({
    {"an image encoder", "vision_model_type img_h"},
    {"an image encoder and a language model", "language_model_type"},
    {"several encoders (MIMO)", "dataset_provider"},
    {"an encoder and a decoder", "encoder_num_layers decoder_num_layers decoder_seq_length"},
    {"retrieval (RETRO)", "retro_"},
    {"layers of different shapes", "heterogeneous_layers_config"},
    {"distillation from a teacher", "export_kd_teacher"},
});

}  // namespace

void refuse_unpriced(const MegatronArguments& run) {
  const std::string remedy = "import a run that trains a GPT-like model";
  const auto has = [](const std::string& text, const std::string& word) {
    return text.find(word) != std::string::npos;
  };
  const std::string& program = run.program();
  for (const auto& [word, what] : others)
    if (has(program, word))
      fail_input(run.place(),
                 "starts " + shown_text(program) + ", which " + what + ": only training is priced",
                 remedy);
  for (const auto& [word, what] : other_kinds)
    if (has(program, word))
      fail_input(run.place(), "starts " + shown_text(program) + ": nothing prices " + what, remedy);
  for (const auto& [begin, what] : arguments)
    for (const std::string& name : run.names_from(begin))
      if (run.flag(name)) run.fail(name, "means " + what + ", which nothing prices", remedy);
  const auto* spec = run.find("spec");
  for (const char* word : {"mamba", "hybrid"}) {
    const bool named = spec && has(spec->text(), word);
    if ((!named && !has(program, word)) || hybrid_pattern(run)) continue;
    const std::string pattern = "write the layers with " + run.spelled("hybrid_layer_pattern");
    if (named) run.fail("spec", "names layers of several kinds without their pattern", pattern);
    fail_input(run.place(), "starts " + shown_text(program) + " without a pattern of its layers",
               pattern);
  }
  if (run.word("tokenizer_type", "").starts_with("BertWordPiece"))
    run.fail("tokenizer_type", "is of an encoder (BERT), which nothing prices", remedy);
  if (run.flag("use_checkpoint_args") && !run.has("num_layers"))
    run.fail(
        "use_checkpoint_args", "takes the model's sizes from a checkpoint, which is not read",
        "give the list of arguments that Megatron-LM prints, or add --num-layers and the like");
}

}  // namespace orrery
