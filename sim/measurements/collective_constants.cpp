#include "sim/measurements/collective_constants.hpp"

#include "sim/core/catalog.hpp"
#include "sim/core/field.hpp"

namespace orrery {
namespace {

using C = CollectiveConstants;

void read_crossings(C& constants, const JsonValue& json) {
  for (const JsonValue& one : json.elements()) {
    one.allow_only({"more_than", "ring", "p2p"});
    const int least = constants.crossings.empty() ? 1 : constants.crossings.back().more_than + 1;
    constants.crossings.push_back({static_cast<int>(one.at("more_than").integer(least, 1024)),
                                   one.at("ring").number(0.01, 1.0),
                                   one.at("p2p").number(0.01, 1.0)});
  }
}

std::vector<Field<C>> keys_of_a_gpu() {
  using Ramp = C::Ramp;
  const auto time = made_of(real(0.0, 1e6), microseconds);
  const auto megabytes = made_of(real(1e-6, 1e6), [](double mb) { return Bytes{mb * 1e6}; });
  const auto share = real(0.01, 20.0);
  const auto has = [](const char* key) {
    return [key](const JsonValue& file, const C&) { return file.has(key); };
  };
  const auto loop = [&has](const char* name, auto fill) {
    return where(has("nvls_loop_efficiency"), Field<C>{name, fill});
  };
  return {
      field("gpu", &C::gpu, any_text()),
      {"source", [](C&, const JsonValue& v) { v.text(); }},
      field("nvlink_share", &C::nvlink_share, share),
      field("base_us", &C::base, time),
      field("hop_us", &C::hop, time),
      field("p2p_base_us", &C::p2p_base, time),
      field("p2p_hop_us", &C::p2p_hop, time),
      field("ring_efficiency", &C::ring_efficiency, share),
      field("p2p_efficiency", &C::p2p_efficiency, share),
      optional(field("local_copy", &C::local_copy, share)),
      optional(field("nvls_efficiency", &C::nvls_efficiency, share)),
      where(has("nvls_efficiency"),
            within(&C::nvls_ramp, field("nvls_ramp_us", &Ramp::height, time))),
      where(has("nvls_efficiency"),
            within(&C::nvls_ramp, field("nvls_ramp_mb", &Ramp::half, megabytes))),
      within(&C::ring_ramp, field("ring_ramp_us", &Ramp::height, time)),
      within(&C::ring_ramp, field("ring_ramp_mb", &Ramp::half, megabytes)),
      within(&C::p2p_ramp, field("p2p_ramp_us", &Ramp::height, time)),
      within(&C::p2p_ramp, field("p2p_ramp_mb", &Ramp::half, megabytes)),
      optional(field("p2p_channel_cap", &C::p2p_channel_cap, share)),
      optional(field("send_efficiency", &C::send_efficiency, share)),
      optional(field("low_latency", &C::low_latency, share)),
      optional(field("p2p_low_latency", &C::p2p_low_latency, share)),
      optional(Field<C>{"crossings", read_crossings}),
      loop("nvls_loop_efficiency",
           [share](C& c, const JsonValue& v) {
             c.nvls_loop = {share.read(v), {}, 0.0};
           }),
      loop("nvls_loop_step_us",
           [time](C& c, const JsonValue& v) { c.nvls_loop->step = time.read(v); }),
      loop("nvls_loop_fill",
           [share](C& c, const JsonValue& v) { c.nvls_loop->fill = share.read(v); }),
      optional(Field<C>{"ideal", [](C&, const JsonValue& v) { v.boolean(); }}),
  };
}

// Constants of the network's algorithms, which a sweep of a single node does not determine.
std::vector<Field<C>> keys_of_the_network() {
  return {figure("tree_turn", &C::tree_turn, real(0.0, 10.0)),
          figure("peer_turn", &C::peer_turn, real(0.0, 10.0)),
          figure("chunk_half", &C::chunk_half, quantity(&JsonValue::bytes)),
          figure("nvls_tree_share", &C::nvls_tree_share, real(0.01, 1.0))};
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
  if (const auto proxy = json.at("stand_ins").find(gpu)) wanted = proxy->sourced().text();
  const auto read = [&](const JsonValue& entry) {
    CollectiveConstants constants;
    read_fields(entry, keys_of_a_gpu(), constants);
    const auto ideal = entry.find("ideal");
    if (!ideal || !ideal->boolean())
      read_fields(json.at("network"), keys_of_the_network(), constants);
    return constants;
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
