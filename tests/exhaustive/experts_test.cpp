// Every small plan of a mixture of experts, four ways: folded or not, contracted or not.
#include <gtest/gtest.h>

#include <cmath>

#include "sim/estimate/estimate.hpp"
#include "sim/graph/contraction.hpp"
#include "sim/graph/verify.hpp"
#include "tests/support/placements.hpp"

namespace orrery {
namespace {

// Calls visit(name, scenario) for every tp x pp x dp = 8 with every ep x etp that divides, data
// parallelism overlapped and sharded or not.
template <class Visit>
int for_each_expert_plan(const System& system, const Visit& visit) {
  const Model model = small_mixture(4, 1024, 8, 4096, 8, 2, 1);
  int plans = 0;
  for (int tp : {1, 2, 4})
    for (int pp : {1, 2})
      for (int ep : {1, 2, 4, 8})
        for (int etp : {1, 2})
          for (bool overlap : {false, true}) {
            const int dp = 8 / (tp * pp);
            if (tp * dp % (ep * etp) != 0) continue;
            PlanRequest request = plan_request(tp, pp, 1, 4 * dp, 256, "megatron-core");
            request.ep = ep;
            request.etp = etp;
            request.dp_overlap = overlap;
            request.zero = overlap ? 1 : 0;
            const std::string name = "tp " + std::to_string(tp) + " pp " + std::to_string(pp) +
                                     " ep " + std::to_string(ep) + " etp " + std::to_string(etp) +
                                     (overlap ? " overlapped" : "");
            SCOPED_TRACE(name);
            visit(name, scenario_of(model, system, request, 8));
            ++plans;
          }
  return plans;
}

void compare(const System& system) {
  const int plans = for_each_expert_plan(system, [](const std::string&, const Scenario& scenario) {
    const Estimate folded = estimate(scenario);
    const double step = folded.result.step_time.si();
    for (const Detail detail : {Detail{.unfolded = true}, Detail{.expanded = true},
                                Detail{.unfolded = true, .expanded = true}}) {
      const Estimate other = estimate(scenario, detail);
      EXPECT_EQ(verify(other.step, scenario.plan), "");
      EXPECT_NEAR(other.result.step_time.si() / step, 1.0,
                  detail.expanded ? contraction_tolerance : 1e-7);
      EXPECT_NEAR(other.result.breakdown.sum().si() / other.result.step_time.si(), 1.0, 1e-9);
    }
  });
  // tp 1, 2, 4 x overlap; ep x etp that divide the 8 ranks of pp 1: 7 of 8; the 4 of pp 2: 5.
  EXPECT_EQ(plans, 3 * 2 * (7 + 5));
}

TEST(Experts, EightGpusInNodesOfFour) { compare(read_system("four-by-four", test_place)); }
TEST(Experts, EightGpusInPairs) { compare(read_system("two-gpus", test_place)); }
TEST(Experts, EightGpusInNodesOfThree) { compare(nodes_of(3, 3)); }

}  // namespace
}  // namespace orrery
