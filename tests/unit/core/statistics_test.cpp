#include "sim/core/statistics.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace orrery::statistics_test {
namespace {

TEST(Statistics, MedianOfOddAndEvenNumbers) {
  EXPECT_EQ(median({3.0}), 3.0);
  EXPECT_EQ(median({5.0, 1.0, 3.0}), 3.0);
  EXPECT_EQ(median({4.0, 1.0, 3.0, 2.0}), 2.5);
}

// Among nine values and a further one of their kind, each is the largest with probability 1/10.
TEST(Statistics, NineValuesHoldTheNextWithProbabilityNineTenths) {
  EXPECT_EQ(conformal_quantile({9, 1, 8, 2, 7, 3, 6, 4, 5}, 0.9), 9.0);
  EXPECT_EQ(conformal_quantile({9, 1, 8, 2, 7, 3, 6, 4, 5}, 0.5), 5.0);
  EXPECT_TRUE(std::isnan(conformal_quantile({1, 2, 3, 4, 5, 6, 7, 8}, 0.9)));
  EXPECT_TRUE(std::isnan(conformal_quantile({}, 0.9)));
}

// The values 1, 2 and 3 have the weights 1, 2 and 1: the first has a quarter of all weight, the
// first two have three quarters.
TEST(Statistics, WeightedQuantileIsTheLeastValueWithTheShare) {
  EXPECT_EQ(weighted_quantile({{3, 1}, {1, 1}, {2, 2}}, 0.25), 1.0);
  EXPECT_EQ(weighted_quantile({{3, 1}, {1, 1}, {2, 2}}, 0.26), 2.0);
  EXPECT_EQ(weighted_quantile({{3, 1}, {1, 1}, {2, 2}}, 0.75), 2.0);
  EXPECT_EQ(weighted_quantile({{3, 1}, {1, 1}, {2, 2}}, 1.0), 3.0);
  EXPECT_TRUE(std::isnan(weighted_quantile({}, 0.9)));
}

}  // namespace
}  // namespace orrery::statistics_test
