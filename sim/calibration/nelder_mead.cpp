#include "sim/calibration/nelder_mead.hpp"

#include <algorithm>
#include <cassert>

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

}  // namespace orrery
