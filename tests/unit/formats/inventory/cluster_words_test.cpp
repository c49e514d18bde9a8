#include "sim/formats/inventory/cluster_words.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "sim/core/object_reader.hpp"

namespace orrery::cluster_words_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

System system_of(const SystemAnswers& words) {
  return parse_system(JsonValue::parse(cluster_json(words).json, "s.json"));
}

SystemAnswers with(SystemAnswers words, const std::string& name, const std::string& value) {
  words[name] = value;
  return words;
}

const SystemAnswers eight{{"gpu", "h100-sxm"}, {"gpus-per-node", "8"}, {"nics", "8x400G"}};
const SystemAnswers four{{"gpu", "h100-sxm"},
                         {"gpus-per-node", "4"},
                         {"nics", "2x200G"},
                         {"fabric", "leaf-spine"},
                         {"oversubscription", "3"}};

std::string error_of(const SystemAnswers& words) {
  try {
    cluster_json(words);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(ClusterWords, ThreeWordsAreTheCatalogsSystem) {
  const System said = system_of(eight);
  const System known = read_system("dgx-h100", {});
  EXPECT_EQ(said.wiring, known.wiring);
  EXPECT_EQ(said.scale_up, known.scale_up);
  EXPECT_EQ(said.scale_up_latency, known.scale_up_latency);
  EXPECT_EQ(said.nic, known.nic);
  EXPECT_EQ(said.nics_per_node, known.nics_per_node);
  EXPECT_EQ(said.network_latency, known.network_latency);
  EXPECT_EQ(said.network_efficiency, known.network_efficiency);
  EXPECT_EQ(said.network.name, known.network.name);
  EXPECT_EQ(said.in_network_reduction, known.in_network_reduction);
  EXPECT_EQ(said.shape.layout, FabricLayout::single_switch);
}

TEST(ClusterWords, WhatWasGivenIsTheUsersOwn) {
  EXPECT_THAT(own_figures(*system_of(four).document),
              ElementsAre("fabric_shape/oversubscription", "gpus_per_node", "nic_bandwidth",
                          "nics_per_node"));
}

// 64 ports at 3:1: 16 up, 48 down, which is 24 nodes of two NICs; a spine has 64 leaves.
TEST(ClusterWords, ALeafHasAsManyNodesAsPortsDown) {
  const System system = system_of(four);
  EXPECT_EQ(system.wiring, NodeWiring::nvlink_mesh);
  EXPECT_EQ(system.nvlink_pairs.size(), 6u);  // 18 NVLinks to three others: 6 each, 150 GB/s.
  EXPECT_EQ(system.nvlink_pairs.front().bandwidth, BytesPerSecond{150e9});
  EXPECT_EQ(system.shape.nodes_per_leaf, 24);
  EXPECT_EQ(system.shape.spines, 16);
  EXPECT_EQ(system.max_gpus, 64 * 24 * 4);
  EXPECT_DOUBLE_EQ(system.network_latency.si(), 4.6e-6);
}

// Whatever is built keeps to its ports, and its leaves have as much less bandwidth up as was said.
TEST(ClusterWords, EveryTreeFitsItsSwitchesAndKeepsItsRatio) {
  int trees = 0;
  for (const char* fabric : {"leaf-spine", "rail-optimized"})
    for (const int nics : {1, 2, 4, 8})
      for (const int ports : {16, 32, 64, 128})
        for (const double ratio : {1.0, 2.0, 3.0, 7.0}) {
          SystemAnswers words = with(eight, "nics", std::to_string(nics) + "x200G");
          words["fabric"] = fabric;
          words["switch-ports"] = std::to_string(ports);
          words["oversubscription"] = std::to_string(static_cast<int>(ratio)) + ":1";
          SCOPED_TRACE(std::string{fabric} + " " + words["nics"] + " " + words["switch-ports"] +
                       " " + words["oversubscription"]);
          const System system = system_of(words);
          const int a_node = system.shape.rails ? 1 : nics;
          const double down = system.shape.nodes_per_leaf * a_node;
          EXPECT_LE(down + system.shape.spines, ports);
          // Rounding leaves less than a node's NICs, or one cable up, of what the ratio allows.
          EXPECT_LE(std::abs(down / ratio - system.shape.spines), 1.0);
          EXPECT_NEAR(system.shape.spines * system.shape.uplink.si(), down * 25e9 / ratio, 1.0);
          ++trees;
        }
  EXPECT_EQ(trees, 2 * 4 * 4 * 4);
}

TEST(ClusterWords, NicsAreWrittenAsPeopleSayThem) {
  for (const char* nics : {"2x200G", "2 x 200 Gb/s", "2x25GB/s", "2x0.2Tb/s"}) {
    const System system = system_of(with(eight, "nics", nics));
    EXPECT_EQ(system.nics_per_node, 2) << nics;
    EXPECT_EQ(system.nic, BytesPerSecond{25e9}) << nics;
  }
}

TEST(ClusterWords, TheCatalogKnowsHowManyNodesAnNvlinkDomainSpans) {
  const SystemAnswers rack{{"gpu", "gb200"}, {"gpus-per-node", "4"}, {"nics", "4x400G"}};
  EXPECT_EQ(system_of(rack).nvlink_domain, 72);
  EXPECT_EQ(system_of(with(rack, "nvlink-domain", "36")).nvlink_domain, 36);
}

TEST(ClusterWords, NetworksDifferByTheSpeedOfTheirNics) {
  EXPECT_EQ(system_of(with(eight, "nics", "8x25G")).network.name, "ethernet");
  EXPECT_EQ(system_of(with(eight, "nics", "8x100G")).network.name, "infiniband");
  EXPECT_EQ(system_of(with(eight, "network", "ethernet")).network.name, "ethernet");
}

TEST(ClusterWords, AssumptionsAreReported) {
  const ImportedSystem imported = cluster_json(eight);
  std::string notes;
  for (const std::string& note : imported.notes) notes += note + "\n";
  EXPECT_THAT(notes, HasSubstr("wired as in aws-p5 of the catalog"));
  EXPECT_THAT(notes, HasSubstr("the network is assumed to be infiniband; override with --network"));
  EXPECT_THAT(notes, HasSubstr("one switch that never blocks; override with --fabric"));
}

TEST(ClusterWords, MistakesAreReportedWithARemedy) {
  SystemAnswers none;
  EXPECT_EQ(error_of(none), "--gpu is missing; name one: orrery list gpus");
  EXPECT_EQ(error_of(with(eight, "nics", "8")),
            "--nics: '8' has no x; write how many and how fast: --nics 8x400G");
  EXPECT_EQ(error_of(with(eight, "gpus-per-node", "0")),
            "--gpus-per-node: '0' is not such a number; write a whole number from 1 to 1024");
  EXPECT_EQ(error_of(with(eight, "oversubscription", "2")),
            "--oversubscription: is of a tree of switches; add --fabric leaf-spine or --fabric "
            "rail-optimized");
  EXPECT_EQ(error_of(with(four, "oversubscription", "1:3")),
            "--oversubscription: '1:3' is no such ratio; write 3 or 3:1 where leaves have three "
            "times as much bandwidth down as up");
  EXPECT_EQ(error_of(with(four, "switch-ports", "2")),
            "--oversubscription: leaves a switch of 2 ports no port up; give --switch-ports, or a "
            "smaller ratio");
  EXPECT_EQ(error_of(with(with(four, "switch-ports", "4"), "nics", "4x200G")),
            "--nics: 4 NICs of a node do not fit into the 3 ports that a leaf has down; give "
            "--switch-ports, or --fabric rail-optimized");
  EXPECT_THAT(error_of(with(eight, "fabric", "dragonfly")),
              HasSubstr("'dragonfly' is not drawn from a few words"));
  EXPECT_EQ(error_of(with(eight, "nics", "3x200G")),
            "system of my-cluster.json: /nics_per_node: 3 NICs cannot be shared evenly by 8 GPUs; "
            "count the NICs that carry GPU traffic: a divisor or a multiple of 8");
}

}  // namespace
}  // namespace orrery::cluster_words_test
