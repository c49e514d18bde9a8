#include "sim/engine/transfers.hpp"

#include <gtest/gtest.h>

#include <random>

#include "sim/engine/simulation.hpp"
#include "tests/support/fabrics.hpp"

namespace orrery::transfers_test {
namespace {

Flow flow(const Topology& topology, int from, int to, double bytes, double rate = 1e12) {
  Flow flow;
  for (const LinkId id : topology.route(Rank{from}, Rank{to})) flow.route.push_back({id, 1});
  flow.bytes = Bytes{bytes};
  flow.rate = BytesPerSecond{rate};
  return flow;
}

struct Asked {
  Seconds at;
  Flows flows;
};

// When each of them is complete, by a clock that stops at every start and every completion.
std::vector<Seconds> ends_of(const Topology& topology, const std::vector<Asked>& requested,
                             double scale = 1.0, Seconds origin = {},
                             Simulator simulator = Simulator::own) {
  Transfers links{topology, simulator};
  std::vector<Seconds> ends(requested.size());
  std::vector<std::size_t> number;
  std::size_t next = 0;
  while (true) {
    const Seconds start =
        next < requested.size() ? origin + requested[next].at : Seconds{Transfers::never};
    const Seconds now = links.advance(start);
    if (now == Transfers::never) return ends;
    for (const std::uint32_t done : links.complete()) ends[number[done]] = now - origin;
    while (next < requested.size() && origin + requested[next].at <= now) {
      const std::uint32_t transfer = links.start(requested[next].flows, scale, now);
      if (transfer >= number.size()) number.resize(transfer + 1);
      number[transfer] = next++;
    }
  }
}

std::vector<Asked> sampled(const Topology& topology, int transfers, int flows_each, unsigned seed) {
  std::mt19937 random{seed};
  std::uniform_int_distribution<int> gpu{0, topology.gpus() - 1};
  std::uniform_real_distribution<double> unit{0.0, 1.0};
  std::vector<Asked> requested;
  double at = 0.0;
  for (int i = 0; i < transfers; ++i) {
    at += 0.02 * unit(random);
    std::vector<Flow> flows;
    for (int f = 0; f < flows_each; ++f) {
      const int from = gpu(random);
      const int to = (from + 1 + gpu(random) % (topology.gpus() - 1)) % topology.gpus();
      flows.push_back(flow(topology, from, to, 1e6 + 1e8 * unit(random), 4e8 + 1e9 * unit(random)));
    }
    requested.push_back({Seconds{at}, flows});
  }
  return requested;
}

// The engine's own sharing and SimGrid's, of the same transfers as tasks that wait for their time
// and then send.
TEST(Transfers, EndWhenTheEnginesSay) {
  for (const System& system : {read_system("four-by-four", {"test", ""}), leaf_spine(1, 2, 1e9)})
    for (const int flows_each : {1, 3})
      for (const unsigned seed : {1u, 2u, 3u}) {
        const Topology topology = Topology::build(system, 16);
        const std::vector<Asked> requested = sampled(topology, 60, flows_each, seed);
        TaskGraph graph;
        for (const Asked& one : requested) {
          Task task;
          task.duration = one.at;
          task.flows = one.flows;
          graph.add(task);
        }
        const std::vector<Seconds> ours = ends_of(topology, requested);
        for (const Simulator simulator : {Simulator::own, Simulator::simgrid}) {
          const Timeline timeline = execute(graph, topology, simulator);
          const std::vector<Seconds> theirs = ends_of(topology, requested, 1.0, {}, simulator);
          for (std::size_t i = 0; i < requested.size(); ++i)
            EXPECT_NEAR(ours[i].si(), theirs[i].si(), 1e-9) << i;
          for (std::size_t i = 0; i < requested.size(); ++i)
            EXPECT_NEAR(ours[i].si(), timeline.spans[i].finish.seconds().si(), 1e-7 * ours[i].si())
                << i;
        }
      }
}

// Alone a transfer takes its bytes over what the slowest of its links gives each of its flows.
TEST(Transfers, AloneTakesBytesOverRate) {
  const Topology topology = Topology::build(read_system("four-by-four", {"test", ""}), 16);
  // Two flows over one NIC of 1 GB/s, the shorter of which ends first.
  const Flows two{flow(topology, 0, 4, 1e8), flow(topology, 0, 8, 3e8)};
  EXPECT_NEAR(ends_of(topology, {{Seconds{}, two}}).front().si(), 0.4, 1e-9);
  EXPECT_NEAR(ends_of(topology, {{Seconds{}, two}}, 0.5).front().si(), 0.2, 1e-9);
  const Flows capped{flow(topology, 0, 4, 1e8, 1e8)};
  EXPECT_NEAR(ends_of(topology, {{Seconds{}, capped}}).front().si(), 1.0, 1e-9);
}

// A year later everything takes as long, but for what a double holds of the time of day.
TEST(Transfers, LoseNothingInLongTraces) {
  const Topology topology = Topology::build(read_system("four-by-four", {"test", ""}), 16);
  const std::vector<Asked> requested = sampled(topology, 40, 2, 7);
  const std::vector<Seconds> now = ends_of(topology, requested);
  const std::vector<Seconds> later = ends_of(topology, requested, 1.0, Seconds{3.2e7});
  for (std::size_t i = 0; i < requested.size(); ++i) EXPECT_NEAR(now[i].si(), later[i].si(), 1e-7);
}

}  // namespace
}  // namespace orrery::transfers_test
