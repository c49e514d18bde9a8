#include "sim/formats/inventory/smi_topology.hpp"

#include <gmock/gmock.h>

#include "tests/unit/calibration/sample.hpp"

namespace orrery::smi_topology_test {
namespace {

using testing::Contains;

SystemAnswers answers_with(const std::string& gpu) {
  return {{"gpu", gpu}, {"nic-bandwidth", "200 Gb/s"}, {"network", "infiniband"}};
}

System system_of(const std::string& text, const SystemAnswers& answers) {
  const SystemDraft draft = read_smi_topology(text, "topo.txt", answers);
  return parse_system(JsonValue::parse(system_json(draft, answers).json, "imported.json"));
}

std::string error_of(const std::string& text,
                     const SystemAnswers& answers = answers_with("a100-sxm-80gb")) {
  return refusal_of([&] { system_of(text, answers); });
}

// Four A100 without a switch: 4 links to each of the 3 others are its 12.
const std::string four = R"(        GPU0  GPU1  GPU2  GPU3  mlx5_0  CPU Affinity
GPU0     X    NV4   NV4   NV4   PIX     0-15
GPU1    NV4    X    NV4   NV4   NODE    0-15
GPU2    NV4   NV4    X    NV4   SYS     16-31
GPU3    NV4   NV4   NV4    X    SYS     16-31
mlx5_0  PIX   NODE  SYS   SYS    X
)";

TEST(SmiTopology, ASwitchShowsAllLinksInEachCell) {
  const SystemAnswers answers = answers_with("h100-sxm");
  const System system = system_of(sample("eight_gpus.txt"), answers);
  EXPECT_EQ(system.gpus_per_node, 8);
  EXPECT_EQ(system.wiring, NodeWiring::nvswitch);
  EXPECT_EQ(system.scale_up, BytesPerSecond{450e9});  // NV18: 18 x 25 GB/s.
  EXPECT_EQ(system.nics_per_node, 8);
  EXPECT_EQ(system.nic, BytesPerSecond{25e9});
  EXPECT_TRUE(system.in_network_reduction);
  EXPECT_THAT(read_smi_topology(sample("eight_gpus.txt"), "topo.txt", answers).notes,
              Contains("every pair shows 18 NVLinks, more than a mesh could: the wiring is "
                       "nvswitch"));
}

TEST(SmiTopology, AMeshDividesThemAmongTheCells) {
  const System system = system_of(four, answers_with("a100-sxm-80gb"));
  EXPECT_EQ(system.gpus_per_node, 4);
  EXPECT_EQ(system.wiring, NodeWiring::nvlink_mesh);
  EXPECT_EQ(system.scale_up, BytesPerSecond{300e9});  // 3 x 4 x 25 GB/s.
  EXPECT_EQ(system.nics_per_node, 1);
}

TEST(SmiTopology, WithoutNvlinksTheSlotCounts) {
  const System system = system_of(replaced_everywhere(four, "NV4", "PHB"), answers_with("l40s"));
  EXPECT_EQ(system.wiring, NodeWiring::pcie);
  EXPECT_EQ(system.scale_up, BytesPerSecond{32e9});  // The catalog's: PCIe Gen4 x16.
}

// Eight cards of which two each have a bridge of 12 links; others are reached over PCIe.
TEST(SmiTopology, BridgesJoinPairs) {
  std::string matrix = "      ", rows;
  for (int gpu = 0; gpu < 8; ++gpu) {
    matrix += " GPU" + std::to_string(gpu);
    rows += "GPU" + std::to_string(gpu);
    for (int other = 0; other < 8; ++other)
      rows += gpu == other           ? " X"
              : gpu / 2 == other / 2 ? " NV12"
              : gpu / 4 == other / 4 ? " NODE"
                                     : " SYS";
    rows += " 0-31\n";
  }
  SystemAnswers answers = answers_with("a100-pcie-80gb");
  answers["nics"] = "1";
  const System system = system_of(matrix + " CPU Affinity\n" + rows, answers);
  EXPECT_EQ(system.wiring, NodeWiring::pcie);
  EXPECT_EQ(system.scale_up, BytesPerSecond{32e9});
  ASSERT_EQ(system.nvlink_pairs.size(), 4u);
  for (int pair = 0; pair < 4; ++pair)
    EXPECT_EQ(system.bridge(2 * pair + 1, 2 * pair), BytesPerSecond{300e9});  // 12 x 25 GB/s.
  EXPECT_EQ(system.bridge(1, 2), BytesPerSecond{});
}

TEST(SmiTopology, DamagedMatricesAreRefused) {
  EXPECT_EQ(error_of(""), "topo.txt: is empty; give the output of nvidia-smi topo -m");
  EXPECT_EQ(error_of("GPU0  X  NV4\n"),
            "topo.txt: has no matrix of nvidia-smi (no header with GPU0); give the whole output of "
            "nvidia-smi topo -m");
  EXPECT_EQ(error_of(four.substr(0, four.find("GPU3    NV4"))),
            "topo.txt: has no row of GPU3; the matrix was cut off; give the whole output of "
            "nvidia-smi topo -m");
  EXPECT_EQ(error_of(replaced(four, "NODE  SYS   SYS    X", "NODE")),
            "topo.txt: line 6: has 2 cells for 5 columns; the matrix was cut off; give the whole "
            "output of nvidia-smi topo -m");
  EXPECT_EQ(
      error_of(replaced(four, "GPU0     X    NV4", "GPU0     X    NV3")),
      "topo.txt: line 1: GPU1 has 4 NVLinks to GPU0, which has 3 back; the matrix is damaged; "
      "run nvidia-smi topo -m again");
  EXPECT_EQ(error_of(replaced(four, "NV4   NV4   NV4   PIX", "NV4   NVx   NV4   PIX")),
            "topo.txt: line 2: 'NVx' stands for the way from GPU0 to GPU2; write NV#, PIX, PXB, "
            "PHB, NODE or SYS");
  EXPECT_EQ(error_of(replaced(four, "GPU0     X ", "GPU0    PIX")),
            "topo.txt: line 2: 'PIX' stands for the way from GPU0 to GPU0; X marks a device's way "
            "to itself, and nothing else");
  EXPECT_EQ(error_of(replaced(four, "GPU1  GPU2", "GPU1  GPU1")),
            "topo.txt: line 1: two columns are called GPU1; the matrix is damaged; run nvidia-smi "
            "topo -m again");
  EXPECT_EQ(error_of(replaced(sample("eight_gpus.txt"), "NIC3: mlx5_3", "NIC3: mlx5_2")),
            "topo.txt: line 30: two NICs are called mlx5_2; the legend is damaged; run nvidia-smi "
            "topo -m again");
}

TEST(SmiTopology, WhatTheMatrixOmitsMustBeGiven) {
  EXPECT_EQ(error_of(four, {{"gpu", "a100-sxm-80gb"}}),
            "topo.txt: does not say how fast a NIC is; give --nic-bandwidth, such as \"400 Gb/s\"");
  EXPECT_EQ(error_of(sample("eight_gpus.txt"), answers_with("a100-sxm-80gb")),
            "topo.txt: line 1: shows 18 NVLinks, but the GPU 'a100-sxm-80gb' has 12; check --gpu");
  EXPECT_EQ(error_of(four, answers_with("l40s")),
            "topo.txt: line 1: has NVLinks, but the GPU 'l40s' has none; check --gpu, or give "
            "--wiring pcie");
}

}  // namespace
}  // namespace orrery::smi_topology_test
