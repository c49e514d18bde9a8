#include "sim/cluster/fabric.hpp"

#include <gtest/gtest.h>

#include "sim/cluster/system.hpp"
#include "tests/support/error_text.hpp"

namespace orrery::fabric_test {
namespace {

// A V100 system of two-GPU nodes, whose wiring and further keys a test writes.
System parse(const std::string& more, const std::string& wiring = "nvlink_mesh") {
  return parse_system(JsonValue::parse(R"({"schema": "orrery.system/1", "name": "s", "title": "S",
    "gpu": "v100-sxm-32gb",
    "gpus_per_node": {"value": 4, "source": "s"},
    "wiring": ")" + wiring + R"(",
    "scale_up_bandwidth": {"value": "16 GB/s", "source": "s"},
    "scale_up_latency": {"value": "1 us", "source": "s"},
    "nics_per_node": {"value": 2, "source": "s"},
    "nic_bandwidth": {"value": "10 GB/s", "source": "s"},
    "network_latency": {"value": "5 us", "source": "s"},
    "network_efficiency": {"value": 0.5, "source": "s"},
    "fabric": "infiniband", )" + more + "}",
                                       "s.json"));
}

std::string error(const std::string& more, const std::string& wiring = "nvlink_mesh") {
  return error_text([&] { parse(more, wiring); });
}

std::string number(const std::string& key, const std::string& value) {
  return "\"" + key + "\": {\"value\": " + value + ", \"source\": \"s\"}";
}

std::string shape(const std::string& kind, const std::vector<std::string>& keys) {
  std::string text = "\"fabric_shape\": {\"kind\": \"" + kind + "\"";
  for (const std::string& key : keys) text += ", " + key;
  return text + "}";
}

const std::string hop = number("switch_latency", "\"0.2 us\"");
const std::string rate = number("bandwidth", "\"25 GB/s\"");

TEST(Fabric, WithoutAShapeIsOneSwitch) {
  const System system = parse("\"in_network_reduction\": false");
  EXPECT_EQ(system.shape.layout, FabricLayout::single_switch);
  EXPECT_TRUE(system.uniform());
  EXPECT_TRUE(parse(shape("single_switch", {})).uniform());
}

// Three nodes of two 10 GB/s NICs bring 60 GB/s; 2:1 leaves 30 for five spines.
TEST(Fabric, OversubscriptionDividesWhatComesFromBelow) {
  const System system =
      parse(shape("leaf_spine", {number("nodes_per_leaf", "3"), number("spines", "5"),
                                 number("oversubscription", "2"), "\"ecmp_seed\": 7", hop}));
  EXPECT_EQ(system.shape.layout, FabricLayout::leaf_spine);
  EXPECT_DOUBLE_EQ(system.shape.uplink.si(), 6e9);
  EXPECT_DOUBLE_EQ(system.shape.switch_latency.si(), 0.2e-6);
  EXPECT_EQ(system.shape.ecmp_seed, 7u);
  EXPECT_FALSE(system.uniform());
  // A rail's leaf has one NIC of each of the three nodes: 30 GB/s.
  const System rails =
      parse(shape("rail_optimized", {number("nodes_per_pod", "3"), number("spines", "5"),
                                     number("oversubscription", "2"), hop}));
  EXPECT_TRUE(rails.shape.rails);
  EXPECT_DOUBLE_EQ(rails.shape.uplink.si(), 3e9);
}

// Two leaves give a spine 2 x 20 GB/s; gcd(4, 8) = 4 groups of two cores: 20 GB/s to each, or 10
// at 2:1.
TEST(Fabric, AFatTreeIsOversubscribedLevelByLevel) {
  const System system = parse(shape(
      "fat_tree", {number("nodes_per_leaf", "4"), number("leaves_per_pod", "2"),
                   number("spines_per_pod", "4"), number("cores", "8"),
                   number("oversubscription", "1"), number("core_oversubscription", "2"), hop}));
  EXPECT_DOUBLE_EQ(system.shape.uplink.si(), 20e9);
  EXPECT_EQ(core_groups(system.shape), 4);
  EXPECT_DOUBLE_EQ(system.shape.core_uplink.si(), 10e9);
}

TEST(Fabric, ADragonflyHasItsSize) {
  const System system =
      parse(shape("dragonfly", {number("nodes_per_router", "2"), number("routers_per_group", "4"),
                                number("groups", "9"), number("global_links_per_router", "2"),
                                number("local_bandwidth", "\"10 GB/s\""),
                                number("global_bandwidth", "\"20 GB/s\""), hop}));
  EXPECT_EQ(system.max_gpus, 2 * 4 * 9 * 4);
}

TEST(FabricErrors, UnknownAndContradictory) {
  EXPECT_EQ(error(shape("leafspine", {})),
            "s.json: /fabric_shape/kind: 'leafspine' is unknown; did you mean 'leaf_spine'?");
  EXPECT_EQ(error(shape("leaf_spine", {number("nodes_per_leaf", "3"), number("spines", "0"),
                                       number("oversubscription", "2"), hop})),
            "s.json: /fabric_shape/spines/value: 0 is out of range; "
            "write a whole number from 1 to 65536");
  EXPECT_EQ(error(shape("leaf_spine", {number("nodes_per_leaf", "3"), number("spines", "2"), hop})),
            "s.json: /fabric_shape: the speed of the uplinks is missing; "
            "add \"oversubscription\" (2 for 2:1) or \"uplink_bandwidth\"");
  EXPECT_EQ(error(shape("leaf_spine", {number("nodes_per_leaf", "3"), number("spines", "2"),
                                       number("oversubscription", "2"),
                                       number("uplink_bandwidth", "\"9 GB/s\""), hop})),
            "s.json: /fabric_shape/uplink_bandwidth: contradicts oversubscription, which says the "
            "same in another way; leave one of the two out");
  EXPECT_EQ(error(shape("leaf_spine", {number("nodes_per_leaf", "3"), number("spines", "2"),
                                       number("uplink_bandwidth", "\"0 GB/s\""), hop})),
            "s.json: /fabric_shape/uplink_bandwidth/value: '0 GB/s' is not a positive bandwidth; "
            "write it like \"400 GB/s\"");
  EXPECT_EQ(error(shape("leaf_spine",
                        {number("nodes_per_leaf", "3"), number("spines", "2"),
                         number("oversubscription", "2"), number("switch_latency", "\"5 ms\"")})),
            "s.json: /fabric_shape/switch_latency/value: '5 ms' is not a latency of a switch; "
            "write it like \"0.2 us\"");
  EXPECT_EQ(error(shape("single_switch", {number("spines", "2")})),
            "s.json: /fabric_shape: the key 'spines' is unknown; write one of: kind");
  EXPECT_EQ(
      error(shape("dragonfly", {number("nodes_per_router", "1"), number("routers_per_group", "4"),
                                number("groups", "8"), number("global_links_per_router", "2"),
                                number("local_bandwidth", "\"10 GB/s\""),
                                number("global_bandwidth", "\"10 GB/s\""), hop})),
      "s.json: /fabric_shape/global_links_per_router/value: 8 global links of a group do not "
      "go evenly to 7 other groups; let routers_per_group x global_links_per_router be a "
      "multiple of groups - 1");
  EXPECT_EQ(error(number("max_gpus", "64") + ", " +
                  shape("dragonfly",
                        {number("nodes_per_router", "1"), number("routers_per_group", "4"),
                         number("groups", "1"), number("local_bandwidth", "\"10 GB/s\""), hop})),
            "s.json: /fabric_shape: this fabric holds 16 GPUs, but max_gpus says 64; "
            "let max_gpus be at most 16");
}

std::string explicit_shape(const std::string& links, const std::string& switches = "\"a\", \"b\"") {
  return "\"fabric_shape\": {\"kind\": \"explicit\", \"switches\": [" + switches +
         "], \"links\": [" + links + "]}";
}

std::string wire(const std::string& from, const std::string& to, const std::string& more = "") {
  return "{\"from\": \"" + from + "\", \"to\": \"" + to + "\"" + more + "}";
}

const std::string both_nics = wire("node0.nic0", "a") + ", " + wire("b", "node0.nic1");
const std::string speeds =
    ", " + number("bandwidth", "\"20 GB/s\"") + ", " + number("latency", "\"1 us\"");

TEST(ExplicitFabric, NamesItsSwitchesAndNics) {
  const System system =
      parse(explicit_shape(both_nics + ", " + wire("a", "b", speeds) + ", " +
                           wire("node1.nic1", "a", ", " + number("bandwidth", "\"5 GB/s\"")) +
                           ", " + wire("node1.nic0", "a", ", " + number("latency", "\"1 us\""))));
  EXPECT_EQ(system.max_gpus, 8);
  ASSERT_EQ(system.shape.ports.size(), 4u);
  EXPECT_EQ(system.shape.ports[1].at_switch, 1);  // Node 0's NIC 1 is on b.
  EXPECT_EQ(system.shape.ports[3].at_switch, 0);
  ASSERT_EQ(system.shape.links.size(), 1u);
  EXPECT_DOUBLE_EQ(system.shape.links[0].bandwidth.si(), 20e9);
  ASSERT_EQ(system.link_overrides.size(), 2u);
  EXPECT_EQ(system.link_overrides[0].link, "node1.nic1");
  EXPECT_DOUBLE_EQ(system.link_overrides[0].bandwidth.si(), 5e9);
  EXPECT_DOUBLE_EQ(system.link_overrides[1].extra_latency.si(), 1e-6);
}

TEST(ExplicitFabric, MistakesAreNamed) {
  const auto links = [](const std::string& text) { return error(explicit_shape(text)); };
  const std::string at = "s.json: /fabric_shape/links";
  EXPECT_EQ(
      links(both_nics + ", " + wire("a", "spine9", speeds)),
      at + "/2/to: 'spine9' is neither a switch nor a NIC; write one of: a, b (NICs are written "
           "like node0.nic0)");
  EXPECT_EQ(links(both_nics + ", " + wire("node0.nic0", "b")),
            at + "/2/from: 'node0.nic0' is plugged in already; name each NIC once");
  EXPECT_EQ(links(wire("node0.nic7", "a")),
            at + "/0/from: 'node0.nic7' is not a NIC: a node has nic0 to nic1; write one of them");
  EXPECT_EQ(links(wire("node0.nic0", "a")),
            at + ": 'node0.nic1' is plugged in nowhere; add its link: nodes count from 0, and all "
                 "their NICs are part of the fabric");
  EXPECT_EQ(links(both_nics + ", " + wire("node2.nic0", "a")),
            at + ": 'node1.nic0' is plugged in nowhere; add its link: nodes count from 0, and all "
                 "their NICs are part of the fabric");
  EXPECT_EQ(links(wire("node0.nic0", "node0.nic1")),
            at + "/0: joins two NICs, which has no switch; plug each NIC into a switch");
  EXPECT_EQ(links(both_nics + ", " + wire("a", "a", speeds)),
            at + "/2/to: a link joins two switches; name another one");
  EXPECT_EQ(links(both_nics + ", " + wire("a", "b", speeds) + ", " + wire("b", "a", speeds)),
            at + "/3: 'b' and 'a' are joined already; give all their cables in one entry");
  EXPECT_EQ(links(both_nics + ", " + wire("a", "b", ", " + number("bandwidth", "\"0 GB/s\""))),
            at + "/2/bandwidth/value: '0 GB/s' is not a positive bandwidth; "
                 "write it like \"400 GB/s\"");
  EXPECT_EQ(links(wire("node0.nic0", "a", ", " + number("bandwidth", "\"11 GB/s\""))),
            at + "/0/bandwidth/value: '11 GB/s' is more than nic_bandwidth; "
                 "correct one of the two");
  EXPECT_EQ(error(explicit_shape(both_nics, "\"a\", \"a\"")),
            "s.json: /fabric_shape/switches/1: 'a' is a switch already; give each its own name");
  EXPECT_EQ(error(explicit_shape(both_nics, "\"a-b\"")),
            "s.json: /fabric_shape/switches/0: 'a-b' is not the name of a switch; "
            "use letters, digits and _, as in \"leaf_0\"");
}

TEST(NodeWires, PairsAddUpToTheGpusNvlinks) {
  const auto pairs = [](const std::string& text) { return "\"nvlink_pairs\": [" + text + "]"; };
  const auto pair = [](const std::string& gpus, const std::string& speed) {
    return "{\"gpus\": [" + gpus + "], " + number("bandwidth", "\"" + speed + "\"") + "}";
  };
  EXPECT_EQ(
      parse(pairs(pair("0, 1", "75 GB/s") + ", " + pair("2, 0", "75 GB/s"))).nvlink_pairs[1].first,
      0);
  const std::string at = "s.json: /nvlink_pairs/";
  EXPECT_EQ(error(pairs(pair("0, 1", "100 GB/s") + ", " + pair("0, 2", "75 GB/s"))),
            at + "1/gpus: the NVLinks of GPU 0 add up to 175 GB/s, but the GPU 'v100-sxm-32gb' has "
                 "150 GB/s; bandwidths are per direction: halve figures for both");
  EXPECT_EQ(
      error(pairs(pair("0, 1", "50 GB/s") + ", " + pair("1, 0", "50 GB/s"))),
      at + "1/gpus: the GPUs 0 and 1 are a pair already; give all their NVLinks in one entry");
  EXPECT_EQ(error(pairs(pair("0, 4", "50 GB/s"))),
            at + "0/gpus/1: 4 is out of range; write a whole number from 0 to 3");
  EXPECT_EQ(error(pairs(pair("1, 1", "50 GB/s"))),
            at + "0/gpus: an NVLink joins two GPUs; write two different numbers");
  EXPECT_EQ(error(pairs(pair("0, 1", "50 GB/s")), "nvswitch"),
            "s.json: /nvlink_pairs: GPUs on an NVSwitch have no pairs; leave nvlink_pairs out, or "
            "write \"wiring\": \"nvlink_mesh\" or \"pcie\"");
}

TEST(NodeWires, APcieTreeHangsTogether) {
  const auto tree = [](const std::string& branches, const std::string& gpus,
                       const std::string& nics, const std::string& more = "") {
    return "\"pcie_tree\": {\"branches\": [" + branches + "], \"gpus\": [" + gpus +
           "], \"nics\": [" + nics + "]" + more + "}";
  };
  const auto branch = [](const std::string& name, const std::string& parent) {
    return "{\"name\": \"" + name + "\", \"parent\": \"" + parent + "\", " + rate + "}";
  };
  const std::string cpu = "{\"name\": \"cpu\"}";
  const std::string gpus = R"("cpu", "cpu", "x", "x")";
  const System system = parse(tree(branch("x", "cpu") + ", " + cpu, gpus, R"("x", "cpu")"));
  EXPECT_EQ(system.pcie_tree.branches[0].parent, 1);  // It may stand behind its child.
  EXPECT_EQ(system.pcie_tree.gpus, (std::vector<int>{1, 1, 0, 0}));
  EXPECT_FALSE(system.uniform());

  const std::string at = "s.json: /pcie_tree";
  EXPECT_EQ(error(tree(branch("x", "y") + ", " + branch("y", "x") + ", " + cpu, gpus, "")),
            at + "/branches/0/parent: 'x' hangs, link by link, on itself; "
                 "let one branch of the cycle have no parent: a socket");
  EXPECT_EQ(error(tree(branch("x", "cpv") + ", " + cpu, gpus, "")),
            at + "/branches/0/parent: 'cpv' is not a branch of this tree; did you mean 'cpu'?");
  EXPECT_EQ(error(tree(branch("x", "cpu") + ", " + cpu, R"("cpu", "x")", "")),
            at + "/gpus: 2 places for 4 GPUs; name the branch of each");
  EXPECT_EQ(error(tree(branch("x", "cpu") + ", " + cpu, gpus, R"("cpu")")),
            at + "/nics: 1 places for 2 NICs; name the branch of each");
  EXPECT_EQ(error(tree(cpu + ", " + cpu, gpus, "")),
            at + "/branches/1/name: 'cpu' is a branch already; give each its own name");
  EXPECT_EQ(error(tree("{\"name\": \"x\"}, " + cpu, gpus, R"("cpu", "x")")),
            at + ": the key 'socket_bandwidth' is missing; add it");
}

TEST(Overrides, NameALinkOrAGpu) {
  const auto overrides = [](const std::string& text) { return "\"overrides\": [" + text + "]"; };
  const System system = parse(overrides(
      "{\"link\": \"node3.nic0\", " + rate + "}, {\"link\": \"leaf2-spine1\", \"down\": true}, " +
      "{\"gpu\": \"node0.gpu3\", " + number("speed", "0.8") + "}"));
  ASSERT_EQ(system.link_overrides.size(), 2u);
  EXPECT_DOUBLE_EQ(system.link_overrides[0].bandwidth.si(), 25e9);
  EXPECT_FALSE(system.link_overrides[0].down);
  EXPECT_TRUE(system.link_overrides[1].down);
  EXPECT_EQ(system.link_overrides[1].place.pointer, "/overrides/1/link");
  ASSERT_EQ(system.gpu_overrides.size(), 1u);
  EXPECT_EQ(system.gpu_overrides[0].gpu, 3);
  EXPECT_EQ(system.gpu_overrides[0].speed, 0.8);

  EXPECT_EQ(error(overrides("{\"link\": \"node3.nic0\"}")),
            "s.json: /overrides/0: nothing is overridden; "
            "write either \"bandwidth\" or \"down\": true");
  EXPECT_EQ(error(overrides("{\"link\": \"node3.nic0\", \"down\": true, " + rate + "}")),
            "s.json: /overrides/0: a link that is down has no bandwidth; "
            "write either \"bandwidth\" or \"down\": true");
  EXPECT_EQ(error(overrides("{\"gpu\": \"node0.gpu4\", " + number("speed", "0.8") + "}")),
            "s.json: /overrides/0/gpu: 'node0.gpu4' is not a GPU: a node has gpu0 to gpu3; "
            "write it like \"node3.gpu1\"");
  EXPECT_EQ(error(overrides("{\"gpu\": \"node0.gpu1\", " + number("speed", "0") + "}")),
            "s.json: /overrides/0/speed/value: 0 is out of range; "
            "write a number from 0.001 to 1000");
  EXPECT_EQ(error(overrides("{\"gpu\": \"node0.gpu1\", \"speed\": 0}")),
            "s.json: /overrides/0/speed: 0 is out of range; write a number from 0.001 to 1000");
}

}  // namespace
}  // namespace orrery::fabric_test
