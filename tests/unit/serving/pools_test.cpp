#include "sim/serving/pools.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/error_text.hpp"

namespace orrery::pools_test {
namespace {

using ::testing::ElementsAre;

const Place place{"test", ""};

PoolsPlan plan_of(const std::string& prefill, const std::string& decode, bool apart = false,
                  const std::string& system = "dgx-h100") {
  PoolsRequest request;
  parse_pool(prefill, request.prefill, {"", "--prefill"});
  parse_pool(decode, request.decode, {"", "--decode"});
  request.apart = apart;
  return make_pools(read_model("llama3.1-70b", place), read_system(system, place),
                    read_serving_engine("vllm", place), request, place, place);
}

TEST(Pools, ReadsReplicasAndKeys) {
  PoolsRequest request;
  parse_pool_counts("3P12d", request, place);
  EXPECT_EQ(request.prefill.replicas, 3);
  EXPECT_EQ(request.decode.replicas, 12);
  const PoolsPlan plan = plan_of("tp=2,replicas=3,max_seqs=7", "tp=4,pp=2");
  EXPECT_EQ(plan.prefill.gpus(), 6);
  EXPECT_EQ(plan.prefill.max_seqs, 7);
  EXPECT_EQ(plan.decode.gpus(), 8);
  EXPECT_EQ(plan.gpus(), 14);
  EXPECT_EQ(plan.sending, KvSending::whole);
}

TEST(Pools, NoReplicaCrossesANodeThatCouldHoldIt) {
  // The largest first: a whole node, then what is left.
  const PoolsPlan mixed = plan_of("tp=4,replicas=3", "tp=8");
  EXPECT_THAT(mixed.decode_gpus, ElementsAre(0));
  EXPECT_THAT(mixed.prefill_gpus, ElementsAre(8, 12, 16));
  EXPECT_EQ(mixed.last_gpu(), 19);
  // Of equal ones those that prefill, and both pools share a node.
  const PoolsPlan equal = plan_of("tp=4", "tp=4");
  EXPECT_THAT(equal.prefill_gpus, ElementsAre(0));
  EXPECT_THAT(equal.decode_gpus, ElementsAre(4));
  // Apart they do not.
  const PoolsPlan apart = plan_of("tp=4", "tp=4", true);
  EXPECT_THAT(apart.prefill_gpus, ElementsAre(0));
  EXPECT_THAT(apart.decode_gpus, ElementsAre(8));
  // Nodes of four in domains of 72: sixteen GPUs do not cross the end of a domain.
  const PoolsPlan racks = plan_of("tp=16,replicas=5", "tp=8", false, "gb200-nvl72");
  EXPECT_THAT(racks.prefill_gpus, ElementsAre(0, 16, 32, 48, 72));
  EXPECT_THAT(racks.decode_gpus, ElementsAre(88));
}

TEST(Pools, EveryPlacementOfAllSmallPoolsHasItsOwnGpus) {
  for (const int p : {1, 2, 4, 8, 16})
    for (const int d : {1, 2, 4, 8, 16})
      for (const int x : {1, 3, 5})
        for (const int y : {1, 2, 7})
          for (const bool apart : {false, true}) {
            const auto keys = [](int tp, int replicas) {
              const int stages = tp > 8 ? 2 : 1;
              return "tp=" + std::to_string(tp / stages) + ",pp=" + std::to_string(stages) +
                     ",replicas=" + std::to_string(replicas);
            };
            const PoolsPlan plan = plan_of(keys(p, x), keys(d, y), apart);
            std::vector<int> used(static_cast<std::size_t>(plan.last_gpu()) + 1);
            const auto take = [&](const std::vector<int>& firsts, int size) {
              for (const int first : firsts) {
                EXPECT_TRUE(size > 8 ? first % 8 == 0 : first / 8 == (first + size - 1) / 8);
                for (int gpu = first; gpu < first + size; ++gpu)
                  EXPECT_EQ(used[static_cast<std::size_t>(gpu)]++, 0);
              }
            };
            take(plan.prefill_gpus, p);
            take(plan.decode_gpus, d);
            EXPECT_EQ(std::count(used.begin(), used.end(), 1), plan.gpus());
          }
}

}  // namespace
}  // namespace orrery::pools_test
