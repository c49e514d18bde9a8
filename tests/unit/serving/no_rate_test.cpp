#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/serving/serving_run_text.hpp"

namespace orrery::no_rate_test {
namespace {

ServingLoad load_within(const std::string& limits) {
  ServingLoad load;
  load.traffic.prompt = parse_length_distribution("1024", {"", ""});
  load.traffic.output = parse_length_distribution("128", {"", ""});
  load.traffic.arrivals = Arrivals::poisson;
  load.traffic.requests = 200;
  load.replay.slo = parse_slo(limits, {"", ""});
  return load;
}

// Limits that no request keeps to: the answer is a sentence without a table, and the limits that it
// names are kept to at some rate.
TEST(NoRate, NamesLimitsThatAreKeptTo) {
  const PricedServing priced{
      make_serving_setup("llama3.1-8b", "dgx-h100", "vllm", {}, 1, {"", ""})};
  const auto serve = [&](const ServingLoad& load) {
    return serve_requests(priced, load, {"", ""});
  };
  for (const char* limits : {"ttft=1,tpot=1@p90", "ttft=1,tpot=1000@p99", "e2e=5@p50",
                             "ttft=2000,tpot=0.5,e2e=1000000@p95"}) {
    const ServingLoad load = load_within(limits);
    const Goodput goodput = largest_rate(serve, load, 1);
    ASSERT_FALSE(goodput.at_rate) << limits;
    ASSERT_TRUE(goodput.at_lowest);
    const std::string text = serving_run_text({load, *goodput.at_lowest, goodput, {}});
    EXPECT_THAT(text, testing::HasSubstr(std::string{"keep to "} + limits));
    EXPECT_THAT(text, testing::Not(testing::HasSubstr("TTFT")));
    const std::string flag = "--slo ";
    const std::size_t at = text.find(flag);
    ASSERT_NE(at, text.npos);
    const std::size_t begin = at + flag.size();
    const std::string nearest = text.substr(begin, text.find('\n', begin) - begin);
    EXPECT_TRUE(largest_rate(serve, load_within(nearest), 1).at_rate) << limits << ": " << nearest;
  }
}

}  // namespace
}  // namespace orrery::no_rate_test
