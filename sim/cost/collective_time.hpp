#pragma once

#include <string_view>

#include "sim/cost/op.hpp"
#include "sim/cost/tag.hpp"
#include "sim/input/collective_constants.hpp"
#include "sim/input/system.hpp"

namespace orrery {

/// The ranks that do one collective: how many, over how many NVLink domains, and how many the
/// domain with the fewest of them holds.
struct GroupShape {
  int ranks = 1;
  int domains = 1;
  int per_domain = 1;
};

/// A collective as a latency and, after it, flows that every member sends and receives at once: one
/// over its NVLink port and one over its NIC. Alone it takes time(); where others use the same
/// links, the engine shares them. A rate is what the algorithm reaches on an idle link.
struct CollectiveCost {
  Seconds latency;
  Bytes scale_up_bytes;
  BytesPerSecond scale_up_rate;
  Bytes network_bytes;
  BytesPerSecond network_rate;
  std::string_view algorithm = "none";
  Tag tag = Tag::default_value;

  Seconds time() const;
  /// This share of the collective, as where the rest is pipelined into a GEMM.
  CollectiveCost scaled(double share) const;
};

/// NCCL's time for collectives on one system, uncontended.
class CollectiveTime {
 public:
  explicit CollectiveTime(const System& system);

  /// `tensor`: the whole tensor's bytes, as nccl-tests count (all-gather: of all ranks together).
  /// A group of one rank, or no bytes, takes no time.
  CollectiveCost operator()(CollectiveKind kind, Bytes tensor, GroupShape group) const;

  /// One rank sends `bytes` to another, inside a domain or over the network.
  CollectiveCost send(Bytes bytes, bool same_domain) const;

 private:
  CollectiveCost ring(CollectiveKind kind, Bytes tensor, GroupShape group) const;
  CollectiveCost nvls_all_reduce(Bytes tensor, int ranks) const;

  System system_;
  CollectiveConstants constants_;
  BytesPerSecond link_;     ///< NVLink (or PCIe) rate that the efficiencies refer to.
  BytesPerSecond nic_;      ///< One GPU's share of the NICs, payload.
};

}  // namespace orrery
