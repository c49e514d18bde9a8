#include "sim/calibration/fit_formulas.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "sim/kernels/attention_formula.hpp"
#include "sim/kernels/gemm_formula.hpp"

namespace orrery {
namespace {

bool better(const Minimum& a, const Minimum& b) { return a.loss < b.loss; }

}  // namespace

Minimum nelder_mead(const std::function<double(const std::vector<double>&)>& loss,
                    const std::vector<double>& start, double step, int moves) {
  const std::size_t n = start.size();
  std::vector<Minimum> simplex{{loss(start), start}};
  for (std::size_t i = 0; i < n; ++i) {
    std::vector<double> point = start;
    point[i] += step;
    simplex.push_back({loss(point), point});
  }
  std::vector<double> centre(n);
  for (int move = 0; move < moves; ++move) {
    std::stable_sort(simplex.begin(), simplex.end(), better);
    const Minimum worst = simplex.back();
    for (std::size_t i = 0; i < n; ++i) {
      centre[i] = 0.0;
      for (std::size_t corner = 0; corner < n; ++corner) centre[i] += simplex[corner].at[i];
      centre[i] /= static_cast<double>(n);
    }
    const auto along = [&](double share) {
      std::vector<double> point(n);
      for (std::size_t i = 0; i < n; ++i) point[i] = centre[i] + share * (worst.at[i] - centre[i]);
      return Minimum{loss(point), point};
    };
    const Minimum mirrored = along(-1.0);
    if (better(mirrored, simplex.front())) {
      const Minimum further = along(-2.0);
      simplex.back() = better(further, mirrored) ? further : mirrored;
    } else if (better(mirrored, simplex[n - 1])) {
      simplex.back() = mirrored;
    } else {
      const Minimum inner = along(better(mirrored, worst) ? -0.5 : 0.5);
      if (inner.loss < std::min(mirrored.loss, worst.loss)) {
        simplex.back() = inner;
      } else {
        for (std::size_t corner = 1; corner <= n; ++corner) {
          for (std::size_t i = 0; i < n; ++i)
            simplex[corner].at[i] =
                simplex[0].at[i] + 0.5 * (simplex[corner].at[i] - simplex[0].at[i]);
          simplex[corner].loss = loss(simplex[corner].at);
        }
      }
    }
  }
  return *std::min_element(simplex.begin(), simplex.end(), better);
}

std::vector<double> minimize(const std::function<double(const std::vector<double>&)>& loss,
                             const std::vector<std::vector<double>>& starts) {
  assert(!starts.empty());
  constexpr int moves = 700;  // Eight constants have settled to four digits well before.
  std::vector<Minimum> found;
  for (const std::vector<double>& start : starts)
    found.push_back(nelder_mead(loss, start, 0.25, moves));
  const Minimum best = *std::min_element(found.begin(), found.end(), better);
  return nelder_mead(loss, best.at, 0.1, moves).at;
}

namespace {

using Parameters = std::vector<double>;

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
double square(double x) { return x * x; }

double rounded(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return std::strtod(text, nullptr);
}

Seconds rounded(Seconds time) { return microseconds(rounded(time.si() * 1e6)); }

// The log error of a row, capped so that all outliers count alike.
double capped_error(double predicted_us, Seconds measured) {
  return std::min(std::abs(std::log(predicted_us / (measured.si() * 1e6))), 0.5);
}

// Degenerate constants: exponentials overflow before they mean anything.
bool is_absurd(const Parameters& q) {
  return std::any_of(q.begin(), q.end(), [](double x) { return !(std::abs(x) <= 20.0); });
}
constexpr double absurd_loss = 1e9;

GemmBase gemm_base(const Parameters& q) {
  GemmBase base;
  base.overhead = microseconds(std::exp(q[0]));
  base.compute_efficiency = std::exp(q[1]);
  base.tile_overhead = microseconds(std::exp(q[2]));
  base.memory_efficiency = std::exp(q[3]);
  base.hard = sigmoid(q[4]);
  base.throttle = std::max(q[5], 0.0);
  return base;
}

AttentionBase attention_base(const Parameters& q, std::int64_t head_dim) {
  AttentionBase base;
  base.head_dim = head_dim;
  base.overhead = microseconds(std::exp(q[0]));
  base.efficiency = std::exp(q[1]);
  base.diagonal = std::exp(q[2]);
  base.query_traffic = std::exp(q[3]);
  base.key_traffic = std::exp(q[4]);
  base.hard = sigmoid(q[5]);
  base.isolated = std::exp(q[6]);
  return base;
}

GemmBase rounded(GemmBase base) {
  for (Seconds* time : {&base.overhead, &base.tile_overhead}) *time = rounded(*time);
  for (double* value :
       {&base.compute_efficiency, &base.memory_efficiency, &base.hard, &base.throttle})
    *value = rounded(*value);
  return base;
}

AttentionBase rounded(AttentionBase base) {
  base.overhead = rounded(base.overhead);
  for (double* value : {&base.efficiency, &base.diagonal, &base.query_traffic, &base.key_traffic,
                        &base.hard, &base.isolated})
    *value = rounded(*value);
  return base;
}

// Shares of a peak as the reader of tables takes them; beyond, the peak is that of another GPU.
bool is_share(double value) { return value >= 0.01 && value <= 2.0; }

}  // namespace

GemmBase fit_gemm(std::span<const GemmRow> rows, const MeasuredGpu& measured, Dtype dtype) {
  assert(!rows.empty());
  const GemmMachine machine = gemm_machine(measured, dtype);
  const auto loss = [&](const Parameters& q) {
    if (is_absurd(q)) return absurd_loss;
    const GemmBase base = gemm_base(q);
    if (!is_share(base.compute_efficiency) || !is_share(base.memory_efficiency)) return absurd_loss;
    double sum = 0.0;
    for (const GemmRow& row : rows) {
      const GemmProduct product{row.m, row.n, row.k};
      sum += capped_error(gemm_formula_us(base, machine, dtype, {&product, 1}, false), row.time);
    }
    // Chosen on the tables that come with the project (docs/explanation/kernels.md, Fit).
    const double prior = square((q[5] - 0.1) / 0.1) + square((q[4] + 0.5) / 1.5) +
                         square(q[2] - std::log(0.5)) + square((q[1] - std::log(0.8)) / 0.15);
    return sum / static_cast<double>(rows.size()) + 0.001 * prior;
  };
  std::vector<Parameters> starts;
  for (const auto& [tile_us, hard] : {std::pair{0.5, -1.0}, std::pair{2.0, 0.0}, {0.1, 1.0}})
    starts.push_back({std::log(2.0), std::log(0.8), std::log(tile_us), std::log(0.7), hard, 0.1});
  return rounded(gemm_base(minimize(loss, starts)));
}

AttentionBase fit_attention(std::span<const AttentionRow> rows, const MeasuredGpu& measured) {
  assert(!rows.empty());
  const std::int64_t head_dim = rows.front().head_dim;
  const GemmMachine machine = gemm_machine(measured, Dtype::bf16);
  // A kernel alone: a launch gap, and each of Q, O, K and V moved once, as in attention_formula.
  const Parameters centre{
      std::log(4.0), std::log(0.6), std::log(256.0), std::log(0.5), std::log(0.5), -1.0, -0.5};
  const Parameters width{0.5, 0.3, 1.0, 1.0, 1.0, 1.5, 1.0};
  const auto loss = [&](const Parameters& q) {
    if (is_absurd(q)) return absurd_loss;
    const AttentionBase base = attention_base(q, head_dim);
    if (!is_share(base.efficiency) || base.diagonal > 1e5 || base.isolated > 100.0 ||
        base.query_traffic > 100.0 || base.key_traffic > 100.0)
      return absurd_loss;
    double sum = 0.0, prior = 0.0;
    for (const AttentionRow& row : rows)
      sum += capped_error(
          attention_formula_us(base, machine, causal_square(row), AttentionScope::row), row.time);
    for (std::size_t i = 0; i < q.size(); ++i) prior += square((q[i] - centre[i]) / width[i]);
    return sum / static_cast<double>(rows.size()) + 0.0003 * prior;
  };
  std::vector<Parameters> starts;
  for (const auto& [diagonal, hard] : {std::pair{256.0, -1.0}, {100.0, 0.5}, {100.0, 2.0}}) {
    starts.push_back(centre);
    starts.back()[2] = std::log(diagonal);
    starts.back()[5] = hard;
  }
  return rounded(attention_base(minimize(loss, starts), head_dim));
}

}  // namespace orrery
