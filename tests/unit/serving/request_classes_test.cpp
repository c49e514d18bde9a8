#include <gtest/gtest.h>

#include "sim/serving/request_traffic.hpp"
#include "sim/serving/serving_run.hpp"
#include "tests/support/error_text.hpp"
#include "tests/unit/serving/replay_cases.hpp"

namespace orrery::request_classes_test {
namespace {

const Place place{"", "--class"};

RequestTraffic two_classes(double share, int first, int second) {
  RequestTraffic traffic;
  traffic.arrivals = Arrivals::poisson;
  traffic.classes = {{{"first", first, std::nullopt}, share, {}, {}},
                     {{"second", second, std::nullopt}, 1.0 - share, {}, {}}};
  return traffic;
}

std::vector<ClassOutcome> outcomes(const RequestList& list, ReplayShape shape,
                                   const StepCosts& costs) {
  shape.replica.replay.keeps_times = true;
  const RequestReplay replay = replay_requests(list, shape, costs);
  return outcomes_of_classes(list, replay.times, std::nullopt, {});
}

// One server with a fixed time of service S at a load r, of which r1 has priority: who has it waits
// r S / (2 (1 - r1)), and the others r S / (2 (1 - r1) (1 - r)) (A. Cobham, Operations Research 2,
// 1954). The mean over all is that without priorities.
TEST(RequestClasses, WaitAsCobhamSays) {
  const double step = 0.01;
  for (const double load : {0.5, 0.8})
    for (const double share : {0.25, 0.6}) {
      RequestTraffic traffic = two_classes(share, 1, 0);
      traffic.rate = load / step;
      traffic.requests = 400'000;
      ReplayShape shape = one_replica();
      shape.replica.rules.most_requests = 1;
      const auto classes = outcomes(sample_requests(traffic), shape, fixed_costs(Seconds{step}));
      const double first = load * step / (2.0 * (1.0 - share * load));
      const double second = first / (1.0 - load);
      EXPECT_NEAR(static_cast<double>(classes[0].requests) / 4e5, share, 0.005);
      EXPECT_NEAR(classes[0].ttft.mean().si() / (first + step), 1.0, 0.02) << load << share;
      EXPECT_NEAR(classes[1].ttft.mean().si() / (second + step), 1.0, 0.03) << load << share;
    }
}

// Classes of one priority are served as if there were none, to the last bit.
TEST(RequestClasses, EqualPrioritiesChangeNothing) {
  for (const SchedulerKind* scheduling : continuous_schedulers())
    for (const bool ahead : {false, true}) {
      RequestTraffic traffic = two_classes(0.5, 3, 3);
      traffic.rate = 8.0;
      traffic.requests = 500;
      traffic.prompt = {LengthDistribution::Kind::uniform, 100, 3000, 0.0};
      traffic.output = {LengthDistribution::Kind::uniform, 10, 900, 0.0};
      RequestList list = sample_requests(traffic);
      ReplayShape shape = one_replica(scheduling);
      shape.replica.kv.tokens = 40'000;
      shape.replica.rules.plans_ahead = ahead;
      const std::string with = replay_requests(list, shape, affine_costs()).counts.bytes();
      list.classes.clear();
      EXPECT_EQ(with, replay_requests(list, shape, affine_costs()).counts.bytes());
    }
}

// Where the cache fills up, those of the lower priority are preempted, though they came first.
TEST(RequestClasses, TheLowestIsPreempted) {
  RequestTraffic traffic = two_classes(0.25, 0, 0);
  traffic.arrivals = Arrivals::burst;
  traffic.requests = 40;
  traffic.prompt = {LengthDistribution::Kind::fixed, 1000, 1000, 0.0};
  traffic.output = {LengthDistribution::Kind::fixed, 1000, 1000, 0.0};
  RequestList list = sample_requests(traffic);
  ReplayShape shape = one_replica();
  shape.replica.kv.tokens = 30'000;
  shape.replica.replay.keeps_times = true;
  const auto preempted = [&](std::uint8_t of_class) {
    const RequestReplay replay = replay_requests(list, shape, affine_costs());
    EXPECT_EQ(replay.counts.totals.finished, 40);
    EXPECT_NEAR(replay.counts.totals.present / replay.counts.totals.stayed, 1.0, 1e-9);
    std::int64_t sum = 0;
    for (const RequestTimes& times : replay.times)
      sum += list.requests[times.request].of_class == of_class ? times.preemptions : 0;
    return sum;
  };
  EXPECT_GT(preempted(0), 0);
  list.classes[0].priority = 5;
  EXPECT_EQ(preempted(0), 0);
  EXPECT_GT(preempted(1), 0);
}

// Each class keeps to limits of its own.
TEST(RequestClasses, HaveLimitsOfTheirOwn) {
  RequestTraffic traffic = two_classes(0.5, 0, 0);
  traffic.rate = 5.0;
  traffic.requests = 200;
  traffic.classes[0].of.slo = Slo{.ttft = Seconds{1e-9}};
  ReplayShape shape = one_replica();
  shape.replica.replay.slo = Slo{.ttft = Seconds{1e9}};
  const RequestList list = sample_requests(traffic);
  const ReplayTotals totals = replay_requests(list, shape, affine_costs()).counts.totals;
  std::int64_t second = 0;
  for (const Request& request : list.requests) second += request.of_class;
  EXPECT_EQ(totals.within_slo, second);
}

// Of whatever part of a run counts, the classes have all requests, and their shares within the
// limits add up to that of the whole.
TEST(RequestClasses, AddUpToWhatCounts) {
  DeploymentRequest request;
  request.tp = 1;
  const PricedServing priced{
      make_serving_setup("llama3.1-8b", "dgx-h100", "vllm", request, 1, place)};
  for (const Arrivals arrivals : {Arrivals::closed, Arrivals::poisson, Arrivals::burst})
    for (const MeasuredPart part : {MeasuredPart::steady, MeasuredPart::all}) {
      ServingLoad load;
      load.traffic = two_classes(0.3, 2, 1);
      load.traffic.arrivals = arrivals;
      load.traffic.concurrency = 20;
      load.traffic.rate = 12.0;
      load.traffic.requests = 600;
      load.traffic.prompt = {LengthDistribution::Kind::fixed, 2000, 2000, 0.0};
      load.traffic.output = {LengthDistribution::Kind::fixed, 200, 200, 0.0};
      load.traffic.classes[0].of.slo = Slo{.ttft = Seconds{0.5}};
      load.replay.slo = Slo{.ttft = Seconds{2.0}, .tpot = Seconds{0.02}};
      load.part = part;
      load.list = sample_requests(load.traffic);
      const ServingRun run = serve_requests(priced, load, place);
      std::int64_t requests = 0, within = 0;
      for (const ClassOutcome& one : run.classes) {
        EXPECT_GT(one.requests, 0);
        requests += one.requests;
        within += one.within_limits;
      }
      EXPECT_EQ(requests, run.replay.counts.totals.finished) << name(arrivals) << name(part);
      EXPECT_EQ(within, run.replay.counts.totals.within_slo) << name(arrivals) << name(part);
    }
}

TEST(RequestClasses, AreRead) {
  const TrafficClass one = parse_traffic_class(
      "chat:share=0.7,priority=3,ttft=2000,tpot=40,isl=819..1024,osl=64", place);
  EXPECT_EQ(one.of.name, "chat");
  EXPECT_EQ(one.of.priority, 3);
  EXPECT_DOUBLE_EQ(one.share, 0.7);
  EXPECT_EQ(one.of.slo->ttft, Seconds{2.0});
  EXPECT_EQ(one.of.slo->tpot, Seconds{0.04});
  EXPECT_EQ(one.prompt->high, 1024.0);
  EXPECT_EQ(one.output->low, 64.0);
  for (const char* text :
       {"", "chat", ":share=1", "chat:share=0", "chat:share=x", "chat:weight=1", "chat:ttft=-1",
        "chat:share=1,share=2", "chat:isl=0", "chat:priority=1e9", "chat:priority=-1"})
    EXPECT_THROW(parse_traffic_class(text, place), Error) << text;
}

}  // namespace
}  // namespace orrery::request_classes_test
