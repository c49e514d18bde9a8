#include "sim/cluster/system.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "sim/core/catalog.hpp"
#include "sim/core/object_reader.hpp"

namespace orrery::system_test {
namespace {

const Place flag{"command line", "--system"};

std::string system_text() {
  return R"({"schema": "orrery.system/1", "name": "s", "title": "S", "gpu": "h100-sxm",
    "gpus_per_node": {"value": 8, "source": "s"},
    "nvlink_domain": {"value": 16, "source": "s"},
    "wiring": "nvswitch",
    "scale_up_bandwidth": {"value": "450 GB/s", "source": "s"},
    "scale_up_latency": {"value": "0.6 us", "source": "s"},
    "nics_per_node": {"value": 4, "source": "s"},
    "nic_bandwidth": {"value": "200 Gb/s", "source": "s"},
    "network_latency": {"value": "5 us", "source": "s"},
    "network_efficiency": {"value": 0.97, "source": "s"},
    "fabric": "infiniband",
    "in_network_reduction": true,
    "host_slowdown": {"value": 2.5, "source": "s"},
    "max_gpus": {"value": 64, "source": "s"}})";
}

std::string replaced(const std::string& right, const std::string& wrong,
                     std::string text = system_text()) {
  const std::size_t at = text.find(right);
  EXPECT_NE(at, text.npos) << right;
  return at == text.npos ? text : text.replace(at, right.size(), wrong);
}

std::string error_of(const std::string& text) {
  try {
    parse_system(JsonValue::parse(text, "s.json"));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::bad_input);
    return error.what();
  }
  return "no error";
}

std::string error_with(const std::string& right, const std::string& wrong) {
  return error_of(replaced(right, wrong));
}

std::string contents(const std::filesystem::path& path) {
  std::ifstream file{path};
  EXPECT_TRUE(file) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(System, EveryCatalogFileIsReadAndCarriesItsFilesName) {
  const std::vector<std::string> names = list_catalog("topologies/systems");
  EXPECT_GE(names.size(), 21u);
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const System system = read_system(name, flag);
    EXPECT_EQ(system.name, name);
    EXPECT_LT(system.scale_up_latency, system.network_latency);
    // 32 GB/s of PCIe and 50 GB/s of NIC is the one pair where the network is the faster one.
    if (system.wiring != NodeWiring::pcie) {
      EXPECT_LE(system.nic, system.scale_up);
    }
  }
}

// A system has the figures of its fabric's kind, unless it has its own; a described fabric adds the
// two switches behind the first itself.
TEST(System, HasTheFiguresOfItsKindOfNetwork) {
  const std::vector<std::string> names = list_catalog("topologies/networks");
  EXPECT_GE(names.size(), 10u);
  for (const std::string& name : names) EXPECT_EQ(read_network(name, flag).name, name);
  const System p5 = read_system("aws-p5", flag);
  const NetworkKind efa = read_network("efa-v2", flag);
  EXPECT_EQ(p5.network_latency, efa.latency);
  EXPECT_EQ(p5.network_chunk_latency, efa.chunk_latency);
  EXPECT_EQ(p5.network_efficiency, efa.efficiency);
  EXPECT_EQ(read_system("polaris-a100-40gb", flag).network_efficiency, 0.58);
  const System tree = read_system("dgx-h100-superpod", flag);
  const NetworkKind infiniband = read_network("infiniband", flag);
  EXPECT_EQ(tree.network_latency, infiniband.latency - 2.0 * infiniband.switch_latency);
  EXPECT_EQ(tree.shape.switch_latency, infiniband.switch_latency);
  const System again = parse_system(*tree.document);  // As a result carries it.
  EXPECT_EQ(again.network.name, "infiniband");
  EXPECT_EQ(again.network_latency, tree.network_latency);
  EXPECT_TRUE(again.same_domain(tree) && again.same_network(tree));
  EXPECT_TRUE(p5.same_domain(tree));
  EXPECT_FALSE(p5.same_network(tree));
  const NetworkKind own = parse_network(JsonValue::parse(
      R"({"schema": "orrery.network/1", "name": "own", "title": "t", "technology": "ethernet",
          "latency": "3 us", "chunk_latency": "1 us", "switch_latency": "1 us",
          "efficiency": 0.9})",
      "n.json"));
  EXPECT_EQ(own.efficiency, 0.9);  // Plain figures are the user's own.
  EXPECT_EQ(name_in_catalog(infiniband), "infiniband");
  EXPECT_EQ(name_in_catalog(again.network), "infiniband");
  EXPECT_EQ(name_in_catalog(own), "");
  NetworkKind slower = infiniband;
  slower.latency = 2.0 * slower.latency;
  EXPECT_EQ(name_in_catalog(slower), "");
}

TEST(System, DgxA100IsAsItsDatasheetSays) {
  const System system = read_system("dgx-a100-80gb", flag);
  EXPECT_EQ(system.gpu.name, "a100-sxm-80gb");
  EXPECT_EQ(system.gpus_per_node, 8);
  EXPECT_EQ(system.nvlink_domain, 8);
  EXPECT_EQ(system.wiring, NodeWiring::nvswitch);
  EXPECT_EQ(system.scale_up, BytesPerSecond{300e9});
  EXPECT_DOUBLE_EQ(system.scale_up_latency.si(), 0.6e-6);
  EXPECT_EQ(system.nics_per_node, 8);
  EXPECT_EQ(system.nic, BytesPerSecond{25e9});  // 200 Gb/s / 8 bits.
  EXPECT_DOUBLE_EQ(system.network_latency.si(), 5e-6);
  EXPECT_EQ(system.network_efficiency, 0.97);
  EXPECT_EQ(system.network.name, "infiniband");
  EXPECT_FALSE(system.in_network_reduction);  // NVLink SHARP came with Hopper.
  EXPECT_EQ(system.max_gpus, 0);
  EXPECT_EQ(system.host_slowdown, 1.0);
}

TEST(System, ARackIsOneDomainOfManyNodes) {
  const System system = read_system("gb200-nvl72", flag);
  EXPECT_EQ(system.gpus_per_node, 4);
  EXPECT_EQ(system.nvlink_domain, 72);
  EXPECT_EQ(system.nics_per_node, 4);
}

TEST(System, WithoutADomainANodeIsOne) {
  const System system = parse_system(JsonValue::parse(
      replaced("\"nvlink_domain\": {\"value\": 16, \"source\": \"s\"},", ""), "s.json"));
  EXPECT_EQ(system.nvlink_domain, 8);
  EXPECT_EQ(system.max_gpus, 64);
  EXPECT_EQ(system.host_slowdown, 2.5);
  EXPECT_TRUE(system.in_network_reduction);
}

TEST(System, TheExamplesInTheDocumentsAreRead) {
  const std::filesystem::path source{ORRERY_TEST_SOURCE};
  int examples = 0;
  for (const char* document : {"topologies/README.md", "docs/guides/own-models-and-systems.md"}) {
    const std::string text = contents(source / document);
    const std::string fence = "```json\n";
    for (std::size_t at = text.find(fence); at != text.npos; at = text.find(fence, at)) {
      at += fence.size();
      const std::string example = text.substr(at, text.find("```", at) - at);
      SCOPED_TRACE(example);
      const JsonValue json = JsonValue::parse(example, document);
      if (json.at("schema").text() == "orrery.model/1") continue;  // unit/model reads it.
      if (json.at("schema").text() == "orrery.gpu/1")
        EXPECT_NO_THROW(parse_gpu(json));
      else
        EXPECT_NO_THROW(parse_system(json));
      ++examples;
    }
  }
  EXPECT_GE(examples, 3);
}

TEST(System, AGpuPathStartsAtTheSystemsFile) {
  const std::filesystem::path folder =
      std::filesystem::path{testing::TempDir()} / "orrery_system_test";
  std::filesystem::create_directories(folder);
  const std::filesystem::path source{ORRERY_TEST_SOURCE};
  std::ofstream{folder / "mine.json"} << contents(source / "topologies/gpus/h200-sxm.json");
  std::ofstream{folder / "cluster.json"} << replaced("\"h100-sxm\"", "\"mine.json\"");
  EXPECT_EQ(read_system((folder / "cluster.json").string(), flag).gpu.name, "h200-sxm");
  std::filesystem::remove_all(folder);
}

TEST(SystemErrors, SayPlaceProblemAndRemedy) {
  EXPECT_EQ(error_with("\"orrery.system/1\"", "\"orrery.system/2\""),
            "s.json: /schema: 'orrery.system/2' is not what is read here; "
            "write \"orrery.system/1\"");
  EXPECT_EQ(error_with("\"200 Gb/s\"", "\"0 Gb/s\""),
            "s.json: /nic_bandwidth/value: '0 Gb/s' is not a positive bandwidth; "
            "write it like \"400 GB/s\"");
  EXPECT_EQ(error_with("\"200 Gb/s\"", "\"200 GBps\""),
            "s.json: /nic_bandwidth/value: '200 GBps' has no known unit; "
            "use GB/s, MB/s, TB/s or GiB/s (bytes), or Gb/s or Tb/s (bits)");
  EXPECT_EQ(error_with("\"5 us\"", "\"5 s\""),
            "s.json: /network_latency/value: '5 s' is not a latency of a link; "
            "write it like \"5 us\"");
  EXPECT_EQ(error_with("{\"value\": \"5 us\", \"source\": \"s\"}", "{\"value\": \"5 us\"}"),
            "s.json: /network_latency: the key 'source' is missing; add it");
  EXPECT_EQ(error_with("{\"value\": \"5 us\", \"source\": \"s\"}", "true"),
            "s.json: /network_latency: true names no source; "
            "write {\"value\": ..., \"source\": \"where the number is from\"}");
  EXPECT_EQ(error_with("\"wiring\"", "\"wirings\""),
            "s.json: the key 'wirings' is unknown; did you mean 'wiring'?");
  EXPECT_EQ(error_with("\"fabric\": \"infiniband\",", ""),
            "s.json: the key 'fabric' is missing; add it");
  EXPECT_EQ(error_with("\"infiniband\"", "\"infinband\""),
            "s.json: /fabric: 'infinband' is not in the catalog; did you mean 'infiniband'? "
            "(a path needs a '/' or ends in .json)");
  EXPECT_EQ(error_with("\"h100-sxm\"", "\"h100-smx\""),
            "s.json: /gpu: 'h100-smx' is not in the catalog; did you mean 'h100-sxm'? "
            "(a path needs a '/' or ends in .json)");
  EXPECT_EQ(error_with("{\"value\": 8,", "{\"value\": 0,"),
            "s.json: /gpus_per_node/value: 0 is out of range; "
            "write a whole number from 1 to 1024");
  EXPECT_EQ(error_with("0.97", "97"),
            "s.json: /network_efficiency/value: 97 is out of range; "
            "write a number from 0.01 to 1");
}

TEST(SystemErrors, ContradictionsNameBothSides) {
  EXPECT_EQ(error_with("{\"value\": 16,", "{\"value\": 12,"),
            "s.json: /nvlink_domain/value: an NVLink domain of 12 GPUs is not a whole number of "
            "nodes of 8; write a multiple of 8");
  EXPECT_EQ(error_with("{\"value\": 16,", "{\"value\": 4,"),
            "s.json: /nvlink_domain/value: an NVLink domain of 4 GPUs is not a whole number of "
            "nodes of 8; write a multiple of 8");
  EXPECT_EQ(error_with("\"nvswitch\"", "\"nvlink_mesh\""),
            "s.json: /nvlink_domain/value: only NVSwitch spans several nodes; "
            "write 8, or \"wiring\": \"nvswitch\"");
  EXPECT_EQ(error_with("\"450 GB/s\"", "\"900 GB/s\""),
            "s.json: /scale_up_bandwidth/value: '900 GB/s' is more than the 450 GB/s that all "
            "NVLinks of the GPU 'h100-sxm' carry in one direction; "
            "bandwidths are per direction: halve a figure for both");
  EXPECT_EQ(error_with("\"h100-sxm\"", "\"l40s\""),
            "s.json: /wiring: the GPU 'l40s' has no NVLink; write \"pcie\", or name another GPU");
  EXPECT_EQ(error_with("{\"value\": 4,", "{\"value\": 3,"),
            "s.json: /nics_per_node/value: 3 NICs cannot be shared evenly by 8 GPUs; "
            "count the NICs that carry GPU traffic: a divisor or a multiple of 8");
}

TEST(SystemErrors, ReductionNeedsItsHardware) {
  const std::string ampere =
      replaced("\"450 GB/s\"", "\"300 GB/s\"", replaced("\"h100-sxm\"", "\"a100-sxm-80gb\""));
  EXPECT_EQ(error_of(ampere),
            "s.json: /in_network_reduction: NVSwitches reduce in the network from hopper on, but "
            "the GPU 'a100-sxm-80gb' is ampere; write false");
  const std::string mesh =
      replaced("{\"value\": 16,", "{\"value\": 8,", replaced("\"nvswitch\"", "\"nvlink_mesh\""));
  EXPECT_EQ(error_of(mesh),
            "s.json: /in_network_reduction: only NVSwitch reduces in the network; write false");
}

TEST(SystemErrors, AnUnknownNameGetsTheNearest) {
  try {
    read_system("dgx-a100-80g", flag);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "command line: --system: 'dgx-a100-80g' is not in the catalog; did you mean "
                 "'dgx-a100-80gb'? (a path needs a '/' or ends in .json)");
  }
}

// The catalog must state what a user may leave out.
TEST(Catalog, NamesASourceOfEveryFigure) {
  for (const std::string& name : list_catalog("topologies/systems")) {
    const System system = read_system(name, flag);
    EXPECT_TRUE(own_figures(*system.document).empty()) << name;
  }
  for (const std::string& name : list_catalog("topologies/gpus"))
    EXPECT_TRUE(own_figures(*read_gpu(name, flag).document).empty()) << name;
}

TEST(ParseSystem, TakesPlainFiguresAsTheUsersOwn) {
  const std::string plain = replaced("{\"value\": \"200 Gb/s\", \"source\": \"s\"}", "\"200 Gb/s\"",
                                     replaced("{\"value\": 4, \"source\": \"s\"}", "4"));
  const System system = parse_system(JsonValue::parse(plain, "s.json"));
  EXPECT_EQ(system.nics_per_node, 4);
  EXPECT_EQ(system.nic, BytesPerSecond{25e9});
  EXPECT_EQ(own_figures(*system.document),
            (std::vector<std::string>{"nic_bandwidth", "nics_per_node"}));
  // What a result carries is read again.
  EXPECT_EQ(parse_system(*system.document).nics_per_node, 4);
}

TEST(ParseSystem, ReportsAllErrorsAtOnce) {
  const std::string wrong =
      replaced("\"5 us\"", "\"5 s\"",
               replaced("\"450 GB/s\"", "\"450 GBps\"", replaced("\"nvswitch\"", "\"nvswich\"")));
  EXPECT_EQ(error_of(wrong),
            "s.json: /wiring: 'nvswich' is unknown; did you mean 'nvswitch'?\n"
            "s.json: /scale_up_bandwidth/value: '450 GBps' has no known unit; "
            "use GB/s, MB/s, TB/s or GiB/s (bytes), or Gb/s or Tb/s (bits)\n"
            "s.json: /network_latency/value: '5 s' is not a latency of a link; "
            "write it like \"5 us\"");
}

}  // namespace
}  // namespace orrery::system_test
