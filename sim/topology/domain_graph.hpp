#pragma once

#include <memory>
#include <vector>

#include "sim/input/system.hpp"
#include "sim/topology/topology.hpp"

namespace orrery {

/// The wires of one NVLink domain and the fabric behind its NICs, as a graph:
///
///        nvswitch, nvlink_mesh                          pcie
///
///              switch                              root complex
///            /   ...   \                             /  ...  \        |
///         gpu0        gpu7   nvlink up/down       slot0     slot7     |  free
///          |            |    free                 /   \     /   \     |
///        slot0        slot7                    gpu0  nic0  ...  nic7   pcie up/down, nic up/down
///          |            |    free                      \        /
///        nic0         nic7   nic up/down                 fabric
///           \          /
///              fabric
///
/// "Free" edges are no bottleneck and no link: an SXM board gives every GPU and its NIC a PCIe path
/// that is faster than the NIC, and traffic between GPUs does not use it. In a PCIe node the GPU's
/// one slot carries both, and is the link that they share. A NIC is two vertices, one that sends
/// and one that receives: nothing turns round in a NIC.
///
/// nvlink_mesh stands for all links of a GPU together; per-pair limits are not modelled.
class DomainGraph {
 public:
  explicit DomainGraph(const System& system);
  DomainGraph(DomainGraph&&) noexcept;
  DomainGraph& operator=(DomainGraph&&) noexcept;
  ~DomainGraph();

  /// The links of the domain, as if it were the first: its first node is node 0.
  const std::vector<Link>& links() const;

  /// Indices into links() on the way with the fewest edges. GPUs count over the domain.
  const std::vector<int>& inside(int from, int to);
  const std::vector<int>& to_fabric(int gpu);
  const std::vector<int>& from_fabric(int gpu);

 private:
  struct Graph;
  std::unique_ptr<Graph> graph_;
};

}  // namespace orrery
