// What the errors of many rows are together: ValidationReport's rows.
#include <algorithm>
#include <cmath>

#include "sim/core/statistics.hpp"
#include "sim/kernels/kernel_error.hpp"
#include "sim/validation/validate.hpp"

namespace orrery {
namespace {

std::vector<double> sizes_of(const std::vector<double>& errors) {
  std::vector<double> sizes;
  for (const double error : errors) sizes.push_back(std::abs(error));
  return sizes;
}

}  // namespace

double RowErrors::mean_abs() const {
  double sum = 0.0;
  for (const double error : signed_) sum += std::abs(error);
  return sum / rows();
}

double RowErrors::median_abs() const { return median(sizes_of(signed_)); }

double RowErrors::p90_abs() const { return middle(sizes_of(signed_), 0.9); }

double RowErrors::bias() const { return median(signed_); }

std::vector<RowErrors> rows_of_all(const std::vector<ValidationReport>& reports) {
  std::vector<RowErrors> all;
  for (const ValidationReport& report : reports)
    for (const RowErrors& rows : report.rows) {
      const auto known = std::find_if(all.begin(), all.end(), [&](const RowErrors& one) {
        return one.of == rows.kind && one.part == rows.part;
      });
      if (known == all.end())
        all.push_back({rows.kind, rows.part, rows.kind, rows.signed_});
      else
        known->signed_.insert(known->signed_.end(), rows.signed_.begin(), rows.signed_.end());
    }
  return all;
}

}  // namespace orrery
