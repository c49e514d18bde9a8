#include "sim/cost/passes/overlapped_passes.hpp"

#include <algorithm>

#include "sim/cost/passes/lost_beside.hpp"

namespace orrery {
namespace {

using Stretches = std::vector<Segment>;

// A pass cut where tokens travel: kernels[0], exchanges[0], kernels[1], ...
struct Strand {
  bool backward = false;
  std::vector<Stretches> kernels{1};
  std::vector<GroupCollective> exchanges;

  Stretches stretch(std::size_t i) const { return i < kernels.size() ? kernels[i] : Stretches{}; }
};

Strand cut(const PassCost& pass, bool backward) {
  Strand strand;
  strand.backward = backward;
  for (Segment segment : pass.segments) {
    segment.backward = backward;
    const bool leaves = segment.after && segment.after->group == GroupKind::expert;
    if (leaves) strand.exchanges.push_back(*segment.after), segment.after.reset();
    if (segment.compute > Seconds{} || segment.beside || segment.after)
      strand.kernels.back().push_back(std::move(segment));
    if (leaves) strand.kernels.emplace_back();
  }
  return strand;
}

// `share` of a stretch's kernels.
Segment part_of(const Segment& whole, double share) {
  Segment part = whole;
  part.compute = share * whole.compute;
  part.streaming = share * whole.streaming;
  part.idle = share * whole.idle;
  for (Seconds& member : part.members) member = share * member;
  return part;
}

// Takes the weight gradients out; those that hide a collective of tensor ranks stay.
Stretches take_weight_gradients(Stretches& kernels) {
  Stretches taken;
  for (Segment& segment : kernels) {
    if (segment.beside || segment.weight_gradients <= Seconds{}) continue;
    const double share = segment.weight_gradients / segment.compute;
    taken.push_back(part_of(segment, share));
    taken.back().after.reset();
    segment = part_of(segment, 1.0 - share);
    segment.weight_gradients = Seconds{};
  }
  return taken;
}

// The first of `waiting`, up to a length.
Stretches take(Stretches& waiting, Seconds length) {
  Stretches taken;
  while (!waiting.empty() && length > Seconds{}) {
    Segment& next = waiting.front();
    const double share = std::min(1.0, length / next.compute);
    length -= share * next.compute;
    taken.push_back(part_of(next, share));
    if (share >= 1.0)
      waiting.erase(waiting.begin());
    else
      next = part_of(next, 1.0 - share);
  }
  return taken;
}

void append(Stretches& all, const Stretches& more) {
  all.insert(all.end(), more.begin(), more.end());
}

// Kernels of one pass beside an exchange of the other, the i-th if it has so many.
// Returns what the kernels lose to it.
Seconds add_column(Stretches& columns, const Stretches& kernels, const Strand& other,
                   std::size_t i) {
  if (i >= other.exchanges.size()) {
    append(columns, kernels);
    return {};
  }
  Segment column;
  if (kernels.empty()) {
    column.backward = other.backward;
    column.after = other.exchanges[i];
  } else {
    column = beside(kernels, other.exchanges[i]);
    column.backward = !other.backward;
  }
  columns.push_back(std::move(column));
  return lost_beside(kernels_of(kernels), other.exchanges[i]);
}

// Calls visit(part) for each stretch of kernels of a column.
template <class Part, class Visit>
void for_each_part(Part& column, const Visit& visit) {
  if (column.chain.empty()) return visit(column);
  for (auto& part : column.chain) visit(part);
}

std::size_t ranks_with_own_rows(const Stretches& columns) {
  std::size_t ranks = 0;
  for (const Segment& column : columns)
    for_each_part(column,
                  [&](const Segment& part) { ranks = std::max(ranks, part.members.size()); });
  return ranks;
}

// What ranks have alike and what differs: kernels of a column.
struct ColumnTimes {
  Seconds alike;
  Seconds slowest;               ///< Of those that differ, the slowest rank's of each.
  std::vector<Seconds> of_rank;  ///< All, by its place in the group.
};

ColumnTimes times_of(const Segment& column, std::size_t ranks) {
  ColumnTimes times{{}, {}, std::vector<Seconds>(ranks)};
  for_each_part(column, [&](const Segment& part) {
    if (part.members.empty()) {
      times.alike += &part == &column ? part.compute : part.time();
      return;
    }
    times.slowest += part.compute;
    if (&part != &column && part.after) times.alike += part.after->time();
    for (std::size_t r = 0; r < ranks; ++r) times.of_rank[r] += part.members[r];
  });
  for (Seconds& rank : times.of_rank) rank += times.alike;
  return times;
}

void keep_share(Segment& part, double share) {
  part.compute = share * part.compute;
  part.streaming = share * part.streaming;
  part.idle = share * part.idle;
  part.weight_gradients = share * part.weight_gradients;
}

// Leaves of the kernels of the rank that stands for its group what the group takes. The ranks of a
// group wait for each other where an exchange begins, and nowhere else: one with many rows of the
// one pass is late at the next column, where it may have few rows of the other, while a column's
// exchange begins when the last of them comes to it. With e(r) when rank r is through with the
// columns before, k(r) its kernels in this one and X its exchange,
//
//     e'(r) = max(e(r) + k(r), max e + X)
//
// so that a rank which is at max e each time has kernels for max(e + k) - max e, at most max k.
// Returns by how much less that is.
Seconds take_turns(Stretches& columns) {
  Seconds spared;
  const std::size_t ranks = ranks_with_own_rows(columns);
  if (ranks == 0) return spared;
  std::vector<Seconds> end(ranks);
  for (Segment& column : columns) {
    const Seconds begin = *std::max_element(end.begin(), end.end());
    const ColumnTimes times = times_of(column, ranks);
    for (std::size_t r = 0; r < ranks; ++r) end[r] += times.of_rank[r];
    Seconds last = *std::max_element(end.begin(), end.end());
    if (times.slowest > Seconds{}) {
      const double share = std::min(1.0, (last - begin - times.alike) / times.slowest);
      spared += (1.0 - share) * times.slowest;
      for_each_part(column, [&](Segment& part) {
        if (!part.members.empty()) keep_share(part, share);
      });
    }
    if (column.beside)
      for (Seconds& rank : end) rank = std::max(rank, begin + column.beside->time());
    if (!column.after) continue;
    last = *std::max_element(end.begin(), end.end()) + column.after->time();
    std::fill(end.begin(), end.end(), last);
  }
  return spared;
}

// Counts so much less of a pass's kernels, of each kind its share.
void spare(PassCost& pass, Seconds time) {
  if (time <= Seconds{}) return;
  const double kept = 1.0 - time / pass.compute;
  for (TimeByWork* work : {&pass.work, &pass.recomputed}) {
    TimeByWork less;
    less.add(*work, kept);
    *work = less;
  }
  pass.compute -= time;
  Seconds tagged;
  for (const Seconds of : pass.by_tag) tagged += of;
  for (Seconds& of : pass.by_tag) of -= (of / tagged) * time;
}

}  // namespace

PassCost overlapped(const PassCost& forward, const PassCost& backward, bool delay_wgrad) {
  const Strand f = cut(forward, false);
  const Strand b = cut(backward, true);
  Stretches columns;
  Stretches waiting;  // Weight gradients.
  Seconds lost;
  const std::size_t count = std::max(f.kernels.size(), b.kernels.size());
  for (std::size_t i = 0; i < count; ++i) {
    Stretches kernels = b.stretch(i);
    if (delay_wgrad) {
      Stretches more = take_weight_gradients(kernels);
      append(waiting, more);
      if (i > 0 && i <= f.exchanges.size())
        append(kernels, take(waiting, f.exchanges[i - 1].time() - time_of(kernels)));
    }
    if (i == 0)
      append(columns, kernels);
    else
      lost += add_column(columns, kernels, f, i - 1);
    Stretches next = std::move(waiting);
    waiting.clear();
    append(next, f.stretch(i));
    lost += add_column(columns, next, b, i);
  }
  const Seconds spared = take_turns(columns);
  PassCost both = forward;
  both.append(backward);
  both.add_lost(lost, {});
  spare(both, spared);
  both.segments = std::move(columns);
  return both;
}

}  // namespace orrery
