#include <gtest/gtest.h>

#include "sim/calibration/fit_machine.hpp"

namespace orrery::fit_overlap_test {
namespace {

using calibration::make_case;
using calibration::Measurement;

Measurement with_busy(std::int64_t busy, double slowdown) {
  Measurement one;
  one.what = make_case("overlap", {"busy_multiprocessors"}, {8192, 8192, 8192, busy});
  one.figures = {{"slowdown_ratio", slowdown}};
  return one;
}

// Speeds 0.9, 0.8 and 0.6 with 10, 20 and 40 of 100 busy: the loss is exactly the busy share.
TEST(FitOverlap, BusyMultiprocessorsAreMissed) {
  const OverlapFit fit =
      fit_overlap({with_busy(10, 1 / 0.9), with_busy(20, 1 / 0.8), with_busy(40, 1 / 0.6)}, 100);
  ASSERT_TRUE(fit.share);
  EXPECT_NEAR(*fit.share, 1.0, 1e-12);
  EXPECT_EQ(fit.busy_cases, 3u);
  ASSERT_EQ(fit.checks.size(), 1u);
  for (const double error : fit.checks[0].errors) EXPECT_NEAR(error, 0.0, 1e-12);
}

// Losses of 0.1, 0.1 and 0.4 at shares of 0.1, 0.2 and 0.4: the slope is (0.01 + 0.02 + 0.16) /
// (0.01 + 0.04 + 0.16) = 19 / 21.
TEST(FitOverlap, IsTheSlopeThroughTheOrigin) {
  const OverlapFit fit =
      fit_overlap({with_busy(10, 1 / 0.9), with_busy(20, 1 / 0.9), with_busy(40, 1 / 0.6)}, 100);
  ASSERT_TRUE(fit.share);
  EXPECT_NEAR(*fit.share, 19.0 / 21.0, 1e-12);
  // The second is predicted at 1 - 0.2 * 19 / 21 of its speed and ran at 0.9.
  EXPECT_NEAR(fit.checks.at(0).errors.at(1), 0.9 / (1.0 - 0.2 * 19.0 / 21.0) - 1.0, 1e-12);
}

TEST(FitOverlap, TwoCasesAreTooFew) {
  const OverlapFit fit = fit_overlap({with_busy(10, 1.2), with_busy(20, 1.3)}, 100);
  EXPECT_FALSE(fit.share);
  EXPECT_EQ(fit.busy_cases, 2u);
  EXPECT_TRUE(fit_overlap({}, 100).checks.empty());
}

TEST(FitOverlap, CopiesAndCollectivesAreHeldAgainstLosingNothing) {
  Measurement copy = with_busy(0, 1.25);
  copy.what = make_case("overlap", {"copy"}, {8192, 8192, 8192, 0});
  Measurement collective;
  collective.what = make_case("collective_overlap", {"all_gather"}, {8, 1 << 28, 4096, 8192, 8192});
  collective.figures = {{"product_slowdown_ratio", 1.25}, {"collective_slowdown_ratio", 2.0}};
  const OverlapFit fit = fit_overlap({copy, collective}, 100);
  ASSERT_EQ(fit.checks.size(), 2u);
  EXPECT_EQ(fit.checks[0].what, "product concurrent with a copy, as if alone");
  EXPECT_NEAR(fit.checks[0].errors.at(0), -0.2, 1e-12);
  EXPECT_EQ(fit.checks[1].what, "all_gather concurrent with products, as if alone");
  EXPECT_NEAR(fit.checks[1].errors.at(0), -0.5, 1e-12);
  // At 0.8 of its speed: 20 of 100 are missing.
  ASSERT_EQ(fit.findings.size(), 1u);
  EXPECT_EQ(fit.findings[0],
            "all_gather of 8 ranks: concurrent products take 25.0 % longer, as with 20.0 busy "
            "multiprocessors");
}

}  // namespace
}  // namespace orrery::fit_overlap_test
