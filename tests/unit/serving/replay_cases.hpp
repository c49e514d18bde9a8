#pragma once

#include "sim/serving/replay_requests.hpp"

namespace orrery {

/// Every iteration takes `time`, whatever is in it.
inline StepCosts fixed_costs(Seconds time) {
  const auto nothing = [](double) { return Seconds{}; };
  StepCosts costs;
  costs.dense = [time](double) { return time; };
  costs.decode_attention = [](double, double) { return Seconds{}; };
  costs.prefill_attention = [](double, double) { return Seconds{}; };
  costs.head = costs.host = costs.gap = nothing;
  return costs;
}

/// About a model of 70 billion parameters: linear in tokens and contexts.
inline StepCosts affine_costs() {
  StepCosts costs = fixed_costs({});
  costs.dense = [](double tokens) { return Seconds{0.008 + 1e-5 * tokens}; };
  costs.decode_attention = [](double n, double c) { return Seconds{1e-4 + 1e-6 * n + 2e-9 * c}; };
  costs.prefill_attention = [](double q, double p) {
    return Seconds{1e-9 * (q * p + 0.5 * q * q)};
  };
  costs.head = [](double rows) { return Seconds{1e-4 + 1e-7 * rows}; };
  return costs;
}

inline const SchedulerKind* scheduler(const std::string& name) {
  for (const SchedulerKind* kind : schedulers())
    if (kind->name == name) return kind;
  return nullptr;
}

/// Those with continuous batching.
inline std::vector<const SchedulerKind*> continuous_schedulers() {
  std::vector<const SchedulerKind*> kinds = schedulers();
  std::erase_if(kinds, [](const SchedulerKind* kind) { return !kind->continuous; });
  return kinds;
}

inline ReplayShape one_replica(const SchedulerKind* scheduling = scheduler("vllm")) {
  ReplayShape shape;
  shape.replica.rules.scheduler = scheduling;
  shape.replica.kv = {400'000, scheduling->name == "sglang" ? 1 : 16, false};
  return shape;
}

inline RequestList equal_requests(std::int64_t number, std::uint32_t prompt, std::uint32_t output) {
  RequestList list;
  list.requests.assign(static_cast<std::size_t>(number), {Seconds{}, prompt, output});
  return list;
}

}  // namespace orrery
