// Schedules whose backward passes come in two, against a reference executor and the closed forms of
// their papers, over all small pipelines. Times are whole numbers, so equality is exact.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "sim/pipeline/schedule.hpp"

namespace orrery::split_backward_test {
namespace {

// A schedule of one chunk a stage and copy, and its pipeline.
struct Plan {
  const Schedule* schedule;
  int pp, microbatches;
  bool paired = false;

  int chunks() const { return schedule->copies(); }
  int microbatches_of_chunk() const { return microbatches / schedule->copies(); }
  bool passes(int microbatch, int chunk) const {
    return schedule->copies() == 1 || (2 * microbatch < microbatches) == (chunk == 0);
  }
  Pipeline pipeline() const { return {pp, chunks(), microbatches, paired}; }
};

struct Lengths {
  int forward, inputs, weights;
  int together = 0;  // Of a forward and a whole backward pass.
  int whole() const { return forward + inputs + weights; }
};

struct Run {
  bool ends = false;
  int makespan = 0;
  int longest_stage = 0;  // From its first pass to its last.
};

// As in schedule_test.cpp, by stage and chunk of a plan; transfers take `transfer`.
Run run(const Plan& plan, const Orders& orders, const Lengths& length, int transfer = 0) {
  using Key = std::tuple<bool, int, int>;  // Forward, virtual stage, micro-batch.
  std::map<Key, int> end;
  const int last = plan.pp - 1;
  std::vector<std::size_t> next(orders.size(), 0);
  std::vector<int> clock(orders.size(), 0), begin(orders.size(), -1);
  for (bool progress = true; progress;) {
    progress = false;
    for (std::size_t s = 0; s < orders.size(); ++s)
      while (next[s] < orders[s].size()) {
        const bool two = orders[s][next[s]].with_next;
        int fed = 0;
        bool ready = true;
        int lasts = two ? length.together : 0;
        for (std::size_t i = next[s]; i <= next[s] + (two ? 1 : 0); ++i) {
          const Slot& slot = orders[s][i];
          const int here = plan.schedule->virtual_stage(plan.pp, static_cast<int>(s), slot.chunk);
          const bool forward = slot.pass == Pass::forward;
          if (!two)
            lasts = forward                              ? length.forward
                    : slot.pass == Pass::weight_gradient ? length.weights
                    : slot.inputs_only                   ? length.inputs
                                                         : length.inputs + length.weights;
          if (slot.pass == Pass::weight_gradient || (forward && here == 0)) continue;
          const bool turns = !forward && here == last;
          const auto found = end.find({forward || turns,
                                       forward ? here - 1
                                       : turns ? here
                                               : here + 1,
                                       slot.microbatch});
          ready = ready && found != end.end();
          if (ready) fed = std::max(fed, found->second + (turns ? 0 : transfer));
        }
        if (!ready) break;
        const int start = std::max(clock[s], fed);
        if (begin[s] < 0) begin[s] = start;
        clock[s] = start + lasts;
        for (std::size_t i = next[s]; i <= next[s] + (two ? 1 : 0); ++i) {
          const Slot& slot = orders[s][i];
          if (slot.pass != Pass::weight_gradient)
            end[{slot.pass == Pass::forward,
                 plan.schedule->virtual_stage(plan.pp, static_cast<int>(s), slot.chunk),
                 slot.microbatch}] = clock[s];
        }
        next[s] += two ? 2 : 1;
        progress = true;
      }
  }
  Run result{true};
  for (std::size_t s = 0; s < orders.size(); ++s) {
    result.ends = result.ends && next[s] == orders[s].size();
    result.makespan = std::max(result.makespan, clock[s]);
    result.longest_stage = std::max(result.longest_stage, clock[s] - begin[s]);
  }
  return result;
}

Plan plan_of(const Schedule* kind, int stages, int microbatches) {
  return {kind, stages, microbatches};
}

Orders orders_of(const Plan& plan, const Lengths& length = {1, 1, 1}, int transfer = 0) {
  const auto seconds = [](int time) { return Seconds{static_cast<double>(time)}; };
  const PassLengths each{seconds(length.forward), seconds(length.inputs), seconds(length.weights)};
  return plan.schedule->orders(plan.pipeline(),
                               std::vector<PassLengths>(static_cast<std::size_t>(plan.pp), each),
                               seconds(transfer));
}

// Every micro-batch once forward and once backward through each chunk that it belongs to; weight
// gradients once, after those of the inputs, exactly where these came alone.
void expect_sound(const Plan& plan, const std::vector<Slot>& order) {
  std::set<std::pair<int, int>> forward, backward, waiting;
  for (const Slot& slot : order) {
    const std::pair<int, int> key{slot.chunk, slot.microbatch};
    EXPECT_TRUE(plan.passes(slot.microbatch, slot.chunk));
    switch (slot.pass) {
      case Pass::forward:
        EXPECT_TRUE(forward.insert(key).second);
        break;
      case Pass::backward:
        EXPECT_TRUE(forward.contains(key));
        EXPECT_TRUE(backward.insert(key).second);
        if (slot.inputs_only) waiting.insert(key);
        break;
      case Pass::weight_gradient:
        EXPECT_EQ(waiting.erase(key), 1u);
    }
  }
  EXPECT_TRUE(waiting.empty());
  EXPECT_EQ(forward.size(), static_cast<std::size_t>(plan.chunks() * plan.microbatches_of_chunk()));
  EXPECT_EQ(backward, forward);
}

std::string label(const Plan& plan) {
  return plan.schedule->name() + " p=" + std::to_string(plan.pp) +
         " m=" + std::to_string(plan.microbatches);
}

const Schedule* const zero_bubble_kinds[] = {&zb_h1(), &zb_h2(), &zb_1p(), &zb_2p()};
// Equal; as kernels have it (W shorter than B); B much longer.
constexpr Lengths usual[] = {{1, 1, 1}, {10, 11, 9}, {10, 12, 8}, {10, 13, 10}, {10, 20, 5}};

TEST(ZeroBubble, RunsEveryPassOnceAndEndsWithinItsMemory) {
  for (int p = 1; p <= 8; ++p)
    for (int m = 1; m <= 20; ++m)
      for (const Schedule* kind : zero_bubble_kinds)
        for (const Lengths& length : usual)
          for (int transfer : {0, 1, 7}) {
            const Plan plan = plan_of(kind, p, m);
            SCOPED_TRACE(label(plan));
            const Orders orders = orders_of(plan, length, transfer);
            const int most = kind == &zb_h2() ? 2 * p - 1 : kind == &zb_2p() ? 2 * p : p;
            for (const auto& order : orders) {
              expect_sound(plan, order);
              EXPECT_LE(peak_in_flight(order), std::min(m, most));
              if (!kind->follows_lengths()) {
                EXPECT_EQ(peak_in_flight(order), std::min(m, most));
              }
            }
            EXPECT_TRUE(run(plan, orders, length, transfer).ends);
          }
}

// Table 2 of arXiv 2401.10241: (p-1)(f + b - w), where 1F1B has (p-1)(f + b + w).
TEST(ZeroBubbleH1, IsIdleForTheClosedForm) {
  for (int p = 1; p <= 8; ++p)
    for (int m = p; m <= 4 * p; ++m)
      for (const Lengths& t : usual) {
        const Plan plan = plan_of(&zb_h1(), p, m);
        SCOPED_TRACE(label(plan));
        EXPECT_EQ(run(plan, orders_of(plan), t).makespan,
                  m * t.whole() + (p - 1) * (t.forward + t.inputs - t.weights));
      }
}

// The same table: (p-1)(f + b - 2w), of the longest stage.
TEST(ZeroBubbleH2, IsIdleForTheClosedForm) {
  for (int p = 1; p <= 8; ++p)
    for (int m = 2 * p; m <= 4 * p; ++m)
      for (const Lengths& t : usual) {
        const Plan plan = plan_of(&zb_h2(), p, m);
        SCOPED_TRACE(label(plan));
        EXPECT_EQ(run(plan, orders_of(plan), t).longest_stage,
                  m * t.whole() + (p - 1) * (t.forward + t.inputs - 2 * t.weights));
      }
}

// All pipelines of up to four stages of three kinds: even, a long forward pass, a long B.
TEST(ZeroBubbleHeuristic, EndsWithinItsMemoryWhereStagesDiffer) {
  const Lengths kinds[] = {{1, 1, 1}, {3, 1, 2}, {1, 4, 1}};
  int pipelines = 0;
  for (int p = 2; p <= 4; ++p)
    for (int mix = 0; mix < (p == 2 ? 9 : p == 3 ? 27 : 81); ++mix)
      for (int m = 1; m <= 9; ++m)
        for (int transfer : {0, 2})
          for (const Schedule* kind : {&zb_1p(), &zb_2p()}) {
            const Plan plan = plan_of(kind, p, m);
            std::vector<PassLengths> lengths;
            for (int s = 0, rest = mix; s < p; ++s, rest /= 3) {
              const Lengths& of = kinds[rest % 3];
              lengths.push_back({Seconds{static_cast<double>(of.forward)},
                                 Seconds{static_cast<double>(of.inputs)},
                                 Seconds{static_cast<double>(of.weights)}});
            }
            const Orders orders = plan.schedule->orders(plan.pipeline(), lengths,
                                                        Seconds{static_cast<double>(transfer)});
            for (const auto& order : orders) {
              expect_sound(plan, order);
              EXPECT_LE(peak_in_flight(order), plan.schedule->held(plan.pipeline(), 0).chunks);
            }
            EXPECT_TRUE(run(plan, orders, {1, 1, 1}, transfer).ends) << label(plan) << " " << mix;
            ++pipelines;
          }
  EXPECT_EQ(pipelines, (9 + 27 + 81) * 9 * 2 * 2);
}

// What the heuristic is for. With equal passes and no transfers nothing is left to gain on H2; with
// passes as they are it is no worse than the schedule by hand of the same memory.
TEST(ZeroBubbleHeuristic, IsNoWorseThanByHand) {
  for (int p = 2; p <= 8; ++p)
    for (int m = 2 * p; m <= 4 * p; m += p)
      for (const Lengths& t : usual) {
        const Plan one = plan_of(&zb_1p(), p, m);
        const Plan two = plan_of(&zb_2p(), p, m);
        SCOPED_TRACE(label(one) + " b=" + std::to_string(t.inputs));
        const Plan h1 = plan_of(&zb_h1(), p, m);
        const Plan h2 = plan_of(&zb_h2(), p, m);
        EXPECT_LE(run(one, orders_of(one, t), t).longest_stage,
                  run(h1, orders_of(h1), t).longest_stage);
        EXPECT_LE(run(two, orders_of(two, t), t).longest_stage,
                  run(h2, orders_of(h2), t).longest_stage);
      }
}

// Stage 0 has 16 x 30 to do. It waits for its first B: 4 F, 3 B and 6 transfers of 3 are 88. By
// hand it has 2 p - 1 = 7 F for that time, transfers or not; who sees them fills it with all 8 that
// memory allows.
TEST(ZeroBubbleHeuristic, HidesTransfers) {
  const Lengths t{10, 10, 10};
  const Plan plan = plan_of(&zb_2p(), 4, 16);
  const Plan by_hand = plan_of(&zb_h2(), 4, 16);
  EXPECT_EQ(run(plan, orders_of(plan, t, 3), t, 3).longest_stage, 480 + 88 - 8 * 10);
  EXPECT_EQ(run(by_hand, orders_of(by_hand), t, 3).longest_stage, 480 + 88 - 7 * 10);
}

TEST(DualPipe, RunsEveryPassOnceAndHoldsOneMoreThanStages) {
  for (int p = 2; p <= 12; p += 2)
    for (int m = 2 * p; m <= 4 * p; m += 2)
      for (bool paired : {false, true}) {
        Plan plan = plan_of(&dualpipe(), p, m);
        plan.paired = paired;
        SCOPED_TRACE(label(plan));
        for (const auto& order : orders_of(plan)) {
          expect_sound(plan, order);
          EXPECT_EQ(peak_in_flight(order), p + 1);
          for (std::size_t i = 0; i < order.size(); ++i) {
            if (!order[i].with_next) continue;
            // The first pass of a chunk overlaps the gather of weights, the last one the reduction
            // of gradients, so that these run by themselves.
            EXPECT_EQ(order[i].pass, Pass::forward);
            EXPECT_EQ(order[i + 1].pass, Pass::backward);
            EXPECT_FALSE(order[i + 1].inputs_only);
            EXPECT_NE(order[i].chunk, order[i + 1].chunk);
            EXPECT_GT(order[i].microbatch, order[i].chunk * m / 2);
            EXPECT_LT(order[i + 1].microbatch, order[i + 1].chunk * m / 2 + m / 2 - 1);
          }
        }
        EXPECT_TRUE(run(plan, orders_of(plan), {10, 13, 8, 29}, 3).ends);
      }
}

// Walked, of any size of the two chunks: after each pass, or pair of passes, what both hold; a pair
// has taken a layer before it gives one back.
TEST(DualPipe, HoldsOfBothChunksWhatItsOrderDoes) {
  for (int p = 2; p <= 12; p += 2)
    for (int m = 2 * p; m <= 4 * p; m += 2)
      for (bool paired : {false, true})
        for (const auto& [first, second] : {std::pair{3.0, 3.0}, {5.0, 2.0}, {2.0, 5.0}}) {
          Plan plan = plan_of(&dualpipe(), p, m);
          plan.paired = paired;
          SCOPED_TRACE(label(plan));
          const Orders orders = orders_of(plan);
          for (int stage = 0; stage < p; ++stage) {
            const std::vector<Slot>& order = orders[static_cast<std::size_t>(stage)];
            double held[2] = {0.0, 0.0};
            double peak = 0.0;
            bool pairs_at_the_peak = false;
            for (std::size_t i = 0; i < order.size(); ++i) {
              const double before = first * held[0] + second * held[1];
              const auto count = [&](const Slot& slot) {
                if (slot.pass == Pass::forward) ++held[slot.chunk];
                if (completes_gradients(slot)) --held[slot.chunk];
              };
              count(order[i]);
              if (order[i].with_next) count(order[++i]);
              const double after = first * held[0] + second * held[1];
              if (after > peak) peak = after, pairs_at_the_peak = false;
              pairs_at_the_peak = pairs_at_the_peak ||
                                  (order[i - (i > 0)].with_next && std::max(before, after) == peak);
            }
            const Held said = plan.schedule->held(plan.pipeline(), stage);
            EXPECT_EQ(said.of(std::array{first, second}), peak) << stage;
            EXPECT_EQ(said.one_more_layer, pairs_at_the_peak) << stage;
          }
        }
}

// Table 2 of arXiv 2412.19437, with the passes that it supposes (f = w, b = 2 w, both together
// f + b): (p/2 - 1)(f&b + b - 3 w).
TEST(DualPipe, IsIdleForTheClosedForm) {
  const Lengths t{10, 10, 10, 30};
  for (int p = 2; p <= 12; p += 2)
    for (int m = 2 * p; m <= 4 * p; m += 2) {
      Plan plan = plan_of(&dualpipe(), p, m);
      plan.paired = true;
      SCOPED_TRACE(label(plan));
      const int whole = t.inputs + t.weights;
      EXPECT_EQ(run(plan, orders_of(plan), t).makespan,
                m * t.whole() + (p / 2 - 1) * (t.together + whole - 3 * t.weights));
    }
}

// One after the other instead: (p/2 - 1) times what ZB-H1 has (p - 1) times.
TEST(DualPipe, IsIdleForLessThanHalfOfZeroBubbleH1) {
  for (const Lengths& t : {Lengths{10, 10, 10}, Lengths{10, 11, 10}, Lengths{10, 12, 8}})
    for (int p = 2; p <= 12; p += 2)
      for (int m = 2 * p; m <= 4 * p; m += 2) {
        const Plan plan = plan_of(&dualpipe(), p, m);
        SCOPED_TRACE(label(plan));
        EXPECT_EQ(run(plan, orders_of(plan), t).makespan,
                  m * t.whole() + (p / 2 - 1) * (t.forward + t.inputs - t.weights));
      }
}

}  // namespace
}  // namespace orrery::split_backward_test
