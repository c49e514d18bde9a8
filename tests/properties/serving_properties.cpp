// Draws deployments and loads, and checks laws of their steady state: serving_properties [COUNT]
// [SEED]. Prints how many draws keep to each law; fails if fewer than its share do.
//
//   replicas   k times the replicas and k times the load leave a GPU's figures as they are
//   longer     runs 4 and 16 times as long have the figures of the first
//   balanced   with other routers more replicas are never worse. Of least-tokens, that is the share
//              of requests within limits: it sends what comes at once to the one replica that has
//              just got free, so that prompts of large fleets meet more often
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

struct Draw {
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

std::shared_ptr<const PricedServing> priced(const Draw& draw, int replicas) {
  static std::map<std::string, std::shared_ptr<const PricedServing>> known;
  const std::string key = draw.model + draw.system + draw.engine + std::to_string(draw.tp) + " " +
                          std::to_string(replicas);
  std::shared_ptr<const PricedServing>& found = known[key];
  if (!found) {
    DeploymentRequest request;
    request.tp = draw.tp;
    found = std::make_shared<const PricedServing>(make_serving_setup(
        draw.model, draw.system, draw.engine, request, draw.tp * replicas, {"", ""}));
  }
  return found;
}

Draw drawn(Random& random) {
  Draw draw;
  draw.model = one_of<std::string>(random, {"llama3.1-8b", "llama3.1-70b", "qwen3-30b-a3b"});
  draw.system = one_of<std::string>(random, {"dgx-h100", "dgx-h200", "dgx-b200"});
  draw.engine = one_of<std::string>(random, {"vllm", "sglang", "trtllm"});
  draw.tp =
      draw.model == "llama3.1-70b" ? one_of<int>(random, {4, 8}) : one_of<int>(random, {1, 2});
  draw.replicas = one_of<int>(random, {1, 2, 3, 8});
  draw.more = one_of<int>(random, {2, 4, 16});
  RequestTraffic& traffic = draw.load.traffic;
  traffic.prompt = parse_length_distribution(
      one_of<std::string>(random, {"512", "200..1500", "lognormal:700,0.8", "lognormal:2000,0.5"}),
      {});
  traffic.output = parse_length_distribution(
      one_of<std::string>(random, {"128", "50..400", "lognormal:200,0.8"}), {});
  traffic.seed = random.below(1'000'000);
  traffic.stationary = draw.load.finds_length = true;
  draw.load.part = MeasuredPart::steady;
  draw.load.replay.slo = parse_slo("ttft=500,tpot=30@p90", {});
  const int clients = one_of<int>(random, {4, 16, 64});
  if (random.below(3) == 0) {
    traffic.arrivals = Arrivals::closed;
    traffic.concurrency = clients;
    return draw;
  }
  // A part of what so many clients would get.
  const SteadyLoad load{std::llround(traffic.prompt.mean()), std::llround(traffic.output.mean()),
                        clients};
  const double most =
      steady_state(*priced(draw, 1), load, {"", ""}).output_tokens_per_s / traffic.output.mean();
  // A part of a bursty stream is less bursty than all of it: only Poisson's parts are alike.
  traffic.arrivals = Arrivals::poisson;
  traffic.rate = most * (0.2 + 0.6 * random.unit());
  return draw;
}

ServingRun served(const Draw& draw, int replicas, Routing routing, std::int64_t requests = 0) {
  ServingLoad load = draw.load;
  load.traffic.rate *= replicas;
  load.traffic.concurrency *= replicas;
  load.replay.routing = routing;
  if (requests > 0) {
    load.finds_length = false;
    load.traffic.requests = requests;
  }
  const auto setup = priced(draw, replicas);
  return serve_until_steady(
      [&](const ServingLoad& one) {
        return serve_requests(*setup, one, {"", ""});
      },
      load, replicas);
}

struct Law {
  const char* name;
  double least;  // Share of draws that keep to it.
  int drawn = 0, kept = 0;

  bool note(bool is_kept) {
    ++drawn;
    kept += is_kept ? 1 : 0;
    return is_kept;
  }
  // Two standard deviations of so many draws below its share.
  bool holds() const {
    return kept >= least * drawn - 2.0 * std::sqrt(drawn * least * (1.0 - least));
  }
};

// A router and the mean that more replicas do not make worse.
struct Balance {
  Routing routing;
  SampledMean SteadyWindow::*mean;
  Law law;
};

// Rates are of the whole fleet: `share` brings them to one size.
bool agree(const SampledMean& one, const SampledMean& other, double share = 1.0) {
  const double half = std::hypot(one.half, share * other.half);
  // Replays round lengths and times.
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

// The rate of a window is that of the replicas that were replayed.
double replayed_share(const ServingRun& one, const ServingRun& other, int more) {
  return static_cast<double>(other.alike) / (static_cast<double>(one.alike) * more);
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
    const Draw draw = drawn(random);
    const ServingRun run = served(draw, draw.replicas, Routing::random);
    const ServingRun large = served(draw, draw.replicas * draw.more, Routing::random);
    if (run.saturated || large.saturated || run.window.whole || large.window.whole) {
      ++overloaded;
      continue;
    }
    const auto compare = [&](std::vector<Law>& laws, const ServingRun& one, const ServingRun& other,
                             int more, const char* what) {
      for (std::size_t f = 0; f < std::size(figures); ++f) {
        const auto mean = figures[f].mean;
        const bool rate = mean == &SteadyWindow::output_rate;
        const double share = rate ? replayed_share(one, other, more) : 1.0;
        const SampledMean &a = one.window.*mean, &b = other.window.*mean;
        if (!laws[f].note(agree(a, b, share)) && arguments > 3)
          std::printf("%s, %s: %g +- %g and %g +- %g: %s\n", what, figures[f].name, a.mean, a.half,
                      share * b.mean, share * b.half, draw.text().c_str());
      }
    };
    compare(replicas, run, large, draw.more, "replicas");
    const ServingRun first = served(draw, draw.replicas, Routing::random, 2000 * draw.replicas);
    if (!first.window.whole && !first.saturated)
      for (const int times : {4, 16}) {
        const ServingRun later =
            served(draw, draw.replicas, Routing::random, 2000 * draw.replicas * times);
        compare(longer, first, later, 1, "longer");
      }
    for (Balance& of : balances) {
      const ServingRun few = served(draw, draw.replicas, of.routing);
      const ServingRun many = served(draw, draw.replicas * draw.more, of.routing);
      if (few.window.whole || many.window.whole) continue;
      const SampledMean &a = few.window.*of.mean, &b = many.window.*of.mean;
      const double worse = of.mean == &SteadyWindow::ttft ? b.mean - a.mean : a.mean - b.mean;
      if (!of.law.note(worse <= 0.01 * a.mean + std::hypot(a.half, b.half)) && arguments > 3)
        std::printf("balanced, %s: %g +- %g and %g +- %g: x%d %s\n", of.law.name, a.mean, a.half,
                    b.mean, b.half, draw.more, draw.text().c_str());
    }
  }
  bool holds = overloaded <= count / 2;
  std::printf("%d draws, %d of them overloaded or too short\n", count, overloaded);
  const auto print = [&](const char* what, const Law& law) {
    std::printf("%-9s %-24s %4d of %4d%s\n", what, law.name, law.kept, law.drawn,
                law.holds() ? "" : "  TOO FEW");
    holds = holds && law.holds();
  };
  for (const Law& law : replicas) print("replicas", law);
  for (const Law& law : longer) print("longer", law);
  for (const Balance& of : balances) print("balanced", of.law);
  return holds ? 0 : 1;
}
