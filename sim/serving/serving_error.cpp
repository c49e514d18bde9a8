#include "sim/serving/serving_error.hpp"

#include <cmath>

namespace orrery {
namespace {

// Of all cases of tests/validation/inference, November 2026: the residual at rank
// ceil(0.9 (n + 1)) of n, which a further case that is exchangeable with them exceeds with
// probability 0.1 (split conformal prediction, as in RANGES.md). `orrery validate --json FILE...`
// prints them as serving_errors; docs/SERVING-RANGES.md says how many cases of a family lie in a
// range that all others gave. Classes by experts help TPOT alone: errors of the other two differ
// more between families than between models.
constexpr double tpot_error_dense = 0.151;    // 556 cases
constexpr double tpot_error_experts = 0.246;  // 634
constexpr double ttft_error = 1.196;          // 1,190
constexpr double throughput_error = 0.307;    // 898

// The same of pairs of cases of one model in one file that differ in their deployment, by TPOT:
// 8,909 dense ones of one system and engine and 12,001 of several, 9,151 and 13,879 with experts
// (calibration/serving_covariances.py).
constexpr double alike_dense = 0.203, alike_experts = 0.311;
constexpr double other_dense = 0.232, other_experts = 0.367;

}  // namespace

std::optional<ServingFigure> serving_figure(const std::string& quantity) {
  if (quantity == "ttft_ms") return ServingFigure::ttft;
  if (quantity == "tpot_ms") return ServingFigure::tpot;
  if (quantity == "output_tokens_per_s" || quantity == "total_tokens_per_s")
    return ServingFigure::throughput;
  return std::nullopt;
}

double serving_error(ServingFigure figure, const Model& model) {
  if (figure == ServingFigure::tpot) return model.experts ? tpot_error_experts : tpot_error_dense;
  return figure == ServingFigure::ttft ? ttft_error : throughput_error;
}

double serving_pair_error(bool alike, const Model& model) {
  if (model.experts) return alike ? alike_experts : other_experts;
  return alike ? alike_dense : other_dense;
}

Range serving_range(double predicted, ServingFigure figure, const Model& model) {
  const double factor = std::exp(serving_error(figure, model));
  return {predicted / factor, predicted * factor};
}

}  // namespace orrery
