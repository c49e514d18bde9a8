// Activations over a step: their peak is what memory_of() counts, and their area what passes hold.
#include "sim/training/memory_over_time.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "sim/training/estimate.hpp"
#include "tests/support/scenarios.hpp"

namespace orrery::memory_over_time_test {
namespace {

struct Case {
  std::string schedule;
  int pp = 1, vpp = 1, microbatches = 4;
  Recompute recompute = Recompute::none;
  bool together = false;  // Forward and backward passes of two micro-batches.
};

Scenario scenario(const Case& of) {
  PlanRequest request = plan_request(2, of.pp, 1, 2 * of.microbatches, 64, "megatron-core");
  request.schedule = find_schedule(of.schedule);
  if (of.vpp > 1) request.vpp = of.vpp;
  request.recompute = of.recompute;
  if (of.together) request.ep_overlap = true;
  if (of.together) request.ep = 2;
  const Model model =
      of.together ? small_mixture(16, 512, 8, 1024, 4, 2) : small_gpt(16, 512, 8, 1024);
  return scenario_of(model, read_system("four-by-four", test_place), request, 4 * of.pp);
}

struct Drawn {
  Estimate answer;
  std::vector<ActivationParts> parts;
  std::vector<ActivationsOverTime> over;
};
Drawn draw(const Case& of, bool expanded = false) {
  const Scenario s = scenario(of);
  Detail detail;
  detail.expanded = expanded;
  Drawn shown{estimate(s, detail), activation_parts(s, RoutedLoads{s}), {}};
  std::vector<int> reps(shown.answer.step.classes.reps().size());
  std::iota(reps.begin(), reps.end(), 0);
  shown.over =
      activations_over_time(shown.answer.step, shown.answer.timeline, s.plan, shown.parts, reps);
  return shown;
}

std::string case_text(const Case& of) {
  return of.schedule + " pp " + std::to_string(of.pp) + " vpp " + std::to_string(of.vpp) + " m " +
         std::to_string(of.microbatches) + (of.recompute == Recompute::full ? " full" : "") +
         (of.together ? " together" : "");
}

const Bytes& counted(const Drawn& shown, const ActivationsOverTime& one) {
  const RankClass& rep = shown.answer.step.classes.reps()[static_cast<std::size_t>(one.rep)];
  return shown.answer.result.memory.stages[static_cast<std::size_t>(rep.at.stage)].activations;
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const int pp : {1, 2, 4})
    for (const int m : {1, 2, 3, 8, 9})
      for (const Recompute recompute : {Recompute::none, Recompute::full}) {
        for (const char* schedule : {"gpipe", "1f1b"})
          cases.push_back({schedule, pp, 1, m, recompute});
        if (pp > 1 && m % pp == 0) {
          cases.push_back({"interleaved", pp, 2, m, recompute});
          cases.push_back({"looped-bfs", pp, 2, m, recompute});
        }
        if (pp > 1 && recompute == Recompute::none && m >= 2 * pp) {
          for (const char* schedule : {"zb-h1", "zb-h2"}) cases.push_back({schedule, pp, 1, m});
          if (m % 2 == 0) cases.push_back({"dualpipe", pp, 1, m});
        }
      }
  cases.push_back({"1f1b", 1, 1, 8, Recompute::none, true});
  cases.push_back({"interleaved", 2, 2, 8, Recompute::none, true});
  cases.push_back({"interleaved", 4, 2, 8, Recompute::none, true});
  return cases;
}

TEST(MemoryOverTime, PeaksAtWhatTheEstimateCounts) {
  int cases = 0;
  for (const Case& of : all_cases())
    for (const bool expanded : {false, true}) {
      SCOPED_TRACE(case_text(of) + (expanded ? " expanded" : ""));
      const Drawn shown = draw(of, expanded);
      ASSERT_FALSE(shown.over.empty());
      EXPECT_EQ(shown.parts.front().recomputed > Bytes{}, of.recompute == Recompute::full);
      EXPECT_EQ(shown.parts.front().concurrent > Bytes{}, of.together);
      for (const ActivationsOverTime& one : shown.over) {
        SCOPED_TRACE("role " + std::to_string(one.rep));
        EXPECT_NEAR(one.peak().sum() / counted(shown, one), 1.0, 1e-12);
      }
      ++cases;
    }
  EXPECT_GT(cases, 100);
}

// Their closed form is what they are allowed to hold.
TEST(MemoryOverTime, StaysBelowTheLimitOfSchedulesThatHaveOne) {
  for (const char* schedule : {"zb-1p", "zb-2p"})
    for (const int pp : {2, 4}) {
      const Drawn shown = draw({schedule, pp, 1, 3 * pp});
      Bytes most;
      for (const ActivationsOverTime& one : shown.over) {
        EXPECT_LE(one.peak().sum() / counted(shown, one), 1.0 + 1e-12) << schedule << pp;
        most = std::max(most, one.peak().sum());
      }
      EXPECT_NEAR(most / counted(shown, shown.over.front()), 1.0, 1e-12) << schedule << pp;
    }
}

// Each micro-batch fills a trapezium: what it keeps, from the middle of the pass that takes it to
// the middle of the pass that gives it back. And a rank begins and ends with nothing.
TEST(MemoryOverTime, HasTheAreaOfWhatIsHeld) {
  for (const Case& of : all_cases()) {
    SCOPED_TRACE(case_text(of));
    const Drawn shown = draw(of);
    for (const ActivationsOverTime& one : shown.over) {
      const Scenario& s = shown.answer.result.scenario;
      EXPECT_EQ(one.held.size(), static_cast<std::size_t>(s.plan.chunks()) *
                                     static_cast<std::size_t>(s.plan.microbatches_of_chunk()));
      double held = 0.0, shown_area = 0.0;
      for (const HeldActivations& each : one.held) {
        const auto middle = [](const Span& span) {
          return 0.5 * (span.start.seconds() + span.finish.seconds()).si();
        };
        EXPECT_LE(each.taken.finish, each.given.start);
        held += each.bytes.si() * (middle(each.given) - middle(each.taken));
      }
      for (std::size_t i = 0; i + 1 < one.curve.size(); ++i) {
        const MemoryMoment &a = one.curve[i], &b = one.curve[i + 1];
        ASSERT_LE(a.time, b.time);
        shown_area += 0.5 * (a.kept + b.kept).si() * (b.time - a.time).seconds().si();
      }
      EXPECT_NEAR(shown_area / held, 1.0, 1e-9);
      for (const MemoryMoment& end : {one.curve.front(), one.curve.back()})
        EXPECT_EQ(end.sum(), Bytes{});
      EXPECT_EQ(one.curve.front().time, Ticks{});
      EXPECT_EQ(one.curve.back().time, shown.answer.timeline.makespan);
    }
  }
}

// GPipe holds everything when its last forward pass ends; 1F1B's first stage is full after pp.
TEST(MemoryOverTime, PeaksWhenTheScheduleSays) {
  const Drawn gpipe = draw({"gpipe", 2, 1, 8}), steady = draw({"1f1b", 2, 1, 8});
  EXPECT_EQ(gpipe.over.front().peak().time, gpipe.over.front().held.back().taken.finish);
  EXPECT_EQ(steady.over.front().peak().time, steady.over.front().held[1].taken.finish);
}

}  // namespace
}  // namespace orrery::memory_over_time_test
