#pragma once

#include <array>
#include <string>
#include <string_view>

#include "sim/core/json_value.hpp"
#include "sim/measurements/collective_curves.hpp"

namespace orrery {

enum class NcclAlgorithm { tree, ring, collnet_direct, collnet_chain, nvls, nvls_tree, pat };
enum class NcclProtocol { ll, ll128, simple };
constexpr int nccl_algorithms = 7;
constexpr int nccl_protocols = 3;

std::string_view name(NcclAlgorithm algorithm);  ///< "tree", "ring", "CollNet", "NVLS", ...
std::string_view name(NcclProtocol protocol);    ///< "LL", "LL128", "Simple"

/// Which algorithms and protocols NCCL may take for each collective.
class NcclSelection {
 public:
  NcclSelection();                                     ///< All.
  static NcclSelection only(NcclAlgorithm algorithm);  ///< In every protocol.

  bool allows(CollectiveKind kind, NcclAlgorithm one) const {
    return algorithms_[index(kind)][static_cast<std::size_t>(one)];
  }
  bool allows(CollectiveKind kind, NcclProtocol one) const {
    return protocols_[index(kind)][static_cast<std::size_t>(one)];
  }
  /// Whether anything is not allowed for `kind`.
  bool restricts(CollectiveKind kind) const;

 private:
  friend NcclSelection parse_nccl_selection(const std::string&, const std::string&, const Place&,
                                            const Place&);
  static std::size_t index(CollectiveKind kind) { return static_cast<std::size_t>(kind); }

  template <std::size_t count>
  using ByCollective = std::array<std::array<bool, count>, collective_kinds>;
  ByCollective<nccl_algorithms> algorithms_;
  ByCollective<nccl_protocols> protocols_;
};

/// From the values of NCCL_ALGO and NCCL_PROTO: names separated by commas (or '+', where commas
/// separate values), of either case; '^' in front means all but these. Behind a semicolon, lists
/// for one collective each, which count in place of the first:
/// "ring;allreduce:tree,nvlstree;broadcast:^ring" (the grammar of NVIDIA/nccl src/graph/tuning.cc
/// since 2.24). Empty or "any": all. Errors (bad_input) at `algorithms_at` and `protocols_at`: a
/// name that is none of NCCL's.
NcclSelection parse_nccl_selection(const std::string& algorithms, const std::string& protocols,
                                   const Place& algorithms_at = {"", "--nccl-algo"},
                                   const Place& protocols_at = {"", "--nccl-proto"});

/// The same lists as keys of a plan: checked, with '+' for commas. Errors: as above.
std::string read_nccl_algorithms(const JsonValue& value);
std::string read_nccl_protocols(const JsonValue& value);

}  // namespace orrery
