#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>

namespace orrery {

// How far predictions are from measured rows: relative errors, of which 0.01 is 1 % too slow.
struct RowErrors {
  int rows = 0;
  double abs = 0.0, sum = 0.0, largest = 0.0;

  void add(double error) {
    ++rows, abs += std::abs(error), sum += error;
    largest = std::max(largest, std::abs(error));
  }
};

// Prints a table row a name, and expects its mean error below the name's limit. Each limit is of
// some name.
inline void expect_below(const std::map<std::string, double>& limits,
                         const std::map<std::string, RowErrors>& errors) {
  for (const auto& [name, of] : errors) {
    std::printf("| %-22s | %4d | %4.1f %% | %+5.1f %% |\n", name.c_str(), of.rows,
                100 * of.abs / of.rows, 100 * of.sum / of.rows);
    EXPECT_LT(of.abs / of.rows, limits.at(name)) << name;
  }
  EXPECT_EQ(errors.size(), limits.size());
}

}  // namespace orrery
