#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/cluster/system.hpp"
#include "sim/cluster/topology.hpp"

namespace orrery {

/// The wires of one NVLink domain up to its NICs, as a graph:
///
///        nvswitch, nvlink_mesh                          pcie
///
///              switch                              root complex
///            /   ...   \                             /  ...  \        |
///         gpu0        gpu7   nvlink up/down       slot0     slot7     |  free
///          |            |    free                 /   \     /   \     |
///        slot0        slot7                    gpu0  nic0  ...  nic7   pcie up/down, nic up/down
///          |            |    free
///        nic0         nic7   nic up/down
///
/// "Free" edges are no bottleneck and no link: an SXM board gives every GPU and its NIC a PCIe path
/// that is faster than the NIC, and traffic between GPUs does not use it. In a PCIe node the GPU's
/// one slot carries both, and is the link that they share. A NIC is two vertices, one that sends
/// and one that receives: nothing turns round in a NIC.
///
/// NvlinkPairs replace the switch: a link each way joins the two GPUs, and others are reached
/// through them. A PcieTree replaces slots and root complex:
///
///      cpu0 -------- cpu1         socket_link
///      /   \            \         pcie up/down, named for the lower end
///   switch0  switch1    ...
///    /  |  \                      GPUs: pcie up/down; NICs: nic up/down
/// gpu0 gpu1 nic0
class DomainGraph {
 public:
  /// `changes`: overrides with names as in links().
  explicit DomainGraph(const System& system, const std::vector<LinkOverride>& changes = {});
  DomainGraph(DomainGraph&&) noexcept;
  DomainGraph& operator=(DomainGraph&&) noexcept;
  ~DomainGraph();

  /// The links of the domain, as if it were the first: its first node is node 0. Links that are
  /// down are among them: changes leave the indices as they are.
  const std::vector<NamedLink>& links() const;
  /// True if an override of this name would change a link; cables() lists all names.
  bool knows(const std::string& name) const;
  std::vector<std::string> cables() const;

  /// A route inside the domain: indices into links().
  struct Path {
    bool exists = false;
    bool over_nvlink = false;  ///< Crosses an NVLink.
    std::vector<int> links;
  };
  /// Prefers NVLink to PCIe switches, those to a CPU, one CPU to two; data from PCIe goes on over
  /// NVLink only if there is nothing else. GPUs and NICs are numbered over the domain.
  const Path& inside(int from, int to);
  const Path& to_nic(int gpu, int nic);
  const Path& from_nic(int nic, int gpu);

  /// NICs that a GPU can send by, or be reached by: nearest first, of those its own first. They are
  /// of its own node, or of the domain's other nodes if its own has none.
  const std::vector<int>& exits(int gpu);
  const std::vector<int>& entrances(int gpu);

 private:
  struct Graph;
  std::unique_ptr<Graph> graph_;
};

}  // namespace orrery
