#pragma once

#include <string>

#include "sim/core/json_value.hpp"
#include "sim/model/model.hpp"

namespace orrery {

/// The encoding of positions.
enum class Positions { rotary, yarn, learned, alibi, none };

/// Values that are unspecified in a model object with sizes only.
struct ModelDefaults {
  Model model;  ///< Flags, and sizes that a family fixes; sizes still 0 follow from others.
  Positions positions = Positions::rotary;
  std::int64_t dense_ffn = 0;      ///< Width of dense layers; 0: 4 hidden.
  bool one_shared_expert = false;  ///< It is as wide as a routed one.
  std::int64_t expert_groups = 1;  ///< See Experts.
  std::int64_t groups_per_token = 1;
  bool correction_bias = false;
  int global_every = 0;  ///< Every n-th layer attends to all tokens; 0: no rule.
};

/// Published runs seldom state the norm, the positions or the biases, which follow from their
/// model's name. The rules, in order, are those of docs/guides/own-models-and-systems.md. `json` is
/// an object in this project's format.
ModelDefaults model_defaults(const std::string& name, const JsonValue& json);

/// The key "mla" requests latent attention: true, or an object of sizes.
bool is_latent(const JsonValue& json);

/// DeepSeek-V3's ranks and head dimensions (arXiv 2412.19437, section 4.2), which DeepSeek-V2
/// (arXiv 2405.04434, section 3.1.2) and Kimi K2 (arXiv 2507.20534, table 2) share.
LatentAttention deepseek_latent_attention();

}  // namespace orrery
