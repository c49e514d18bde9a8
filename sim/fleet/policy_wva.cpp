#include <algorithm>
#include <cmath>

#include "sim/core/number_text.hpp"
#include "sim/fleet/scaling.hpp"

namespace orrery {
namespace {

// llm-d's workload variant autoscaler, analyzer epp-saturation (docs/developer-guide/
// epp-saturation-benchmark.md, 0f0098a2): the expected latencies over their limits, cut and
// smoothed, are to stay between two thresholds. Replicas that are asked for and not ready count as
// if they took their share.
class Wva final : public ScalingPolicy {
 public:
  explicit Wva(const WvaLaw& law) : law_{law} {}

  Wish wish(const ScalingSignals& seen) override {
    const double raw = std::min(
        law_.cap, law_.signal == WvaSignal::mean ? seen.mean_saturation : seen.p90_saturation);
    smoothed_ = first_ ? raw : law_.alpha * raw + (1.0 - law_.alpha) * smoothed_;
    first_ = false;
    const double n = seen.asked;
    const double demand =
        seen.asked > 0 ? smoothed_ * static_cast<double>(seen.ready) / n : smoothed_;
    const std::string at = "saturation " + fixed(smoothed_, 2);
    if (demand > law_.up)
      return {seen.asked + static_cast<int>(std::ceil(n * (demand / law_.up - 1.0))), at};
    if (smoothed_ < law_.down)
      return {seen.asked - static_cast<int>(std::floor(n * (1.0 - smoothed_ / law_.down))), at};
    return {seen.asked, at};
  }

 private:
  WvaLaw law_;
  double smoothed_ = 0.0;
  bool first_ = true;
};

}  // namespace

std::unique_ptr<ScalingPolicy> make_wva(const WvaLaw& law) { return std::make_unique<Wva>(law); }

}  // namespace orrery
