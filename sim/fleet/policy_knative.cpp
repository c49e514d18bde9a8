#include <algorithm>
#include <cmath>
#include <deque>

#include "sim/core/number_text.hpp"
#include "sim/fleet/scaling.hpp"

namespace orrery {
namespace {

// Knative (pkg/autoscaler/scaling/autoscaler.go): requests in flight, averaged over a stable and a
// short window, over what a replica is to have. If the short one calls for twice the ready
// replicas, it panics: until a stable window without such a call it follows the larger of both and
// never shrinks.
class Knative final : public ScalingPolicy {
 public:
  explicit Knative(const KnativeLaw& law) : law_{law} {}

  Wish wish(const ScalingSignals& seen) override {
    samples_.emplace_back(seen.now, static_cast<double>(seen.in_flight));
    while (samples_.front().first <= seen.now - law_.window) samples_.pop_front();
    const double target = std::max(0.01, law_.concurrency * law_.utilization);
    const double stable = mean_since(seen.now - law_.window);
    const double brief = mean_since(seen.now - law_.panic_share * law_.window);
    const double ready = std::max(1, seen.ready);
    const auto within = [&](double wanted) {
      return std::clamp(std::ceil(wanted - 1e-9), std::floor(ready / law_.down_rate),
                        std::ceil(ready * law_.up_rate));
    };
    const bool is_over = std::ceil(brief / target - 1e-9) / ready >= law_.panic_threshold;
    if (is_over) {
      panics_ = true;
      panic_ = seen.now;
    } else if (panics_ && seen.now - panic_ > law_.window) {
      panics_ = false;
      most_ = 0.0;
    }
    double wanted = within(stable / target);
    if (panics_) wanted = most_ = std::max({most_, wanted, within(brief / target)});
    return {std::max(1, static_cast<int>(wanted)),
            fixed(panics_ ? brief : stable, 1) + " in flight" + (panics_ ? ", panic" : "")};
  }
  Seconds cycle() const override { return Seconds{2.0}; }

 private:
  double mean_since(Seconds from) const {
    double sum = 0.0, count = 0.0;
    for (auto sample = samples_.rbegin(); sample != samples_.rend() && sample->first > from;
         ++sample) {
      sum += sample->second;
      ++count;
    }
    return count > 0.0 ? sum / count : 0.0;
  }

  KnativeLaw law_;
  std::deque<std::pair<Seconds, double>> samples_;
  bool panics_ = false;
  Seconds panic_;
  double most_ = 0.0;
};

}  // namespace

std::unique_ptr<ScalingPolicy> make_knative(const KnativeLaw& law) {
  return std::make_unique<Knative>(law);
}

}  // namespace orrery
