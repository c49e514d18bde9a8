#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/core/enum_words.hpp"
#include "sim/core/error.hpp"
#include "sim/core/json_value.hpp"
#include "sim/core/units.hpp"

namespace orrery {

enum class NetworkTechnology { infiniband, ethernet, other };
template <>
inline const std::vector<std::string> enum_words<NetworkTechnology>{"infiniband", "ethernet",
                                                                    "other"};

/// A kind of network between nodes, from topologies/networks: what its messages cost a program.
struct NetworkKind {
  std::string name;
  std::string title;
  NetworkTechnology technology = NetworkTechnology::infiniband;
  Seconds latency;  ///< From NIC to NIC, software to software, through three switches.
  /// Added to it for messages in large chunks: protocols with larger units than LL's, and a chunk
  /// that must arrive before it is sent on.
  Seconds chunk_latency;
  Seconds switch_latency;   ///< Of one switch and its cables.
  double efficiency = 1.0;  ///< Payload over line rate.
  /// Share of a step that its ranks wait for each other, for each doubling of a large cluster
  /// (waiting_for_others).
  double wait_share = 0.0;
  std::optional<JsonValue> document;
};

/// The network's name if the catalog has a kind of that name with the same figures, else "".
std::string name_in_catalog(const NetworkKind& network);

/// Errors (bad_input): missing, unknown or impossible keys.
NetworkKind parse_network(const JsonValue& json);
/// `word`: a name in topologies/networks, or a path.
NetworkKind read_network(const std::string& word, const Place& at);

}  // namespace orrery
