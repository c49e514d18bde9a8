// Dispatch and combine overlapped with kernels: lengths of whole steps from costs chosen by hand.
#include <gtest/gtest.h>

#include "sim/layers/overlapped_passes.hpp"
#include "tests/closed_form/hand_made.hpp"

namespace orrery::overlap_test {
namespace {

// Four ranks in a node share the experts; `m` micro-batches each; `vpp` chunks of one layer.
Scenario experts_of_four(int m, int pp = 1, int vpp = 1, bool delay_wgrad = false, int cp = 1) {
  PlanRequest request = plan_request(1, pp, 1, std::int64_t{m} * 4 / cp, 64, "megatron-core");
  request.vpp = vpp;
  request.cp = cp;
  request.ep = 4;
  request.zero = 0;
  request.dp_overlap = false;
  request.ep_overlap = true;
  request.delay_wgrad = delay_wgrad;
  return scenario_of(small_mixture(pp * vpp, 64, 4, 128, 4, 1), without_latency(), request, 4 * pp);
}

// `seconds` of an exchange over the NVLink ports, 10 GB/s each.
GroupCollective exchange(double seconds, bool combine) {
  CollectiveCost cost;
  cost.scale_up_bytes = Bytes{seconds * 10e9};
  cost.scale_up_rate = BytesPerSecond{10e9};
  return {cost, GroupKind::expert, combine};
}

struct LayerTimes {
  double before, dispatch, experts, combine, after;
  double weight_gradients = 0.0;  // Of the experts.
};

// One layer; `seconds` scales all of it.
PassCost layer(const LayerTimes& t) {
  PassCost cost = kernels(Seconds{t.before});
  cost.append(exchange(t.dispatch, false));
  PassCost experts = kernels(Seconds{t.experts});
  experts.segments.front().weight_gradients = Seconds{t.weight_gradients};
  cost.append(experts);
  cost.append(exchange(t.combine, true));
  cost.append(kernels(Seconds{t.after}));
  return cost;
}

double simulated(const Scenario& scenario, const PassCost& f, const PassCost& b, bool contracted) {
  auto cost = prices(scenario, {}, {}, Bytes{1.0}, 0);
  for (StageCost& stage : cost->stages) {
    stage.forward = f;
    stage.backward = b;
    stage.buckets = {{stage.forward, stage.backward, {}}};
  }
  const Placement placement{scenario.plan, scenario.system};
  const Topology topology = Topology::build(scenario.system, scenario.plan.gpus());
  double length = 0.0;
  for (const bool unfolded : {false, true}) {
    const RankClasses classes =
        unfolded ? RankClasses::unfolded(placement) : RankClasses::folded(placement);
    const TrainingStep step = build_training_step(
        scenario, cost, StepTraffic{scenario, CollectiveTime{scenario.system}, placement.shapes()},
        classes, topology, contracted);
    EXPECT_EQ(verify(step, scenario.plan), "");
    const double found = execute(step.graph, topology).makespan.seconds().si();
    if (unfolded) {
      EXPECT_NEAR(found, length, 1e-6);
    }
    length = found;
  }
  return length;
}

double simulated(const Scenario& scenario, const LayerTimes& f, const LayerTimes& b,
                 bool contracted) {
  return simulated(scenario, layer(f), layer(b), contracted);
}

constexpr LayerTimes short_exchanges_f{1.0, 0.5, 2.0, 0.25, 0.125};
constexpr LayerTimes short_exchanges_b{1.5, 0.5, 4.0, 0.75, 2.0};
constexpr LayerTimes long_exchanges_f{1.0, 6.0, 2.0, 5.0, 0.125};
constexpr LayerTimes long_exchanges_b{1.5, 3.0, 4.0, 7.0, 2.0};

double sum(const LayerTimes& t) { return t.before + t.dispatch + t.experts + t.combine + t.after; }

// Columns separate what runs together: first B's kernels before its exchange, alone; then each
// exchange concurrent with kernels of the other pass; then F's kernels after its last.
double two_together(const LayerTimes& f, const LayerTimes& b) {
  return b.before + std::max(f.before, b.dispatch) + std::max(b.experts, f.dispatch) +
         std::max(f.experts, b.combine) + std::max(b.after, f.combine) + f.after;
}

// The first forward and the last backward pass have no partner.
TEST(Overlap, AStepOfOneStageIsPairsBetweenTwoEnds) {
  for (int m : {1, 2, 5})
    for (const bool contracted : {true, false}) {
      SCOPED_TRACE(std::to_string(m) + (contracted ? " contracted" : " expanded"));
      const Scenario scenario = experts_of_four(m);
      EXPECT_NEAR(simulated(scenario, short_exchanges_f, short_exchanges_b, contracted),
                  sum(short_exchanges_f) + sum(short_exchanges_b) +
                      (m - 1) * two_together(short_exchanges_f, short_exchanges_b),
                  1e-6);
      EXPECT_NEAR(simulated(scenario, long_exchanges_f, long_exchanges_b, contracted),
                  sum(long_exchanges_f) + sum(long_exchanges_b) +
                      (m - 1) * two_together(long_exchanges_f, long_exchanges_b),
                  1e-6);
    }
}

// Short exchanges are hidden by kernels that are longer: a pair costs its kernels and no more.
TEST(Overlap, ShortExchangesVanish) {
  const LayerTimes& f = short_exchanges_f;
  const LayerTimes& b = short_exchanges_b;
  EXPECT_DOUBLE_EQ(two_together(f, b),
                   f.before + f.experts + f.after + b.before + b.experts + b.after);
  const PassCost both = overlapped(layer(f), layer(b), false, {});
  EXPECT_NEAR(both.exposed(GroupKind::expert).si(), 0.0, 1e-12);
}

// Of the experts' 4 s, 1.5 s are weight gradients w. The forward pass's dispatch of 6 s overlaps
// the other 2.5 s, then w, and so leaves 2 s idle; w has moved into the gap and costs nothing:
//     max(b.experts - w, dispatch) = 6 as before, where b.experts alone would fit as well;
// with a dispatch of 3 s, 0.5 s of w fill its column and 1 s goes into the next:
//     max(2.5 + 0.5, 3) + max(1 + f.experts, b.combine).
TEST(Overlap, DelayedWeightGradientsFillTheGaps) {
  for (const bool contracted : {true, false}) {
    LayerTimes f = long_exchanges_f;
    LayerTimes b = long_exchanges_b;
    b.weight_gradients = 1.5;
    f.dispatch = 3.0;
    const double expected = b.before + std::max(f.before, b.dispatch) + 3.0 +
                            std::max(1.0 + f.experts, b.combine) + std::max(b.after, f.combine) +
                            f.after;
    EXPECT_LT(expected, two_together(f, b));
    EXPECT_NEAR(simulated(experts_of_four(3, 1, 1, true), f, b, contracted),
                sum(f) + sum(b) + 2 * expected, 1e-6);
    EXPECT_NEAR(simulated(experts_of_four(3, 1, 1, false), f, b, contracted),
                sum(f) + sum(b) + 2 * two_together(f, b), 1e-6);
  }
}

// `t` with experts that take each rank of the group a time of its own, the slowest one t.experts.
PassCost uneven(LayerTimes t, const std::vector<double>& experts) {
  t.experts = *std::max_element(experts.begin(), experts.end());
  PassCost cost = layer(t);
  for (double rank : experts) cost.segments.at(1).members.emplace_back(rank);
  return cost;
}

// Rank r has b(r) of the backward pass's experts and f(r) of the forward one's. All wait for all
// before the first and after the second; in between only an exchange of 1/16 s begins when the last
// one comes to it, which ends while another rank computes. So the two take
//     max over r of b(r) + f(r),    not    max b + max f,
// and no less than max b + 1/16, where those with many rows of the one have none of the other.
TEST(Overlap, RanksWithOtherRowsTakeTurns) {
  const LayerTimes t{1.0, 0.0625, 0.0, 0.0625, 8.0};
  const std::vector<std::vector<double>> rows{
      {4.0, 1.0, 1.0, 1.0}, {1.0, 4.0, 1.0, 1.0}, {0.5, 0.25, 3.0, 2.0}, {4.0, 0.0, 0.0, 0.0}};
  for (const auto& forward : rows)
    for (const auto& backward : rows) {
      double together = 0.0;
      for (std::size_t r = 0; r < 4; ++r) together = std::max(together, forward[r] + backward[r]);
      const double slowest_b = *std::max_element(backward.begin(), backward.end());
      together = std::max(together, slowest_b + t.combine);
      const PassCost f = uneven(t, forward);
      const PassCost b = uneven(t, backward);
      const double pair = 2.0 * t.before + together + 2.0 * t.after;
      const PassCost both = overlapped(f, b, false, {});
      EXPECT_NEAR(both.time().si(), pair, 1e-12);
      double kernels = 0.0;
      for (const Segment& column : both.segments) {
        kernels += column.compute.si();
        for (const Segment& part : column.fused) kernels += part.compute.si();
      }
      EXPECT_NEAR(both.compute.si(), kernels, 1e-12);  // The rest is exposed.
      for (const bool contracted : {true, false})
        EXPECT_NEAR(simulated(experts_of_four(2), f, b, contracted),
                    f.time().si() + b.time().si() + pair, 1e-6);
    }
}

// A collective of `seconds` that no link carries.
GroupCollective meeting(GroupKind group, double seconds) {
  CollectiveCost cost;
  cost.latency = Seconds{seconds};
  return {cost, group, false};
}

// The first layer of the backward pass takes all ranks alike, the second's experts b(r), the
// forward pass's f(r). Kernels between the two are so long that who is late stays late,
//     max over r of f(r) + b(r);
// with a collective of context groups G between them, the members of each go on together:
//     max over r of (max over G(r) of f) + b(r).
TEST(Overlap, ContextGroupsWaitForTheirOwn) {
  const LayerTimes t{2.0, 0.0625, 0.5, 0.0625, 2.0};
  const std::vector<double> forward{1.0, 0.25, 0.25, 0.25};
  for (const int cp : {1, 2, 4})
    for (std::size_t slow = 0; slow < 4; ++slow) {
      SCOPED_TRACE("cp " + std::to_string(cp) + ", rank " + std::to_string(slow));
      std::vector<double> backward(4, 0.25);
      backward[slow] = 1.0;
      double experts = 0.0;
      for (std::size_t r = 0; r < 4; ++r) {
        const std::size_t first = r / static_cast<std::size_t>(cp) * static_cast<std::size_t>(cp);
        double group = 0.0;
        for (std::size_t i = first; i < first + static_cast<std::size_t>(cp); ++i)
          group = std::max(group, forward[i]);
        experts = std::max(experts, group + backward[r]);
      }
      const double met = cp > 1 ? 0.125 : 0.0;
      for (const bool is_concurrent : {false, true}) {
        PassCost b = layer(t);
        if (cp > 1 && !is_concurrent) b.append(meeting(GroupKind::context, met));
        if (cp > 1 && is_concurrent) b.append_concurrent({}, meeting(GroupKind::context, met));
        b.append(uneven(t, backward));
        const PassCost f = uneven(t, forward);
        const Scenario scenario = experts_of_four(2, 1, 1, false, cp);
        const PassCost both =
            overlapped(f, b, false, ExpertSync{Placement{scenario.plan, scenario.system}});
        const double pair = 3 * (t.before + t.after) + t.experts + met + experts + t.combine;
        EXPECT_NEAR(both.time().si(), pair, 1e-12);
        for (const bool contracted : {true, false})
          EXPECT_NEAR(simulated(scenario, f, b, contracted), f.time().si() + b.time().si() + pair,
                      1e-6);
      }
    }
}

// Nothing is lost where two passes become one: kernels, bytes and times by tag add up.
TEST(Overlap, KeepsAllWork) {
  const PassCost f = layer(long_exchanges_f);
  const PassCost b = layer(long_exchanges_b);
  for (const bool delay : {false, true}) {
    const PassCost both = overlapped(f, b, delay, {});
    EXPECT_EQ(both.compute, f.compute + b.compute);
    EXPECT_EQ(both.communication, f.communication + b.communication);
    double bytes = 0.0;
    int exchanges = 0;
    for_each_collective(both.segments, [&](const GroupCollective& collective) {
      bytes += collective.cost.scale_up_bytes.si();
      ++exchanges;
    });
    EXPECT_EQ(exchanges, 4);
    EXPECT_DOUBLE_EQ(bytes, 10e9 * (6.0 + 5.0 + 3.0 + 7.0));
    EXPECT_NEAR((both.compute + both.exposed(GroupKind::expert)).si(), both.time().si(), 1e-12);
  }
}

// A pass without experts overlaps exchanges as well; the rest of it runs by itself.
TEST(Overlap, PassesOfOtherLengths) {
  const PassCost dense = kernels(Seconds{3.0});
  const LayerTimes& b = long_exchanges_b;
  EXPECT_NEAR(overlapped(dense, layer(b), false, {}).time().si(),
              b.before + std::max(3.0, b.dispatch) + b.experts + b.combine + b.after, 1e-12);
  PassCost two = layer(b);
  two.append(layer(b));
  const LayerTimes& f = long_exchanges_f;
  EXPECT_NEAR(overlapped(layer(f), two, false, {}).time().si(),
              two_together(f, b) - f.after - std::max(b.after, f.combine) +
                  std::max(b.after + b.before, f.combine) + std::max(f.after, b.dispatch) +
                  b.experts + b.combine + b.after,
              1e-12);
}

// Interleaved, pairs wait for pairs: with kernels alone a step takes as long as without pairing,
//     (m v + p - 1) (tf + tb)
// of a chunk. Within a group of p micro-batches stage s runs its k-th pair one pair after stage
// s + 1 does, and two pairs later the forward pass of that stage's pair has come.
TEST(Overlap, InterleavedStagesStayInStep) {
  const LayerTimes f{0.25, 0.0, 0.5, 0.0, 0.25};
  const LayerTimes b{0.5, 0.0, 1.0, 0.0, 0.5};
  for (int p : {2, 3, 4})
    for (int v : {2, 3})
      for (int groups : {1, 2, 5}) {
        SCOPED_TRACE(std::to_string(p) + " " + std::to_string(v) + " " + std::to_string(groups));
        const int m = groups * p;
        EXPECT_NEAR(simulated(experts_of_four(m, p, v), f, b, true), (m * v + p - 1) * 3.0, 1e-6);
      }
}

}  // namespace
}  // namespace orrery::overlap_test
