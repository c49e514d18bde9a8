#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/plan/scenario.hpp"

namespace orrery {

// Inputs that are legal and that nobody means: a sentence for the user. Nothing: there is no doubt.

/// A batch of `gbs` sequences of `seq` tokens on `gpus` GPUs, which is likely to be one in tokens.
std::optional<std::string> unlikely_batch(std::int64_t gbs, std::int64_t seq, int gpus);
/// Fewer tokens to train on than one sequence has.
std::optional<std::string> unlikely_tokens(double tokens, std::int64_t seq);
/// Sequences longer than the model has positions for.
/// Keys of adapters where all weights are trained.
std::optional<std::string> adapters_without_finetune(const PlanChoices& plan);
std::optional<std::string> unlikely_sequence(const Model& model, std::int64_t seq);
/// Attention that the software fuses and the GPU cannot.
std::optional<std::string> unfused_attention(const Scenario& scenario);
/// NICs that outrun every slot which such a host may have for them.
std::optional<std::string> unlikely_nic(const System& system);
/// A network as slow to answer as none within a building.
std::optional<std::string> unlikely_latency(const System& system);

}  // namespace orrery
