#pragma once

#include <cmath>
#include <string>

#include "sim/validation/validate.hpp"

namespace orrery {

/// Means over the points of a table or of a part of it, each weighing the same.
struct PointErrors {
  int points = 0;
  double measured = 0.0, predicted = 0.0, abs_error = 0.0, error = 0.0;

  void add(double was, double said) {
    ++points;
    measured += was;
    predicted += said;
    error += said / was - 1.0;
    abs_error += std::abs(said / was - 1.0);
  }

  Comparison comparison(const std::string& id, const std::string& quantity) const {
    Comparison row{id, quantity, measured / points, predicted / points, {}, {}};
    row.over_points = Comparison::Points{points, abs_error / points, error / points};
    return row;
  }
};

}  // namespace orrery
