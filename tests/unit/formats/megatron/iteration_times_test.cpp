#include <gtest/gtest.h>

#include "sim/formats/megatron/megatron_arguments.hpp"

namespace orrery::iteration_times_test {
namespace {

std::string line(const std::string& time) {
  return "31: [2026-01-01] iteration       20/     500 | consumed samples: 5120 | elapsed time per "
         "iteration (ms): " +
         time + " | learning rate: 1.0E-04 |\n";
}

// The first iteration warms up; of the others the median.
TEST(IterationTimes, MedianOfAllButTheFirst) {
  const auto steps = measured_steps("text\n" + line("90000.0") + line("12100.0") + line("12300.5") +
                                    line("12000.0") + "end");
  ASSERT_TRUE(steps);
  EXPECT_DOUBLE_EQ(steps->median.si(), 12.1);
  EXPECT_EQ(steps->counted, 3);
  EXPECT_DOUBLE_EQ(measured_steps(line("1") + line("2000") + line("3000"))->median.si(), 2.5);
  EXPECT_DOUBLE_EQ(measured_steps(line("5000"))->median.si(), 5.0);
}

TEST(IterationTimes, WhatIsNone) {
  EXPECT_FALSE(measured_steps(""));
  EXPECT_FALSE(measured_steps(line("nan") + line("") + line("-3")));
}

}  // namespace
}  // namespace orrery::iteration_times_test
