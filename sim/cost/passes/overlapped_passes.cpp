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
  PassCost both = forward;
  both.append(backward);
  both.add_lost(lost, {});
  both.segments = std::move(columns);
  return both;
}

}  // namespace orrery
