// The schedules against a reference executor: small enough to be read at a glance, and run over all
// small pipelines rather than a few large ones. Times are whole numbers, so equality is exact.
#include "sim/pipeline/schedule.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>

namespace orrery::schedule_test {
namespace {

Orders orders_of(const Schedule* kind, int stages, int chunks, int microbatches,
                 bool paired = false) {
  return kind->orders({stages, chunks, microbatches, paired});
}

std::vector<Slot> order_of(const Schedule& kind, int stage, Pipeline pipeline) {
  return kind.orders(pipeline)[static_cast<std::size_t>(stage)];
}

// Runs all stages at once with free communication; two passes that run together start and end as
// one. A pass starts when its stage is free and the
// pass that feeds it has ended. A forward is fed by the virtual stage before, a backward by the one
// after; the last virtual stage's backward by its own forward. Nothing means deadlock.
std::optional<int> makespan(const Orders& orders, int chunks, int forward, int backward) {
  const int stages = static_cast<int>(orders.size());
  const int last = stages * chunks - 1;
  std::map<std::tuple<Pass, int, int>, int> end;  // Of (pass, virtual stage, micro-batch).
  std::vector<std::size_t> next(orders.size(), 0);
  std::vector<int> free_at(orders.size(), 0);
  for (bool progress = true; progress;) {
    progress = false;
    for (int s = 0; s < stages; ++s)
      while (next[s] < orders[s].size()) {
        const Slot* first = &orders[s][next[s]];
        const std::span<const Slot> together{first, first->with_next ? 2u : 1u};
        const auto here = [&](const Slot& slot) { return slot.chunk * stages + s; };
        int fed = 0;
        int length = 0;
        bool ready = true;
        for (const Slot& slot : together) {
          length += slot.pass == Pass::forward ? forward : backward;
          if (slot.pass == Pass::forward && here(slot) == 0) continue;
          const int m = slot.microbatch;
          const auto feeder = slot.pass == Pass::forward ? std::tuple{slot.pass, here(slot) - 1, m}
                              : here(slot) == last       ? std::tuple{Pass::forward, here(slot), m}
                                                         : std::tuple{slot.pass, here(slot) + 1, m};
          const auto found = end.find(feeder);
          ready = ready && found != end.end();
          if (ready) fed = std::max(fed, found->second);
        }
        if (!ready) break;
        free_at[s] = std::max(free_at[s], fed) + length;
        for (const Slot& slot : together)
          end[{slot.pass, here(slot), slot.microbatch}] = free_at[s];
        next[s] += together.size();
        progress = true;
      }
  }
  for (int s = 0; s < stages; ++s)
    if (next[s] < orders[s].size()) return std::nullopt;
  return *std::max_element(free_at.begin(), free_at.end());
}

// Every (pass, chunk, micro-batch) once, and no backward before its own forward.
void expect_sound(const std::vector<Slot>& order, int chunks, int microbatches) {
  std::set<std::tuple<Pass, int, int>> seen;
  for (const Slot& slot : order) {
    EXPECT_TRUE(0 <= slot.chunk && slot.chunk < chunks);
    EXPECT_TRUE(0 <= slot.microbatch && slot.microbatch < microbatches);
    if (slot.pass == Pass::backward) {
      EXPECT_TRUE(seen.contains({Pass::forward, slot.chunk, slot.microbatch}));
    }
    EXPECT_TRUE(seen.insert({slot.pass, slot.chunk, slot.microbatch}).second);
  }
  EXPECT_EQ(seen.size(), 2u * static_cast<unsigned>(chunks * microbatches));
}

std::string label(int p, int m, int v = 1) {
  return "p=" + std::to_string(p) + " m=" + std::to_string(m) + " v=" + std::to_string(v);
}

// Forward shorter than, as long as and longer than backward. 1:2 is what kernels do, 3:2 would be a
// recomputation that the forward pass pays for.
const std::vector<std::pair<int, int>> pass_times{{1, 2}, {1, 1}, {3, 2}};

// Three orders whose end can be seen by eye test the executor itself.
TEST(Executor, DistinguishesADeadlockFromAMakespan) {
  const Slot f0{Pass::forward, 0, 0}, b0{Pass::backward, 0, 0};
  const Slot f1{Pass::forward, 0, 1}, b1{Pass::backward, 0, 1};
  EXPECT_EQ(makespan({{f0, b0}}, 1, 1, 2), 3);            // One stage: 1 + 2.
  EXPECT_EQ(makespan({{f0, b0}, {f0, b0}}, 1, 1, 2), 6);  // Down 1 + 1, up 2 + 2.
  // Stage 0 wants the gradient of 0 before it lets 1 in; stage 1 wants 1 before it returns 0.
  EXPECT_EQ(makespan({{f0, b0, f1, b1}, {f0, f1, b0, b1}}, 1, 1, 2), std::nullopt);
}

// Micro-batch 0 goes down p - 1 stages, the last stage runs its m forward/backward pairs without a
// gap, and the last gradient goes up p - 1 stages:
//     (p-1) t_f + m (t_f + t_b) + (p-1) t_b  =  (m+p-1) (t_f + t_b)
TEST(OneFOneB, TakesTheClosedForm) {
  for (int p = 1; p <= 8; ++p)
    for (int m = 1; m <= 8; ++m)
      for (const auto& [f, b] : pass_times) {
        SCOPED_TRACE(label(p, m));
        EXPECT_EQ(makespan(orders_of(&one_f_one_b(), p, 1, m), 1, f, b), (m + p - 1) * (f + b));
      }
}

// Stage 0 is through with a chunk's micro-batches after m passes, and the first of them is back for
// the next chunk after p. The last chunk goes down the pipeline like GPipe's only one:
//     ((v-1) max(m, p) + m + p-1) t_f,   and as much back with t_b
// which for m >= p is interleaved 1F1B's time, (v m + p-1) (t_f + t_b).
TEST(LoopedBfs, TakesTheClosedForm) {
  for (int p = 2; p <= 6; ++p)
    for (int v = 1; v <= 4; ++v)
      for (int m = 1; m <= 9; ++m)
        for (const auto& [f, b] : pass_times) {
          SCOPED_TRACE(label(p, m, v));
          const Orders orders = orders_of(&looped_bfs(), p, v, m);
          EXPECT_EQ(makespan(orders, v, f, b), ((v - 1) * std::max(m, p) + m + p - 1) * (f + b));
          for (const auto& order : orders) {
            expect_sound(order, v, m);
            EXPECT_EQ(peak_in_flight(order), looped_bfs().held({p, v, m}, 0).chunks);
          }
        }
}

// The last stage ends its forwards at (m+p-1) t_f and turns round; the backwards are the same
// pipeline with t_b. GPipe takes as long as 1F1B: that one saves memory, not time.
TEST(Gpipe, TakesAsLongAsOneFOneB) {
  for (int p = 1; p <= 8; ++p)
    for (int m = 1; m <= 8; ++m)
      for (const auto& [f, b] : pass_times) {
        SCOPED_TRACE(label(p, m));
        EXPECT_EQ(makespan(orders_of(&gpipe(), p, 1, m), 1, f, b), (m + p - 1) * (f + b));
      }
}

// A stage's work is cut into v chunks of t_f/v and t_b/v, so the pipeline fills and drains in a
// v-th of the time (Narayanan et al., arXiv 2104.04473, section 2.2):
//     m (t_f + t_b) + (p-1) (t_f + t_b) / v
// Here t_f and t_b are those of one chunk: (m v + p - 1) (t_f + t_b).
TEST(Interleaved, DividesTheBubbleByTheChunks) {
  for (int p = 1; p <= 6; ++p)
    for (int v = 1; v <= 4; ++v)
      for (int m = p; m <= 4 * p; m += p)
        for (const auto& [f, b] : pass_times) {
          SCOPED_TRACE(label(p, m, v));
          EXPECT_EQ(makespan(orders_of(&interleaved(), p, v, m), v, f, b),
                    (m * v + p - 1) * (f + b));
        }
}

TEST(Schedules, RunEveryPassOnceAndForwardFirst) {
  for (int p = 1; p <= 6; ++p)
    for (int m = 1; m <= 8; ++m)
      for (int s = 0; s < p; ++s) {
        SCOPED_TRACE(label(p, m) + " s=" + std::to_string(s));
        expect_sound(order_of(gpipe(), s, {p, 1, m}), 1, m);
        expect_sound(order_of(one_f_one_b(), s, {p, 1, m}), 1, m);
        for (int v = 1; v <= 4; ++v)
          expect_sound(order_of(interleaved(), s, {p, v, m * p}), v, m * p);
      }
}

// Unequal passes and more pipelines than the closed forms above cover: all end.
TEST(Schedules, NeverDeadlock) {
  for (int p = 1; p <= 10; ++p)
    for (int m = 1; m <= 12; ++m) {
      SCOPED_TRACE(label(p, m));
      EXPECT_TRUE(makespan(orders_of(&gpipe(), p, 1, m), 1, 5, 3));
      EXPECT_TRUE(makespan(orders_of(&one_f_one_b(), p, 1, m), 1, 5, 3));
      if (m % p != 0) continue;
      for (int v = 1; v <= 5; ++v)
        EXPECT_TRUE(makespan(orders_of(&interleaved(), p, v, m), v, 5, 3));
    }
}

TEST(Gpipe, HoldsEveryMicrobatch) {
  for (int m = 1; m <= 8; ++m) EXPECT_EQ(peak_in_flight(order_of(gpipe(), 0, {1, 1, m})), m);
}

// The purpose of 1F1B: p - 1 - s warm-up passes and the one that runs, for any number of
// micro-batches.
TEST(OneFOneB, HoldsItsDistanceToTheEnd) {
  for (int p = 1; p <= 8; ++p)
    for (int m = 1; m <= 12; ++m)
      for (int s = 0; s < p; ++s) {
        SCOPED_TRACE(label(p, m) + " s=" + std::to_string(s));
        EXPECT_EQ(peak_in_flight(order_of(one_f_one_b(), s, {p, 1, m})), std::min(m, p - s));
      }
}

// Warm-up is 2 (p-1-s) + (v-1) p passes, as in Megatron-LM's
// forward_backward_pipelining_with_interleaving; one more runs, in units of a chunk.
TEST(Interleaved, HoldsMegatronsWarmUpAndOne) {
  for (int p = 1; p <= 6; ++p)
    for (int v = 1; v <= 4; ++v)
      for (int m = p; m <= 4 * p; m += p)
        for (int s = 0; s < p; ++s) {
          SCOPED_TRACE(label(p, m, v) + " s=" + std::to_string(s));
          EXPECT_EQ(peak_in_flight(order_of(interleaved(), s, {p, v, m})),
                    std::min(m * v, 2 * (p - 1 - s) + (v - 1) * p + 1));
        }
}

// Narayanan et al., figure 4 bottom: 4 stages, 2 chunks; stage 0 lets in 1 2 3 4, then the same
// four into chunk 1, then 5 and on, and takes the gradients of chunk 1 first.
// Warm-up: 2*3 + 1*4 = 10.
TEST(Interleaved, StartsAsInThePapersFigure) {
  const std::vector<Slot> order = order_of(interleaved(), 0, {4, 2, 8});
  const auto f = [](int chunk, int m) { return Slot{Pass::forward, chunk, m}; };
  const auto b = [](int chunk, int m) { return Slot{Pass::backward, chunk, m}; };
  const std::vector<Slot> start{f(0, 0), f(0, 1), f(0, 2), f(0, 3), f(1, 0), f(1, 1), f(1, 2),
                                f(1, 3), f(0, 4), f(0, 5), f(0, 6), b(1, 0), f(0, 7), b(1, 1)};
  EXPECT_EQ(std::vector<Slot>(order.begin(), order.begin() + 14), start);
}

// Two passes that run together wait for both that feed them, and still: interleaved, a stage's
// pairs follow each other without a gap, and the bubble is that of single passes. One stage has
// none.
TEST(Pairs, CostNoBubble) {
  for (int p = 1; p <= 6; ++p)
    for (int v = 1; v <= 4; ++v)
      for (int m = p; m <= 4 * p; m += p)
        for (const auto& [f, b] : pass_times) {
          SCOPED_TRACE(label(p, m, v));
          const Orders orders = orders_of(&interleaved(), p, v, m, true);
          if (p == 1 || v > 1) {
            EXPECT_EQ(makespan(orders, v, f, b), (m * v + p - 1) * (f + b));
          }
          for (int s = 0; s < p; ++s) {
            expect_sound(orders[static_cast<std::size_t>(s)], v, m);
            EXPECT_EQ(peak_in_flight(orders[static_cast<std::size_t>(s)]),
                      std::min(m * v, 2 * (p - 1 - s) + (v - 1) * p + 2));
          }
        }
  for (int m = 1; m <= 8; ++m) {
    EXPECT_EQ(makespan(orders_of(&one_f_one_b(), 1, 1, m, true), 1, 1, 2), m * 3);
    EXPECT_EQ(peak_in_flight(order_of(one_f_one_b(), 0, {1, 1, m, true})), std::min(m, 2));
  }
}

// A chunk's first forward pass overlaps the gather of its weights, its last backward pass the
// reduction of gradients: these passes run by themselves.
TEST(Pairs, LeaveTheEndsAlone) {
  for (int p = 1; p <= 6; ++p)
    for (int v = p == 1 ? 1 : 2; v <= 4; ++v)
      for (int m = p; m <= 4 * p; m += p)
        for (int s = 0; s < p; ++s) {
          const std::vector<Slot> order = order_of(interleaved(), s, {p, v, m, true});
          for (std::size_t i = 0; i < order.size(); ++i) {
            if (!order[i].with_next) continue;
            EXPECT_EQ(order[i].pass, Pass::forward);
            EXPECT_EQ(order[i + 1].pass, Pass::backward);
            EXPECT_GT(order[i].microbatch, 0);
            EXPECT_LT(order[i + 1].microbatch, m - 1);
          }
        }
}

TEST(PeakInFlight, CountsForwardsThatNoBackwardHasFreed) {
  const Slot f{Pass::forward, 0, 0}, b{Pass::backward, 0, 0};
  EXPECT_EQ(peak_in_flight({}), 0);
  EXPECT_EQ(peak_in_flight({f, b, f, b}), 1);
  EXPECT_EQ(peak_in_flight({f, f, b, f, f, b, b, b}), 3);
}

}  // namespace
}  // namespace orrery::schedule_test
