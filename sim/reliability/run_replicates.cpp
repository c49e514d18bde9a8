#include "sim/reliability/run_replicates.hpp"

#include <algorithm>
#include <cmath>

namespace orrery {
namespace {

template <class Source, class Of>
std::vector<RunTally> replicates_of(const WalkSetup& setup, const Of& of, std::uint64_t seed,
                                    int replicates) {
  std::vector<RunTally> runs;
  runs.reserve(static_cast<std::size_t>(replicates));
  for (int i = 0; i < replicates; ++i)
    runs.push_back(walk(setup, Source{of, seed, static_cast<std::uint64_t>(i)}));
  return runs;
}

}  // namespace

ChanceRange chance_range(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  ChanceRange range;
  for (const double value : values) range.mean += value / static_cast<double>(values.size());
  // Between two values in proportion.
  const auto quantile = [&](double share) {
    const double at = share * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(at);
    const std::size_t above = std::min(below + 1, values.size() - 1);
    return values[below] + (at - std::floor(at)) * (values[above] - values[below]);
  };
  range.low = quantile(0.05);
  range.high = quantile(0.95);
  return range;
}

std::vector<RunTally> run_replicates(const WalkSetup& setup, const FailureLaw& law,
                                     std::uint64_t seed, int replicates) {
  return replicates_of<FailureDraws>(setup, law, seed, replicates);
}

std::vector<RunTally> run_replicates(const WalkSetup& setup, const FaultRecord& record,
                                     std::uint64_t seed, int replicates) {
  return replicates_of<FaultReplay>(setup, record, seed, replicates);
}

std::vector<double> shares_away(std::span<const RunTally> runs) {
  std::vector<double> time;
  double all = 0.0;
  for (const RunTally& run : runs) {
    if (time.size() < run.with_away.size()) time.resize(run.with_away.size());
    for (std::size_t i = 0; i < run.with_away.size(); ++i) {
      time[i] += static_cast<double>(run.with_away[i]);
      all += static_cast<double>(run.with_away[i]);
    }
  }
  for (double& share : time) share /= all;
  return time;
}

int units_away(std::span<const RunTally> runs, double share) {
  const std::vector<double> shares = shares_away(runs);
  double sum = 0.0;
  for (std::size_t i = 0; i < shares.size(); ++i)
    if ((sum += shares[i]) >= share) return static_cast<int>(i);
  return static_cast<int>(shares.size());
}

}  // namespace orrery
