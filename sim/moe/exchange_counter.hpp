#pragma once

#include <span>
#include <vector>

#include "sim/moe/expert_placement.hpp"
#include "sim/moe/token_copies.hpp"

namespace orrery {

/// Loads of the ports for given copies to each expert slot, for one layer, group and micro-batch.
///
/// Counts say how many copies each expert gets, but not how many of a token's experts share a rank
/// or a domain. With v_i the share of a rank's tokens that visit slot i, a token is taken to miss a
/// set of slots with probability prod (1 - v_i)^c, with c such that even visits give
/// distinct_shares(). It is exact for even loads, and for slots that all tokens or none visit.
class ExchangeCounter {
 public:
  /// Each rank has `tokens` tokens. Domains are `per_domain` consecutive ranks; they divide the
  /// ranks.
  ExchangeCounter(const Experts& experts, const ExpertPlacement& placement, int per_domain,
                  double tokens);

  /// All ranks send alike, together `slots[i]` copies to slot i; other tokens were dropped.
  ExchangeLoad even(std::span<const double> slots) const;
  /// Rank s sends `sent[s][i]` copies to slot i.
  ExchangeLoad uneven(const std::vector<std::vector<double>>& sent) const;

 private:
  struct Reach;
  Reach reach(std::span<const double> from_one_rank) const;

  ExpertPlacement placement_;
  int per_domain_ = 1;
  double tokens_ = 0.0;
  double rank_exponent_ = 1.0,
         domain_exponent_ = 1.0;  ///< The exponent c of a rank's and a domain's slots.
};

}  // namespace orrery
