#include "sim/posttraining/rl_packing.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

namespace orrery {
namespace {

struct Load {
  double tokens = 0.0, squares = 0.0;

  void add(double length) {
    tokens += length;
    squares += length * length;
  }
  double work(double square) const { return tokens + squares / square; }
};

using Loads = std::vector<Load>;
using RankLoads = std::vector<Loads>;  // By rank.

std::int64_t round_up(std::int64_t value, std::int64_t to) { return (value + to - 1) / to * to; }

std::vector<double> padded_lengths(const Sample* first, std::int64_t count,
                                   const PackingRule& rule) {
  std::vector<double> lengths;
  for (std::int64_t i = 0; i < count; ++i)
    lengths.push_back(static_cast<double>(rule.packing == SamplePacking::padded
                                              ? rule.longest
                                              : round_up(first[i].tokens(), rule.round)));
  return lengths;
}

// A binary tree over bins, in which each node knows the most room that a bin below it has left.
class Rooms {
 public:
  Rooms(std::size_t bins, double each)
      : leaves_{std::bit_ceil(std::max<std::size_t>(1, bins))}, most_(2 * leaves_, each) {}

  /// Takes `length` from the first bin that has it left, and returns its index. Requires that one
  /// has.
  std::size_t take_first(double length) {
    std::size_t node = 1;
    while (node < leaves_) {
      node *= 2;
      if (most_[node] < length) ++node;
    }
    const std::size_t bin = node - leaves_;
    most_[node] -= length;
    for (node /= 2; node >= 1; node /= 2)
      most_[node] = std::max(most_[2 * node], most_[2 * node + 1]);
    return bin;
  }

 private:
  std::size_t leaves_;
  std::vector<double> most_;
};

Loads first_fit_decreasing(std::vector<double> lengths, double most) {
  std::sort(lengths.begin(), lengths.end(), std::greater<>{});
  Rooms rooms{lengths.size(), std::max(most, lengths.front())};
  Loads bins;
  for (const double length : lengths) {
    const std::size_t bin = rooms.take_first(length);
    if (bin == bins.size()) bins.emplace_back();
    bins[bin].add(length);
  }
  return bins;
}

// Each length goes to the set with the least work, the longest first; with `equal`, sets have equal
// numbers of lengths.
std::vector<std::vector<double>> spread(std::vector<double> lengths, std::size_t sets,
                                        double square, bool equal) {
  std::sort(lengths.begin(), lengths.end(), std::greater<>{});
  const std::size_t most = equal ? (lengths.size() + sets - 1) / sets : lengths.size();
  std::vector<std::vector<double>> parts(sets);
  Loads loads(sets);
  using WorkOfSet = std::pair<double, std::size_t>;
  std::priority_queue<WorkOfSet, std::vector<WorkOfSet>, std::greater<>> least;
  for (std::size_t i = 0; i < sets; ++i) least.emplace(0.0, i);
  for (const double length : lengths) {
    const std::size_t best = least.top().second;
    least.pop();
    parts[best].push_back(length);
    loads[best].add(length);
    if (parts[best].size() < most) least.emplace(loads[best].work(square), best);
  }
  return parts;
}

// Bins of all ranks, dealt out; ranks with one fewer compute an empty one.
RankLoads deal_bins(const std::vector<double>& lengths, const PackingRule& rule) {
  const Loads bins = first_fit_decreasing(lengths, static_cast<double>(rule.tokens));
  RankLoads ranks(static_cast<std::size_t>(rule.ranks));
  for (std::size_t i = 0; i < bins.size(); ++i) ranks[i % ranks.size()].push_back(bins[i]);
  if (!rule.equal_bins) return ranks;
  for (Loads& own : ranks) {
    double longest = 0.0;
    for (const Load& bin : own) longest = std::max(longest, bin.tokens);
    for (Load& bin : own) bin.tokens = longest;
  }
  return ranks;
}

RankLoads balanced(const std::vector<double>& lengths, const PackingRule& rule) {
  const auto of_ranks =
      spread(lengths, static_cast<std::size_t>(rule.ranks), rule.square, /*equal=*/true);
  std::size_t count = 1;  // All ranks have as many.
  for (const auto& own : of_ranks) {
    const double tokens = std::accumulate(own.begin(), own.end(), 0.0);
    count = std::max(
        count, static_cast<std::size_t>(std::ceil(tokens / static_cast<double>(rule.tokens))));
  }
  RankLoads ranks;
  for (const auto& own : of_ranks) {
    Loads loads;
    for (const auto& part : spread(own, count, rule.square, /*equal=*/false)) {
      Load load;
      for (const double length : part) load.add(length);
      loads.push_back(load);
    }
    ranks.push_back(std::move(loads));
  }
  return ranks;
}

RankLoads in_order(const std::vector<double>& lengths, const PackingRule& rule) {
  RankLoads ranks(static_cast<std::size_t>(rule.ranks));
  const auto each = (lengths.size() + ranks.size() - 1) / ranks.size();
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    Loads& own = ranks[i / each];
    if ((i % each) % static_cast<std::size_t>(rule.samples) == 0) own.emplace_back();
    own.back().add(lengths[i]);
  }
  return ranks;
}

RankLoads loads_of(const std::vector<double>& lengths, const PackingRule& rule) {
  switch (rule.packing) {
    case SamplePacking::bins:
      return deal_bins(lengths, rule);
    case SamplePacking::balanced:
      return balanced(lengths, rule);
    case SamplePacking::fixed:
    case SamplePacking::padded:
      break;
  }
  return in_order(lengths, rule);
}

// What all ranks wait for, over the micro-batches of a step.
Load decisive(const RankLoads& ranks, std::size_t count, const PackingRule& rule) {
  const auto heavier = [&](const Load& a, const Load& b) {
    return a.work(rule.square) < b.work(rule.square);
  };
  Load sum;
  if (!rule.meets_each) {
    Loads totals;
    for (const Loads& rank : ranks) {
      Load total;
      for (const Load& one : rank) total.tokens += one.tokens, total.squares += one.squares;
      totals.push_back(total);
    }
    return *std::max_element(totals.begin(), totals.end(), heavier);
  }
  for (std::size_t i = 0; i < count; ++i) {
    Load most;
    for (const Loads& rank : ranks)
      if (i < rank.size()) most = std::max(most, rank[i], heavier);
    sum.tokens += most.tokens;
    sum.squares += most.squares;
  }
  return sum;
}

}  // namespace

MicroBatches pack_samples(const std::vector<Sample>& samples, std::int64_t batch,
                          const PackingRule& rule) {
  const auto all = static_cast<std::int64_t>(samples.size());
  assert(batch >= 1 && all % batch == 0 && rule.ranks >= 1);
  double micro_batches = 0.0;
  Load waited, useful;
  for (std::int64_t first = 0; first < all; first += batch) {
    const RankLoads ranks = loads_of(padded_lengths(samples.data() + first, batch, rule), rule);
    std::size_t count = 0;
    for (const Loads& rank : ranks) count = std::max(count, rank.size());
    const Load load = decisive(ranks, count, rule);
    waited.tokens += load.tokens;
    waited.squares += load.squares;
    micro_batches += static_cast<double>(count);
  }
  for (const Sample& sample : samples) useful.add(static_cast<double>(sample.tokens()));
  const double steps = static_cast<double>(all / batch);
  MicroBatches result;
  result.count = std::max<std::int64_t>(1, std::llround(micro_batches / steps));
  result.tokens = waited.tokens / steps / static_cast<double>(result.count);
  result.attended = waited.squares / waited.tokens;
  result.useful = useful.work(rule.square) / (waited.work(rule.square) * rule.ranks);
  return result;
}

}  // namespace orrery
