#include "sim/pipeline/schedule_file.hpp"

#include <gtest/gtest.h>

#include "tests/support/schedules.hpp"

namespace orrery::schedule_file_test {
namespace {

const std::string head = "orrery.schedule/1\nstages 2\nmicrobatches 2\n";
const std::string first = "runs 0: F0 F1 B0 B1\n";
const std::string second = "runs 1: F0 B0 F1 B1\n";

std::string refusal(const std::string& text) {
  try {
    read_schedule(text, "file");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::bad_input);
    return error.what();
  }
  return "";
}

TEST(ScheduleFile, IsReadAsItIsMeant) {
  const ExplicitOrder order = read_schedule(
      "\n# By hand.\r\norrery.schedule/1\nmicrobatches 2\nstages 2\n"
      "runs 1: F0 B0\n  runs 1:\tF1 I1 W1 # split\nruns 0: F0 F1 B0 B1",
      "file");
  const Slot f0{Pass::forward, 0, 0}, f1{Pass::forward, 0, 1};
  const Slot b0{Pass::backward, 0, 0}, b1{Pass::backward, 0, 1};
  const Slot i1{Pass::backward, 0, 1, false, true}, w1{Pass::weight_gradient, 0, 1};
  EXPECT_EQ(order, (ExplicitOrder{
                       2, 1, 2, 1, false, {{0}, {1}}, {{f0, f1, b0, b1}, {f0, b0, f1, i1, w1}}}));
}

TEST(ScheduleFile, KeepsPairsAndPlaces) {
  const std::string text =
      "orrery.schedule/1\nstages 1\nchunks 2\nmicrobatches 3\n"
      "runs 0: F0.0 F0.1 F1.0 F1.1+B0.1 F2.0+B0.0 F2.1+B1.1 B1.0 B2.1 B2.0\n";
  EXPECT_EQ(schedule_text(read_schedule(text, "file")), text);
  const std::string v = schedule_text(zb_v(3, 6));
  EXPECT_NE(v.find("\nholds 0: 0 5\nholds 1: 1 4\nholds 2: 2 3\n"), v.npos);
  EXPECT_EQ(read_schedule(v, "file"), zb_v(3, 6));
}

TEST(ScheduleFile, SaysWhatIsWrongWithItsWords) {
  EXPECT_EQ(refusal(""), "file: line 1: is empty; begin with the line orrery.schedule/1");
  EXPECT_EQ(refusal("stages 2"),
            "file: line 1: this is not a schedule; begin with the line orrery.schedule/1");
  EXPECT_EQ(refusal(head + "stage 2"),
            "file: line 4: 'stage' is not a word of a schedule; did you mean 'stages'?");
  EXPECT_EQ(refusal(head + "stages 2"),
            "file: line 4: stages is given twice; leave one of the two out");
  EXPECT_EQ(refusal("orrery.schedule/1\nstages 2\n"),
            "file: line 1: the line 'microbatches N' is missing; add it below the first line");
  EXPECT_EQ(refusal("orrery.schedule/1\nmicrobatches 2\nstages 0\n"),
            "file: line 3: stages must be from 1 to 4096; change it");
  EXPECT_EQ(refusal(head + "runs 0 F0"),
            "file: line 4: 'runs' names no rank; write it like 'runs 0: ...'");
  EXPECT_EQ(refusal(head + "runs 2: F0"),
            "file: line 4: rank 2 is not one of 0 to 1; change it, or the sizes above");
  EXPECT_EQ(refusal(head + first),
            "file: line 4: rank 1 runs nothing; add a line 'runs 1: F0 B0 ...'");
  EXPECT_EQ(
      refusal(head + "runs 0: F0 X1\n" + second),
      "file: line 4: 'X1' is not a pass; write F (forward), B (backward), I or W (gradients of "
      "inputs or of weights alone) and a micro-batch, as F3");
  EXPECT_EQ(refusal(head + "runs 0: F0 F2\n" + second),
            "file: line 4: micro-batch 2 is not one of 0 to 1; change it, or the sizes above");
  EXPECT_EQ(refusal("orrery.schedule/1\nstages 1024\nmicrobatches 1024"),
            "file: line 1: more than a million passes in each direction; spell out fewer "
            "micro-batches");
}

TEST(ScheduleFile, SaysWhichPassIsMissingOrTooMany) {
  const auto with = [](const std::string& passes) {
    return refusal(head + first + "runs 1: " + passes);
  };
  EXPECT_EQ(with("F0 B0 B1"),
            "file: line 5: rank 1 runs B1 before its forward pass; run each once: F, then B, or I "
            "and later W");
  EXPECT_EQ(with("F0 B0"), "file: line 5: rank 1 never runs F1; add it");
  EXPECT_EQ(with("F0 B0 F1"), "file: line 5: rank 1 never runs B1; add it, or I and W");
  EXPECT_EQ(with("F0 B0 F1 I1"), "file: line 5: rank 1 runs I1 but never W1; add it");
  EXPECT_EQ(with("F0 B0 F1 W1"),
            "file: line 5: rank 1 runs W1 without its I before; run each once: F, then B, or I and "
            "later W");
  EXPECT_EQ(with("F0 B0 F1 B1 F1"),
            "file: line 5: rank 1 runs F1 twice; run each once: F, then B, or I and later W");
  EXPECT_EQ(with("F0 I0 F1 B1 B0"),
            "file: line 5: rank 1 runs B0 after I0; run each once: F, then B, or I and later W");
  EXPECT_EQ(with("F0 F1+B0 B1"),
            "");  // The last forward pass with the first backward pass.
  EXPECT_EQ(with("F0 F1 F0+B0 B1"),
            "file: line 5: rank 1 runs F0 twice; run each once: F, then B, or I and later W");
  EXPECT_EQ(with("F0+B0 F1 B1"),
            "file: line 5: rank 1 runs F0+B0, the first forward pass of a chunk, with another one; "
            "run it by itself");
  EXPECT_EQ(
      with("F0 B0+F1 B1"),
      "file: line 5: rank 1 runs B0+F1; only a forward and a whole backward pass run together, "
      "as F1+B0");
}

TEST(ScheduleFile, SaysWhatIsWrongWithItsPlaces) {
  const std::string sizes = "orrery.schedule/1\nstages 4\nchunks 2\nmicrobatches 8\n";
  const auto with = [&](const std::string& holds) { return refusal(sizes + holds); };
  EXPECT_EQ(with("holds 0: 0 7\nholds 1: 1 6\nholds 2: 2 5\n"),
            "file: line 5: what rank 3 holds is not said; write a 'holds' line for every rank or "
            "for none");
  EXPECT_EQ(with("holds 0: 0 7\nholds 1: 1 6\nholds 2: 2 5\nholds 3: 3 5\n"),
            "file: line 8: virtual stage 5 is on rank 2 and on rank 3; give each of 0 to 7 to one "
            "rank");
  EXPECT_EQ(with("holds 0: 0 7\nholds 1: 2 6\nholds 2: 1 5\nholds 3: 3 4\n"),
            "file: line 7: virtual stage 0 is on rank 0 and 1 on rank 2; put what follows on the "
            "same rank or on a neighbour");
  EXPECT_EQ(with("holds 0: 0\n"),
            "file: line 5: rank 0 holds 1 virtual stages, but there are 2 chunks a rank; name as "
            "many, or change chunks");
  EXPECT_EQ(with("holds 0: 0 3\nholds 1: 1 2\nholds 2: 1 2\nholds 3: 3 0\n"),
            "file: line 7: rank 2 does not hold 2 and its mirror; where the model is there twice, "
            "rank s of an even number p holds s and p - 1 - s; else number the virtual stages from "
            "0 to 7");
}

// Rank 0 wants the gradient of 0 before it lets 1 in; rank 1 wants 1 before it returns 0.
TEST(ScheduleFile, NamesTheCircle) {
  EXPECT_EQ(refusal(head + "runs 0: F0 B0 F1 B1\nruns 1: F0 F1 B0 B1\n"),
            "file: line 4: the passes wait for each other in a circle: rank 0 waits before B0 for "
            "B0 of rank 1, which comes after F1 there; rank 1 waits before F1 for F1 of rank 0, "
            "which comes after B0 there; move one of them to another place");
  // A rank alone: the second chunk before what it needs of the first one.
  EXPECT_EQ(refusal("orrery.schedule/1\nstages 1\nchunks 2\nmicrobatches 1\n"
                    "runs 0: F0.1 F0.0 B0.1 B0.0\n"),
            "file: line 5: the passes wait for each other in a circle: rank 0 waits before F0.1 "
            "for F0.0 of rank 0, which comes after F0.1 there; move one of them to another place");
}

TEST(ScheduleFile, RefusesTensorsThatOvertakeEachOther) {
  EXPECT_EQ(refusal(head + "runs 0: F0 F1 B0 B1\nruns 1: F1 F0 B0 B1\n"),
            "file: line 5: rank 1 runs F1 before F0, but rank 0 sends what F0 needs first; run "
            "them in the same order on both: what a rank sends another keeps its order");
}

// All orders of the passes of two ranks and two micro-batches: those that are accepted run, and
// those that do not are refused. Each rank alone has 6 orders that begin a micro-batch before it
// ends: 36 pairs.
TEST(ScheduleFile, AcceptsExactlyWhatRuns) {
  const std::vector<std::string> alone{"F0 B0 F1 B1", "F0 F1 B0 B1", "F0 F1 B1 B0",
                                       "F1 B1 F0 B0", "F1 F0 B1 B0", "F1 F0 B0 B1"};
  int accepted = 0;
  for (const std::string& one : alone)
    for (const std::string& other : alone) {
      const std::string text = head + "runs 0: " + one + "\nruns 1: " + other + "\n";
      const std::string problem = refusal(text);
      // What is sent first is taken first, and rank 0 has not waited for what rank 1 has not begun.
      const bool same_forward =
          (one.find("F0") < one.find("F1")) == (other.find("F0") < other.find("F1"));
      const bool same_backward =
          (one.find("B0") < one.find("B1")) == (other.find("B0") < other.find("B1"));
      const bool waits = one.substr(3, 1) == "B" && other.substr(3, 1) == "F";
      EXPECT_EQ(problem.empty(), same_forward && same_backward && !waits) << text << problem;
      accepted += problem.empty();
    }
  EXPECT_EQ(accepted, 8);
}

}  // namespace
}  // namespace orrery::schedule_file_test
