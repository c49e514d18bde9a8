#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/cluster/system.hpp"
#include "sim/nccl/collective_cost.hpp"

namespace orrery {

class CollectiveModel;

enum class NcclProtocol { ll, ll128, simple };
inline constexpr NcclProtocol nccl_protocols[] = {NcclProtocol::ll, NcclProtocol::ll128,
                                                  NcclProtocol::simple};
const std::vector<std::string>& nccl_protocol_names();  ///< "LL", "LL128", "Simple"
inline const std::string& name(NcclProtocol protocol) {
  return nccl_protocol_names()[static_cast<std::size_t>(protocol)];
}

/// The result of NCCL's search for one collective: links as it counts them and rings through them,
/// in GB/s (NVIDIA/nccl v2.28, src/graph/search.cc).
struct NcclGraph {
  const CollectiveCall& call;
  const System& system;
  std::size_t generation = 0;  ///< Volta, Ampere, Hopper, Blackwell: the rows of its tables.
  double nvlink = 0.0;         ///< One GPU's links.
  double nic = 0.0;            ///< One GPU's share of the NICs, line rate.
  double bus = 0.0;            ///< All rings together.
  double tree_bus = 0.0;       ///< All trees together, as the tuner counts them.
  int channels = 1;            ///< The rings; kernels may use twice as many.
};

using MaybeCost = std::optional<CollectiveCost>;

/// One of NCCL's algorithms. Each has its own file, and no other code depends on its name: a new
/// one is a class there and a line in nccl_algorithms().
class NcclAlgorithm {
 public:
  /// `word`: in NCCL_ALGO ("NVLSTree"). `name`: in answers ("NVLS-tree").
  NcclAlgorithm(std::string word, std::string name)
      : word_{std::move(word)}, name_{std::move(name)} {}
  virtual ~NcclAlgorithm() = default;
  NcclAlgorithm(const NcclAlgorithm&) = delete;
  NcclAlgorithm& operator=(const NcclAlgorithm&) = delete;

  const std::string& word() const { return word_; }
  const std::string& name() const { return name_; }

  /// NCCL considers it by default. Otherwise the program requests it, and NCCL_ALGO has no word.
  virtual bool is_default() const { return true; }
  /// It uses the reduction of NVSwitches, which NCCL_NVLS_ENABLE=0 forbids.
  virtual bool uses_nvls() const { return false; }
  /// Its needs, for the message that a request is unsupported; "": none.
  virtual std::string needs() const { return ""; }

  /// The time that NCCL's tuner counts for it, by its own figures; nullopt if it does not apply.
  virtual std::optional<Seconds> tuned(const NcclGraph& graph, NcclProtocol protocol) const = 0;
  /// The channels that NCCL launches: one thread block, and so one multiprocessor, each.
  virtual int channels(const NcclGraph& graph, NcclProtocol protocol) const;

  /// Its cost by formula; nullopt if it does not apply or no formula describes it.
  virtual MaybeCost price(const CollectiveModel&, const CollectiveCall&) const { return {}; }
  /// The cost with which it competes if NCCL chooses freely: the constants were fitted so.
  virtual MaybeCost free_price(const CollectiveModel& model, const CollectiveCall& call) const {
    return price(model, call);
  }

  /// Its bytes on the wires, if it applies.
  virtual WireBytes wire_bytes(const System& system, NcclProtocol protocol,
                               const CollectiveCall& call) const = 0;
  /// The pattern of its peers.
  virtual CollectivePattern pattern() const { return CollectivePattern::ring; }

 private:
  std::string word_, name_;
};

/// The only object of an algorithm's class.
template <class Class>
const NcclAlgorithm& the_algorithm() {
  static const Class one;
  return one;
}

/// All of them, in the order of NCCL's enumerators: ties go to the first.
const std::vector<const NcclAlgorithm*>& nccl_algorithms();

}  // namespace orrery
