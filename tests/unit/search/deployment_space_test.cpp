#include "sim/search/deployment_space.hpp"

#include <gtest/gtest.h>

#include <set>

namespace orrery::deployment_space_test {
namespace {

DeploymentSpace space_of(const char* model, const char* system, int gpus,
                         const std::vector<Fixed>& fixed) {
  Request longest;
  longest.prompt_tokens = longest.output_tokens = 1000;
  return deployment_space(
      read_model(model, {}),
      {{read_system(system, {}), read_serving_engine("vllm", {}), gpus, system, "vllm"}}, fixed,
      longest);
}

// tp and pp of 8 GPUs: (tp, pp) with tp x pp | 8 are 1 x {1,2,4,8}, 2 x {1,2,4}, 4 x {1,2}, 8 x 1.
TEST(DeploymentSpace, HasEveryLayoutOnce) {
  const DeploymentSpace space = space_of("llama3.1-8b", "dgx-h100", 8, {});
  EXPECT_EQ(space.combinations, 10);
  std::set<std::string> flags;
  for (const DeploymentLayout& layout : space.layouts) {
    flags.insert(layout.flags);
    EXPECT_EQ(layout.plan.gpus(), 8);
  }
  EXPECT_EQ(flags.size(), 10u);
}

TEST(DeploymentSpace, CountsWhatIsRefusedByWhatStandsAgainstIt) {
  // 70 billion weights of 2 bytes do not fit on one rank of 80 GB.
  const DeploymentSpace space =
      space_of("llama3.1-70b", "dgx-h100", 8, {{"weights", {"bf16", "int8", "nvfp4"}}});
  EXPECT_EQ(space.combinations, 30);
  EXPECT_EQ(space.refused.at("weights").count, 10);  // H100 has no units for nvfp4.
  EXPECT_GT(space.refused.at("memory").count, 0);
  std::int64_t refused = 0;
  for (const auto& [key, of] : space.refused) refused += of.count;
  EXPECT_EQ(refused + static_cast<std::int64_t>(space.layouts.size()), space.combinations);
}

TEST(DeploymentSpace, ExpertsAreSharedInEveryWay) {
  const DeploymentSpace space = space_of("qwen3-30b-a3b", "dgx-h100", 4, {{"pp", {"1"}}});
  // tp x dp | 4, and ep | tp x dp: 1x1: 1; 2x1, 1x2: 2 each; 4x1, 2x2, 1x4: 3 each.
  EXPECT_EQ(space.combinations, 1 + 2 * 2 + 3 * 3);
}

}  // namespace
}  // namespace orrery::deployment_space_test
