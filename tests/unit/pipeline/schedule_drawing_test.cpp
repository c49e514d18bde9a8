#include <gtest/gtest.h>

#include "sim/pipeline/schedule_file.hpp"
#include "sim/pipeline/schedule_replay.hpp"

namespace orrery::schedule_drawing_test {
namespace {

PlottedSchedule plot(const Schedule& schedule, const Pipeline& pipeline, const PassLengths& lengths,
                     Seconds transfer = {}) {
  const ExplicitOrder order = explicit_order(
      schedule, pipeline,
      std::vector<PassLengths>(static_cast<std::size_t>(pipeline.stages), lengths), transfer);
  return {schedule.name(), order, lengths, replay(order, lengths, transfer)};
}

const PassLengths ones{Seconds{1.0}, Seconds{1.0}, Seconds{1.0}};

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++found;
  return found;
}

// Idle (p-1) x 3 = 3 of (m+p-1) x 3 = 9; rank 1 starts after the first pass of rank 0.
TEST(ScheduleDrawing, ShowsEveryPassAndEveryIdleUnit) {
  EXPECT_EQ(schedule_drawing(plot(one_f_one_b(), {2, 1, 2}, ones)),
            "1f1b: 2 ranks, 2 micro-batches, 9 units of time; forward 1, backward 2\n"
            "\n"
            "rank 0  F0 F1 .  .  B0    .  B1\n"
            "rank 1  .  F0 B0    F1 B1    .  .\n"
            "\n"
            "rank  idle  of its time  holds at most\n"
            "   0     3       33.3 %              2\n"
            "   1     3       33.3 %              1\n");
}

// Longer passes take as many units; a pair takes what both take.
TEST(ScheduleDrawing, DrawsToScale) {
  const std::string text = schedule_drawing(
      plot(one_f_one_b(), {1, 1, 3, true}, {Seconds{2.0}, Seconds{3.0}, ones.weights}));
  EXPECT_NE(text.find("rank 0  F0  F1+B0       F2+B1       B2\n"), text.npos) << text;
  EXPECT_NE(text.find("18 units of time; forward 2, backward 4\n"), text.npos) << text;
}

// Three boxes of the legend, one of a background, two of the idle ranks, a pass each: 2 x 2 forward
// and backward passes, those of zb-h1 in three.
TEST(ScheduleChart, HasABoxForEveryPass) {
  const std::string plain = schedule_chart(plot(one_f_one_b(), {2, 1, 2}, ones));
  EXPECT_EQ(count(plain, "<rect "), 3u + 1u + 2u + 2u * 2u * 2u);
  const std::string split = schedule_chart(plot(zb_h1(), {2, 1, 2}, ones));
  EXPECT_EQ(count(split, "<rect "), 3u + 1u + 2u + 2u * 2u * 3u);
  EXPECT_EQ(count(split, "<title>W1</title>"), 2u);
}

}  // namespace
}  // namespace orrery::schedule_drawing_test
