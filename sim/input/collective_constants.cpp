#include "sim/input/collective_constants.hpp"

#include "sim/input/catalog.hpp"

namespace orrery {
namespace {

CollectiveConstants parse(const JsonValue& entry) {
  entry.allow_only({"gpu", "source", "nvlink_share", "base_us", "hop_us", "p2p_base_us",
                    "p2p_hop_us", "ring_efficiency", "local_copy", "nvls_efficiency",
                    "p2p_efficiency", "p2p_channel_cap", "ring_ramp_us", "ring_ramp_mb",
                    "nvls_ramp_us", "nvls_ramp_mb", "p2p_ramp_us", "p2p_ramp_mb"});
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
  return constants;
}

}  // namespace

CollectiveConstants read_collective_constants(const std::string& gpu) {
  const JsonValue json =
      JsonValue::read_file(find_in_catalog("calibration/data", "collectives", {}));
  json.allow_only({"schema", "nvlink_share_source", "stand_ins", "gpus"});
  std::string wanted = gpu;
  if (const auto stand_in = json.at("stand_ins").find(gpu)) wanted = stand_in->sourced().text();
  std::optional<JsonValue> fallback;
  for (const JsonValue& entry : json.at("gpus").elements()) {
    const std::string name = entry.at("gpu").text();
    if (name == wanted) {
      CollectiveConstants constants = parse(entry);
      constants.measured = true;
      return constants;
    }
    if (name == "default") fallback = entry;
  }
  if (!fallback) json.at("gpus").fail("has no entry 'default'", "add one");
  return parse(*fallback);
}

}  // namespace orrery
