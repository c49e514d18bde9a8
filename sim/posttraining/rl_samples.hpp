#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/core/error.hpp"
#include "sim/serving/request_traffic.hpp"

namespace orrery {

/// A prompt with one answer to it, in tokens. Training and log-probabilities read both.
struct Sample {
  std::uint32_t prompt = 1, response = 1;

  std::int64_t tokens() const { return std::int64_t{prompt} + response; }
  bool operator==(const Sample&) const = default;
};

/// The lengths that the samples of a step are drawn from.
struct SampleLengths {
  LengthDistribution prompt, response;
  std::int64_t max_response = 0;  ///< Longer answers are cut there,
  /// and where a prompt and its answer have so many tokens. Requires that it leaves one to each.
  std::int64_t max_sample = std::int64_t{1} << 30;
  /// Samples of a file, taken in turn in place of the distributions.
  std::vector<Sample> given = {};
};

/// The median of the log-normal distribution of `sigma` whose values, cut at `most`, have the mean
/// `mean`: E[min(X, c)] = m exp(s^2 / 2) P((ln(c / m) - s^2) / s) + c (1 - P(ln(c / m) / s)) with
/// the normal distribution P. Requires 1 <= mean < most.
double median_of_cut_mean(double mean, double sigma, double most);

/// The samples of one step: those of a prompt follow each other. Lengths are the quantiles of the
/// distributions, one for each sample, in a random order, so that their mean does not depend on the
/// seed, and the longest is the one to expect.
std::vector<Sample> draw_samples(const SampleLengths& lengths, std::int64_t prompts,
                                 std::int64_t samples_per_prompt, std::uint64_t seed);

/// Sums over samples.
struct SampleStatistics {
  double mean_prompt = 0.0, mean_response = 0.0;
  std::int64_t longest_response = 0;
  std::int64_t tokens = 0;
  double cut = 0.0;  ///< Share of answers that reach a limit.
};
SampleStatistics statistics_of(const std::vector<Sample>& samples, const SampleLengths& limits);

}  // namespace orrery
