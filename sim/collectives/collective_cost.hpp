#pragma once

#include <string_view>

#include "sim/core/units.hpp"
#include "sim/kernels/tag.hpp"

namespace orrery {

/// Who sends to whom.
enum class CollectivePattern {
  ring,  ///< The next member of the domain, and the member of the same place in the next domain.
  tree,  ///< The same inside; between domains up and down a double binary tree.
  switches,  ///< The same inside; between domains the fabric's switches, which reduce.
  pairs,     ///< Every member to every other.
  shift,     ///< The member behind; the last to the first.
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
  CollectivePattern pattern = CollectivePattern::ring;
  std::string_view algorithm = "none";  ///< "ring", "tree", "NVLS", ...; "pairwise", "send_recv".
  std::string_view protocol = "none";   ///< "LL", "LL128", "Simple".
  int channels = 0;                     ///< As many multiprocessors does it occupy on each GPU.
  Tag tag = Tag::default_value;

  Seconds time() const;
  /// Whether it is the NIC's bytes that it waits for, and not NVLink's.
  bool network_decides() const;
  /// This share of the collective, as where the rest is pipelined into a GEMM.
  CollectiveCost scaled(double share) const;
};

}  // namespace orrery
