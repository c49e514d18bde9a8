#include <gtest/gtest.h>

#include "sim/collectives/collective_program.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/programs.hpp"

namespace orrery::program_run_test {
namespace {

const Place place{"p.json", ""};

// Four GPUs a node, NVLink 10 GB/s and 1 us, NICs 1 GB/s and 10 us.
const System& machine() {
  static const System system = read_system("four-by-four", {"test", ""});
  return system;
}

double seconds(const CollectiveProgram& program) {
  return run_program(program, machine(), place).time.si();
}

TEST(ProgramRun, OneMessage) {
  CollectiveProgram inside;
  add_message(inside, 0, 0, 1, 1e9);
  EXPECT_NEAR(seconds(inside), 1e-6 + 0.1, 1e-8);
  CollectiveProgram outside;
  add_message(outside, 0, 0, 4, 1e9);
  EXPECT_NEAR(seconds(outside), 10e-6 + 1.0, 1e-8);
}

// A rank waits for its own earlier steps, not for those of all ranks: 0 -> 1 -> 2 in a row, while 4
// -> 5 is long done with both of its steps.
TEST(ProgramRun, ARankWaitsForItsOwnSteps) {
  CollectiveProgram program;
  add_message(program, 0, 0, 1, 1e9);
  add_message(program, 1, 1, 2, 1e9);
  add_message(program, 0, 4, 5, 1e3);
  add_message(program, 1, 5, 6, 1e3);
  const ProgramTime result = run_program(program, machine(), place);
  EXPECT_NEAR(result.time.si(), 2e-6 + 0.2, 1e-8);
  EXPECT_NEAR(result.steps.at(1).start.si(), 1e-6 + 1e-7, 1e-9);
  EXPECT_EQ(result.steps.at(0).messages, 2);
  EXPECT_EQ(result.steps.at(0).bytes, Bytes{1e9 + 1e3});
}

// Two messages of one step share the port that both leave by.
TEST(ProgramRun, MessagesOfAStepShareLinks) {
  CollectiveProgram program;
  add_message(program, 0, 0, 1, 1e9);
  add_message(program, 0, 0, 2, 1e9);
  EXPECT_NEAR(seconds(program), 1e-6 + 0.2, 1e-8);
}

TEST(ProgramRun, NoBytesTakeNoTime) {
  CollectiveProgram program;
  add_message(program, 0, 0, 1, 0);
  add_message(program, 1, 1, 7, 0);
  EXPECT_EQ(seconds(program), 0.0);
  EXPECT_EQ(run_program(program, read_system("dgx-h100", {"test", ""}), place).time, Seconds{});
}

// Each sends in its step 0 what the other only takes in its step 1.
TEST(ProgramRun, ADeadlockNamesWhoWaits) {
  CollectiveProgram program;
  program.ranks = 3;
  program.messages = {{0, 1, 0, 1, Bytes{4096}}, {0, 1, 1, 0, Bytes{512}}, {2, 0, 1, 2, Bytes{1}}};
  EXPECT_EQ(error_text([&] { run_program(program, machine(), place); }),
            "p.json: deadlock: 3 of 3 messages never move: 0 -> 1 (sent in step 0, received in "
            "step 1, 4096 bytes) waits for 1 -> 0 (sent in step 0, received in step 1, 512 bytes), "
            "which waits for 0 -> 1; let one end of them come to its step earlier");
}

// A longer step number on one side alone is no deadlock: 1 first passes on what it has.
TEST(ProgramRun, EndsMayBeInDifferentSteps) {
  CollectiveProgram program;
  program.ranks = 3;
  program.messages = {{0, 1, 0, 1, Bytes{1e9}}, {0, 0, 1, 2, Bytes{1e9}}};
  EXPECT_NEAR(seconds(program), 2e-6 + 0.2, 1e-8);
}

TEST(ProgramRun, MoreRanksThanGpus) {
  System two = read_system("two-gpus", {"test", ""});
  two.max_gpus = 2;
  CollectiveProgram program;
  add_message(program, 0, 0, 2, 1e9);
  EXPECT_EQ(error_text([&] { run_program(program, two, place); }),
            "p.json: names rank 2, but the system 'two-gpus' has 2 GPUs; choose a larger system");
}

}  // namespace
}  // namespace orrery::program_run_test
