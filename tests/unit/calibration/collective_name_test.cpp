#include <gtest/gtest.h>

#include "sim/calibration/curve.hpp"

namespace orrery::collective_name_test {
namespace {

TEST(CollectiveName, ProgramsOfNcclTests) {
  EXPECT_EQ(collective_of_program("./build/all_reduce_perf"), "all_reduce");
  EXPECT_EQ(collective_of_program("all_gather_perf_mpi"), "all_gather");
  EXPECT_EQ(collective_of_program("reduce_scatter_perf"), "reduce_scatter");
  EXPECT_EQ(collective_of_program("reduce_perf"), "reduce");
  EXPECT_EQ(collective_of_program("alltoall_perf"), "all_to_all");
  EXPECT_EQ(collective_of_program("alltoallv_perf"), "all_to_all_v");
  EXPECT_EQ(collective_of_program("sendrecv_perf"), "send_recv");
  EXPECT_EQ(collective_of_program("osu_allreduce"), "");
}

TEST(CollectiveName, FileNamesThatSpeakOfOne) {
  EXPECT_EQ(collective_of_file_name("logs/job17-AllReduce.txt"), "all_reduce");
  EXPECT_EQ(collective_of_file_name("reduce_scatter_8.log"), "reduce_scatter");
  EXPECT_EQ(collective_of_file_name("reduce.log"), "reduce");
  EXPECT_EQ(collective_of_file_name("all_reduce-and-all_gather.log"), "");
  EXPECT_EQ(collective_of_file_name("all_reduce/slurm-17.out"), "");  // A folder is no name.
}

// nccl-tests, doc/PERFORMANCE.md, for four ranks: 2 x 3 / 4, 3 / 4, 1.
TEST(CollectiveName, BusFactors) {
  EXPECT_EQ(bus_factor("all_reduce", 4), 1.5);
  for (const char* name : {"all_gather", "reduce_scatter", "all_to_all", "gather", "scatter"})
    EXPECT_EQ(bus_factor(name, 4), 0.75) << name;
  for (const char* name : {"broadcast", "reduce", "send_recv", "hypercube"})
    EXPECT_EQ(bus_factor(name, 4), 1.0) << name;
  EXPECT_EQ(bus_factor("all_to_all_v", 4), std::nullopt);
}

}  // namespace
}  // namespace orrery::collective_name_test
