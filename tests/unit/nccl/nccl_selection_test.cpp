#include "sim/nccl/nccl_selection.hpp"

#include <gtest/gtest.h>

#include "tests/support/error_text.hpp"
#include "tests/support/nccl_words.hpp"

namespace orrery::nccl_selection_test {
namespace {

constexpr CollectiveKind reduce = CollectiveKind::all_reduce;
constexpr CollectiveKind gather = CollectiveKind::all_gather;

TEST(NcclSelection, IsSpelledAsNcclSpellsIt) {
  const NcclSelection two = parse_nccl_selection("ring,NVLSTree", "simple");
  EXPECT_TRUE(two.restricts(reduce));
  EXPECT_TRUE(two.allows(reduce, algorithm("Ring")));
  EXPECT_TRUE(two.allows(reduce, algorithm("NVLSTree")));
  EXPECT_FALSE(two.allows(reduce, algorithm("Tree")));
  EXPECT_FALSE(two.allows(gather, algorithm("Tree")));
  EXPECT_FALSE(two.allows(reduce, NcclProtocol::ll));
  const NcclSelection not_two = parse_nccl_selection("^Tree,NVLS", "");
  EXPECT_FALSE(not_two.allows(reduce, algorithm("Tree")));
  EXPECT_FALSE(not_two.allows(reduce, algorithm("NVLS")));
  EXPECT_TRUE(not_two.allows(reduce, algorithm("Ring")));
  EXPECT_TRUE(not_two.allows(reduce, NcclProtocol::ll128));
  EXPECT_FALSE(parse_nccl_selection("", "").restricts(reduce));
}

// The first list counts for all collectives, those behind semicolons for one each.
TEST(NcclSelection, ListsOfOneCollective) {
  const NcclSelection selection =
      parse_nccl_selection("ring;allreduce:tree,nvlstree;Broadcast:^PAT", "AllGather:LL");
  EXPECT_TRUE(selection.allows(gather, algorithm("Ring")));
  EXPECT_FALSE(selection.allows(gather, algorithm("NVLS")));
  EXPECT_FALSE(selection.allows(reduce, algorithm("Ring")));
  EXPECT_TRUE(selection.allows(reduce, algorithm("NVLSTree")));
  EXPECT_TRUE(selection.allows(CollectiveKind::broadcast, algorithm("Tree")));
  EXPECT_FALSE(selection.allows(CollectiveKind::broadcast, algorithm("PAT")));
  EXPECT_FALSE(selection.allows(gather, NcclProtocol::simple));
  EXPECT_TRUE(selection.allows(reduce, NcclProtocol::simple));
  EXPECT_FALSE(parse_nccl_selection("", "AllGather:LL").restricts(reduce));
}

TEST(NcclSelection, SaysWhatItDoesNotKnow) {
  const auto error = [](const std::string& algorithms, const std::string& protocols) {
    return error_text([&] { parse_nccl_selection(algorithms, protocols); });
  };
  EXPECT_EQ(error("Rong", ""),
            "--nccl-algo: 'Rong' is none of NCCL's; write some of: Tree, Ring, CollnetDirect, "
            "CollnetChain, NVLS, NVLSTree, PAT, Symmetric");
  EXPECT_EQ(error("", "LL,"),
            "--nccl-proto: '' is none of NCCL's; write some of: LL, LL128, Simple");
  EXPECT_EQ(error("alltoall:Ring", ""),
            "--nccl-algo: 'alltoall' is none of NCCL's; write some of: AllReduce, AllGather, "
            "ReduceScatter, Broadcast, Reduce");
  EXPECT_EQ(error("Ring;Tree", ""),
            "--nccl-algo: 'Tree' names no collective, as all lists but the first do; write it like "
            "\"Ring;AllReduce:Tree\"");
}

}  // namespace
}  // namespace orrery::nccl_selection_test
