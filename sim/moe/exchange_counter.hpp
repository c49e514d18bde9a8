#pragma once

#include <span>
#include <vector>

#include "sim/moe/expert_placement.hpp"
#include "sim/moe/token_copies.hpp"

namespace orrery {

/// The ports' loads from what each expert slot is sent, for one layer, group and micro-batch.
///
/// Copies for each expert are counted. How many of a token's experts share a rank or a domain is
/// not in counts: with v_i the share of a rank's tokens that visit slot i, a token misses a set of
/// slots with the chance of prod (1 - v_i)^c, c such that even visits give what distinct_shares()
/// counts exactly. It is exact for even loads, and for slots that all tokens or none visit.
class ExchangeCounter {
 public:
  /// `tokens`: of one rank. Domains are `per_domain` ranks after each other; they divide the ranks.
  ExchangeCounter(const Experts& experts, const ExpertPlacement& placement, int per_domain,
                  double tokens);

  /// All ranks alike send `slots[i]` copies to slot i, together; the rest of a rank's tokens was
  /// dropped.
  ExchangeLoad even(std::span<const double> slots) const;
  /// Rank s sends `sent[s][i]` copies to slot i.
  ExchangeLoad uneven(const std::vector<std::vector<double>>& sent) const;

 private:
  struct Reach;
  Reach reach(std::span<const double> from_one_rank) const;

  ExpertPlacement placement_;
  int per_domain_ = 1;
  double tokens_ = 0.0;
  double rank_exponent_ = 1.0, domain_exponent_ = 1.0;  ///< c of the sets of one rank, one domain.
};

}  // namespace orrery
