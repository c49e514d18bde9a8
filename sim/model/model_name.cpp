#include "sim/model/model_name.hpp"

#include <algorithm>
#include <cctype>
#include <vector>

#include "sim/core/catalog.hpp"
#include "sim/core/nearest.hpp"

namespace orrery {
namespace {

// Words after a family's name that mean another training of the same shape.
constexpr std::string_view same_shape[] = {
    "base", "bf16",     "chat", "fp8",  "nvfp4", "hf",   "it",   "instruct", "pretrain",
    "pt",   "thinking", "v0.1", "v1.5", "0324",  "0528", "2407", "2503",     "quantized.w8a8",
    "2507", "2508"};

// Models of the same shape as another, except for the longest sequence (arXiv 2302.13971, table 2,
// and 2307.09288, table 1). DeepSeek-R1 and V3.1 are trained from DeepSeek-V3 (arXiv 2501.12948,
// section 2); Kimi-K2.5's text part has the shape of Kimi-K2, Llama 3.3 that of Llama 3.1, QwQ and
// Kimi-Dev those of Qwen2.5, Qwen3.6 those of Qwen3.5, Qwen3-Coder-Next that of Qwen3-Next, Mistral
// Small 3.1's text part that of Mistral Small 3, MiniMax-M2 and M2.7 that of M2.5 (their
// config.json). Qwen2.5-Math and Qwen2.5-Coder have the shapes of Qwen2.5 (arXiv 2409.12122 and
// 2409.12186, table 1), R1's distilled models those of Qwen2.5 and Llama (arXiv 2501.12948, table
// 5 and section 2.4); that of 1.5B alone does not share its tables.
constexpr std::pair<std::string_view, std::string_view> same_sizes[] = {
    {"llama7b", "llama2-7b"},
    {"llama13b", "llama2-13b"},
    {"vicuna7b", "llama2-7b"},
    {"vicuna13b", "llama2-13b"},
    {"deepseekr1", "deepseek-v3"},
    {"deepseekv3.1", "deepseek-v3"},
    {"llama3.370b", "llama3.1-70b"},
    {"qwq32b", "qwen2.5-32b"},
    {"kimidev72b", "qwen2.5-72b"},
    {"qwen2.5math1.5b", "qwen2.5-1.5b"},
    {"qwen2.5math7b", "qwen2.5-7b"},
    {"qwen2.5math72b", "qwen2.5-72b"},
    {"qwen2.5coder0.5b", "qwen2.5-0.5b"},
    {"qwen2.5coder1.5b", "qwen2.5-1.5b"},
    {"qwen2.5coder3b", "qwen2.5-3b"},
    {"qwen2.5coder7b", "qwen2.5-7b"},
    {"qwen2.5coder14b", "qwen2.5-14b"},
    {"qwen2.5coder32b", "qwen2.5-32b"},
    {"deepseekr1distillqwen7b", "qwen2.5-7b"},
    {"deepseekr1distillqwen14b", "qwen2.5-14b"},
    {"deepseekr1distillqwen32b", "qwen2.5-32b"},
    {"deepseekr1distillllama8b", "llama3.1-8b"},
    {"deepseekr1distillllama70b", "llama3.1-70b"},
    {"mistralsmall3.124b", "mistral-small-24b"},
    {"llama4scout17b16e", "llama4-scout"},
    {"ai21jamba1.5mini", "jamba-1.5-mini"},
    {"qwen3.627b", "qwen3.5-27b"},
    {"qwen3.635ba3b", "qwen3.5-35b-a3b"},
    {"deepseekv3.2exp", "deepseek-v3.2"},
    {"qwen3codernext", "qwen3-next-80b-a3b"},
    {"kimik2.5", "kimi-k2"},
    {"minimaxm2", "minimax-m2.5"},
    {"minimaxm2.7", "minimax-m2.5"}};

// Lower-case words of a name: "meta", "llama", "3.1", "8b".
std::vector<std::string> words_of_name(const std::string& name) {
  std::vector<std::string> words{""};
  for (const char c : name) {
    if (c == '-' || c == '_' || c == ' ')
      words.emplace_back();
    else
      words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  std::erase(words, "");
  return words;
}

std::string joined(const std::vector<std::string>& words) {
  std::string all;
  for (const std::string& word : words) all += word;
  return all;
}

// The last part of a path or a name of the hub, without what means no other shape.
std::vector<std::string> words_of_shape(const std::string& name) {
  std::string path = name;
  while (path.ends_with('/')) path.pop_back();
  std::vector<std::string> words = words_of_name(path.substr(path.rfind('/') + 1));
  if (words.size() > 1 && (words[0] == "meta" || words[0] == "nvidia")) words.erase(words.begin());
  if (words.empty()) return words;
  words.erase(std::remove_if(words.begin() + 1, words.end(),
                             [](const std::string& word) {
                               return std::find(std::begin(same_shape), std::end(same_shape),
                                                word) != std::end(same_shape);
                             }),
              words.end());
  return words;
}

}  // namespace

std::optional<std::int64_t> longest_of_name(const std::string& name) {
  const std::vector<std::string> words = words_of_name(name.substr(name.rfind('/') + 1));
  const auto has = [&](const char* word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  // Qwen2.5-Math has 4K tokens (config.json, max_position_embeddings).
  if (has("qwen2.5") && has("math")) return 4096;
  // Qwen2-7B, Qwen2-72B and Qwen2.5-7B as chat models have a quarter of their base models' tokens,
  // before YaRN is switched on; those of July 2025 have 256K ("natively", their model cards).
  if ((has("qwen2") || has("qwen2.5")) && has("instruct") && !has("1m")) return 32768;
  if (has("qwen3") && has("2507")) return 262144;
  return std::nullopt;
}

bool names_weight_format(const std::string& name) {
  const std::vector<std::string> words = words_of_name(name);
  return std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return word == "fp8" || word == "nvfp4" || word.starts_with("quantized");
  });
}

bool is_hub_name(const std::string& name) {
  const std::size_t slash = name.find('/');
  return slash != name.npos && slash > 0 && slash + 1 < name.size() && name[0] != '.' &&
         name[0] != '~' && name.find('/', slash + 1) == name.npos && !name.ends_with(".json");
}

std::string nearest_catalog_models(const std::string& name) {
  const std::string wanted = joined(words_of_shape(name));
  std::vector<std::string> spelled;
  const std::vector<std::string> models = list_catalog("workloads/models");
  for (const std::string& model : models) spelled.push_back(joined(words_of_name(model)));
  const std::string near = nearest(wanted, spelled);
  const auto found = std::find(spelled.begin(), spelled.end(), near);
  if (near.empty() || found == spelled.end()) return "";
  return "the nearest is '" + models[static_cast<std::size_t>(found - spelled.begin())] + "'; ";
}

std::optional<std::string> catalog_model(const std::string& name) {
  const std::vector<std::string> words = words_of_shape(name);
  if (words.empty()) return std::nullopt;
  for (const auto& [alias, model] : same_sizes)
    if (joined(words) == alias) return std::string{model};
  for (const std::string& model : list_catalog("workloads/models"))
    if (joined(words_of_name(model)) == joined(words)) return model;
  return std::nullopt;
}

}  // namespace orrery
