#include "sim/serving/goodput.hpp"

#include <cassert>

namespace orrery {
namespace {

constexpr double most_rate = 1e6;
constexpr double least_rate = 1e-4;
constexpr double close_enough = 1.01;

}  // namespace

Goodput largest_rate(const std::function<ServingRun(const ServingLoad&)>& serve, ServingLoad load,
                     RequestTraffic traffic) {
  assert(load.slo);
  Goodput goodput;
  const auto meets = [&](double rate) {
    traffic.rate = rate;
    load.list = draw_requests(traffic);
    ServingRun run = serve(load);
    ++goodput.replays;
    if (run.saturated || run.slo_share() < load.slo->share) return false;
    goodput.at_rate = std::move(run);
    return true;
  };
  double rate = 1.0;
  if (meets(rate)) {
    while (rate < most_rate && meets(2.0 * rate)) rate *= 2.0;
  } else {
    do {
      rate *= 0.5;
      if (rate < least_rate) return goodput;
    } while (!meets(rate));
  }
  double low = rate, high = 2.0 * rate;  // It meets them, and does not.
  while (high / low > close_enough) {
    const double middle = 0.5 * (low + high);
    (meets(middle) ? low : high) = middle;
  }
  goodput.rate = low;
  return goodput;
}

}  // namespace orrery
