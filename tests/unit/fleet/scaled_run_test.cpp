#include "sim/fleet/scaled_run.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/support/error_text.hpp"

namespace orrery::scaled_run_test {
namespace {

const Place place{"load", ""};

// A day in a few minutes: 2, 14, 6 and no requests a second.
LoadCurve curve() {
  return {
      {{Seconds{0.0}, 2.0}, {Seconds{300.0}, 14.0}, {Seconds{600.0}, 6.0}, {Seconds{900.0}, 0.0}},
      Seconds{1200.0}};
}

const PricedServing& priced(int gpus) {
  static std::map<int, std::unique_ptr<PricedServing>> all;
  std::unique_ptr<PricedServing>& one = all[gpus];
  if (!one) {
    DeploymentRequest request;
    request.tp = 1;
    one = std::make_unique<PricedServing>(
        make_serving_setup("llama3.1-8b", "dgx-h100", "vllm", request, gpus, place));
  }
  return *one;
}

RequestTraffic lengths() {
  RequestTraffic traffic;
  traffic.prompt = {LengthDistribution::Kind::fixed, 4000, 4000, 0};
  traffic.output = {LengthDistribution::Kind::fixed, 300, 300, 0};
  return traffic;
}

ServingLoad rules() {
  ServingLoad load;
  load.prefix_cache = true;
  load.replay.routing = Routing::least_tokens;
  load.replay.slo = Slo{.ttft = Seconds{2.0}, .tpot = Seconds{0.05}, .share = 0.9};
  return load;
}

ScaledRun run_of(const std::string& scaler, int initial, Seconds start = Seconds{60.0}) {
  ScaledLoad load;
  load.curve = curve();
  load.scaler = parse_scaler(scaler, place);
  load.initial = initial;
  load.start = start;
  return serve_scaled(priced(initial), load, requests_of_curve(load.curve, false, lengths()),
                      rules(), place);
}

TEST(ScaledRun, RequestsFollowTheCurve) {
  const RequestList even = requests_of_curve(curve(), true, lengths());
  EXPECT_EQ(std::ssize(even.requests), 600 + 4200 + 1800);
  EXPECT_DOUBLE_EQ(even.requests[0].arrival.si(), 0.5);
  EXPECT_DOUBLE_EQ(curve().requests(), 6600.0);
  const RequestList drawn = requests_of_curve(curve(), false, lengths());
  EXPECT_EQ(std::ssize(drawn.requests), 600 + 4200 + 1800);
  EXPECT_TRUE(
      std::is_sorted(drawn.requests.begin(), drawn.requests.end(),
                     [](const Request& a, const Request& b) { return a.arrival < b.arrival; }));
}

// With a pause, no request of a stage comes before all of the ones before it are answered, and the
// first stage begins as it would without.
TEST(ScaledRun, StagesWaitForEachOther) {
  ScaledLoad load;
  load.curve = curve();
  load.scaler = parse_scaler("fixed", place);
  load.initial = 2;
  const RequestList list = requests_of_curve(load.curve, false, lengths());
  const ScaledRun at_once = serve_scaled(priced(2), load, list, rules(), place);
  load.between_stages = Seconds{2.0};
  const ScaledRun run = serve_scaled(priced(2), load, list, rules(), place);
  EXPECT_EQ(run.counts.totals.finished, std::ssize(list.requests));
  const auto sent = [&](std::size_t i) { return run.times[i].arrival; };
  const auto stage_end = [&](std::size_t from, std::size_t to) {
    Seconds end;
    for (std::size_t i = from; i < to; ++i) end = std::max(end, sent(i) + run.times[i].e2e);
    return end;
  };
  EXPECT_DOUBLE_EQ(sent(300).si(), at_once.times[300].arrival.si());
  const Seconds first_gap = list.requests[600].arrival - Seconds{300.0};
  EXPECT_NEAR(sent(600).si(), (stage_end(0, 600) + Seconds{2.0} + first_gap).si(), 1e-6);
  EXPECT_GT(sent(4800), stage_end(600, 4800) + Seconds{2.0});
  EXPECT_GT(run.load_end, load.curve.end + Seconds{4.0});
  EXPECT_EQ(at_once.load_end, load.curve.end);
}

// Prometheus' histogram_quantile(): linear within a bucket, whatever lies where in it.
TEST(MetricHistogram, InterpolatesWithinItsBuckets) {
  const double bounds[] = {0.01, 0.02, 0.04, 0.06};
  MetricHistogram all{bounds};
  EXPECT_EQ(all.quantile(0.9), 0.0);
  for (int i = 0; i < 50; ++i) all.add(0.0201);
  EXPECT_DOUBLE_EQ(all.quantile(0.9), 0.038);
  EXPECT_NEAR(all.mean(), 0.0201, 1e-12);
  all.add(0.005, 50);
  EXPECT_DOUBLE_EQ(all.quantile(0.25), 0.005);
  EXPECT_DOUBLE_EQ(all.quantile(0.5), 0.01);
  EXPECT_DOUBLE_EQ(all.quantile(0.75), 0.03);
  all.add(7.0, 900);
  EXPECT_DOUBLE_EQ(all.quantile(0.9), 0.06);
}

// A fleet that does not scale is the replay of the same requests, and N replicas take N times the
// span.
TEST(ScaledRun, AFixedFleetIsAPlainReplay) {
  for (const int replicas : {2, 5}) {
    const ScaledRun run = run_of("fixed", replicas);
    ServingLoad load = rules();
    load.list = requests_of_curve(curve(), false, lengths());
    load.part = MeasuredPart::all;
    const ServingRun plain = serve_requests(priced(replicas), load, place);
    EXPECT_EQ(run.counts.totals.finished, plain.replay.counts.totals.finished);
    EXPECT_DOUBLE_EQ(run.counts.ttft.sum().si(), plain.replay.counts.ttft.sum().si());
    EXPECT_DOUBLE_EQ(run.counts.e2e.most().si(), plain.replay.counts.e2e.most().si());
    EXPECT_DOUBLE_EQ(run.gpu_hours(), replicas * run.span.si() / 3600.0);
    EXPECT_DOUBLE_EQ(run.mean_replicas(), replicas);
    EXPECT_TRUE(run.decisions.empty());
  }
}

// Every request is answered once, and each replica starts, serves and drains in this order; what
// decisions ask for adds up to the replicas there are.
TEST(ScaledRun, ConservesRequestsAndReplicaSeconds) {
  for (const char* scaler : {"wva:min=1,max=6", "hpa:min=1,max=6", "oracle:capacity=2.5,min=1",
                             "knative:concurrency=40,max=6", "planner:max=6",
                             "planner:target=throughput,throughput=0s,max=6",
                             "planner:load=0s,throughput=60s,predict=kalman,max=6",
                             "wva:signal=mean,up=0.3,down=0.1,min=1,max=8,down-period=30s"}) {
    const ScaledRun run = run_of(scaler, 3);
    EXPECT_EQ(run.counts.totals.arrived, std::ssize(run.times)) << scaler;
    EXPECT_EQ(run.counts.totals.finished, std::ssize(run.times)) << scaler;
    for (const RequestTimes& times : run.times) EXPECT_GT(times.e2e, Seconds{}) << scaler;
    EXPECT_FALSE(run.decisions.empty()) << scaler;
    int asked = 3;
    for (const ScalingDecision& of : run.decisions) {
      EXPECT_EQ(of.from, asked);
      asked = of.to;
    }
    int left = 0;
    Seconds sum;
    for (const ReplicaLife& life : run.lives) {
      left += life.closed < Seconds{} ? 1 : 0;
      const Seconds end = life.closed < Seconds{} ? run.span : life.ended;
      EXPECT_GE(end, life.asked);
      sum += end - life.asked;
    }
    EXPECT_EQ(left, asked) << scaler;
    EXPECT_NEAR(sum.si(), (run.starting() + run.serving() + run.draining()).si(), 1e-6) << scaler;
  }
}

// The oracle asks for what the load needs, when it needs it: no policy that keeps to the limits
// does with fewer replica seconds than the least.
TEST(ScaledRun, NoPolicyDoesWithLessThanTheLeast) {
  const double capacity = 3.0;
  const Seconds least = least_replica_seconds(curve(), capacity);
  EXPECT_DOUBLE_EQ(least.si(), 300.0 * (1 + 5 + 2 + 0));
  const ScaledRun oracle = run_of("oracle:capacity=3,min=1", 1);
  EXPECT_GT(oracle.attainment(), 0.98);
  EXPECT_GE(oracle.starting() + oracle.serving(), least);
  for (const char* scaler : {"fixed", "wva:min=1,max=6", "hpa:min=1,max=6"}) {
    const ScaledRun run = run_of(scaler, 5);
    EXPECT_TRUE(run.attainment() < oracle.attainment() ||
                run.starting() + run.serving() >= oracle.serving())
        << scaler;
  }
}

// A replica that starts sooner never makes more requests wait.
TEST(ScaledRun, FasterStartsLoseFewerRequests) {
  double before = 0.0, slowest = 1.0;
  for (const double seconds : {240.0, 120.0, 30.0, 1.0}) {
    const ScaledRun run = run_of("wva:min=1,max=6", 2, Seconds{seconds});
    EXPECT_GE(run.attainment(), before - 0.005) << seconds;
    before = run.attainment();
    slowest = std::min(slowest, before);
  }
  EXPECT_GT(before, slowest + 0.1);
}

// WVA's law: D = s ready / asked over the upper threshold asks for N + ceil(N (D / up - 1)), s
// under the lower one for N - floor(N (1 - s / down)).
TEST(ScalingPolicies, WvaInClosedForm) {
  const ScalerRequest law = parse_scaler("wva:up=0.5,down=0.2,alpha=1,cap=2", place);
  const auto wish = [&](double saturation, int ready, int asked) {
    ScalingSignals seen;
    seen.p90_saturation = saturation;
    seen.mean_saturation = 9.0;
    seen.ready = ready;
    seen.asked = asked;
    return make_wva(law.wva)->wish(seen).replicas;
  };
  EXPECT_EQ(wish(0.5, 4, 4), 4);
  EXPECT_EQ(wish(0.51, 4, 4), 5);
  EXPECT_EQ(wish(1.0, 4, 4), 8);
  EXPECT_EQ(wish(1.0, 4, 8), 8);   // Four are starting: D is 0.5.
  EXPECT_EQ(wish(9.0, 4, 4), 16);  // Cut at 2.
  EXPECT_EQ(wish(0.2, 4, 4), 4);
  EXPECT_EQ(wish(0.1, 4, 4), 2);
  EXPECT_EQ(wish(0.16, 4, 4), 4);  // floor(4 x 0.2).
  EXPECT_EQ(wish(0.0, 4, 4), 0);
  const ScalerRequest smooth = parse_scaler("wva:up=0.5,down=0.2,alpha=0.5,signal=mean", place);
  const auto policy = make_wva(smooth.wva);
  ScalingSignals seen;
  seen.ready = seen.asked = 4;
  seen.mean_saturation = 0.4;
  EXPECT_EQ(policy->wish(seen).replicas, 4);
  seen.mean_saturation = 0.8;
  EXPECT_EQ(policy->wish(seen).replicas, 5);  // 0.6: ceil(4 x 0.2).
}

TEST(ScalingPolicies, HpaBringsMetricsToTheirTargets) {
  const auto policy = make_hpa(parse_scaler("hpa:kv=0.5,queue=4", place).hpa);
  const auto wish = [&](double kv, double queue) {
    ScalingSignals seen;
    seen.kv_share = kv;
    seen.queue = queue;
    seen.ready = seen.asked = 10;
    return policy->wish(seen).replicas;
  };
  EXPECT_EQ(wish(0.5, 0.0), 10);
  EXPECT_EQ(wish(0.54, 0.0), 10);  // Within a tenth.
  EXPECT_EQ(wish(0.56, 0.0), 12);
  EXPECT_EQ(wish(0.1, 8.0), 20);  // The larger of both.
  EXPECT_EQ(wish(0.1, 0.0), 2);
  EXPECT_EQ(wish(0.0, 0.0), 1);
}

// Requests in flight over what a replica is to have; twice the ready replicas within six seconds
// is a panic, which lasts a stable window and does not shrink.
TEST(ScalingPolicies, KnativePanicsAndCalmsDown) {
  const auto policy =
      make_knative(parse_scaler("knative:concurrency=10,utilization=1", place).knative);
  ScalingSignals seen;
  const auto wish = [&](double seconds, std::int64_t in_flight, int ready) {
    seen.now = Seconds{seconds};
    seen.in_flight = in_flight;
    seen.ready = seen.asked = ready;
    return policy->wish(seen).replicas;
  };
  for (double t = 2; t <= 60; t += 2) EXPECT_EQ(wish(t, 30, 3), 3);
  // Half of the ready replicas at most go at a time.
  EXPECT_EQ(wish(62, 0, 3), 3);
  for (double t = 64; t < 120; t += 2) wish(t, 0, 3);
  EXPECT_EQ(wish(122, 0, 3), 1);
  // One, two, three of the three samples of the short window are 40.
  EXPECT_EQ(wish(124, 40, 1), 2);
  EXPECT_EQ(wish(126, 40, 1), 3);
  EXPECT_EQ(wish(128, 40, 1), 4);
  EXPECT_EQ(wish(130, 0, 4), 4);
  for (double t = 132; t <= 188; t += 2) EXPECT_EQ(wish(t, 0, 4), 4) << t;
  for (double t = 190; t <= 250; t += 2) wish(t, 0, 4);
  EXPECT_EQ(wish(252, 0, 4), 2);
}

// An engine whose iterations all take 20 ms serves a batch of 50 in 20 ms x 100 tokens: 25 requests
// a second. The forecast asks for no more than they need; queues ask for one more or fewer.
TEST(ScalingPolicies, ThePlannerInClosedForm) {
  EngineProfile profile;
  Seconds step{0.02};
  profile.step = [&](std::int64_t, double, double) { return step; };
  profile.cache_tokens = 1e9;
  profile.most_requests = 50;
  profile.budget = 8192;
  profile.ttft = Seconds{1.0};
  profile.tpot = Seconds{0.05};
  ScalingSignals seen;
  seen.ready = seen.asked = 2;
  seen.prompt_tokens = 1000;
  seen.output_tokens = 100;
  for (const char* predict : {"constant", "kalman"}) {
    const auto policy = make_planner(
        parse_scaler("planner:load=0s,predict=" + std::string{predict}, place).planner, profile);
    int wished = 0;
    for (int interval = 1; interval <= 60; ++interval) {
      seen.now = Seconds{180.0 * interval};
      seen.came = 60 * 180;
      wished = policy->wish(seen).replicas;
    }
    EXPECT_EQ(wished, 3) << predict;  // 60 / 25.
    // A load that grows by one request a second each time: the trend is seen, the last value not.
    for (int interval = 61; interval <= 125; ++interval) {
      seen.now = Seconds{180.0 * interval};
      seen.came = 180 * interval;
      wished = policy->wish(seen).replicas;
    }
    EXPECT_EQ(wished, std::string{predict} == "kalman" ? 6 : 5);  // 126 or 125 over 25.
  }
  // Batches that no limit allows count as those of one.
  step = Seconds{0.06};
  seen.came = 180;
  const auto slow = make_planner(parse_scaler("planner:load=0s", place).planner, profile);
  seen.now = Seconds{180.0};
  EXPECT_EQ(slow->wish(seen).replicas, 6);  // 1 / (0.06 s x 100).
  step = Seconds{0.02};
  const auto looks = make_planner(parse_scaler("planner:throughput=0s", place).planner, profile);
  const auto wish = [&](double queued, double cache, int ready, int asked) {
    seen.replicas = {{queued, cache, 1e5, 10}, {queued, cache, 1e5, 10}};
    seen.ready = ready;
    seen.asked = asked;
    return looks->wish(seen).replicas;
  };
  EXPECT_EQ(wish(0, 1e4, 2, 2), 1);
  EXPECT_EQ(wish(0, 6e4, 2, 2), 2);    // One replica does not hold twice as much.
  EXPECT_EQ(wish(5e5, 1e4, 2, 2), 3);  // 62 iterations before the first token.
  EXPECT_EQ(wish(5e5, 1e4, 2, 3), 3);  // One starts.
}

// The least wish of a window counts upwards, the most downwards, at so many in a period.
TEST(Granting, KeepsToItsWindowsAndRates) {
  Grants rules;
  rules.up_window = Seconds{30.0};
  rules.down_window = Seconds{120.0};
  rules.up_by = 2, rules.up_share = 0.5, rules.up_period = Seconds{60.0};
  rules.down_by = 1, rules.down_period = Seconds{60.0};
  Granting granting{rules, 1, 20};
  int asked = 4;
  std::vector<int> history;
  const auto at = [&](double seconds, int wish) {
    granting.wish(wish);
    asked = granting.grant(Seconds{seconds}, asked);
    history.push_back(asked);
  };
  at(0, 4);
  at(15, 12);  // The wish for four is 15 s old.
  at(30, 12);
  at(45, 12);   // Two more, or half as many: two.
  at(60, 12);   // Not yet.
  at(105, 12);  // Three: half of six.
  at(120, 2);
  at(180, 2);  // Twelve was wished for within two minutes.
  at(240, 2);  // One a minute.
  at(255, 2);
  at(300, 2);
  EXPECT_EQ(history, (std::vector<int>{4, 4, 4, 6, 6, 9, 9, 9, 8, 8, 7}));
  Granting bounded{rules, 3, 5};
  bounded.wish(100);
  EXPECT_EQ(bounded.grant(Seconds{}, 4), 5);
}

TEST(Scalers, RefuseWhatCannotBe) {
  const auto says = [](const std::string& text, const std::string& what) {
    const std::string message = error_text([&] { parse_scaler(text, place); });
    EXPECT_NE(message.find(what), std::string::npos) << text << ": " << message;
  };
  says("wav", "wva");
  says("wva:up=0.4,down=0.4", "oscillate");
  says("wva:kv=0.5", "no key of wva");
  says("wva:signal=max", "'max' is no signal");
  says("planner:throughput=0s,load=0s", "neither forecasts nor looks");
  says("planner:predict=arima", "constant, kalman");
  says("knative:concurrency=0", "concurrency");
  says("knative:up-by=4", "no key of knative");
  says("hpa:queue=0", "queue");
  says("hpa:min=5,max=4", "max");
  says("fixed:max=3", "fixed has no keys");
  says("wva:min=3,min=4", "given twice");
  says("wva:up-period=0s", "up-period");
  says("hpa:min=0", "min");
  for (const char* text :
       {"fixed", "wva", "wva:signal=mean,up=0.85,down=0.5,min=3,max=8", "hpa:queue=4",
        "oracle:capacity=1.4,min=2,max=9", "wva:up-by=1,up-share=0,down-window=60s",
        "knative:concurrency=20,utilization=0.5,window=90s,max=9",
        "planner:target=latency,load=0s,predict=kalman,min=2"})
    EXPECT_EQ(scaler_text(parse_scaler(text, place)), text);
}

}  // namespace
}  // namespace orrery::scaled_run_test
