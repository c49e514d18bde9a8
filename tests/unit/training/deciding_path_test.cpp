#include <gtest/gtest.h>

#include "sim/training/step_parts.hpp"

namespace orrery::deciding_path_test {
namespace {

struct TaskSketch {
  TaskGraph graph;
  Timeline timeline;

  TaskId add(double start, double finish, std::initializer_list<TaskId> after = {}) {
    const TaskId id = graph.add({});
    for (TaskId before : after) graph.depends(id, before);
    timeline.spans.push_back({Ticks::nearest(Seconds{start}), Ticks::nearest(Seconds{finish})});
    timeline.makespan = std::max(timeline.makespan, timeline.spans.back().finish);
    return id;
  }
  std::vector<TaskId> path() const {
    return deciding_path(graph, timeline, timeline.makespan.seconds());
  }
};

//     a 0-1   b 1-6   d 6-7       d waited for b, which waited for a
//             c 1-3       e 3-5   e ended before
TEST(DecidingPath, GoesBackThroughWhatWasWaitedForLongest) {
  TaskSketch plotted;
  const TaskId a = plotted.add(0, 1), b = plotted.add(1, 6, {a}), c = plotted.add(1, 3, {a});
  const TaskId d = plotted.add(6, 7, {b, c});
  plotted.add(3, 5, {c});
  EXPECT_EQ(plotted.path(), (std::vector<TaskId>{a, b, d}));
}

// Spans follow each other: what happened decides, not what each task could have taken alone.
TEST(DecidingPath, FollowsTheTimelineAndNotTheLeastTimes) {
  TaskSketch plotted;
  const TaskId slow = plotted.add(0, 4), fast = plotted.add(0, 1),
               last = plotted.add(4, 5, {slow, fast});
  EXPECT_EQ(plotted.path(), (std::vector<TaskId>{slow, last}));
}

// Rounding must not choose: of what ended together the first that was added.
TEST(DecidingPath, OfEqualsTakesTheFirst) {
  TaskSketch plotted;
  const TaskId a = plotted.add(0, 2.0), b = plotted.add(0, 2.0 + 1e-13);
  const TaskId c = plotted.add(2.0 + 1e-13, 3, {b, a});
  EXPECT_EQ(plotted.path(), (std::vector<TaskId>{a, c}));
}

TEST(DecidingPath, OfNothingIsEmpty) { EXPECT_TRUE(TaskSketch{}.path().empty()); }

}  // namespace
}  // namespace orrery::deciding_path_test
