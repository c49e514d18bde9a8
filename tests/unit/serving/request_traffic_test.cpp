#include "sim/serving/request_traffic.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "sim/serving/request.hpp"
#include "tests/support/error_text.hpp"

namespace orrery::request_traffic_test {
namespace {

const Place flag{"--flag", ""};

RequestTraffic sampled(const std::string& arrivals, double rate) {
  RequestTraffic traffic;
  parse_arrivals(arrivals, flag, traffic);
  traffic.rate = rate;
  traffic.requests = 200'000;
  return traffic;
}

// Mean and coefficient of variation of the distances between arrivals: 1 and 1 of an exponential
// distribution, 1 and c of a gamma distribution of c.
TEST(RequestTraffic, ArrivesAtItsRateWithItsVariation) {
  for (const auto& [name, variation] :
       {std::pair{"poisson", 1.0}, {"constant", 0.0}, {"gamma:0.5", 0.5}, {"gamma:3", 3.0}}) {
    const RequestList list = sample_requests(sampled(name, 5.0));
    double sum = 0.0, squares = 0.0;
    for (std::size_t i = 1; i < list.requests.size(); ++i) {
      const double gap = (list.requests[i].arrival - list.requests[i - 1].arrival).si();
      ASSERT_GE(gap, 0.0);
      sum += gap;
      squares += gap * gap;
    }
    const auto n = static_cast<double>(list.requests.size() - 1);
    EXPECT_NEAR(sum / n, 0.2, 0.005) << name;
    EXPECT_NEAR(std::sqrt(std::max(0.0, squares / n - sum / n * sum / n)) / 0.2, variation,
                0.02 * variation + 1e-4)
        << name;
  }
}

TEST(RequestTraffic, DrawsLengthsOfTheirMeans) {
  for (const char* text : {"1024", "819..1024", "lognormal:735,0.8", "1"}) {
    RequestTraffic traffic = sampled("burst", 0.0);
    traffic.prompt = parse_length_distribution(text, flag);
    EXPECT_EQ(length_distribution_text(traffic.prompt), text);
    double sum = 0.0;
    for (const Request& request : sample_requests(traffic).requests) sum += request.prompt_tokens;
    EXPECT_NEAR(sum / 200'000 / traffic.prompt.mean(), 1.0, 0.01) << text;
  }
}

// A change of one distribution leaves the samples of the others as they were.
TEST(RequestTraffic, EachDistributionHasItsOwnDraws) {
  RequestTraffic traffic = sampled("poisson", 1.0);
  traffic.requests = 100;
  traffic.prompt = traffic.output = parse_length_distribution("1..1000", flag);
  const RequestList one = sample_requests(traffic);
  traffic.rate = 7.0;
  traffic.output = parse_length_distribution("5", flag);
  const RequestList other = sample_requests(traffic);
  traffic.seed = 2;
  const RequestList seeded = sample_requests(traffic);
  int differ = 0;
  for (std::size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(one.requests[i].prompt_tokens, other.requests[i].prompt_tokens);
    EXPECT_NEAR(one.requests[i].arrival.si(), 7.0 * other.requests[i].arrival.si(), 1e-9);
    differ += one.requests[i].prompt_tokens != seeded.requests[i].prompt_tokens ? 1 : 0;
  }
  EXPECT_GT(differ, 90);
}

// Two prompts of one group share its blocks, of one user his, too, and of no group none.
TEST(RequestTraffic, SharesThePrefixesOfGroupsAndUsers) {
  RequestTraffic traffic = sampled("burst", 0.0);
  traffic.requests = 300;
  traffic.prompt = parse_length_distribution("800", flag);
  traffic.prefix = parse_shared_prefix("groups=4,tokens=150,users=3,user-tokens=600", flag);
  const RequestList list = sample_requests(traffic);
  EXPECT_EQ(list.hash_tokens, 16u);
  for (const Request& a : list.requests) {
    ASSERT_EQ(a.hashes, 46u);  // Of 750 / 16 the whole ones.
    for (const Request& b : list.requests) {
      std::uint32_t same = 0;
      while (same < 46 && list.hashes[a.first_hash + same] == list.hashes[b.first_hash + same])
        ++same;
      const std::uint32_t expected = a.session == b.session           ? 46
                                     : a.session / 3 == b.session / 3 ? 9
                                                                      : 0;
      ASSERT_EQ(same, expected);
    }
  }
}

TEST(RequestTraffic, RefusesWhatIsNoDistribution) {
  RequestTraffic traffic;
  EXPECT_EQ(error_text([&] { parse_length_distribution("0", flag); }),
            "--flag: '0' is not a length in tokens from 1 to 16777216; write like 1024, 819..1024 "
            "or lognormal:1024,0.8");
  EXPECT_EQ(error_text([&] { parse_length_distribution("9..3", flag); }),
            "--flag: '9..3' falls; write the shorter length first");
  EXPECT_EQ(error_text([&] { parse_length_distribution("lognormal:5,nan", flag); }),
            "--flag: 'lognormal:5,nan' has no sigma from 0 to 4; write like 1024, 819..1024 or "
            "lognormal:1024,0.8");
  EXPECT_EQ(error_text([&] { parse_arrivals("gamma:0", flag, traffic); }),
            "--flag: 'gamma:0' has no coefficient of variation from 0.01 to 100; write like "
            "gamma:2.5");
  EXPECT_EQ(error_text([&] { parse_arrivals("poison", flag, traffic); }),
            "--flag: 'poison' is no law of arrivals; did you mean 'poisson'?");
  EXPECT_EQ(error_text([&] { parse_shared_prefix("groups=3", flag); }),
            "--flag: 'groups=3' lacks groups or tokens; write like groups=10,tokens=150 or with "
            ",users=5,user-tokens=600");
}

TEST(Slo, HasLimitsAndAShare) {
  const Slo slo = parse_slo("ttft=2000,tpot=40@p90", flag);
  EXPECT_EQ(slo.ttft.si(), 2.0);
  EXPECT_EQ(slo.tpot.si(), 0.04);
  EXPECT_EQ(slo.share, 0.9);
  EXPECT_TRUE(slo.met(Seconds{2.0}, Seconds{0.04}, Seconds{1e9}));
  EXPECT_FALSE(slo.met(Seconds{2.0}, Seconds{0.041}, Seconds{}));
  EXPECT_EQ(error_text([] { parse_slo("ttft=-1", flag); }),
            "--flag: 'ttft=-1' is not a limit in milliseconds; write like "
            "ttft=2000,tpot=40@p90, in milliseconds");
  EXPECT_EQ(error_text([] { parse_slo("ttft=1@p0", flag); }),
            "--flag: '@p0' is not a share of the requests; write like ttft=2000,tpot=40@p90, in "
            "milliseconds");
  EXPECT_EQ(error_text([] { parse_slo("itl=5", flag); }),
            "--flag: 'itl' is not limited here; write like ttft=2000,tpot=40@p90, in milliseconds");
}

}  // namespace
}  // namespace orrery::request_traffic_test
