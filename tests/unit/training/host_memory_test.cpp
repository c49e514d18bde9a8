#include <gtest/gtest.h>

#include "sim/training/estimate.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/scenarios.hpp"

namespace orrery::host_memory_test {
namespace {

// Said before the graph is built, and near to what it becomes.
TEST(HostMemory, TasksAreKnownBeforehand) {
  const System system = read_system("dgx-h100", test_place);
  for (const Detail& detail :
       {Detail{}, Detail{.unfolded = true}, Detail{.unfolded = true, .expanded = true}}) {
    const Scenario scenario =
        scenario_of(small_gpt(8, 1024, 8, 32000), system, plan_request(2, 2, 1, 256, 2048, ""), 16);
    const Estimate answer = estimate(scenario, detail);
    const auto ranks = static_cast<int>(answer.step.classes.reps().size());
    const Contraction contraction =
        detail.expanded
            ? Contraction{false}
            : choose_contraction(scenario, *answer.step.cost, answer.step.classes.placement());
    const double expected = expected_tasks(scenario.plan, ranks, *answer.step.cost, contraction);
    EXPECT_GT(answer.result.tasks, 0.5 * expected);
    EXPECT_LT(answer.result.tasks, 2.0 * expected);
    EXPECT_LE(least_tasks(scenario.plan, ranks), answer.result.tasks);
  }
}

TEST(HostMemory, IsRefusedWithWhatItWouldTake) {
  EXPECT_EQ(error_text([] { require_host_memory(10e6, Bytes{1e9}); }),
            "a simulation of about 10 million tasks needs some 3.0 GB of this machine's memory, "
            "and may take 1.0 GB; simulate fewer ranks (without --unfolded and --expanded) or "
            "micro-batches, or say --host-memory '3.6 GB'");
  require_host_memory(10e6, Bytes{4e9});
  require_host_memory(1e12, Bytes{});
}

}  // namespace
}  // namespace orrery::host_memory_test
