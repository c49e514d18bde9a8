#include <gtest/gtest.h>

#include "sim/fleet/fleet_text.hpp"

namespace orrery::serving_offers_test {
namespace {

const Place place{"test", ""};

ServingRequirement requirement(double times) {
  ServingRequirement asked;
  asked.model = read_model("llama3.1-8b", place);
  asked.engine = read_serving_engine("vllm", place);
  asked.deployment.tp = 1;
  asked.curve = {{{Seconds{0.0}, 20.0 * times}, {Seconds{300.0}, 60.0 * times}}, Seconds{600.0}};
  asked.traffic.prompt = {LengthDistribution::Kind::fixed, 2000, 2000, 0};
  asked.traffic.output = {LengthDistribution::Kind::fixed, 200, 200, 0};
  asked.rules.prefix_cache = true;
  asked.rules.replay.routing = Routing::least_tokens;
  asked.rules.replay.slo = Slo{.ttft = Seconds{2.0}, .tpot = Seconds{0.05}, .share = 0.95};
  asked.scalers = {parse_scaler("oracle", place)};
  asked.start = "30s";
  asked.at = place;
  return asked;
}

std::vector<ServingOffer> offers(double times, const std::vector<std::string>& names) {
  std::vector<System> systems;
  for (const std::string& name : names) systems.push_back(read_system(name, place));
  return serving_offers(requirement(times), systems, "");
}

// The fleet for the peak keeps to the limits, one that follows the load takes fewer GPU hours, and
// four times the load takes four times of either.
TEST(ServingOffers, FleetsGrowWithTheLoad) {
  const ServingOffer one = offers(1.0, {"dgx-h100"}).front();
  const ServingOffer four = offers(4.0, {"dgx-h100"}).front();
  ASSERT_TRUE(one.fixed && four.fixed) << one.refusal << four.refusal;
  EXPECT_GE(one.fixed->attainment(), 0.95);
  EXPECT_GE(four.fixed->attainment(), 0.95);
  EXPECT_EQ(one.replicas, std::ceil(60.0 / one.capacity));
  EXPECT_DOUBLE_EQ(one.capacity, four.capacity);
  EXPECT_NEAR(four.replicas / (4.0 * one.replicas), 1.0, 0.25);
  EXPECT_LT(one.scaled.front().gpu_hours(), one.fixed->gpu_hours());
  EXPECT_LT(four.scaled.front().gpu_hours(), four.fixed->gpu_hours());
  EXPECT_NEAR(four.fixed->gpu_hours() / four.replicas, one.fixed->gpu_hours() / one.replicas, 0.01);
  // Whole nodes are bought.
  const Range server = one.economics.server_usd_per_gpu;
  EXPECT_DOUBLE_EQ(one.to_buy().low, 8.0 * server.low);
}

// The cheapest to rent is first; a machine that cannot serve says why, and is last.
TEST(ServingOffers, AreOrderedByRentAndRefusalsAreLast) {
  ServingRequirement asked = requirement(1.0);
  asked.model = read_model("llama3.1-70b", place);
  asked.deployment.tp = 2;
  std::vector<System> systems;
  for (const char* name : {"l40s-pcie", "dgx-h100", "dgx-h200"})
    systems.push_back(read_system(name, place));
  const std::vector<ServingOffer> all = serving_offers(asked, systems, "");
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all.back().system.name, "l40s-pcie");
  EXPECT_NE(all.back().refusal, "");
  double before = 0.0;
  for (std::size_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(all[i].fixed) << all[i].refusal;
    const Range rent = all[i].economics.rent_usd_per_gpu_hour * all[i].fixed->gpu_hours();
    EXPECT_GE(rent.low + rent.high, before);
    before = rent.low + rent.high;
  }
  const std::string text = serving_offers_text(asked, all);
  EXPECT_NE(text.find("l40s-pcie: "), std::string::npos);
}

// A policy with fewer GPU hours that misses the share is not the best, and those within the noise
// of the samples are as good.
TEST(BestPolicy, NamesTiesAndLeavesOutTheOracle) {
  const std::vector<ScalerRequest> policies{
      parse_scaler("fixed", place), parse_scaler("hpa", place), parse_scaler("hpa:kv=0.5", place),
      parse_scaler("wva", place), parse_scaler("oracle:capacity=1", place)};
  std::vector<PolicySamples> samples(5);
  const auto set = [&](std::size_t i, std::vector<double> attainment, std::vector<double> hours) {
    samples[i].attainment = std::move(attainment);
    samples[i].gpu_hours = std::move(hours);
  };
  set(0, {1.0, 1.0, 1.0}, {12.0, 12.0, 12.0});
  set(1, {0.8, 0.9, 0.85}, {6.0, 6.0, 6.0});
  set(2, {0.96, 0.97, 0.98}, {8.0, 8.2, 8.1});
  set(3, {0.95, 0.97, 0.99}, {8.1, 8.1, 8.3});
  set(4, {1.0, 1.0, 1.0}, {5.0, 5.0, 5.0});
  const BestPolicy best = best_policy(policies, samples, 0.95);
  ASSERT_TRUE(best.best);
  EXPECT_EQ(*best.best, 2u);
  EXPECT_EQ(best.ties, std::vector<std::size_t>{3});
  EXPECT_FALSE(best_policy(policies, samples, 1.01).best);
}

}  // namespace
}  // namespace orrery::serving_offers_test
