#include "sim/validation/serving_coverage.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "sim/core/statistics.hpp"
#include "sim/serving/serving_error.hpp"

namespace orrery {
namespace {

struct Residual {
  const ValidationReport* file = nullptr;
  double size = 0.0;  // |ln(measured / predicted)|
  double error = 0.0;
};

template <class Keep>
std::vector<double> sizes(const std::vector<Residual>& residuals, const Keep& keep) {
  std::vector<double> all;
  for (const Residual& one : residuals)
    if (keep(one)) all.push_back(one.size);
  return all;
}

const char* name_of(ServingFigure figure) {
  if (figure == ServingFigure::ttft) return "ttft";
  return figure == ServingFigure::tpot ? "tpot" : "throughput";
}

}  // namespace

std::vector<ServingCoverage> serving_coverage_of(const std::vector<ValidationReport>& reports) {
  std::map<std::pair<ServingFigure, bool>, std::vector<Residual>> classes;
  for (const ValidationReport& report : reports)
    for (const Comparison& one : report.comparisons) {
      const auto figure = serving_figure(one.quantity);
      if (!figure || !one.serving) continue;
      classes[{*figure, *figure == ServingFigure::tpot && one.serving->experts}].push_back(
          {&report, std::abs(std::log(one.measured / one.predicted)), one.serving->error});
    }
  std::vector<ServingCoverage> list;
  for (const auto& [key, residuals] : classes) {
    ServingCoverage coverage{name_of(key.first), key.second};
    coverage.cases = static_cast<int>(residuals.size());
    const auto all = sizes(residuals, [](const Residual&) { return true; });
    coverage.error = conformal_quantile(all, serving_coverage);
    for (const ValidationReport& report : reports) {
      const auto others =
          sizes(residuals, [&](const Residual& other) { return other.file != &report; });
      const double error = conformal_quantile(others, serving_coverage);
      for (const Residual& one : residuals) {
        if (one.file != &report) continue;
        coverage.inside += one.size <= one.error;
        if (std::isnan(error)) continue;
        ++coverage.left_out_cases;
        coverage.left_out_inside += one.size <= error;
      }
    }
    list.push_back(coverage);
  }
  return list;
}

}  // namespace orrery
