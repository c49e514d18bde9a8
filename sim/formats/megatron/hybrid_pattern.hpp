#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sim/formats/megatron/megatron_arguments.hpp"

namespace orrery {

/// Layers of several kinds. --hybrid-layer-pattern "M-M*|ME/*E/*E" has six on two chunks of a
/// pipeline and two prediction modules of an attention and an experts layer. Of pretrain_gpt.py,
/// --linear-attention-freq has layers with both parts, which the usual arguments cut.
struct HybridPattern {
  /// The letters of each: M, G, * or + of its mixer, - or E of its feed-forward part, or both.
  std::vector<std::string> layers;
  std::vector<int> chunks;              ///< Layers of each chunk, in order; one: no cuts.
  std::vector<std::string> prediction;  ///< One prediction module; empty: the pattern has none.
  std::int64_t modules = 0;             ///< Prediction modules behind each other.
  bool cuts_itself = true;              ///< No other argument may cut it into stages.
};

/// The pattern of --hybrid-layer-pattern, or of --hybrid-override-pattern and
/// --mtp-hybrid-override-pattern, as Megatron-Core reads it
/// (models/hybrid/hybrid_layer_allocation.py); or gated delta nets among layers of attention
/// (models/gpt/experimental_attention_variant_module_specs.py). Nothing: the model's layers are
/// alike. Errors (bad_input): another letter, an empty chunk, modules that differ, more than 20,000
/// letters, ratios (--hybrid-attention-ratio) in place of a pattern; other variants of attention.
std::optional<HybridPattern> hybrid_pattern(const MegatronArguments& arguments);

/// The keys "mixers", "ffns" and "pattern", and those of prediction modules, of a model in this
/// project's JSON. `hidden` and `ffn` are its widths. Errors (bad_input): sizes that are missing.
void add_hybrid_layers(const MegatronArguments& arguments, const HybridPattern& pattern,
                       std::int64_t hidden, std::int64_t ffn, nlohmann::ordered_json& model);

}  // namespace orrery
