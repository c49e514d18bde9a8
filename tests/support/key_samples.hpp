#pragma once

#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "sim/plan/plan_keys.hpp"
#include "tests/support/scenarios.hpp"

namespace orrery {

/// A plan of 16 GPUs without and with one key said, in a place where the key means something.
struct KeySample {
  std::string key, word;  ///< As a flag.
  PlanRequest without, with;
  Model model;

  Scenario scenario(const PlanRequest& request) const {
    System system = read_system("dgx-b200", test_place);
    system.host_memory_bandwidth = BytesPerSecond{600e9};  // Not published.
    return scenario_of(model, system, request, 16);
  }
};

/// Of every key of a plan all words that it may say, and of numbers and names one. `numbers` must
/// name each key that has no list of words, so that a new one cannot be forgotten.
inline std::vector<KeySample> key_samples() {
  const std::map<std::string, std::string> samples{{"tp", "2"},
                                                   {"pp", "2"},
                                                   {"vpp", "2"},
                                                   {"dp", "4"},
                                                   {"cp", "2"},
                                                   {"ep", "2"},
                                                   {"etp", "2"},
                                                   {"mbs", "2"},
                                                   {"gbs", "64"},
                                                   {"seq", "128"},
                                                   {"routing", "zipf:1"},
                                                   {"software", "megatron-2021"},
                                                   {"layers", "1+3"},
                                                   {"local_batch", "1"},
                                                   {"offload_layers", "2"},
                                                   {"offload_modules", "core_attn"},
                                                   {"nccl_algo", "Ring"},
                                                   {"nccl_proto", "^LL128"},
                                                   {"dp_replicate", "2"},
                                                   {"offload_optimizer", "50"},
                                                   {"bf16_start_layers", "1"},
                                                   {"bf16_end_layers", "1"},
                                                   {"documents", "lognormal:50,1"},
                                                   {"lora_rank", "8"},
                                                   {"lora_targets", "qkv+fc2"}};
  // What makes a plan one in which the key, or this word of it, is possible.
  const std::map<std::string, std::string> ground{
      {"vpp", "--pp 2"},
      {"dp", "--tp 4"},
      {"sp", "--tp 2"},
      {"cp_comm", "--cp 2"},
      {"dp_replicate", "--zero 1"},
      {"reshard", "--zero 3"},
      {"offload_weights", "--zero 3 --offload_optimizer 100 --software deepspeed"},
      {"tp_overlap", "--tp 2 --sp true"},
      {"schedule", "--pp 2"},
      {"layers", "--pp 2"},
      {"local_batch", "--pp 2"},
      {"schedule interleaved", "--pp 2 --vpp 2"},
      {"moe_dispatcher", "--ep 2"},
      {"shared_expert_overlap", "--ep 2"},
      {"ep_overlap", "--ep 2"},
      {"delay_wgrad", "--ep 2 --ep_overlap true"},
      {"bf16_start_layers", "--dtype fp8"},
      {"bf16_end_layers", "--dtype fp8"},
      {"fp8_attention", "--dtype fp8"},
      {"fp8_params", "--dtype fp8"},
      {"fp8_activation_inputs", "--dtype fp8"},
      {"lora_rank", "--finetune lora"},
      {"lora_targets", "--finetune lora"},
      {"lora_dropout", "--finetune lora"},
      {"train_tables", "--finetune lora"},
      {"base_format", "--finetune lora"},
      {"base_format fp8", "--finetune lora --dtype fp8"},
      {"base_format nf4", "--finetune qlora --base_format int4"},
      {"base_format int4", "--finetune qlora"},
      {"routing", "--ep 2"}};
  Model mixture = small_mixture(4, 1024, 8, 1024, 8, 2);
  mixture.experts->shared_ffn = 1024;
  std::vector<KeySample> all;
  for (const PlanKey& key : plan_keys()) {
    std::vector<std::string> words = key.access.words;
    if (words.empty()) words.push_back(samples.at(key.name));
    for (const std::string& word : words) {
      const bool routed = key.part == PlanPart::experts || key.name == "ep" || key.name == "etp";
      KeySample sample{key.name, word, {}, {}, routed ? mixture : small_gpt(4, 1024, 8, 1024)};
      set_plan_flag(sample.without, "gbs", "32");
      set_plan_flag(sample.without, "seq", "256");
      set_plan_flag(sample.without, "software", "megatron-core");
      auto flags = ground.find(key.name + " " + word);
      if (flags == ground.end()) flags = ground.find(key.name);
      std::istringstream said{flags == ground.end() ? "" : flags->second};
      for (std::string flag, value; said >> flag >> value;)
        set_plan_flag(sample.without, flag.substr(2), value);
      sample.with = sample.without;
      set_plan_flag(sample.with, key.name, word);
      all.push_back(sample);
    }
  }
  return all;
}

}  // namespace orrery
