#pragma once

#include <vector>

#include "sim/cluster/topology.hpp"
#include "sim/engine/task.hpp"
#include "sim/plan/cast.hpp"

namespace orrery {

/// Bytes that each member of a group sends to each other in an all-to-all(-v). Members count by
/// their place in the group; what one keeps for itself is not sent and counts for nothing.
class Exchange {
 public:
  /// Every member sends every other `a_pair`. As cheap for a thousand members as for two.
  static Exchange uniform(int members, Bytes a_pair);
  /// `bytes`: members x members, the sender's row after row.
  static Exchange matrix(int members, std::vector<double> bytes);

  int members() const { return members_; }
  bool is_uniform() const { return bytes_.empty(); }
  Bytes between(int from, int to) const;

 private:
  Exchange(int members, Bytes a_pair, std::vector<double> bytes)
      : members_{members}, a_pair_{a_pair}, bytes_{std::move(bytes)} {}

  int members_;
  Bytes a_pair_;
  std::vector<double> bytes_;  // Empty: uniform.
};

/// What one member sends and receives, inside its NVLink domain and out of it.
struct PortBytes {
  Bytes sent_inside, received_inside;
  Bytes sent_outside, received_outside;
};

/// Of every member of `group`, which ascends.
std::vector<PortBytes> port_bytes(const Placement& placement, const std::vector<Rank>& group,
                                  const Exchange& exchange);

/// One pair of ranks, and what the one sends the other: at `rate`, if nobody else is on the way.
struct Leg {
  Rank from;
  Rank to;
  Bytes bytes;
  BytesPerSecond rate;
  bool same_domain = true;
  bool to_switches = false;  ///< Ends in the fabric's switches, which send `to` what they reduced.
};

/// Every pair that exchanges something. A port's messages leave at once and share its rate as their
/// bytes, so that all of a port's would end together; the slower of the two ports decides.
/// `inside`, `outside`: what one member's ports reach on idle links; 0: such pairs are left out.
std::vector<Leg> legs_of(const Placement& placement, const std::vector<Rank>& group,
                         const Exchange& exchange, BytesPerSecond inside, BytesPerSecond outside);

/// The exchange on the links. Alone it takes as long as its busiest port: the largest of
/// PortBytes over its rate.
///
/// On a uniform system (System::uniform) folded: of each role a flow out of its NVLink port, one
/// into it, and the same for its NIC, or one for both directions where they carry as much. Members
/// that share a role must send and receive as much as each other. That is exact, for there all
/// that pairs could share are these ports (in PCIe nodes, whose slots carry both kinds: of uniform
/// exchanges).
/// Else, and unfolded: a flow a pair over its real route, so that pairs whose ways meet between
/// switches wait for each other. Asserts that every rank plays itself.
std::vector<Flow> exchange_flows(const Topology& topology, const Cast& cast,
                                 const std::vector<Rank>& group, const Exchange& exchange,
                                 BytesPerSecond inside, BytesPerSecond outside);

}  // namespace orrery
