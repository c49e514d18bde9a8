// The error of a step from those of its prices, on paths made by hand.

#include "sim/training/step_range.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace orrery::step_range_test {
namespace {

constexpr auto interpolated = static_cast<std::size_t>(Tag::interpolated);

struct Part {
  PriceKind kind;
  double seconds, sigma;
};

StepRange made_of(std::initializer_list<Part> parts, double training = 0.0) {
  StepRange range;
  for (const Part& part : parts) {
    range.path.at(part.kind, Tag::interpolated) = Seconds{part.seconds};
    range.errors.of[static_cast<std::size_t>(part.kind)][interpolated] = part.sigma;
    range.step += Seconds{part.seconds};
  }
  range.errors.training = training;
  range.gpu = "g", range.system = "s", range.software = "w";
  return range;
}

// Of one kind errors are one error: 6 s of products at 10 % are off by 0.6 s. Of two kinds they are
// independent: 6 s at 10 % and 4 s at 20 % by sqrt(0.6^2 + 0.8^2) = 1 s.
TEST(StepRange, KindsAddUpInSquares) {
  EXPECT_DOUBLE_EQ(made_of({{PriceKind::gemm, 6, 0.1}}).deviation().si(), 0.6);
  const StepRange both = made_of({{PriceKind::gemm, 6, 0.1}, {PriceKind::network_bytes, 4, 0.2}});
  EXPECT_DOUBLE_EQ(both.deviation().si(), 1.0);
  EXPECT_DOUBLE_EQ(both.low().si(), 10 * std::exp(-0.1645));
  EXPECT_DOUBLE_EQ(both.high().si(), 10 * std::exp(0.1645));
}

// Measured and assumed prices of one kind have errors of their own: sqrt(0.3^2 + 0.4^2).
TEST(StepRange, BasesOfOneKindAreIndependent) {
  StepRange range = made_of({{PriceKind::gemm, 3, 0.1}});
  range.path.at(PriceKind::gemm, Tag::default_value) = Seconds{1};
  range.errors.of[0][static_cast<std::size_t>(Tag::default_value)] = 0.4;
  range.step = Seconds{4};
  EXPECT_DOUBLE_EQ(range.deviation().si(), 0.5);
}

// What training adds moves each kind as a whole: sqrt((3 x 0.1)^2 + (4 x 0.1)^2).
TEST(StepRange, TrainingMovesEachKind) {
  EXPECT_DOUBLE_EQ(
      made_of({{PriceKind::gemm, 3, 0}, {PriceKind::memory, 4, 0}}, 0.1).deviation().si(), 0.5);
}

// Nine in ten published steps were 20 % off; prices account for 10 % of it, as of this step. A step
// whose prices are less known has a wider range, and so has one for which another software stands
// in.
TEST(StepRange, IsThatOfPublishedSteps) {
  const PublishedSteps published{30, 746, 0.2, 0.4, Seconds{}, 0.11, 0.4, 0.1};
  StepRange like_them = made_of({{PriceKind::gemm, 10, 0.1}}, 0.3);
  like_them.errors.published = published;
  EXPECT_DOUBLE_EQ(like_them.half_width(), 0.2);
  EXPECT_DOUBLE_EQ(like_them.low().si(), 10 * std::exp(-0.2));
  EXPECT_DOUBLE_EQ(like_them.high().si(), 10 * std::exp(0.2));
  StepRange less_sure = made_of({{PriceKind::gemm, 10, 0.2}}, 0.3);
  less_sure.errors.published = published;
  EXPECT_DOUBLE_EQ(less_sure.half_width(), published.half_width(Seconds{10}, false, 0.2));
  EXPECT_GT(less_sure.half_width(), 0.2);
  like_them.stands_in = true;
  EXPECT_DOUBLE_EQ(like_them.half_width(), 0.4);
}

TEST(StepRange, HasNoWidthWhereEverythingIsExact) {
  const StepRange exact = made_of({{PriceKind::gemm, 3, 0}, {PriceKind::memory, 4, 0}});
  EXPECT_EQ(exact.low(), exact.step);
  EXPECT_EQ(exact.high(), exact.step);
  EXPECT_FALSE(difference(exact, made_of({{PriceKind::gemm, 7.0000001, 0}})).is_tie());
  EXPECT_TRUE(difference(exact, exact).is_tie());
}

// Both plans have the same 6 s of products, uncertain by 10 %; only what the second has beyond them
// counts: 0.5 +- 1.645 x 0.5 x 0.2 s.
TEST(StepDifference, CommonErrorsCancel) {
  const StepRange one = made_of({{PriceKind::gemm, 6, 0.1}, {PriceKind::network_bytes, 1, 0.2}});
  const StepRange two = made_of({{PriceKind::gemm, 6, 0.1}, {PriceKind::network_bytes, 1.5, 0.2}});
  const StepDifference found = difference(one, two);
  EXPECT_DOUBLE_EQ(found.mean.si(), 0.5);
  EXPECT_DOUBLE_EQ(found.deviation.si(), 0.1);
  EXPECT_FALSE(found.is_tie());
  EXPECT_LT(two.low(), one.high());  // Though the ranges overlap.
}

// The same time, spent on different things: sqrt(0.6^2 + 0.6^2).
TEST(StepDifference, DifferentKindsDoNotCancel) {
  const StepDifference found = difference(made_of({{PriceKind::gemm, 6, 0.1}}),
                                          made_of({{PriceKind::nvlink_bytes, 6.5, 0.6 / 6.5}}));
  EXPECT_DOUBLE_EQ(found.deviation.si(), std::sqrt(0.72));
  EXPECT_TRUE(found.is_tie());
}

// Another GPU has other tables, another system another network, another software other overheads.
TEST(StepDifference, OnlyTheSamePricesCancel) {
  const auto deviation = [](PriceKind kind, double sigma, double training, auto change) {
    StepRange other = made_of({{kind, 6, sigma}}, training);
    change(other);
    return difference(made_of({{kind, 6, sigma}}, training), other).deviation.si();
  };
  const auto gpu = [](StepRange& range) { range.gpu = "another"; };
  const auto system = [](StepRange& range) { range.system = "another"; };
  const auto software = [](StepRange& range) { range.software = "another"; };
  const auto dtype = [](StepRange& range) { range.dtype = Dtype::fp8; };
  const double apart = 0.6 * std::sqrt(2.0);
  EXPECT_DOUBLE_EQ(deviation(PriceKind::gemm, 0.1, 0, gpu), apart);
  EXPECT_DOUBLE_EQ(deviation(PriceKind::gemm, 0.1, 0, dtype), apart);
  EXPECT_DOUBLE_EQ(deviation(PriceKind::gemm, 0.1, 0, system), 0);
  EXPECT_DOUBLE_EQ(deviation(PriceKind::memory, 0.1, 0, dtype), 0);
  EXPECT_DOUBLE_EQ(deviation(PriceKind::nvlink_bytes, 0.1, 0, system), 0);
  EXPECT_DOUBLE_EQ(deviation(PriceKind::network_bytes, 0.1, 0, system), apart);
  EXPECT_DOUBLE_EQ(deviation(PriceKind::gemm, 0, 0.1, gpu), 0);
  EXPECT_DOUBLE_EQ(deviation(PriceKind::gemm, 0, 0.1, software), apart);
  const auto stands_in = [](StepRange& range) { range.stands_in = true; };
  EXPECT_DOUBLE_EQ(deviation(PriceKind::gemm, 0, 0.1, stands_in), apart);
}

// As fast, but with streaming in place of products: each step is off by 2 % for itself.
TEST(StepDifference, OtherKernelsHaveErrorsOfTheirOwn) {
  StepRange one = made_of({{PriceKind::gemm, 6, 0}, {PriceKind::network_bytes, 4, 0}});
  one.errors.own = 0.02;
  StepRange other = made_of({{PriceKind::gemm, 5, 0}, {PriceKind::memory, 5, 0}});
  other.errors.own = 0.02;
  EXPECT_DOUBLE_EQ(difference(one, other).deviation.si(), 0.2 * std::sqrt(2.0));
  StepRange slower = made_of({{PriceKind::gemm, 6, 0}, {PriceKind::network_bytes, 5, 0}});
  slower.errors.own = 0.02;
  EXPECT_EQ(difference(one, slower).deviation.si(), 0.0);  // The same kernels.
}

// A plan with one throttled GPU runs the same kernels 20 % longer: only that much is uncertain.
TEST(StepDifference, APlanHasTheErrorsOfItself) {
  StepRange one = made_of({{PriceKind::gemm, 5, 0}, {PriceKind::network_bytes, 5, 0}});
  one.errors.own = 0.02;
  StepRange throttled = made_of({{PriceKind::gemm, 6, 0}, {PriceKind::network_bytes, 5, 0}});
  throttled.errors.own = 0.02;
  EXPECT_DOUBLE_EQ(difference(one, throttled, true).deviation.si(), 0.02);
  EXPECT_FALSE(difference(one, throttled, true).is_tie());
  throttled.gpu = "another";
  EXPECT_DOUBLE_EQ(difference(one, throttled, true).deviation.si(),
                   0.02 * std::sqrt(10.0 * 10.0 + 11.0 * 11.0));
}

TEST(StepRange, ScalesWithTheStep) {
  const StepRange half = made_of({{PriceKind::gemm, 6, 0.1}}).scaled(0.5);
  EXPECT_DOUBLE_EQ(half.step.si(), 3.0);
  EXPECT_DOUBLE_EQ(half.deviation().si(), 0.3);
}

}  // namespace
}  // namespace orrery::step_range_test
