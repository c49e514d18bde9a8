#include <algorithm>
#include <cmath>

#include "sim/core/number_text.hpp"
#include "sim/fleet/scaling.hpp"

namespace orrery {
namespace {

// Kubernetes' horizontal pod autoscaler: as many replicas as bring each metric to its target, of
// which the most count; within a tenth of the target nothing changes.
class Hpa final : public ScalingPolicy {
 public:
  explicit Hpa(const HpaLaw& law) : law_{law} {}

  Wish wish(const ScalingSignals& seen) override {
    constexpr double dead_band = 0.1;
    const double ratio = std::max(seen.kv_share / law_.kv, seen.queue / law_.queue);
    const std::string at = "cache " + percent(seen.kv_share) + ", queue " + fixed(seen.queue, 1);
    if (std::abs(ratio - 1.0) <= dead_band) return {seen.asked, at};
    return {std::max(1, static_cast<int>(std::ceil(seen.ready * ratio - 1e-9))), at};
  }
  Seconds cycle() const override { return Seconds{15.0}; }

 private:
  HpaLaw law_;
};

}  // namespace

std::unique_ptr<ScalingPolicy> make_hpa(const HpaLaw& law) { return std::make_unique<Hpa>(law); }

}  // namespace orrery
