// Draws random deployments and loads, and checks laws of their steady state: serving_properties
// [COUNT] [SEED] [v]. Prints how many experiments satisfy each law, with a third argument also
// those that do not; fails if fewer than its share do.
//
//   replicas   k times the replicas and k times the load leave a GPU's figures as they are
//   longer     runs 4 and 16 times as long have the figures of the first
//   balanced   with other routers more replicas are never worse. For least-tokens the share of
//              requests within limits is compared, not TTFT: it sends requests that come together
//              to the same replica, the one with the fewest tokens, so that prompts wait for each
//              other more often in a large fleet
//
// Two figures agree if their difference is within the 90 % interval of a difference.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>

#include "sim/core/catalog.hpp"
#include "sim/serving/serving_run.hpp"
#include "sim/serving/steady_serving.hpp"

namespace {

using namespace orrery;

struct Experiment {
  std::string model, system, engine;
  int tp = 1, replicas = 1, more = 2;
  ServingLoad load;  // Of one replica.

  std::string text() const {
    const RequestTraffic& traffic = load.traffic;
    const std::string rate = traffic.arrivals == Arrivals::closed
                                 ? std::to_string(traffic.concurrency) + " clients"
                                 : name(traffic.arrivals) + " " + std::to_string(traffic.rate);
    return model + " on " + system + ", " + engine + " tp " + std::to_string(tp) + " x" +
           std::to_string(replicas) + ", " + length_distribution_text(traffic.prompt) + " and " +
           length_distribution_text(traffic.output) + ", " + rate + " a replica";
  }
};

template <class T>
const T& one_of(Random& random, const std::vector<T>& all) {
  return all[static_cast<std::size_t>(random.below(all.size()))];
}

std::shared_ptr<const PricedServing> priced(const Experiment& experiment, int replicas) {
  static std::map<std::string, std::shared_ptr<const PricedServing>> known;
  const std::string key = experiment.model + experiment.system + experiment.engine +
                          std::to_string(experiment.tp) + " " + std::to_string(replicas);
  std::shared_ptr<const PricedServing>& found = known[key];
  if (!found) {
    DeploymentRequest request;
    request.tp = experiment.tp;
    found = std::make_shared<const PricedServing>(
        make_serving_setup(experiment.model, experiment.system, experiment.engine, request,
                           experiment.tp * replicas, {"", ""}));
  }
  return found;
}

Experiment random_experiment(Random& random) {
  Experiment experiment;
  experiment.model = one_of<std::string>(random, {"llama3.1-8b", "llama3.1-70b", "qwen3-30b-a3b"});
  experiment.system = one_of<std::string>(random, {"dgx-h100", "dgx-h200", "dgx-b200"});
  experiment.engine = one_of<std::string>(random, {"vllm", "sglang", "trtllm"});
  experiment.tp = experiment.model == "llama3.1-70b" ? one_of<int>(random, {4, 8})
                                                     : one_of<int>(random, {1, 2});
  experiment.replicas = one_of<int>(random, {1, 2, 3, 8});
  experiment.more = one_of<int>(random, {2, 4, 16});
  RequestTraffic& traffic = experiment.load.traffic;
  traffic.prompt = parse_length_distribution(
      one_of<std::string>(random, {"512", "200..1500", "lognormal:700,0.8", "lognormal:2000,0.5"}),
      {});
  traffic.output = parse_length_distribution(
      one_of<std::string>(random, {"128", "50..400", "lognormal:200,0.8"}), {});
  traffic.seed = random.below(1'000'000);
  traffic.stationary = experiment.load.finds_length = true;
  experiment.load.part = MeasuredPart::steady;
  experiment.load.replay.slo = parse_slo("ttft=500,tpot=30@p90", {});
  const int clients = one_of<int>(random, {4, 16, 64});
  if (random.below(3) == 0) {
    traffic.arrivals = Arrivals::closed;
    traffic.concurrency = clients;
    return experiment;
  }
  // The rate is a part of what so many clients would be served.
  const SteadyLoad load{std::llround(traffic.prompt.mean()), std::llround(traffic.output.mean()),
                        clients};
  const double most = steady_state(*priced(experiment, 1), load, {"", ""}).output_tokens_per_s /
                      traffic.output.mean();
  // A part of a bursty stream is less bursty than all of it: only Poisson's parts are alike.
  traffic.arrivals = Arrivals::poisson;
  traffic.rate = most * (0.2 + 0.6 * random.unit());
  return experiment;
}

ServingRun served(const Experiment& experiment, int replicas, Routing routing,
                  std::int64_t requests = 0) {
  ServingLoad load = experiment.load;
  load.traffic.rate *= replicas;
  load.traffic.concurrency *= replicas;
  load.replay.routing = routing;
  if (requests > 0) {
    load.finds_length = false;
    load.traffic.requests = requests;
  }
  const auto setup = priced(experiment, replicas);
  return serve_until_steady(
      [&](const ServingLoad& one) {
        return serve_requests(*setup, one, {"", ""});
      },
      load, replicas);
}

struct Law {
  const char* name;
  double least;  // Share of experiments that must satisfy it.
  int experiments = 0, satisfied = 0;

  bool note(bool satisfies) {
    ++experiments;
    satisfied += satisfies ? 1 : 0;
    return satisfies;
  }
  // Few experiments may fall two standard deviations below the share.
  bool holds() const {
    return satisfied >= least * experiments - 2.0 * std::sqrt(experiments * least * (1.0 - least));
  }
};

// A router, and the figure that more replicas must not make worse.
struct Balance {
  Routing routing;
  SampledMean SteadyWindow::*mean;
  Law law;
};

// `share`: the factor by which the second figure is brought to the first one's size.
bool agree(const SampledMean& one, const SampledMean& other, double share = 1.0) {
  const double half = std::hypot(one.half, share * other.half);
  // Whole tokens and bucketed times make a difference of their own.
  return std::abs(one.mean - share * other.mean) <= half + 1e-3 * one.mean;
}

struct Figure {
  const char* name;
  SampledMean SteadyWindow::*mean;
};
constexpr Figure figures[] = {{"TTFT", &SteadyWindow::ttft},
                              {"TPOT", &SteadyWindow::tpot},
                              {"output", &SteadyWindow::output_rate},
                              {"attainment", &SteadyWindow::attainment}};

// A window's rate is that of the simulated replicas: the factor that brings `other` to the size of
// `one`.
double size_factor(const ServingRun& one, const ServingRun& other, int more) {
  return other.represented / (one.represented * more);
}

}  // namespace

int main(int arguments, char** values) {
  setenv("ORRERY_DATA", ORRERY_TEST_SOURCE, 0);
  const int count = arguments > 1 ? std::atoi(values[1]) : 200;
  Random random{arguments > 2 ? static_cast<std::uint64_t>(std::atoll(values[2])) : 1};
  std::vector<Law> replicas, longer;
  for (const Figure& figure : figures) {
    replicas.push_back({figure.name, 0.88});
    longer.push_back({figure.name, 0.88});
  }
  std::vector<Balance> balances{
      {Routing::round_robin, &SteadyWindow::ttft, {"round-robin TTFT", 0.88}},
      {Routing::power_of_two, &SteadyWindow::ttft, {"power-of-two TTFT", 0.88}},
      {Routing::least_tokens, &SteadyWindow::attainment, {"least-tokens attainment", 0.88}}};
  int overloaded = 0;
  for (int i = 0; i < count; ++i) {
    const Experiment experiment = random_experiment(random);
    const ServingRun run = served(experiment, experiment.replicas, Routing::random);
    const ServingRun large =
        served(experiment, experiment.replicas * experiment.more, Routing::random);
    if (run.saturated || large.saturated || run.window.whole || large.window.whole) {
      ++overloaded;
      continue;
    }
    const auto compare = [&](std::vector<Law>& laws, const ServingRun& one, const ServingRun& other,
                             int more, const char* what) {
      for (std::size_t f = 0; f < std::size(figures); ++f) {
        const auto mean = figures[f].mean;
        const bool rate = mean == &SteadyWindow::output_rate;
        const double share = rate ? size_factor(one, other, more) : 1.0;
        const SampledMean &a = one.window.*mean, &b = other.window.*mean;
        if (!laws[f].note(agree(a, b, share)) && arguments > 3)
          std::printf("%s, %s: %g +- %g and %g +- %g: %s\n", what, figures[f].name, a.mean, a.half,
                      share * b.mean, share * b.half, experiment.text().c_str());
      }
    };
    compare(replicas, run, large, experiment.more, "replicas");
    const ServingRun first =
        served(experiment, experiment.replicas, Routing::random, 2000 * experiment.replicas);
    if (!first.window.whole && !first.saturated)
      for (const int times : {4, 16}) {
        const ServingRun later = served(experiment, experiment.replicas, Routing::random,
                                        2000 * experiment.replicas * times);
        compare(longer, first, later, 1, "longer");
      }
    for (Balance& of : balances) {
      const ServingRun few = served(experiment, experiment.replicas, of.routing);
      const ServingRun many = served(experiment, experiment.replicas * experiment.more, of.routing);
      if (few.window.whole || many.window.whole) continue;
      const SampledMean &a = few.window.*of.mean, &b = many.window.*of.mean;
      const double worse = of.mean == &SteadyWindow::ttft ? b.mean - a.mean : a.mean - b.mean;
      if (!of.law.note(worse <= 0.01 * a.mean + std::hypot(a.half, b.half)) && arguments > 3)
        std::printf("balanced, %s: %g +- %g and %g +- %g: x%d %s\n", of.law.name, a.mean, a.half,
                    b.mean, b.half, experiment.more, experiment.text().c_str());
    }
  }
  bool holds = overloaded <= count / 2;
  std::printf("%d experiments, %d of them overloaded or too short\n", count, overloaded);
  const auto print = [&](const char* what, const Law& law) {
    std::printf("%-9s %-24s %4d of %4d%s\n", what, law.name, law.satisfied, law.experiments,
                law.holds() ? "" : "  TOO FEW");
    holds = holds && law.holds();
  };
  for (const Law& law : replicas) print("replicas", law);
  for (const Law& law : longer) print("longer", law);
  for (const Balance& of : balances) print("balanced", of.law);
  return holds ? 0 : 1;
}
