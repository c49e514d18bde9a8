#pragma once

#include "sim/cluster/dtype.hpp"
#include "sim/cluster/rank_groups.hpp"
#include "sim/collectives/collective_time.hpp"
#include "sim/moe/token_copies.hpp"
#include "sim/plan/plan_values.hpp"

namespace orrery {

/// Sizes of an exchange and of its group.
struct ExchangeShape {
  GroupShape group;
  std::int64_t hidden = 0;
  std::int64_t experts = 0;
  std::int64_t top_k = 0;
  Dtype dispatched = Dtype::bf16;  ///< fp8 has a scale per 128 channels; combine: 16 or 32 bits.
  /// Multiprocessors of deepep and hybridep; 0 is the kernel's default.
  int multiprocessors = 0;
};

struct ExchangeCost {
  CollectiveCost dispatch, combine;
};

/// Uncontended time of one dispatch and one combine (docs/explanation/collectives.md). All ranks
/// wait for the busiest port. In the backward pass, a combine's gradient is dispatched in 16 bits
/// and a dispatch's gradient combined.
class ExpertExchange {
 public:
  /// Keeps the reference to `collectives`.
  explicit ExpertExchange(const CollectiveTime& collectives) : collective_{collectives} {}

  /// Pass the `load` of uniform_exchange() or of a routing table. One rank alone takes no time.
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

/// Bytes of one copy in each direction. DeepEP's include each token's experts and weights.
struct CopyBytes {
  Bytes dispatch, combine;
};
CopyBytes copy_bytes(ExpertDispatcher dispatcher, const ExchangeShape& shape);

}  // namespace orrery
