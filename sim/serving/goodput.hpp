#pragma once

#include <functional>

#include "sim/serving/request_traffic.hpp"
#include "sim/serving/serving_run.hpp"

namespace orrery {

/// The largest rate at which enough requests meet the limits.
struct Goodput {
  double rate = 0.0;  ///< Requests a second, to a hundredth; 0: not even a lone request does.
  int replays = 0;
  std::optional<ServingRun> at_rate;  ///< What clients see then.
};

/// Doubles and halves the rate of `traffic`, whose other laws stay, and replays each by `serve`. A
/// rate that saturates meets nothing. `load` has limits.
Goodput largest_rate(const std::function<ServingRun(const ServingLoad&)>& serve, ServingLoad load,
                     RequestTraffic traffic);

}  // namespace orrery
