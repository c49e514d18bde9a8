#include "sim/cluster/network.hpp"

#include <algorithm>

#include "sim/cluster/system.hpp"
#include "sim/core/catalog.hpp"
#include "sim/core/field.hpp"

namespace orrery {
namespace {

std::vector<Field<NetworkKind>> network_keys() {
  using N = NetworkKind;
  return {field("name", &N::name, some_text("name")),
          field("title", &N::title, some_text("title")),
          field("technology", &N::technology, one_of<NetworkTechnology>()),
          figure("latency", &N::latency, quantity(link_latency)),
          figure("chunk_latency", &N::chunk_latency, quantity(link_latency)),
          figure("switch_latency", &N::switch_latency, quantity(link_latency)),
          figure("efficiency", &N::efficiency, real(0.01, 1.0)),
          optional(figure("wait_share", &N::wait_share, real(0.0, 0.5)))};
}

}  // namespace

NetworkKind parse_network(const JsonValue& written) {
  require_schema(written, "orrery.network/1");
  const JsonValue json = with_own_sources(written, figures_of_a_machine());
  static const std::vector<Field<NetworkKind>> fields = network_keys();
  NetworkKind network;
  ObjectReader reader = read_fields_of(json, fields, network, {"schema"});
  reader.check([&] {
    if (network.latency < 2.0 * network.switch_latency)
      json.at("latency").fail("is less than that of two of its three switches",
                              "write a larger one, or a smaller switch_latency");
  });
  reader.raise();
  // The catalog's InfiniBand and RoCE have these shares (topologies/networks,
  // docs/notes/growth.md).
  if (!json.has("wait_share"))
    network.wait_share = network.technology == NetworkTechnology::infiniband ? 0.002 : 0.015;
  network.document = json;
  return network;
}

std::string name_in_catalog(const NetworkKind& network) {
  const std::vector<std::string> names = list_catalog("topologies/networks");
  if (std::find(names.begin(), names.end(), network.name) == names.end()) return {};
  const NetworkKind known = read_network(network.name, {});
  const bool same =
      known.latency == network.latency && known.chunk_latency == network.chunk_latency &&
      known.efficiency == network.efficiency && known.wait_share == network.wait_share;
  return same ? known.name : std::string{};
}

NetworkKind read_network(const std::string& word, const Place& at) {
  return parse_network(JsonValue::read_file(find_in_catalog("topologies/networks", word, at)));
}

}  // namespace orrery
