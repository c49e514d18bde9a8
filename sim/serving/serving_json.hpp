#pragma once

#include <cmath>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "sim/core/units.hpp"
#include "sim/serving/replay_counts.hpp"
#include "sim/serving/serving_run.hpp"

namespace orrery {

/// Numbers of answers in JSON have six decimals, and bytes are whole.
inline double rounded(double value) { return static_cast<double>(std::llround(value * 1e6)) / 1e6; }
/// Milliseconds, to whole nanoseconds.
inline double milliseconds(Seconds time) {
  return static_cast<double>(std::llround(time.si() * 1e9)) / 1e6;
}
inline std::int64_t whole(Bytes bytes) { return std::llround(bytes.si()); }

/// The keys "mean", "p50", "p90", "p95", "p99" and "max", in milliseconds to whole nanoseconds.
nlohmann::ordered_json latency_json(const LatencyHistogram& histogram);

/// Classes of requests, a list.
nlohmann::ordered_json classes_json(const std::vector<ClassOutcome>& classes);
/// Memories behind the GPU's, a list.
nlohmann::ordered_json tiers_json(const std::vector<TierUse>& uses);

/// The head of every answer about serving: schema, model, system, GPUs, engine, deployment and
/// memory.
nlohmann::ordered_json serving_head_json(const ServingSetup& setup, const KvCapacity& kv);

nlohmann::ordered_json memory_json(const KvCapacity& kv, const Deployment& plan);
/// The keys of a deployment.
nlohmann::ordered_json deployment_json(const Deployment& plan, const Model& model);

}  // namespace orrery
