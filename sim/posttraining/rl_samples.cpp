#include "sim/posttraining/rl_samples.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "sim/core/random.hpp"
#include "sim/core/statistics.hpp"

namespace orrery {
namespace {

enum RandomStream : std::uint64_t { prompt_order = 101, response_order };

double quantile(const LengthDistribution& lengths, double share) {
  switch (lengths.kind) {
    case LengthDistribution::Kind::uniform:
      return lengths.low + share * (lengths.high - lengths.low);
    case LengthDistribution::Kind::lognormal:
      return lengths.low * portable_exp(lengths.sigma * normal_quantile(share));
    case LengthDistribution::Kind::fixed:
      break;
  }
  return lengths.low;
}

std::vector<std::uint32_t> shuffled_quantiles(const LengthDistribution& lengths, std::int64_t count,
                                              double most, Random random) {
  std::vector<std::uint32_t> all;
  all.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const double share = (static_cast<double>(i) + 0.5) / static_cast<double>(count);
    all.push_back(static_cast<std::uint32_t>(
        std::clamp(std::floor(quantile(lengths, share) + 0.5), 1.0, most)));
  }
  for (std::size_t left = all.size(); left > 1; --left)
    std::swap(all[left - 1], all[random.below(left)]);
  return all;
}

Sample cut(Sample sample, const SampleLengths& limits) {
  const std::int64_t most =
      std::min(limits.max_response, limits.max_sample - std::int64_t{sample.prompt});
  assert(most >= 1);
  sample.response = std::min(sample.response, static_cast<std::uint32_t>(most));
  return sample;
}

}  // namespace

double median_of_cut_mean(double mean, double sigma, double most) {
  assert(mean >= 1.0 && mean < most);
  if (sigma == 0.0) return mean;
  const auto cut_mean = [&](double median) {
    const double z = std::log(most / median) / sigma;
    return median * std::exp(0.5 * sigma * sigma) * normal_share(z - sigma) +
           most * (1.0 - normal_share(z));
  };
  double low = std::log(mean) - sigma * sigma - 1.0, high = std::log(most) + 12.0 * sigma;
  for (int i = 0; i < 100; ++i) {
    const double middle = 0.5 * (low + high);
    (cut_mean(std::exp(middle)) < mean ? low : high) = middle;
  }
  return std::exp(0.5 * (low + high));
}

std::vector<Sample> draw_samples(const SampleLengths& lengths, std::int64_t prompts,
                                 std::int64_t samples_per_prompt, std::uint64_t seed) {
  const std::int64_t count = prompts * samples_per_prompt;
  std::vector<Sample> samples(static_cast<std::size_t>(count));
  if (!lengths.given.empty()) {
    for (std::size_t i = 0; i < samples.size(); ++i)
      samples[i] = cut(lengths.given[i % lengths.given.size()], lengths);
    return samples;
  }
  const auto prompt =
      shuffled_quantiles(lengths.prompt, prompts,
                         static_cast<double>(std::min(most_request_tokens, lengths.max_sample - 1)),
                         Random{seed, prompt_order});
  const auto response =
      shuffled_quantiles(lengths.response, count, static_cast<double>(lengths.max_response),
                         Random{seed, response_order});
  for (std::size_t i = 0; i < samples.size(); ++i)
    samples[i] =
        cut({prompt[i / static_cast<std::size_t>(samples_per_prompt)], response[i]}, lengths);
  return samples;
}

SampleStatistics statistics_of(const std::vector<Sample>& samples, const SampleLengths& limits) {
  SampleStatistics all;
  for (const Sample& sample : samples) {
    all.mean_prompt += sample.prompt;
    all.mean_response += sample.response;
    all.longest_response = std::max<std::int64_t>(all.longest_response, sample.response);
    all.tokens += sample.tokens();
    const bool ends_there =
        sample.response >= limits.max_response || sample.tokens() >= limits.max_sample;
    all.cut += ends_there ? 1.0 : 0.0;
  }
  const auto count = static_cast<double>(samples.size());
  all.mean_prompt /= count;
  all.mean_response /= count;
  all.cut /= count;
  return all;
}

}  // namespace orrery
