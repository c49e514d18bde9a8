// Every schedule over all small pipelines as an explicit order: it runs, satisfies its closed
// forms, and is the same after it was written and read.
#include <gtest/gtest.h>

#include <functional>

#include "sim/pipeline/schedule_file.hpp"
#include "sim/pipeline/schedule_replay.hpp"
#include "tests/support/schedules.hpp"

namespace orrery::explicit_order_test {
namespace {

const PassLengths equal{Seconds{1.0}, Seconds{1.0}, Seconds{1.0}};

void expect_no_fault(const std::optional<OrderFault>& fault) {
  EXPECT_FALSE(fault) << fault->problem;
}

// Visits each built-in schedule in every pipeline of up to six stages that it can run.
int for_each_order(const std::function<void(const Schedule&, const Pipeline&)>& visit) {
  int visited = 0;
  for (const Schedule* schedule : built_in_schedules())
    for (int p = 1; p <= 6; ++p)
      for (int vpp = 1; vpp <= 3; ++vpp)
        for (int m = 1; m <= 18; ++m)
          for (bool paired : {false, true}) {
            if (schedule->refuses({p, vpp, m, 1})) continue;
            if (paired && schedule->pairing(p, vpp) == Pairing::none) continue;
            const Pipeline pipeline{p, vpp * schedule->copies(), m, paired};
            SCOPED_TRACE(schedule->name() + " p=" + std::to_string(p) +
                         " v=" + std::to_string(vpp) + " m=" + std::to_string(m) +
                         (paired ? " paired" : ""));
            visit(*schedule, pipeline);
            ++visited;
          }
  return visited;
}

ExplicitOrder explicit_of(const Schedule& schedule, const Pipeline& pipeline) {
  return explicit_order(schedule, pipeline,
                        std::vector<PassLengths>(static_cast<std::size_t>(pipeline.stages), equal),
                        Seconds{});
}

// gpipe, 1f1b, zb-h1, zb-h2, zb-1p, zb-2p: 6 x 18 pipelines each, of which 1f1b has 18 in pairs;
// interleaved: 18 / p counts of micro-batches, of p = 1 with one chunk alone, with three shapes
// else, in pairs but for one chunk of several stages; looped-bfs: 18, of one stage with one chunk
// alone, with three shapes else; dualpipe: p = 2, 4, 6 with 8, 6, 4 even
// counts, each in pairs as well.
constexpr int all_pipelines = 6 * 6 * 18 + 18 + (18 + 3 * (9 + 6 + 4 + 3 + 3)) +
                              (18 + 2 * (9 + 6 + 4 + 3 + 3)) + (18 + 5 * 3 * 18) + 2 * (8 + 6 + 4);

TEST(ExplicitOrder, EverySmallPipelineOfEveryScheduleRuns) {
  const int visited = for_each_order([](const Schedule& schedule, const Pipeline& pipeline) {
    const ExplicitOrder order = explicit_of(schedule, pipeline);
    expect_no_fault(fault_of_places(order));
    expect_no_fault(fault_of_passes(order));
    expect_no_fault(fault_of_waits(order));
  });
  EXPECT_EQ(visited, all_pipelines);
}

// The heuristics hold no more than the closed form, all others as much. Of a pair the forward pass
// counts first, where Held::one_more_layer counts a layer.
TEST(ExplicitOrder, HoldsWhatTheClosedFormSays) {
  for_each_order([](const Schedule& schedule, const Pipeline& pipeline) {
    const ExplicitOrder order = explicit_of(schedule, pipeline);
    for (int stage = 0; stage < pipeline.stages; ++stage) {
      const Held held = schedule.held(pipeline, stage);
      const std::vector<Slot>& slots = order.orders[static_cast<std::size_t>(stage)];
      const bool pairs =
          std::any_of(slots.begin(), slots.end(), [](const Slot& slot) { return slot.with_next; });
      const int extra = held.one_more_layer && pairs ? 1 : 0;
      if (schedule.follows_lengths())
        EXPECT_LE(peak_in_flight(slots), held.chunks);
      else
        EXPECT_EQ(peak_in_flight(slots), held.chunks + extra);
    }
  });
}

TEST(ExplicitOrder, IsTheSameAfterItWasWrittenAndRead) {
  for_each_order([](const Schedule& schedule, const Pipeline& pipeline) {
    const ExplicitOrder order = explicit_of(schedule, pipeline);
    EXPECT_EQ(read_schedule(schedule_text(order), "file"), order);
  });
}

// A plan gets the same from a file as from the schedule itself.
TEST(UserSchedule, IsTheScheduleThatItWasPrintedFrom) {
  for_each_order([](const Schedule& schedule, const Pipeline& pipeline) {
    const ExplicitOrder order = explicit_of(schedule, pipeline);
    const Schedule& user = user_schedule("a file", schedule_text(order));
    const int p = pipeline.stages;
    const int vpp = pipeline.chunks / schedule.copies();
    EXPECT_EQ(user.orders(pipeline), order.orders);
    EXPECT_EQ(user.copies(), schedule.copies());
    EXPECT_EQ(user.recomputes_for_weights(), schedule.recomputes_for_weights());
    EXPECT_EQ(user.default_vpp(p), vpp);
    EXPECT_EQ(user.wraps(), schedule.wraps());
    EXPECT_FALSE(user.refuses({p, vpp, pipeline.microbatches, 1}));
    // A heuristic may hold less than it is allowed to.
    for (int stage = 0; stage < p && !schedule.follows_lengths(); ++stage) {
      EXPECT_EQ(user.held(pipeline, stage).chunks, schedule.held(pipeline, stage).chunks);
      EXPECT_EQ(user.held(pipeline, stage).one_more_layer,
                schedule.held(pipeline, stage).one_more_layer);
    }
    for (int stage = 0; stage < p; ++stage)
      for (int chunk = 0; chunk < pipeline.chunks; ++chunk) {
        const int v = schedule.virtual_stage(p, stage, chunk);
        EXPECT_EQ(user.virtual_stage(p, stage, chunk), v);
        const ChunkPlace place = user.place(p, v, order.copy_of(chunk));
        EXPECT_EQ(place.stage, stage);
        EXPECT_EQ(place.chunk, chunk);
      }
  });
}

// Qi et al., arXiv 2405.15362, section 4: with equal passes no rank is idle between its first pass
// and its last one, and all hold what 1F1B's first rank does: p micro-batches, 2 p of their halves.
// The last rank begins p - 1 passes after the first one.
TEST(ZeroBubbleV, IsNeverIdleAndHoldsOneMicrobatchARank) {
  for (int p = 1; p <= 8; ++p)
    for (int m = 2 * p; m <= 4 * p; ++m) {
      SCOPED_TRACE("p=" + std::to_string(p) + " m=" + std::to_string(m));
      const ExplicitOrder order = zb_v(p, m);
      expect_no_fault(fault_of_places(order));
      expect_no_fault(fault_of_passes(order));
      expect_no_fault(fault_of_waits(order));
      const Replay played = replay(order, equal, Seconds{});
      EXPECT_EQ(played.end.si(), 6 * m + p - 1);
      for (int s = 0; s < p; ++s) {
        const auto& rank = played.ranks[static_cast<std::size_t>(s)];
        EXPECT_EQ(rank.front().start.si(), s);
        EXPECT_EQ(rank.back().end.si(), s + 6 * m);
        EXPECT_EQ(peak_in_flight(order.orders[static_cast<std::size_t>(s)]), 2 * p);
      }
    }
}

// The closed forms of docs/explanation/pipelines.md, once more: passes of 1, 1 and 1.
TEST(Replay, TakesTheClosedForms) {
  for (int p = 1; p <= 6; ++p)
    for (int m = 2 * p; m <= 4 * p; m += p) {
      const auto end = [&](const Schedule& schedule, int chunks = 1) {
        return replay(explicit_of(schedule, {p, chunks, m, false}), equal, Seconds{}).end.si();
      };
      EXPECT_EQ(end(gpipe()), 3 * (m + p - 1));
      EXPECT_EQ(end(one_f_one_b()), 3 * (m + p - 1));
      EXPECT_EQ(end(zb_h1()), 3 * m + p - 1);
      if (p > 1) {
        EXPECT_EQ(end(interleaved(), 2), 3 * (2 * m + p - 1));
      }
      if (p % 2 == 0) {
        EXPECT_EQ(end(dualpipe(), 2), 3 * m + p / 2 - 1);
      }
    }
}

// A transfer of 5 goes down twice and comes back twice; forward 1, backward 2, three stages.
TEST(Replay, WaitsForTransfers) {
  const Replay played = replay(explicit_of(one_f_one_b(), {3, 1, 1}), equal, Seconds{5.0});
  EXPECT_EQ(played.end.si(), 3 * 1 + 3 * 2 + 4 * 5);
  EXPECT_EQ(played.ranks[2][0].start.si(), 2 * (1 + 5));
}

}  // namespace
}  // namespace orrery::explicit_order_test
