#include <algorithm>
#include <cmath>

#include "sim/core/number_text.hpp"
#include "sim/fleet/scaling.hpp"

namespace orrery {
namespace {

// This policy knows the future load and the capacity of a replica. It asks for enough replicas for
// the largest rate until a replica that the next decision asks for would be ready.
class Oracle final : public ScalingPolicy {
 public:
  Oracle(const LoadCurve& curve, double capacity, Seconds start)
      : curve_{curve}, capacity_{capacity}, start_{start} {}

  Wish wish(const ScalingSignals& seen) override {
    const double rate = curve_.most(seen.of_curve, seen.of_curve + start_ + cycle());
    return {static_cast<int>(std::ceil(rate / capacity_ - 1e-9)),
            "load of " + fixed(rate, 2) + " a second"};
  }
  Seconds cycle() const override { return Seconds{15.0}; }

 private:
  const LoadCurve& curve_;
  double capacity_;
  Seconds start_;
};

}  // namespace

std::unique_ptr<ScalingPolicy> make_oracle(const LoadCurve& curve, double capacity, Seconds start) {
  return std::make_unique<Oracle>(curve, capacity, start);
}

}  // namespace orrery
