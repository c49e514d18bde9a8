#include "sim/search/dimension.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "sim/plan/plan_keys.hpp"
#include "tests/support/scenarios.hpp"

namespace orrery::dimension_test {
namespace {

// What the table of keys calls searched is searched, in values that it can read, and nothing else.
TEST(PlanDimensions, AreTheKeysThatAreSearched) {
  const std::vector<PlanDimension> dimensions =
      plan_dimensions(small_gpt(4, 1024, 8, 1024), 16, 64);
  for (const PlanKey& key : plan_keys())
    EXPECT_EQ(key.searched, std::any_of(dimensions.begin(), dimensions.end(),
                                        [&](const auto& one) { return one.key == key.name; }))
        << key.name;
  for (const PlanDimension& dimension : dimensions) {
    EXPECT_FALSE(dimension.values.empty()) << dimension.key;
    for (const std::string& value : dimension.values) {
      PlanRequest request;
      set_plan_flag(request, dimension.key, value);
    }
  }
}

}  // namespace
}  // namespace orrery::dimension_test
