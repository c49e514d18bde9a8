#include "sim/moe/router.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

#include "sim/core/error.hpp"
#include "sim/core/random.hpp"

namespace orrery {

std::int64_t expert_capacity(double factor, std::int64_t tokens, std::int64_t per_token,
                             std::int64_t experts) {
  const double mean = static_cast<double>(tokens * per_token) / static_cast<double>(experts);
  return static_cast<std::int64_t>(std::ceil(factor * mean - 1e-9));
}

// Terms are ratios to the most likely one, added outwards until they vanish: this needs no
// logarithm of a factorial and gives the same bits on every machine.
double binomial_excess(std::int64_t n, double p, std::int64_t capacity) {
  if (p <= 0.0 || capacity >= n) return 0.0;
  if (p >= 1.0) return static_cast<double>(n - capacity);
  const auto trials = static_cast<double>(n);
  const auto mode = static_cast<double>(
      std::clamp<std::int64_t>(static_cast<std::int64_t>((trials + 1.0) * p), 0, n));
  const double odds = p / (1.0 - p);
  double all = 0.0, excess = 0.0;
  const auto count = [&](double x, double term) {
    all += term;
    excess += std::max(0.0, x - static_cast<double>(capacity)) * term;
  };
  constexpr double negligible = 1e-18;
  double term = 1.0;
  for (double x = mode; x <= trials && term > negligible; x += 1.0) {
    count(x, term);
    term *= odds * (trials - x) / (x + 1.0);
  }
  term = mode / ((trials - mode + 1.0) * odds);
  for (double x = mode - 1.0; x >= 0.0 && term > negligible; x -= 1.0) {
    count(x, term);
    term *= x / ((trials - x + 1.0) * odds);
  }
  return excess / all;
}

namespace {

// Purposes of the streams of random numbers.
enum Stream : std::uint64_t { order_of_experts = 1, tokens_of_batch = 2 };

void check(const RoutingPlan& plan, const RoutingShape& shape, const Place& at) {
  const Experts& experts = shape.experts;
  const std::int64_t slots = experts.count + plan.redundant_experts;
  if (slots % shape.ranks != 0)
    fail_infeasible(
        at,
        std::to_string(experts.count) + " experts and " + std::to_string(plan.redundant_experts) +
            " redundant ones do not divide among " + std::to_string(shape.ranks) + " ranks",
        "give every rank as many");
  if (plan.popularity.kind == PopularityKind::hot && experts.per_token == experts.count &&
      plan.popularity.parameter < 1.0)
    fail_infeasible(at, "every token visits all experts, so that none can be hotter",
                    "take another routing");
  if (plan.capacity_factor) {
    const double mean =
        static_cast<double>(shape.tokens * experts.per_token) / static_cast<double>(experts.count);
    if (*plan.capacity_factor * mean < 1.0)
      fail_infeasible(at,
                      "a capacity factor of " + std::to_string(*plan.capacity_factor) +
                          " leaves an expert less than one token of a rank",
                      "raise it to at least " + std::to_string(1.0 / mean));
  }
}

}  // namespace

std::int64_t RoutedBatch::total_kept() const {
  return std::accumulate(kept.begin(), kept.end(), std::int64_t{0});
}

std::int64_t RoutedBatch::total_dropped() const {
  return std::accumulate(dropped.begin(), dropped.end(), std::int64_t{0});
}

Router::Router(RoutingPlan plan, const RoutingShape& shape, const Place& at)
    : plan_{std::move(plan)}, shape_{shape} {
  check(plan_, shape_, at);
  const Experts& experts = shape_.experts;
  shares_ = visit_shares(plan_.popularity, experts);
  if (plan_.capacity_factor)
    capacity_ =
        expert_capacity(*plan_.capacity_factor, shape_.tokens, experts.per_token, experts.count);
  const int count = static_cast<int>(experts.count);
  if (plan_.balanced_placement) {
    const int domains = shape_.ranks / shape_.per_domain;
    const int groups = static_cast<int>(experts.groups);
    // Groups stay together if domains can hold whole ones.
    const bool by_group = groups % domains == 0 && plan_.redundant_experts % domains == 0;
    for (int layer = 0; layer < shape_.layers; ++layer) {
      const std::vector<double> loads = plan_.trace ? plan_.trace->totals(layer) : shares_of(layer);
      placements_.push_back(balanced_placement(loads, shape_.ranks, plan_.redundant_experts,
                                               by_group ? groups : 1, by_group ? domains : 1));
    }
  } else {
    placements_.push_back(contiguous_placement(count, shape_.ranks));
  }
  for (const ExpertPlacement& placement : placements_)
    counters_.emplace_back(experts, placement, shape_.per_domain,
                           static_cast<double>(shape_.tokens));
}

// Each expert's share of tokens in this layer; the order of the experts is sampled once a layer.
std::vector<double> Router::shares_of(int layer) const {
  std::vector<double> shares = shares_;
  if (is_even(plan_.popularity.kind)) return shares;
  Random random{plan_.seed, order_of_experts, static_cast<std::uint64_t>(layer)};
  for (std::size_t i = shares.size(); i > 1; --i)  // Fisher and Yates.
    std::swap(shares[i - 1], shares[random.below(i)]);
  return shares;
}

std::vector<std::int64_t> Router::sample(int layer, int micro_batch, int replica) const {
  const std::vector<double> shares = shares_of(layer);
  Random random{plan_.seed, tokens_of_batch, static_cast<std::uint64_t>(layer),
                static_cast<std::uint64_t>(micro_batch),
                plan_.identical_replicas ? 0u : static_cast<std::uint64_t>(replica)};
  const auto tokens = static_cast<double>(shape_.tokens * shape_.ranks);
  std::vector<double> samples(shares.size());
  double surplus = -static_cast<double>(shape_.copies()), variance = 0.0;
  for (std::size_t e = 0; e < shares.size(); ++e) {
    samples[e] = random.binomial(tokens, shares[e]);
    surplus += samples[e];
    variance += tokens * shares[e] * (1.0 - shares[e]);
  }
  // The sum is known. Independent normals, given their sum, move by their share of the variance.
  // Rounding carries what it leaves over to the next expert, so that the sum comes out.
  std::vector<std::int64_t> copies(shares.size());
  double carried = 0.0;
  std::int64_t missing = shape_.copies();
  for (std::size_t e = 0; e < shares.size(); ++e) {
    const double own = tokens * shares[e] * (1.0 - shares[e]);
    const double exact = samples[e] - (variance > 0.0 ? surplus * own / variance : 0.0) + carried;
    const double whole = std::clamp(std::floor(exact + 0.5), 0.0, tokens);
    carried = exact - whole;
    copies[e] = static_cast<std::int64_t>(whole);
    missing -= copies[e];
  }
  // Spreads the remainder of clamping.
  const auto most = shape_.tokens * shape_.ranks;
  for (std::size_t e = 0; missing != 0; e = (e + 1) % copies.size()) {
    const std::int64_t moved =
        missing > 0 ? std::min(missing, most - copies[e]) : -std::min(-missing, copies[e]);
    copies[e] += moved;
    missing -= moved;
  }
  return copies;
}

// Copies dropped of an expert with `copies` from all ranks: each rank's part is binomial, and drops
// its excess over the capacity.
std::int64_t Router::dropped_of(std::int64_t copies) const {
  if (capacity_ == 0) return 0;
  const std::int64_t at_least = std::max<std::int64_t>(0, copies - capacity_ * shape_.ranks);
  if (plan_.even) return at_least;  // All ranks send the same.
  const auto [place, fresh] = known_drops_.try_emplace(copies);
  if (fresh) {
    const double tokens = static_cast<double>(shape_.tokens * shape_.ranks);
    const double excess =
        shape_.ranks *
        binomial_excess(shape_.tokens, static_cast<double>(copies) / tokens, capacity_);
    place->second = std::clamp<std::int64_t>(std::llround(excess), at_least, copies);
  }
  return place->second;
}

// Shares the kept copies among the experts' slots, and pads.
void Router::settle(RoutedBatch& batch, const std::vector<std::int64_t>& kept, int layer) const {
  const ExpertPlacement& placed = placement(layer);
  const std::vector<int> copies = placed.copies(static_cast<int>(shape_.experts.count));
  std::vector<int> filled(copies.size(), 0);
  batch.slots_per_rank = placed.slots_per_rank();
  for (const int expert : placed.expert_of) {
    const auto e = static_cast<std::size_t>(expert);
    const int place = filled[e]++;
    const auto part = [&](std::int64_t all) {
      return all / copies[e] + (place < all % copies[e] ? 1 : 0);
    };
    batch.kept.push_back(part(kept[e]));
    batch.computed.push_back(plan_.pad_to_capacity ? part(capacity_ * shape_.ranks)
                                                   : batch.kept.back());
  }
}

RoutedBatch Router::routed_evenly(const std::vector<std::int64_t>& experts, int layer) const {
  RoutedBatch batch;
  std::vector<std::int64_t> kept = experts;
  for (std::int64_t& copies : kept) {
    batch.dropped.push_back(dropped_of(copies));
    copies -= batch.dropped.back();
  }
  settle(batch, kept, layer);
  const std::vector<double> sent(batch.computed.begin(), batch.computed.end());
  batch.exchange = counters_[static_cast<std::size_t>(layer) % counters_.size()].even(sent);
  return batch;
}

RoutedBatch Router::routed_by_trace(int layer, int micro_batch) const {
  const RoutingTrace& trace = *plan_.trace;
  const ExpertPlacement& placed = placement(layer);
  const auto count = static_cast<std::size_t>(shape_.experts.count);
  const std::vector<int> copies = placed.copies(static_cast<int>(count));
  RoutedBatch batch;
  batch.dropped.assign(count, 0);
  std::vector<std::int64_t> kept(count, 0);
  std::vector<std::vector<double>> sent;
  for (int rank = 0; rank < shape_.ranks; ++rank) {
    const auto row = trace.of(layer, micro_batch % trace.micro_batches, rank);
    std::vector<double> sent_copies(count);
    for (std::size_t e = 0; e < count; ++e) {
      const std::int64_t taken = capacity_ > 0 ? std::min<std::int64_t>(row[e], capacity_) : row[e];
      kept[e] += taken;
      batch.dropped[e] += row[e] - taken;
      sent_copies[e] = static_cast<double>(plan_.pad_to_capacity ? capacity_ : taken) / copies[e];
    }
    std::vector<double>& slots = sent.emplace_back();
    for (const int expert : placed.expert_of)
      slots.push_back(sent_copies[static_cast<std::size_t>(expert)]);
  }
  settle(batch, kept, layer);
  batch.exchange = counters_[static_cast<std::size_t>(layer) % counters_.size()].uneven(sent);
  return batch;
}

RoutedBatch Router::route(int layer, int micro_batch, int replica) const {
  assert(layer >= 0 && layer < shape_.layers && micro_batch >= 0);
  if (plan_.trace) return routed_by_trace(layer, micro_batch);
  if (!plan_.even) return routed_evenly(sample(layer, micro_batch, replica), layer);
  const std::int64_t all = shape_.copies(), experts = shape_.experts.count;
  std::vector<std::int64_t> copies;
  for (std::int64_t e = 0; e < experts; ++e)
    copies.push_back(all / experts + (e < all % experts ? 1 : 0));
  RoutedBatch batch = routed_evenly(copies, layer);
  // Rounding to whole tokens is no imbalance.
  if (!plan_.balanced_placement && !plan_.capacity_factor)
    batch.exchange = uniform_exchange(
        shape_.experts, shape_.ranks, shape_.per_domain, static_cast<double>(shape_.tokens),
        plan_.popularity.kind == PopularityKind::in_turn ? EvenChoice::in_turn : EvenChoice::any);
  return batch;
}

}  // namespace orrery
