#include "sim/formats/inventory/nccl_topology.hpp"

#include <gmock/gmock.h>

#include "tests/support/error_text.hpp"
#include "tests/unit/calibration/sample.hpp"

namespace orrery::nccl_topology_test {
namespace {

using testing::Contains;
using testing::ElementsAre;

ImportedSystem imported(const std::string& text, const SystemAnswers& answers = {}) {
  return system_json(read_nccl_topology(text, "topo.xml"), answers);
}

System system_of(const std::string& text, const SystemAnswers& answers = {}) {
  return parse_system(JsonValue::parse(imported(text, answers).json, "imported.json"));
}

std::string error_of(const std::string& text, const SystemAnswers& answers = {}) {
  return refusal_of([&] { imported(text, answers); });
}

// Two GPUs with NVLinks to each other and one NIC; no device ids, as older versions dump them.
std::string pair_text() {
  return R"(<system version="1"><cpu numaid="0">
  <pci busid="0000:18:00.0" class="0x030200" link_speed="16 GT/s" link_width="16">
    <gpu dev="0" sm="80" rank="0"><nvlink target="0000:3b:00.0" count="12" tclass="0x030200"/></gpu>
  </pci>
  <pci busid="0000:3b:00.0" class="0x030200" link_speed="16 GT/s" link_width="16">
    <gpu dev="1" sm="80" rank="1"><nvlink target="0000:18:00.0" count="12" tclass="0x030200"/></gpu>
  </pci>
  <pci busid="0000:5e:00.0" class="0x020000">
    <nic><net name="mlx5_0" dev="0" speed="100000" port="1"/></nic>
  </pci>
</cpu></system>)";
}

const SystemAnswers a100{{"gpu", "a100-sxm-80gb"}};

TEST(NcclTopology, EightHoppersBehindSwitches) {
  const System system = system_of(sample("eight_h100.xml"));
  EXPECT_EQ(system.name, "topo");
  EXPECT_EQ(system.gpu.name, "h100-sxm");  // PCI device 0x2330.
  EXPECT_EQ(system.gpus_per_node, 8);
  EXPECT_EQ(system.nvlink_domain, 8);
  EXPECT_EQ(system.wiring, NodeWiring::nvswitch);
  EXPECT_EQ(system.scale_up, BytesPerSecond{450e9});  // (5 + 5 + 4 + 4) links x 25 GB/s.
  EXPECT_EQ(system.nics_per_node, 8);                 // Nine, of which one is slower.
  EXPECT_EQ(system.nic, BytesPerSecond{50e9});        // 400,000 Mbit/s.
  EXPECT_EQ(system.network.name, "infiniband");       // Class 0x0207.
  EXPECT_TRUE(system.in_network_reduction);
  EXPECT_THAT(imported(sample("eight_h100.xml")).notes,
              ElementsAre("the GPU is h100-sxm by its PCI device id 0x2330",
                          "NIC mlx5_8 of 100 Gb/s left out as slower",
                          "the NICs are of infiniband by their PCI class 0x0207",
                          "scale_up_latency is assumed to be 0.6 us as in the catalog; measure it "
                          "and give --scale-up-latency",
                          "the network is taken to have the figures of 'infiniband' "
                          "(InfiniBand); measure its latency and efficiency and give "
                          "--network-latency and --network-efficiency"));
}

TEST(NcclTopology, EveryNumberNamesTheDump) {
  const JsonValue json = JsonValue::parse(imported(sample("eight_h100.xml")).json, "i.json");
  for (const char* key : {"gpus_per_node", "scale_up_bandwidth", "nics_per_node", "nic_bandwidth"})
    EXPECT_EQ(json.at(key).at("source").text().find("NCCL topology dump topo.xml"), 0u) << key;
}

TEST(NcclTopology, AMeshIsTheSumOfAGpusLinks) {
  const System system = system_of(pair_text(), a100);
  EXPECT_EQ(system.wiring, NodeWiring::nvlink_mesh);
  EXPECT_EQ(system.scale_up, BytesPerSecond{300e9});  // 12 links x 25 GB/s.
  EXPECT_EQ(system.nics_per_node, 1);
  EXPECT_EQ(system.network.name, "ethernet");  // Class 0x0200.
  EXPECT_FALSE(system.in_network_reduction);
}

// 16 GT/s x 16 lanes / 8 = 32 GB/s.
TEST(NcclTopology, WithoutNvlinksTheSlotCounts) {
  std::string text = pair_text();
  for (const char* bus : {"3b", "18"})
    text = replaced(
        text,
        std::string{"<nvlink target=\"0000:"} + bus + ":00.0\" count=\"12\" tclass=\"0x030200\"/>",
        "");
  const System system = system_of(text, {{"gpu", "a100-pcie-80gb"}});
  EXPECT_EQ(system.wiring, NodeWiring::pcie);
  EXPECT_EQ(system.scale_up, BytesPerSecond{32e9});
  EXPECT_EQ(system.scale_up_latency, Seconds{1e-6});
}

TEST(NcclTopology, SeveralHostsAreOneNvlinkDomain) {
  const std::string text =
      replaced_everywhere(replaced(sample("eight_h100.xml"), "host_hash=\"0x51f3\" numaid=\"1\"",
                                   "host_hash=\"0x77aa\" numaid=\"1\""),
                          "0x2330", "0x2941");
  const System system = system_of(replaced_everywhere(text, "sm=\"90\"", "sm=\"100\""));
  EXPECT_EQ(system.gpu.name, "gb200");
  EXPECT_EQ(system.gpus_per_node, 4);
  EXPECT_EQ(system.nvlink_domain, 8);
  EXPECT_EQ(system.nics_per_node, 4);
  EXPECT_EQ(system.scale_up, BytesPerSecond{900e9});  // 18 links x 50 GB/s.
}

TEST(NcclTopology, AnswersWinOverTheDumpAndTheCatalog) {
  const System system = system_of(sample("eight_h100.xml"), {{"name", "mine"},
                                                             {"nics", "4"},
                                                             {"nic-bandwidth", "200 Gb/s"},
                                                             {"network-latency", "8 us"},
                                                             {"network-efficiency", "0.9"},
                                                             {"network", "ethernet"}});
  EXPECT_EQ(system.name, "mine");
  EXPECT_EQ(system.nics_per_node, 4);
  EXPECT_EQ(system.nic, BytesPerSecond{25e9});
  EXPECT_EQ(system.network_latency, Seconds{8e-6});
  EXPECT_EQ(system.network_efficiency, 0.9);
  EXPECT_EQ(system.network.name, "ethernet");
  EXPECT_EQ(error_of(sample("eight_h100.xml"), {{"network-latency", "8"}}),
            "system of topo.xml: /network_latency/value: '8' has no known unit; use s, ms, us or "
            "ns");
}

// As `import cluster` has it.
TEST(NcclTopology, NicsMayHaveTheirRate) {
  const SystemAnswers answers = with_rate_of_nics({{"nics", "8 x 400G"}, {"name", "mine"}});
  EXPECT_EQ(answers,
            (SystemAnswers{{"nics", "8"}, {"nic-bandwidth", "400Gb/s"}, {"name", "mine"}}));
  const SystemAnswers alone{{"nics", "8"}, {"nic-bandwidth", "400 Gb/s"}};
  EXPECT_EQ(with_rate_of_nics(alone), alone);
  EXPECT_EQ(error_text([] {
              with_rate_of_nics({{"nics", "8x400G"}, {"nic-bandwidth", "1 Gb/s"}});
            }),
            "--nics: has a rate, and so has --nic-bandwidth; give it once");
}

TEST(NcclTopology, WhatCannotBeAssumedMustBeGiven) {
  EXPECT_EQ(error_of(pair_text()),
            "topo.xml: does not say which GPU it has (compute capability 8.0); give --gpu NAME: "
            "a100-pcie-80gb, a100-sxm-40gb, a100-sxm-80gb");
  EXPECT_EQ(error_of(pair_text(), {{"gpu", "h100-sxm"}}),
            "--gpu: 'h100-sxm' is hopper, but topo.xml has GPUs of compute capability 8.0, ampere; "
            "name one of a100-pcie-80gb, a100-sxm-40gb, a100-sxm-80gb");
  EXPECT_EQ(error_of(replaced(pair_text(), "class=\"0x020000\"", ""), a100),
            "topo.xml: does not say what fabric joins the nodes; give --network infiniband, "
            "ethernet or another that 'orrery list networks' has");
  EXPECT_EQ(error_of(replaced(pair_text(), "<net name", "<knot name"), a100),
            "topo.xml: does not say how many NICs a node has; give --nics");
}

TEST(NcclTopology, WhatIsNoDumpIsRefused) {
  EXPECT_EQ(error_of(""), "topo.xml: is empty; give the file that NCCL_TOPO_DUMP_FILE names");
  EXPECT_EQ(error_of("{}"), "topo.xml: is not XML; give the file that NCCL_TOPO_DUMP_FILE names");
  EXPECT_EQ(error_of("<graphs version=\"1\"></graphs>"),
            "topo.xml: has no <system>, so it is not a topology of NCCL; give the file that "
            "NCCL_TOPO_DUMP_FILE names");
  EXPECT_EQ(error_of("<!DOCTYPE system><system/>"),
            "topo.xml: holds a declaration ('<!'); NCCL writes none");
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "<pci>";
  EXPECT_EQ(error_of(deep),
            "topo.xml: nests more than 64 levels deep; no topology does; check the file");
}

TEST(NcclTopology, DamagedDumpsAreRefused) {
  const std::string text = pair_text();
  EXPECT_EQ(error_of(text.substr(0, text.find("<nic>"))),
            "topo.xml: line 9: ends in the middle of an element; the file is cut off; fetch it "
            "again");
  EXPECT_EQ(error_of(replaced(text, "version=\"1\"", "version=\"2\"")),
            "topo.xml: <system>: has version '2', and only 1 is known; dump it with NCCL 2.5 to "
            "2.30");
  EXPECT_EQ(error_of(replaced(text, " version=\"1\"", "")),
            "topo.xml: <system>: has no version; give the file that NCCL itself wrote");
  EXPECT_EQ(error_of("<system version=\"1\"/>"),
            "topo.xml: <system>: has no <cpu>; the dump is not whole; make it again");
  EXPECT_EQ(error_of("<system version=\"1\"><cpu/></system>"),
            "topo.xml: <system>: has no <gpu>; dump it from a job that uses all GPUs of a node");
  EXPECT_EQ(error_of(replaced(text, " sm=\"80\"", "")),
            "topo.xml: <gpu dev=\"0\">: has no sm; the dump is not whole; make it again");
  EXPECT_EQ(error_of(replaced(text, "sm=\"80\"", "sm=\"90\"")),
            "topo.xml: has GPUs of several kinds; one system has one kind; dump it from a job on "
            "one of them");
  EXPECT_EQ(error_of(replaced(text, "target=\"0000:3b:00.0\"", "target=\"0000:18:00.0\"")),
            "topo.xml: <gpu dev=\"0\">: has an <nvlink> to itself; the dump is damaged; make it "
            "again");
  EXPECT_EQ(
      error_of(replaced(text, "count=\"12\"", "count=\"many\"")),
      "topo.xml: <gpu dev=\"0\">: count is 'many', which is not a count up to 64; the dump is "
      "damaged; make it again");
  EXPECT_EQ(
      error_of(replaced(text, "busid=\"0000:5e:00.0\"", "busid=\"0000:3b:00.0\"")),
      "topo.xml: <pci busid=\"0000:3b:00.0\">: stands twice in the file; the dump is damaged; "
      "make it again");
  EXPECT_EQ(error_of(replaced(text, " speed=\"100000\"", "")),
            "topo.xml: <net name=\"mlx5_0\">: has no speed; the dump is not whole; make it again");
  EXPECT_EQ(error_of(replaced(sample("eight_h100.xml"), "mlx5_3", "mlx5_2")),
            "topo.xml: <net name=\"mlx5_2\">: stands twice in the file, for one port; the dump is "
            "damaged; make it again");
}

TEST(NcclTopology, LinksToWhatTheDumpDoesNotHoldAreLeftOut) {
  const std::string text =
      replaced(pair_text(), "<nvlink target=\"0000:3b",
               "<nvlink target=\"0000:af:00.0\" count=\"4\" tclass=\"0x030200\"/>"
               "<nvlink target=\"0000:3b");
  EXPECT_THAT(imported(text, a100).notes,
              Contains("1 NVLink entry to devices that the dump does not hold left out"));
  EXPECT_EQ(system_of(text, a100).scale_up, BytesPerSecond{300e9});
}

// Four A100 in two bridged pairs, a pair and a NIC on the PCIe switch of each socket; switches with
// disks only are left out.
TEST(NcclTopology, BridgedPairsAndThePcieTree) {
  const System system = system_of(sample("four_a100_bridged.xml"));
  EXPECT_EQ(system.wiring, NodeWiring::pcie);
  ASSERT_EQ(system.nvlink_pairs.size(), 2u);
  EXPECT_EQ(system.nvlink_pairs[1].first, 2);
  EXPECT_EQ(system.nvlink_pairs[1].second, 3);
  EXPECT_EQ(system.nvlink_pairs[1].bandwidth, BytesPerSecond{300e9});  // 12 links x 25 GB/s.
  const PcieTree& tree = system.pcie_tree;
  ASSERT_EQ(tree.branches.size(), 4u);
  const std::vector<std::pair<std::string, int>> branches{
      {"cpu0", -1}, {"switch0", 0}, {"cpu1", -1}, {"switch1", 2}};
  for (std::size_t i = 0; i < branches.size(); ++i) {
    EXPECT_EQ(tree.branches[i].name, branches[i].first);
    EXPECT_EQ(tree.branches[i].parent, branches[i].second);
  }
  EXPECT_EQ(tree.branches[1].bandwidth, BytesPerSecond{32e9});  // 16 GT/s x 16.
  EXPECT_THAT(tree.gpus, ElementsAre(1, 1, 3, 3));
  EXPECT_THAT(tree.nics, ElementsAre(1, 3));
  EXPECT_EQ(tree.socket_link, BytesPerSecond{10e9});  // Model 106, Ice Lake: NCCL's Skylake.
}

// Behind an NVSwitch the tree says nothing where every GPU has a NIC on its switch; other NICs than
// the file has hang nowhere.
TEST(NcclTopology, NoTreeWhereItSaysNothing) {
  EXPECT_TRUE(system_of(sample("eight_h100.xml")).pcie_tree.empty());
  EXPECT_TRUE(system_of(sample("eight_h100.xml")).nvlink_pairs.empty());
  const SystemAnswers four_nics{{"nics", "4"}};
  EXPECT_TRUE(system_of(sample("four_a100_bridged.xml"), four_nics).pcie_tree.empty());
  EXPECT_THAT(imported(sample("four_a100_bridged.xml"), four_nics).notes,
              Contains("pcie_tree is left out, as other NICs or domains are given than the file "
                       "has"));
}

}  // namespace
}  // namespace orrery::nccl_topology_test
