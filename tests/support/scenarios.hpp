#pragma once

#include <string>

#include "sim/plan/scenario.hpp"
#include "sim/plan/software_keys.hpp"

namespace orrery {

inline const Place test_place{"test", ""};

/// A GPT block stack: k = a, f = 4 h, no rotary embedding, no bias, an untied head.
inline Model small_gpt(int layers, std::int64_t hidden, std::int64_t heads, std::int64_t vocab) {
  Model model;
  model.name = "small-gpt";
  model.layers = layers;
  model.hidden = hidden;
  model.heads = model.kv_heads = heads;
  model.head_dim = hidden / heads;
  model.ffn = 4 * hidden;
  model.vocab = vocab;
  model.max_sequence = 2048;
  model.rotary = false;
  return model;
}

/// The same with routed experts in all layers but the first `dense`.
inline Model small_mixture(int layers, std::int64_t hidden, std::int64_t heads, std::int64_t vocab,
                           std::int64_t experts, std::int64_t per_token, int dense = 0) {
  Model model = small_gpt(layers, hidden, heads, vocab);
  model.name = "small-mixture";
  model.experts = Experts{.count = experts, .per_token = per_token, .ffn = 2 * hidden};
  for (int layer = 0; layer < layers; ++layer) model.layer_has_experts.push_back(layer >= dense);
  return model;
}

/// Degrees of a plan and its batch; everything else as the software has it.
inline PlanRequest plan_request(int tp, int pp, std::int64_t mbs, std::int64_t gbs,
                                std::int64_t seq, const std::string& software) {
  PlanRequest request;
  request.tp = tp;
  request.pp = pp;
  request.mbs = mbs;
  request.gbs = gbs;
  request.seq = seq;
  request.software = software;
  return request;
}

/// On the software's prices, without its limits: plans are made up to show something.
inline Scenario scenario_of(const Model& model, const System& system, const PlanRequest& request,
                            int gpus) {
  const std::string name =
      request.software.empty() ? default_software(request, system) : request.software;
  Software software = read_software(name, test_place);
  software.support.clear();
  software.interleaved_from = 2;
  return make_scenario(model, system, software, request, gpus, test_place);
}

}  // namespace orrery
