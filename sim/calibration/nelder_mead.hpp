#pragma once

#include <functional>
#include <vector>

namespace orrery {

/// The least value of `loss` that a simplex finds from `start`, each of whose other corners lies
/// `step` along one axis, in `moves` moves (Nelder and Mead, The Computer Journal 7, 1965, with
/// their coefficients 1, 2, 1/2, 1/2). No derivative is needed. The same input gives the same bits.
struct Minimum {
  double loss = 0.0;
  std::vector<double> at;
};
Minimum nelder_mead(const std::function<double(const std::vector<double>&)>& loss,
                    const std::vector<double>& start, double step, int moves);

/// From each of `starts`, then once more around the best: local minima and simplices that collapsed
/// early cost nothing but time.
std::vector<double> minimize(const std::function<double(const std::vector<double>&)>& loss,
                             const std::vector<std::vector<double>>& starts);

}  // namespace orrery
