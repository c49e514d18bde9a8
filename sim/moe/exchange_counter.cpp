#include "sim/moe/exchange_counter.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace orrery {

// The copies that one rank's tokens send to each rank, and the number of these tokens that reach
// each rank and each domain.
struct ExchangeCounter::Reach {
  std::vector<double> copies, ranks, domains;
};

namespace {

// The exponent c of the class comment, for `parts` shares of slots: (1 - v)^(slots c) misses one.
double exponent(const Experts& experts, std::size_t slots, int parts) {
  if (experts.count % parts != 0) return 1.0;
  const double missed = 1.0 - distinct_shares(experts, parts) / parts;
  const double visited =
      static_cast<double>(experts.per_token) / static_cast<double>(experts.count);
  const double each = std::log1p(-visited) * static_cast<double>(slots) / parts;
  // Any exponent fits if no token or every token misses.
  if (missed <= 1e-12 || visited >= 1.0) return 1e3;
  return std::log(missed) / each;
}

void raise(double& most, double value) { most = std::max(most, value); }

}  // namespace

ExchangeCounter::ExchangeCounter(const Experts& experts, const ExpertPlacement& placement,
                                 int per_domain, double tokens)
    : placement_{placement}, per_domain_{per_domain}, tokens_{tokens} {
  assert(placement.ranks % per_domain == 0);
  const auto count = static_cast<std::size_t>(experts.count);
  rank_exponent_ = exponent(experts, count, placement.ranks);
  domain_exponent_ = exponent(experts, count, placement.ranks / per_domain);
}

ExchangeCounter::Reach ExchangeCounter::reach(std::span<const double> from_one_rank) const {
  const auto ranks = static_cast<std::size_t>(placement_.ranks);
  const auto slots = static_cast<std::size_t>(placement_.slots_per_rank());
  const auto per_domain = static_cast<std::size_t>(per_domain_);
  Reach found{std::vector<double>(ranks, 0.0), std::vector<double>(ranks, 0.0),
              std::vector<double>(ranks / per_domain, 0.0)};
  if (tokens_ <= 0.0) return found;
  const auto reached = [&](double copies, double missed, double exponent) {
    return std::min(copies, tokens_ * (1.0 - std::pow(missed, exponent)));
  };
  for (std::size_t domain = 0; domain < found.domains.size(); ++domain) {
    double copies_of_domain = 0.0, missed_by_domain = 1.0;
    for (std::size_t r = domain * per_domain; r < (domain + 1) * per_domain; ++r) {
      double missed = 1.0;
      for (std::size_t i = r * slots; i < (r + 1) * slots; ++i) {
        found.copies[r] += from_one_rank[i];
        missed *= std::max(0.0, 1.0 - from_one_rank[i] / tokens_);
      }
      found.ranks[r] = reached(found.copies[r], missed, rank_exponent_);
      copies_of_domain += found.copies[r];
      missed_by_domain *= missed;
    }
    found.domains[domain] = reached(copies_of_domain, missed_by_domain, domain_exponent_);
  }
  return found;
}

ExchangeLoad ExchangeCounter::even(std::span<const double> slots) const {
  const int n = placement_.ranks, g = per_domain_, domains = n / g;
  std::vector<double> mean(slots.begin(), slots.end());
  for (double& copies : mean) copies /= n;
  const Reach to = reach(mean);

  double all = 0.0, all_domains = 0.0;
  for (const double copies : to.copies) all += copies;
  for (const double tokens : to.domains) all_domains += tokens;
  std::vector<double> by_place(static_cast<std::size_t>(g), 0.0);
  for (int r = 0; r < n; ++r)
    by_place[static_cast<std::size_t>(r % g)] += to.copies[static_cast<std::size_t>(r)];

  ExchangeLoad load;
  load.tokens = tokens_;
  for (int domain = 0; domain < domains; ++domain) {
    double inside = 0.0, forwarded = 0.0;
    for (int r = domain * g; r < (domain + 1) * g; ++r) {
      inside += to.copies[static_cast<std::size_t>(r)];
      forwarded += to.ranks[static_cast<std::size_t>(r)];
    }
    for (int r = domain * g; r < (domain + 1) * g; ++r) {
      const double here = to.copies[static_cast<std::size_t>(r)];
      const double tokens = to.ranks[static_cast<std::size_t>(r)];
      const double place = by_place[static_cast<std::size_t>(r % g)];
      raise(load.direct.scale_up, inside - here);                 // out
      raise(load.direct.scale_up, (g - 1) * here);                // received
      raise(load.direct.network, all - inside);                   // out
      raise(load.direct.network, (n - g) * here);                 // received
      raise(load.rails.scale_up, all - place);                    // out, through the other places
      raise(load.rails.scale_up, (g - 1) * place);                // received
      raise(load.rails.network, g * (place - here));              // out, for all of the domain
      raise(load.rails.network, (n - g) * here);                  // received
      raise(load.once.scale_up, domains * (forwarded - tokens));  // out, from every domain
      raise(load.once.scale_up, (n - domains) * tokens);  // received, except over its own rail
      raise(load.received, n * tokens);
    }
    const double reached = to.domains[static_cast<std::size_t>(domain)];
    raise(load.once.network, all_domains - reached);    // out
    raise(load.once.network, (domains - 1) * reached);  // received, from the same place elsewhere
  }
  return load;
}

ExchangeLoad ExchangeCounter::uneven(const std::vector<std::vector<double>>& sent) const {
  const auto n = static_cast<std::size_t>(placement_.ranks);
  const auto g = static_cast<std::size_t>(per_domain_);
  struct Port {
    double out = 0.0, in = 0.0;
  };
  struct Ports {
    std::vector<Port> scale_up, network;
  };
  Ports direct{std::vector<Port>(n), std::vector<Port>(n)};
  Ports rails = direct, once = direct;
  const auto move = [](std::vector<Port>& ports, std::size_t from, std::size_t to, double copies) {
    if (from == to) return;
    ports[from].out += copies;
    ports[to].in += copies;
  };
  std::vector<double> received(n, 0.0);
  for (std::size_t s = 0; s < n; ++s) {
    const Reach to = reach(sent[s]);
    for (std::size_t r = 0; r < n; ++r) {
      const bool inside = s / g == r / g;
      move(inside ? direct.scale_up : direct.network, s, r, to.copies[r]);
      const std::size_t relay = s / g * g + r % g;
      move(rails.scale_up, s, relay, to.copies[r]);
      move(rails.network, relay, r, to.copies[r]);
      move(once.scale_up, r / g * g + s % g, r, to.ranks[r]);
      received[r] += to.ranks[r];
    }
    for (std::size_t domain = 0; domain < n / g; ++domain)
      move(once.network, s, domain * g + s % g, to.domains[domain]);
  }
  const auto busiest = [](const std::vector<Port>& ports) {
    double most = 0.0;
    for (const Port& port : ports) raise(most, std::max(port.out, port.in));
    return most;
  };
  ExchangeLoad load;
  load.tokens = tokens_;
  load.direct = {busiest(direct.scale_up), busiest(direct.network)};
  load.rails = {busiest(rails.scale_up), busiest(rails.network)};
  load.once = {busiest(once.scale_up), busiest(once.network)};
  for (const double copies : received) raise(load.received, copies);
  return load;
}

}  // namespace orrery
