#pragma once

#include "sim/cluster/groups.hpp"
#include "sim/collectives/collective_cost.hpp"
#include "sim/measurements/nccl_selection.hpp"

namespace orrery {

/// What a collective puts on the wires of the busiest member: out of its NVLink port and out of its
/// NIC; as much comes in, but for NVLS gathers and scatters, of which it is the busier direction.
struct WireBytes {
  Bytes inside;
  Bytes outside;
  bool operator==(const WireBytes&) const = default;
};

/// What each rank puts on the wire, per byte of the tensor: nccl-tests' factor between algorithm
/// and bus bandwidth (nccl-tests doc/PERFORMANCE.md). `n` >= 2.
double wire_share(CollectiveKind kind, int n);

/// How often the busiest domain sends half a tensor over the network in a double binary tree of so
/// many domains, reducing upwards and broadcasting downwards: 2 between two domains, which are root
/// and leaf in turn; else 4, of an inner domain in the one tree (to a parent and two children) that
/// is a leaf of the other. Between three there are 3; the published all-reduces on three nodes are
/// as slow as on four (docs/NCCL.md), and 4 is taken.
int tree_sends(int domains);

/// S bytes on n ranks, p of them in each of N domains, by `algorithm`, which applies to `kind`:
///
///              all-reduce: NVLink            NIC            gathers, scatters: NVLink   NIC
///   ring       w (one domain), (p-1)/p w     w / p          the same, with half the w
///   tree       2 (p-1)/p S                   S/p or 2 S/p
///   NVLS       (1 + 1/n) S                   -              S
///   NVLS-tree  (1 + 1/p) S                   S/p or 2 S/p
///   CollNet    2 (p-1)/p S                   S/p
///   PAT                                                     -                           w
///
/// w = wire_share x S. A ring's and PAT's are its rounds; a tree is a chain inside a domain, up and
/// down; NVLS pulls the tensor out of each port to reduce it in the switch and multicasts shares;
/// CollNet sends each rank's share to the fabric's switches, which reduce, and gets it back.
WireBytes wire_bytes(NcclAlgorithm algorithm, CollectiveKind kind, Bytes tensor, GroupShape group);

}  // namespace orrery
