#include "sim/formats/recipe/adapter_settings.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "sim/core/nearest.hpp"
#include "sim/core/number_text.hpp"
#include "sim/formats/recipe/decisive_keys.hpp"
#include "sim/plan/finetuning.hpp"

namespace orrery {
namespace {

using enum LoraTarget;

struct Modules {
  LoraTarget target;
  std::vector<std::string> together;  // The modules that read or write one tensor.
  std::vector<std::string> whole;     // Modules that are all of these.
};

// By the names of Hugging Face's models, Megatron Core and Megatron-Bridge.
const std::vector<Modules>& known_modules() {
  static const std::vector<Modules> known{
      {qkv,
       {"q_proj", "k_proj", "v_proj"},
       {"qkv_proj", "query_key_value", "c_attn", "Wqkv", "W_pack", "linear_qkv", "q_a_proj",
        "q_b_proj", "kv_a_proj_with_mqa", "kv_b_proj", "in_proj", "wq", "wk", "wv"}},
      {proj,
       {"o_proj"},
       {"out_proj", "dense", "linear_proj", "wo", "attention.dense", "self_attn.o_proj"}},
      {fc1,
       {"gate_proj", "up_proj"},
       {"gate_up_proj", "w1", "w3", "dense_h_to_4h", "c_fc", "fc1", "linear_fc1"}},
      {fc2, {"down_proj"}, {"w2", "dense_4h_to_h", "fc2", "linear_fc2"}}};
  return known;
}

bool contains(const std::vector<std::string>& all, const std::string& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

// "model.layers.*.self_attn.q_proj" and "*.q_proj" are the module q_proj of all layers.
std::string module_of(const std::string& pattern) {
  const auto dot = pattern.rfind('.');
  std::string name = dot == pattern.npos ? pattern : pattern.substr(dot + 1);
  while (name.starts_with('*')) name.erase(0, 1);
  return name;
}

bool is_table(const std::string& module) {
  static const std::vector<std::string> tables{
      "embed_tokens", "lm_head", "wte", "word_embeddings", "output_layer", "embed_in", "embed_out"};
  return contains(tables, module);
}

constexpr const char* all_words[] = {"all", "all-linear", "all_linear", "all-linear-layers"};

// Kinds of adapters and further settings that have no price.
constexpr std::pair<const char*, const char*> adapters_without_price[] = {
    {"use_dora", "scales the weights by columns (DoRA)"},
    {"peft_use_dora", "scales the weights by columns (DoRA)"},
    {"pissa_init", "takes the principal part out of the frozen weights"},
    {"use_galore", "projects gradients"},
    {"use_badam", "trains blocks in turn"},
    {"use_apollo", "projects gradients"},
    {"mixture_of_lora", "has several adapters on a layer"},
    {"relora", "merges adapters into the weights"},
    {"relora_steps", "merges adapters into the weights"},
    {"layers_to_transform", "adapts some layers alone"},
    {"lora_layers_to_transform", "adapts some layers alone"},
    {"rank_pattern", "gives layers ranks of their own"},
    {"layer_replication", "repeats layers"},
    {"lora_bias", "trains biases of adapters"},
    {"target_parameters", "adapts tensors of experts"},
    {"use_qalora", "shares inputs of adapters (QA-LoRA)"},
    {"loftq_config", "quantises beside adapters (LoftQ)"},
    {"moe_rank_scaling", "gives experts a rank of their own"},
};

}  // namespace

void read_adapters(const Settings& from, const AdapterPaths& paths, bool four_bits,
                   Recipe& recipe) {
  for (const auto& [name, does] : adapters_without_price)
    if (const std::string path = paths.section + name; is_on(from, path))
      from.fail(path, std::string{does} + ", which nothing prices",
                "leave it out: --set " + path + "=null");
  if (const std::string bias = from.word(paths.section + "bias", "none"); bias != "none")
    from.fail(paths.section + "bias", "trains biases as well, which nothing prices",
              "write none: --set " + paths.section + "bias=none");
  // PEFT's name, axolotl's and LLaMA-Factory's.
  for (const char* whole : {"modules_to_save", "lora_modules_to_save", "additional_target"})
    for (const std::string& named : from.words(paths.section + whole)) {
      if (!is_table(module_of(named)))
        from.fail(paths.section + whole,
                  "trains '" + shown_text(named) + "' as a whole, which nothing prices",
                  "leave it out; embed_tokens and lm_head train with --train_tables true");
      recipe.train_tables = true;
    }
  // Tables never have an adapter here.
  for (const std::string& excluded : from.words(paths.section + "exclude_modules"))
    if (!is_table(module_of(excluded)))
      from.fail(
          paths.section + "exclude_modules",
          "leaves out '" + shown_text(excluded) + "', and nothing prices all others",
          "name the modules that have an adapter: --set " + paths.section + "target_modules=...");
  recipe.finetune = four_bits ? "qlora" : "lora";
  recipe.lora_rank = from.number(paths.rank, paths.usual_rank);
  if (recipe.lora_rank < 1 || recipe.lora_rank > (1 << 16))
    from.fail(paths.rank, "is " + std::to_string(recipe.lora_rank),
              "write a rank from 1 to 65,536");
  recipe.lora_dropout =
      from.word(paths.dropout, paths.usual_dropout).find_first_not_of("0.") != std::string::npos;
  std::vector<std::string> modules = from.words(paths.modules);
  if (modules.empty() && !paths.usual_modules.empty()) modules = {paths.usual_modules};
  const bool all = (!paths.all_linear.empty() && from.flag(paths.all_linear, false)) ||
                   std::any_of(std::begin(all_words), std::end(all_words),
                               [&](const char* word) { return contains(modules, word); }) ||
                   contains(modules, "*_proj");
  recipe.lora_targets = "all-linear";
  if (all) return;
  if (modules.empty()) {
    // peft/utils/constants.py, TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING.
    recipe.lora_targets = "qkv";
    recipe.notes.push_back(from.name(paths.modules) +
                           " is not given; assumed: adapters on queries, keys and values");
    return;
  }
  LoraTargets targets;
  std::set<std::string> named;
  for (const std::string& pattern : modules) {
    const std::string module = module_of(pattern);
    const auto& known = known_modules();
    const auto found = std::find_if(known.begin(), known.end(), [&](const Modules& of) {
      return contains(of.together, module) || contains(of.whole, module);
    });
    if (found == known.end())
      from.fail(paths.modules, "has '" + shown_text(pattern) + "', which is no known linear layer",
                "name modules as q_proj, o_proj, gate_proj, down_proj, or all-linear");
    targets.insert(found->target);
    named.insert(module);
  }
  for (const Modules& of : known_modules()) {
    const auto count = std::count_if(of.together.begin(), of.together.end(),
                                     [&](const std::string& one) { return named.contains(one); });
    const auto all_of_them = static_cast<std::ptrdiff_t>(of.together.size());
    if (targets.contains(of.target) && count > 0 && count < all_of_them)
      recipe.notes.push_back(from.name(paths.modules) + " has only " + std::to_string(count) +
                             " of the " + std::to_string(all_of_them) +
                             " modules that read one tensor; assumed: adapters on all of them (" +
                             name(of.target) + ")");
  }
  recipe.lora_targets = lora_targets_text(targets);
}

}  // namespace orrery
