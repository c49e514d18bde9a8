#include "sim/plan/finetuning.hpp"

#include <algorithm>

#include "sim/core/nearest.hpp"
#include "sim/core/value_list.hpp"

namespace orrery {

std::string lora_targets_text(const LoraTargets& targets) {
  std::string words;
  for (const LoraTarget target : targets) words += (words.empty() ? "" : "+") + name(target);
  return words;
}

LoraTargets read_lora_targets(const JsonValue& value) {
  using enum LoraTarget;
  const std::string text = value.text();
  if (text == "all-linear") return {qkv, proj, fc1, fc2};
  const auto& names = enum_words<LoraTarget>;
  LoraTargets targets;
  for (const std::string& word : split(text, ",+")) {
    const auto found = std::find(names.begin(), names.end(), word);
    if (found == names.end())
      value.fail("'" + shown_text(word) + "' is no group of linear layers that gets an adapter",
                 "write all-linear, or some of qkv (q_proj, k_proj, v_proj), proj (o_proj), fc1 "
                 "(gate_proj, up_proj) and fc2 (down_proj), as qkv+proj");
    targets.insert(static_cast<LoraTarget>(found - names.begin()));
  }
  if (targets.empty()) value.fail("names no linear layer", "write qkv+proj, or all-linear");
  return targets;
}

double stored_bytes(BaseFormat format) {
  switch (format) {
    case BaseFormat::bf16:
      break;
    case BaseFormat::fp8:
      return 1.0;
    // A scale of 8 bits for 64 weights, and one of 32 bits for 256 of those (QLoRA, section 3).
    case BaseFormat::nf4:
      return (4.0 + 8.0 / 64.0 + 32.0 / (64.0 * 256.0)) / 8.0;
    // A scale of 16 bits and a zero of 4 for 128 weights (AutoGPTQ, qlinear modules).
    case BaseFormat::int4:
      return (4.0 + (16.0 + 4.0) / 128.0) / 8.0;
  }
  return 2.0;
}

bool is_dequantised(BaseFormat format) {
  return format == BaseFormat::nf4 || format == BaseFormat::int4;
}

}  // namespace orrery
