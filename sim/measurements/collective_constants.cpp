#include "sim/measurements/collective_constants.hpp"

#include "sim/core/catalog.hpp"

namespace orrery {
namespace {

CollectiveConstants parse(const JsonValue& entry) {
  entry.allow_only({"gpu",
                    "source",
                    "nvlink_share",
                    "base_us",
                    "hop_us",
                    "p2p_base_us",
                    "p2p_hop_us",
                    "ring_efficiency",
                    "local_copy",
                    "nvls_efficiency",
                    "p2p_efficiency",
                    "p2p_channel_cap",
                    "ring_ramp_us",
                    "ring_ramp_mb",
                    "nvls_ramp_us",
                    "nvls_ramp_mb",
                    "p2p_ramp_us",
                    "p2p_ramp_mb",
                    "ideal",
                    "nvls_loop_efficiency",
                    "nvls_loop_step_us",
                    "nvls_loop_fill",
                    "send_efficiency",
                    "low_latency",
                    "p2p_low_latency",
                    "crossings"});
  entry.at("source").text();
  const auto time = [&](const char* key) { return microseconds(entry.at(key).number(0.0, 1e6)); };
  const auto share = [&](const char* key) { return entry.at(key).number(0.01, 20.0); };
  const auto ramp = [&](const std::string& name) {
    return CollectiveConstants::Ramp{microseconds(entry.at(name + "_ramp_us").number(0.0, 1e6)),
                                     Bytes{entry.at(name + "_ramp_mb").number(1e-6, 1e6) * 1e6}};
  };
  CollectiveConstants constants;
  constants.nvlink_share = share("nvlink_share");
  constants.base = time("base_us");
  constants.hop = time("hop_us");
  constants.p2p_base = time("p2p_base_us");
  constants.p2p_hop = time("p2p_hop_us");
  constants.ring_efficiency = share("ring_efficiency");
  constants.p2p_efficiency = share("p2p_efficiency");
  if (entry.has("local_copy")) constants.local_copy = share("local_copy");
  if (entry.has("nvls_efficiency")) {
    constants.nvls_efficiency = share("nvls_efficiency");
    constants.nvls_ramp = ramp("nvls");
  }
  constants.ring_ramp = ramp("ring");
  constants.p2p_ramp = ramp("p2p");
  const auto maybe = [&](const char* key, auto& value) {
    if (entry.has(key)) value = share(key);
  };
  maybe("p2p_channel_cap", constants.p2p_channel_cap);
  maybe("send_efficiency", constants.send_efficiency);
  maybe("low_latency", constants.low_latency);
  maybe("p2p_low_latency", constants.p2p_low_latency);
  if (const auto crossings = entry.find("crossings"))
    for (const JsonValue& one : crossings->elements()) {
      one.allow_only({"more_than", "ring", "p2p"});
      const int least = constants.crossings.empty() ? 1 : constants.crossings.back().more_than + 1;
      constants.crossings.push_back({static_cast<int>(one.at("more_than").integer(least, 1024)),
                                     one.at("ring").number(0.01, 1.0),
                                     one.at("p2p").number(0.01, 1.0)});
    }
  if (entry.has("nvls_loop_efficiency"))
    constants.nvls_loop = {share("nvls_loop_efficiency"), time("nvls_loop_step_us"),
                           share("nvls_loop_fill")};
  return constants;
}

// Constants of the network's algorithms, which no sweep of a single node says anything about.
CollectiveConstants with_network(CollectiveConstants constants, const JsonValue& network) {
  network.allow_only({"tree_turn", "peer_turn", "nvls_tree_share"});
  constants.tree_turn = network.at("tree_turn").sourced().number(0.0, 10.0);
  constants.peer_turn = network.at("peer_turn").sourced().number(0.0, 10.0);
  constants.nvls_tree_share = network.at("nvls_tree_share").sourced().number(0.01, 1.0);
  return constants;
}

}  // namespace

CollectiveConstants::Crossing CollectiveConstants::crossing(int ranks_in_domain) const {
  Crossing last;
  for (const Crossing& one : crossings)
    if (ranks_in_domain > one.more_than) last = one;
  return last;
}

CollectiveConstants read_collective_constants(const std::string& gpu, bool in_pcie_node) {
  const JsonValue json =
      JsonValue::read_file(find_in_catalog("calibration/data", "collectives", {}));
  json.allow_only({"schema", "nvlink_share_source", "stand_ins", "network", "gpus"});
  std::string wanted = gpu;
  if (const auto stand_in = json.at("stand_ins").find(gpu)) wanted = stand_in->sourced().text();
  const auto read = [&](const JsonValue& entry) {
    CollectiveConstants constants = parse(entry);
    constants.gpu = entry.at("gpu").text();
    const auto ideal = entry.find("ideal");
    return ideal && ideal->boolean() ? constants : with_network(constants, json.at("network"));
  };
  const std::string unmeasured = in_pcie_node ? "default-pcie" : "default";
  std::optional<JsonValue> fallback;
  for (const JsonValue& entry : json.at("gpus").elements()) {
    const std::string name = entry.at("gpu").text();
    if (name == wanted) {
      CollectiveConstants constants = read(entry);
      constants.measured = true;
      return constants;
    }
    if (name == unmeasured) fallback = entry;
  }
  if (!fallback) json.at("gpus").fail("has no entry '" + unmeasured + "'", "add one");
  return read(*fallback);
}

}  // namespace orrery
