// The step time by price is the gradient of the step time: where all prices of a kind rise by a
// share, the simulated step rises by that share of their part, whatever the schedule. And it adds
// up to the step.

#include <gtest/gtest.h>

#include "sim/training/estimate.hpp"
#include "tests/support/scenarios.hpp"

namespace orrery::step_range_test {
namespace {

struct Degrees {
  const char* model;
  int gpus, tp, pp, vpp, zero;
  bool dp_overlap, expanded;
};

Scenario scenario(const Degrees& plan) {
  PlanRequest request = plan_request(plan.tp, plan.pp, 1, 64, 2048, "megatron-core");
  request.vpp = plan.vpp;
  request.zero = plan.zero;
  request.dp_overlap = plan.dp_overlap;
  return scenario_of(read_model(plan.model, test_place), read_system("dgx-h100", test_place),
                     request, plan.gpus);
}

Seconds of_kind(const TimeByPrice& path, PriceKind kind) {
  return path.at(kind, Tag::measured) + path.at(kind, Tag::interpolated) +
         path.at(kind, Tag::default_value);
}

class Gradient : public testing::TestWithParam<Degrees> {};

TEST_P(Gradient, IsWhatASmallChangeOfPricesDoes) {
  const Scenario plain = scenario(GetParam());
  const Detail detail{.expanded = GetParam().expanded};
  const Result result = estimate(plain, detail).result;
  const TimeByPrice& path = result.range.path;
  EXPECT_NEAR(path.total() / result.step_time, 1.0, 1e-6);

  constexpr double share = 1e-4;
  const auto rise = [&](auto change) {
    Scenario changed = plain;
    change(changed.software);
    return (estimate(changed, detail).result.step_time - result.step_time).si() / share;
  };
  // By how much collectives slow a kernel down depends on the kernel a little.
  const double tolerance =
      0.01 * result.step_time.si() + 0.05 * result.critical.parts.sum(StepPart::slowed).si();
  EXPECT_NEAR(rise([](Software& software) { software.gemm_efficiency /= 1.0 + share; }),
              (of_kind(path, PriceKind::gemm) + of_kind(path, PriceKind::grouped_gemm)).si(),
              tolerance);
  EXPECT_NEAR(rise([](Software& software) { software.attention_efficiency /= 1.0 + share; }),
              of_kind(path, PriceKind::attention).si(), tolerance);
  EXPECT_LT(result.range.low(), result.step_time);
  EXPECT_GT(result.range.high(), result.step_time);
}

INSTANTIATE_TEST_SUITE_P(Plans, Gradient,
                         testing::Values(Degrees{"llama3-8b", 8, 1, 1, 1, 1, true, false},
                                         Degrees{"llama3-8b", 8, 2, 2, 1, 1, true, false},
                                         Degrees{"llama3-8b", 8, 2, 2, 1, 1, true, true},
                                         Degrees{"llama3-8b", 16, 2, 4, 2, 0, false, false},
                                         Degrees{"llama3-8b", 16, 2, 4, 2, 0, false, true},
                                         Degrees{"llama3-8b", 64, 1, 1, 1, 3, true, false},
                                         Degrees{"llama3-8b", 64, 8, 2, 1, 1, false, false}));

}  // namespace
}  // namespace orrery::step_range_test
