#pragma once

#include "sim/cluster/dtype.hpp"
#include "sim/cluster/rank_groups.hpp"
#include "sim/collectives/collective_time.hpp"
#include "sim/moe/token_copies.hpp"
#include "sim/plan/plan_values.hpp"

namespace orrery {

/// What is exchanged, and by whom.
struct ExchangeShape {
  GroupShape group;
  std::int64_t hidden = 0;
  std::int64_t experts = 0;
  std::int64_t top_k = 0;
  Dtype dispatched =
      Dtype::bf16;  ///< fp8 carries a scale for each 128 channels. Back: 16 bits, or 32.
  /// deepep and hybridep only. 0: as many as each takes by itself.
  int multiprocessors = 0;
};

struct ExchangeCost {
  CollectiveCost dispatch, combine;
};

/// Uncontended time of one dispatch and one combine (docs/explanation/collectives.md). The busiest
/// port decides: all ranks wait for it. Backward, a combine's gradient is dispatched in 16 bits and
/// a dispatch's gradient combined.
class ExpertExchange {
 public:
  /// Keeps the reference.
  explicit ExpertExchange(const CollectiveTime& collectives) : collective_{collectives} {}

  /// `load`: uniform_exchange(), or from a routing table. A group of one rank takes no time.
  ExchangeCost operator()(ExpertDispatcher dispatcher, const ExchangeShape& shape,
                          const ExchangeLoad& load) const;

 private:
  CollectiveCost all_to_all(Bytes copy, const ExchangeShape& shape, const ExchangeLoad& load) const;
  CollectiveCost hierarchical(Bytes copy, const ExchangeShape& shape,
                              const ExchangeLoad& load) const;
  CollectiveCost kernel(ExpertDispatcher dispatcher, const ExchangeKernel& kernel,
                        const ExchangeKernel::Step& step, Bytes copy, const ExchangeShape& shape,
                        const ExchangeLoad& load) const;

  const CollectiveTime& collective_;
};

/// Bytes of one copy on the wire, there and back. DeepEP's carry each token's experts and weights.
struct CopyBytes {
  Bytes dispatch, combine;
};
CopyBytes copy_bytes(ExpertDispatcher dispatcher, const ExchangeShape& shape);

}  // namespace orrery
