#include "sim/posttraining/rl_samples.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace orrery::rl_samples_test {
namespace {

LengthDistribution lognormal(double median, double sigma) {
  return {LengthDistribution::Kind::lognormal, median, median, sigma};
}

SampleLengths lengths_of(const LengthDistribution& response, std::int64_t most) {
  SampleLengths lengths;
  lengths.prompt = {LengthDistribution::Kind::fixed, 100, 100};
  lengths.response = response;
  lengths.max_response = most;
  return lengths;
}

// The mean of so many quantiles is the distribution's: for every mean, sigma and limit the median
// that is solved for gives the mean back.
TEST(RlSamples, MediansOfCutMeansGiveTheMeanBack) {
  for (const double sigma : {0.3, 0.7, 1.2})
    for (const double most : {2048.0, 8192.0})
      for (const double share : {0.05, 0.2, 0.5, 0.8, 0.95}) {
        const double mean = share * most;
        const double median = median_of_cut_mean(mean, sigma, most);
        const auto samples = draw_samples(
            lengths_of(lognormal(median, sigma), static_cast<std::int64_t>(most)), 4096, 1, 1);
        double sum = 0.0;
        for (const Sample& sample : samples) sum += sample.response;
        EXPECT_NEAR(sum / 4096.0 / mean, 1.0, 2e-3) << sigma << " " << most << " " << share;
      }
}

TEST(RlSamples, WithoutSpreadTheMeanIsTheMedian) {
  EXPECT_DOUBLE_EQ(median_of_cut_mean(1000.0, 0.0, 4096.0), 1000.0);
}

// The longest of n quantiles is that of 1 - 1 / 2n: 14 medians for 2,048 of sigma 0.8, as
// exp(0.8 x 3.49) = 16.3 for n = 2,048 and exp(0.8 x 3.29) = 13.9 for 1,024.
TEST(RlSamples, TheLongestIsTheQuantileToExpect) {
  const auto samples = draw_samples(lengths_of(lognormal(1000, 0.8), 1 << 20), 64, 16, 1);
  std::uint32_t longest = 0;
  for (const Sample& sample : samples) longest = std::max(longest, sample.response);
  EXPECT_NEAR(longest / 1000.0, std::exp(0.8 * 3.297), 0.05);
}

TEST(RlSamples, SamplesOfAPromptShareItAndSeedsChangeTheOrderAlone) {
  SampleLengths lengths = lengths_of(lognormal(500, 0.7), 4096);
  lengths.prompt = {LengthDistribution::Kind::uniform, 100, 900};
  const auto one = draw_samples(lengths, 16, 8, 1), other = draw_samples(lengths, 16, 8, 2);
  EXPECT_NE(one, other);
  EXPECT_EQ(statistics_of(one, lengths).tokens, statistics_of(other, lengths).tokens);
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_EQ(one[i].prompt, one[i / 8 * 8].prompt) << i;
}

TEST(RlSamples, AFileIsTakenInTurnAndCut) {
  SampleLengths lengths;
  lengths.given = {{10, 100}, {20, 5000}};
  lengths.max_response = 4096;
  const auto samples = draw_samples(lengths, 2, 2, 1);
  const std::vector<Sample> expected{{10, 100}, {20, 4096}, {10, 100}, {20, 4096}};
  EXPECT_EQ(samples, expected);
  const SampleStatistics all = statistics_of(samples, lengths);
  EXPECT_EQ(all.longest_response, 4096);
  EXPECT_DOUBLE_EQ(all.cut, 0.5);
  EXPECT_DOUBLE_EQ(all.mean_response, 2098.0);
  EXPECT_EQ(all.tokens, 2 * (110 + 4116));
}

// A limit of both together cuts by what a prompt leaves: 2,090 of 2,100 tokens behind ten, 2,080
// behind twenty.
TEST(RlSamples, AnswersEndWhereTheirPromptLeavesNoRoom) {
  SampleLengths lengths;
  lengths.given = {{10, 100}, {20, 5000}, {10, 5000}};
  lengths.max_response = 4096;
  lengths.max_sample = 2100;
  const auto samples = draw_samples(lengths, 3, 1, 1);
  const std::vector<Sample> expected{{10, 100}, {20, 2080}, {10, 2090}};
  EXPECT_EQ(samples, expected);
  EXPECT_DOUBLE_EQ(statistics_of(samples, lengths).cut, 2.0 / 3.0);
  lengths = lengths_of(lognormal(500, 0.7), 4095);
  lengths.prompt = lognormal(1000, 2.0);
  lengths.max_sample = 4096;
  for (const Sample& sample : draw_samples(lengths, 64, 8, 1)) {
    EXPECT_LE(sample.tokens(), 4096);
    EXPECT_GE(sample.response, 1u);
  }
}

}  // namespace
}  // namespace orrery::rl_samples_test
