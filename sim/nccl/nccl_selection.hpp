#pragma once

#include <array>
#include <string>
#include <vector>

#include "sim/core/json_value.hpp"
#include "sim/nccl/nccl_algorithm.hpp"

namespace orrery {

/// The algorithms and protocols that NCCL may take for each collective.
class NcclSelection {
 public:
  NcclSelection();  ///< All that NCCL considers by default.
  static const NcclSelection& unrestricted();
  static NcclSelection only(const NcclAlgorithm& algorithm);  ///< Every protocol is allowed.

  /// Those allowed, ordered like nccl_algorithms().
  const std::vector<const NcclAlgorithm*>& algorithms(CollectiveKind kind) const {
    return algorithms_[index(kind)];
  }
  bool allows(CollectiveKind kind, const NcclAlgorithm& one) const;
  bool allows_anywhere(const NcclAlgorithm& one) const;
  bool allows(CollectiveKind kind, NcclProtocol one) const {
    return protocols_[index(kind)][static_cast<std::size_t>(one)];
  }
  /// Something differs from the default for `kind`.
  bool restricts(CollectiveKind kind) const;

 private:
  friend NcclSelection parse_nccl_selection(const std::string&, const std::string&, const Place&,
                                            const Place&);
  static std::size_t index(CollectiveKind kind) { return static_cast<std::size_t>(kind); }

  std::array<std::vector<const NcclAlgorithm*>, collective_kinds> algorithms_;
  std::array<std::vector<bool>, collective_kinds> protocols_;
};

/// Parses the values of NCCL_ALGO and NCCL_PROTO: names separated by commas (or '+', where commas
/// separate values), of either case; '^' in front means all but these. Behind a semicolon, lists
/// for one collective each, which count in place of the first:
/// "ring;allreduce:tree,nvlstree;broadcast:^ring" (the grammar of NVIDIA/nccl src/graph/tuning.cc
/// since 2.24). Empty or "any": all. Errors (bad_input) at `algorithms_at` and `protocols_at`: an
/// unknown name.
NcclSelection parse_nccl_selection(const std::string& algorithms, const std::string& protocols,
                                   const Place& algorithms_at = {"", "--nccl-algo"},
                                   const Place& protocols_at = {"", "--nccl-proto"});

/// The same lists as keys of a plan: checked, with '+' for commas. Errors: as above.
std::string read_nccl_algorithms(const JsonValue& value);
std::string read_nccl_protocols(const JsonValue& value);

/// The algorithms that NCCL_NVLS_ENABLE=0 leaves, as a key of a plan: "^NVLS+NVLSTree".
std::string algorithms_without_nvls();

}  // namespace orrery
