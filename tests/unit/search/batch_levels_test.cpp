#include <gtest/gtest.h>

#include "sim/search/row_search.hpp"

namespace orrery::batch_levels_test {
namespace {

using Batches = std::vector<std::int64_t>;

TEST(BatchLevels, ArePowersOfTwoForPowersOfTwo) {
  const std::vector<BatchLevel> levels = usual_batch_levels(2048, 1024);
  ASSERT_EQ(levels.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(levels[i].limit, 4096 >> i);
    EXPECT_EQ(levels[i].batches, Batches{4096 >> i});
    EXPECT_EQ(levels[i].beyond, i == 0);
  }
}

// 1,152 = 2^7 x 9: replicas come in multiples of nine, of which no power of two is one.
TEST(BatchLevels, DivideAmongTheReplicasOfAnySize) {
  const std::vector<BatchLevel> levels = usual_batch_levels(2048, 1152);
  ASSERT_EQ(levels.size(), 4u);
  // 1 x 1152, 3 x 576, 7 x 288, 14 x 144 = 7 x 288, 28 x 72.
  EXPECT_EQ(levels[1].batches, (Batches{1152, 1728, 2016}));
  for (const BatchLevel& level : levels)
    for (const std::int64_t batch : level.batches) {
      EXPECT_LE(batch, level.limit);
      EXPECT_GT(2 * batch, level.limit);
      EXPECT_EQ(batch % 72, 0);
    }
}

// More GPUs than sequences: none of 16 x 2,048 GPUs' replicas, of 16 GPUs each, would be idle with
// 2,048 sequences, half of them with 1,024.
TEST(BatchLevels, LeaveOutWhatDividesAmongNoReplicas) {
  const std::vector<BatchLevel> levels = usual_batch_levels(2048, 32768);
  ASSERT_EQ(levels.size(), 2u);
  EXPECT_EQ(levels[0].batches, Batches{4096});
  EXPECT_EQ(levels[1].batches, Batches{2048});
}

TEST(BatchLevels, AreTheUsersOwnFalling) {
  const std::vector<BatchLevel> levels = batch_levels_of({512, 1536, 1024});
  ASSERT_EQ(levels.size(), 4u);
  EXPECT_EQ(levels[0].batches, Batches{3072});
  EXPECT_TRUE(levels[0].beyond);
  EXPECT_EQ(levels[1].batches, Batches{1536});
  EXPECT_EQ(levels[2].batches, Batches{1024});
  EXPECT_EQ(levels[3].batches, Batches{512});
  EXPECT_FALSE(levels[1].beyond || levels[2].beyond || levels[3].beyond);
}

}  // namespace
}  // namespace orrery::batch_levels_test
