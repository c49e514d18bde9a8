#include "sim/reliability/batch_ramp.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/error_text.hpp"

namespace orrery::batch_ramp_test {
namespace {

const Place at{"", "--ramp"};
constexpr std::int64_t seq = 128;

std::vector<BatchPhase> phases(const std::string& text, std::int64_t gbs, double tokens) {
  return batch_phases(parse_batch_ramp(text, at), gbs, seq, tokens, at);
}

// Steps at each batch, one after the other: `batch_of` says it by the sequences that are done.
template <class BatchOf>
std::vector<BatchPhase> stepped(const BatchOf& batch_of, double sequences) {
  std::vector<BatchPhase> steps;
  for (double done = 0.0; done < sequences; done += static_cast<double>(steps.back().gbs)) {
    const std::int64_t gbs = batch_of(done);
    if (steps.empty() || steps.back().gbs != gbs) steps.push_back({gbs, 0.0});
    steps.back().steps += 1.0;
  }
  return steps;
}

void expect_same(const std::vector<BatchPhase>& phases, const std::vector<BatchPhase>& steps) {
  ASSERT_EQ(phases.size(), steps.size());
  for (std::size_t i = 0; i < phases.size(); ++i) {
    EXPECT_EQ(phases[i].gbs, steps[i].gbs);
    EXPECT_EQ(phases[i].steps, steps[i].steps);
  }
}

TEST(BatchRamp, WithoutOneIsASinglePhase) {
  const auto whole = batch_phases({}, 512, seq, 1e9, at);
  ASSERT_EQ(whole.size(), 1u);
  EXPECT_EQ(whole[0].gbs, 512);
  EXPECT_EQ(whole[0].steps, std::ceil(1e9 / (512 * 128)));
}

// Megatron-LM's rule, step by step: increments done = floor(sequences done / sequences of one).
TEST(BatchRamp, GrowsAsMegatronsDoes) {
  for (const std::int64_t start : {16, 64})
    for (const std::int64_t increment : {16, 48, 96})
      for (const std::int64_t sequences : {100, 1000, 4801}) {
        const std::int64_t gbs = start + 4 * increment;
        const double each = static_cast<double>(sequences) / 4.0;
        const double all = 12'345.0;
        const auto rule = [&](double done) {
          const auto increments = static_cast<std::int64_t>(done / each);
          return std::min(gbs, start + increments * increment);
        };
        SCOPED_TRACE(std::to_string(start) + " " + std::to_string(increment) + " " +
                     std::to_string(sequences));
        expect_same(phases(std::to_string(start) + " " + std::to_string(increment) + " " +
                               std::to_string(sequences),
                           gbs, all * seq),
                    stepped(rule, all));
      }
}

// Tokens carry the batch: at the first step after 1,000 sequences, then after 5,000.
TEST(BatchRamp, GrowsAtTheTokensThatAScheduleSays) {
  const auto rule = [](double done) { return done < 1000 ? 96 : done < 5000 ? 320 : 700; };
  for (const char* text : {"0:96 128K:320 640K:700", "0:96,128K:320,640000:700"})
    expect_same(phases(text, 700, 20'000.0 * seq), stepped(rule, 20'000.0));
}

TEST(BatchRamp, RefusesWhatLeadsNowhere) {
  const auto error = [](const std::string& text, std::int64_t gbs, double tokens) {
    return error_text([&] { phases(text, gbs, tokens); });
  };
  EXPECT_EQ(
      error("0:96 1M:320", 512, 1e9),
      "--ramp: ends with 320 sequences, and --gbs is 512; let it end with the batch of --gbs");
  EXPECT_EQ(error("100 30 5000", 512, 1e9),
            "--ramp: no batch grows from 100 by 30 to the 512 of --gbs; choose a start and an "
            "increment that lead there");
  EXPECT_EQ(error("0:96 1M:320", 320, 1e6),
            "--ramp: lasts as long as the run or longer: the batch of --gbs is never reached; "
            "train on more --tokens, or let the batch grow sooner");
  EXPECT_EQ(error("5M:96 10M:320", 320, 1e9),
            "--ramp: does not say which batch the run begins with; begin with 0:BATCH");
  EXPECT_EQ(error("0:96 10M:64", 64, 1e9),
            "--ramp: '10M:64' is not above what stands before it; let tokens and batches rise");
}

}  // namespace
}  // namespace orrery::batch_ramp_test
