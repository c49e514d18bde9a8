#pragma once

#include "sim/model/model.hpp"

namespace orrery {

/// Copies of tokens (one token's hidden vector each) that one dispatch moves through the busiest
/// port of each kind, the largest over all ranks and both directions. The combine returns as many.
/// Fractions are means over samples.
struct ExchangeLoad {
  struct Ports {
    double scale_up = 0.0;  ///< A rank's port to the others of its NVLink domain.
    double network = 0.0;   ///< A rank's NIC.
  };
  double tokens = 0.0;  ///< Tokens of a rank before dispatch.
  /// One copy for each of a token's experts that lies on another rank, straight to that rank.
  Ports direct;
  /// The same copies on rails: inside the domain to the rank with the destination's place in its
  /// domain, then over the network.
  Ports rails;
  /// One copy for each other domain with any of a token's experts, along the rail; then one for
  /// each rank of that domain with any of them.
  Ports once;
  double received = 0.0;  ///< Copies of `once` that reach a rank, including its own tokens.
};

/// The load of so many times the tokens.
ExchangeLoad operator*(double times, const ExchangeLoad& load);

/// The choices of a router without preferences.
enum class EvenChoice {
  any,  ///< All equally likely: groups_per_token of the groups, and per_token of their experts.
  /// Experts in turn, those of one token next to each other: token t has t per_token and the
  /// following ones, modulo their count. Benchmarks force balance so (NeMo AutoModel,
  /// components/moe/layers.py, FakeBalancedGate; torchtitan, models/moe/moe.py,
  /// _debug_force_load_balance_routing), and few ranks hold a token's experts.
  in_turn
};

/// Mean number of `parts` equal, contiguous shares that the experts of one token lie in. `parts`
/// divides experts.count.
double distinct_shares(const Experts& experts, int parts, EvenChoice choice = EvenChoice::any);

/// The load of a router without preferences: `ranks` ranks, `per_domain` of them in each domain,
/// hold `tokens` tokens each and equal shares of the experts.
ExchangeLoad uniform_exchange(const Experts& experts, int ranks, int per_domain, double tokens,
                              EvenChoice choice = EvenChoice::any);

}  // namespace orrery
