#pragma once

#include <nlohmann/json_fwd.hpp>

#include "sim/serving/latency_histogram.hpp"

namespace orrery {

/// "mean", "p50", "p90", "p95", "p99" and "max" of times in milliseconds, to whole nanoseconds.
nlohmann::ordered_json latency_json(const LatencyHistogram& histogram);

}  // namespace orrery
