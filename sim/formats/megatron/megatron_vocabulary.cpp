#include "sim/formats/megatron/megatron_vocabulary.hpp"

#include <algorithm>
#include <cctype>
#include <optional>

#include "sim/core/catalog.hpp"
#include "sim/core/json_value.hpp"
#include "sim/core/number_text.hpp"
#include "sim/model/model.hpp"

namespace orrery {
namespace {

struct Vocabulary {
  std::int64_t tokens = 0;
  std::string source;  ///< "of the GPT2BPETokenizer (Radford et al. 2019)"
};

struct Known {
  std::string_view begins;  ///< Of the name, in small letters.
  std::int64_t tokens;
  std::string_view source;
};

// Types of tokenizers that have one vocabulary (--tokenizer-type).
constexpr Known types[] = {
    {"gpt2bpetokenizer", 50'257, "Radford et al. 2019, section 2.3"},
    {"llama2tokenizer", 32'000, "arXiv 2307.09288, section 2.2"},
    {"tiktokenizer", 131'072, "Megatron-Core, tokenizers/text/libraries/tiktoken_tokenizer.py"},
};

// Models that tokenizers are named for, where the catalog has no model of that name. Figures are
// vocab_size of the config.json that stands beside the tokenizer: the rows that its model has.
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
};

std::string small(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

template <std::size_t size>
std::optional<Vocabulary> known(const Known (&list)[size], const std::string& name) {
  for (const Known& entry : list)
    if (small(name).starts_with(entry.begins))
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
  // A list of tokens in a file, whose usual name says it if it is not there.
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
      if (small(name).starts_with(model) && model.size() > longest.size()) longest = model;
    if (!longest.empty())
      return Vocabulary{read_model(longest, {"--tokenizer-model", ""}).vocab,
                        "of the tokenizer " + shown_text(name) + ", by the catalog's " + longest};
    return known(families, name);
  }

  // Models of one shape that differ in their vocabulary say nothing.
  std::optional<Vocabulary> by_shape() {
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

}  // namespace orrery
