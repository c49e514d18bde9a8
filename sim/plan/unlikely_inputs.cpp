#include "sim/plan/unlikely_inputs.hpp"

#include <cmath>

#include "sim/core/number_text.hpp"
#include "sim/plan/parameter_formats.hpp"

namespace orrery {

std::optional<std::string> unlikely_batch(std::int64_t gbs, std::int64_t seq, int gpus) {
  // Over 16 times the 15,360 sequences of 4,096 of DeepSeek-V3 (arXiv 2412.19437, section 4.2), and
  // more of them a GPU than any cluster of a thousand needs for it.
  constexpr double most = 0x1p30, most_a_gpu = 0x1p20;
  const double tokens = static_cast<double>(gbs) * static_cast<double>(seq);
  if (tokens <= most || tokens <= most_a_gpu * gpus) return std::nullopt;
  return "--gbs " + std::to_string(gbs) + " is in sequences, " + grouped(std::llround(tokens)) +
         " tokens a step" +
         (gbs % seq == 0 ? "; if it is meant in tokens, write --gbs " + std::to_string(gbs / seq)
                         : "");
}

std::optional<std::string> unlikely_tokens(double tokens, std::int64_t seq) {
  if (tokens >= static_cast<double>(seq)) return std::nullopt;
  const std::string number = nine_digits(tokens);
  return "--tokens " + number + " is less than one sequence; " + number + " trillion are " +
         number + "T";
}

std::optional<std::string> adapters_without_finetune(const PlanChoices& plan) {
  const PlanChoices usual;
  if (!plan.trains_weights() ||
      (plan.lora_rank == usual.lora_rank && plan.lora_targets == usual.lora_targets &&
       plan.lora_dropout == usual.lora_dropout && plan.train_tables == usual.train_tables))
    return std::nullopt;
  return "--lora_rank, --lora_targets, --lora_dropout and --train_tables are of adapters, and all "
         "weights are trained: --finetune lora trains adapters";
}

std::optional<std::string> unlikely_sequence(const Model& model, std::int64_t seq) {
  if (seq <= model.max_sequence) return std::nullopt;
  return "--seq " + std::to_string(seq) + " is longer than the " + grouped(model.max_sequence) +
         " positions of " + model.name;
}

std::optional<std::string> unfused_attention(const Scenario& scenario) {
  if (!scenario.software.fused_attention || fuses_attention(scenario.system.gpu))
    return std::nullopt;
  return "neither FlashAttention nor cuDNN has kernels for " + scenario.system.gpu.name +
         ": attention is unfused, its scores written to memory";
}

std::optional<std::string> unlikely_nic(const System& system) {
  // A slot of the next generation of PCIe has twice the rate of the GPU's.
  if (system.nic <= 2.0 * system.gpu.pcie) return std::nullopt;
  return "nic_bandwidth " + fixed(system.nic.si() / 1e9, 0) +
         " GB/s is more than a slot carries, as the GPU's PCIe has " +
         fixed(system.gpu.pcie.si() / 1e9, 0) + " GB/s; NICs are sold by Gb/s";
}

std::optional<std::string> unlikely_latency(const System& system) {
  // Light takes a millisecond for 200 km of fibre.
  if (system.network_latency <= Seconds{1e-3}) return std::nullopt;
  return "network_latency " + duration_text(system.network_latency) +
         " is that of another city; within a cluster it is some microseconds, written us";
}

}  // namespace orrery
