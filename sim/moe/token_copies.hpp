#pragma once

#include "sim/model/model.hpp"

namespace orrery {

/// Copies of tokens (one token's hidden vector each) that one dispatch moves, at the busiest port
/// of each kind: of all ranks and both directions the largest. The combine carries as many back.
/// Fractions are means over draws.
struct ExchangeLoad {
  struct Ports {
    double scale_up = 0.0;  ///< Over a rank's port to the others of its NVLink domain.
    double network = 0.0;   ///< Over its NIC.
  };
  double tokens = 0.0;  ///< That a rank holds before dispatch.
  /// One copy for each of a token's experts that lies on another rank, straight to that rank.
  Ports direct;
  /// The same copies on rails: inside the domain to the rank that has the destination's place in
  /// its own domain, from there over the network.
  Ports rails;
  /// One copy for each other domain that a token's experts lie in, along the rail; from there one
  /// for each rank of the domain that has some of them.
  Ports once;
  double received = 0.0;  ///< Of the last, those that reach a rank; its own tokens count too.
};

/// In how many of `parts` equal, contiguous shares do the experts of one token lie? Mean over all
/// choices that the router allows, each as likely: groups_per_token of the groups, and per_token of
/// the experts in these. `parts` divides experts.count.
double distinct_shares(const Experts& experts, int parts);

/// The load of a router without preferences: `ranks` ranks, `per_domain` of them in each domain,
/// hold `tokens` tokens each and equal shares of the experts.
ExchangeLoad uniform_exchange(const Experts& experts, int ranks, int per_domain, double tokens);

}  // namespace orrery
