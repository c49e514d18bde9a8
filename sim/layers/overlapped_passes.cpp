#include "sim/layers/overlapped_passes.hpp"

#include <algorithm>

#include "sim/core/units.hpp"
#include "sim/layers/contention.hpp"

namespace orrery {
namespace {

std::size_t at(GroupKind kind) { return static_cast<std::size_t>(kind); }

}  // namespace

ExpertSync::ExpertSync(const Placement& placement) {
  const std::vector<Rank> group = placement.group(GroupKind::expert, Rank{0});
  for (const GroupKind kind : {GroupKind::tensor, GroupKind::context, GroupKind::expert_tensor}) {
    std::vector<int>& first = first_[at(kind)];
    first.resize(group.size());
    for (std::size_t place = 0; place < group.size(); ++place) {
      first[place] = static_cast<int>(place);
      for (const Rank member : placement.group(kind, group[place]))
        first[place] = std::min(first[place], placement.expert_place(member));
      first[place] = first[at(first[place])];
    }
  }
}

std::vector<Seconds> ExpertSync::begin(GroupKind kind, const std::vector<Seconds>& ready) const {
  const std::vector<int>& first = first_[at(kind)];
  const auto first_of = [&](std::size_t place) -> std::size_t {
    return place < first.size() ? at(first[place]) : 0;
  };
  std::vector<Seconds> last(ready.size());
  for (std::size_t place = 0; place < ready.size(); ++place) {
    Seconds& of_group = last[first_of(place)];
    of_group = std::max(of_group, ready[place]);
  }
  for (std::size_t place = ready.size(); place-- > 0;) last[place] = last[first_of(place)];
  return last;
}

namespace {

using Stretches = std::vector<Segment>;

// A pass cut at its exchanges of tokens: kernels[0], exchanges[0], kernels[1], ...
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
    if (segment.compute > Seconds{} || segment.concurrent || segment.after)
      strand.kernels.back().push_back(std::move(segment));
    if (leaves) strand.kernels.emplace_back();
  }
  return strand;
}

// A segment with `share` of the kernels.
Segment part_of(const Segment& whole, double share) {
  Segment part = whole;
  part.compute = share * whole.compute;
  part.streaming = share * whole.streaming;
  part.idle = share * whole.idle;
  for (Seconds& member : part.members) member = share * member;
  return part;
}

// Removes the weight gradients, except those that hide a collective of tensor ranks.
Stretches take_weight_gradients(Stretches& kernels) {
  Stretches taken;
  for (Segment& segment : kernels) {
    if (segment.concurrent || segment.weight_gradients <= Seconds{}) continue;
    const double share = segment.weight_gradients / segment.compute;
    taken.push_back(part_of(segment, share));
    taken.back().after.reset();
    segment = part_of(segment, 1.0 - share);
    segment.weight_gradients = Seconds{};
  }
  return taken;
}

// Removes the first of `waiting`, up to a length.
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

// Runs kernels of one pass concurrently with the i-th exchange of the other, if there is one.
// Returns the kernels' loss to it.
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
    column = concurrent(kernels, other.exchanges[i]);
    column.backward = !other.backward;
  }
  columns.push_back(std::move(column));
  return overlap_loss(kernels_of(kernels), other.exchanges[i]);
}

// Calls visit(part) for each stretch of kernels of a column.
template <class Part, class Visit>
void for_each_part(Part& column, const Visit& visit) {
  if (column.fused.empty()) return visit(column);
  for (auto& part : column.fused) visit(part);
}

std::size_t ranks_with_own_rows(const Stretches& columns) {
  std::size_t ranks = 0;
  for (const Segment& column : columns)
    for_each_part(column,
                  [&](const Segment& part) { ranks = std::max(ranks, part.members.size()); });
  return ranks;
}

// Times of the kernels of a column.
struct ColumnTimes {
  Seconds alike;
  Seconds slowest;  ///< The slowest rank's kernels, of those that differ by rank.
};

ColumnTimes times_of(const Segment& column) {
  ColumnTimes times;
  for_each_part(column, [&](const Segment& part) {
    if (part.members.empty()) {
      times.alike += &part == &column ? part.compute : part.time();
      return;
    }
    times.slowest += part.compute;
    if (&part != &column && part.after) times.alike += part.after->time();
  });
  return times;
}

// The time at which each rank of an expert group, by its place, has finished its work so far.
class RankEnds {
 public:
  RankEnds(std::size_t ranks, const ExpertSync& sync) : ends_(ranks), sync_{sync} {}

  Seconds last() const { return *std::max_element(ends_.begin(), ends_.end()); }

  // Runs the kernels of a column, including the collectives of fused segments.
  void pass_kernels(const Segment& column) {
    if (column.fused.empty()) return pass(column);
    for (const Segment& part : column.fused) {
      const std::vector<Seconds> begun =
          part.concurrent ? begin(*part.concurrent) : std::vector<Seconds>{};
      pass(part);
      if (part.concurrent) overlapped_pass(begun, part.concurrent->time());
      if (part.after) pass_after(*part.after);
    }
  }
  std::vector<Seconds> begin(const GroupCollective& collective) const {
    return sync_.begin(collective.group, ends_);
  }
  void overlapped_pass(const std::vector<Seconds>& begun, Seconds time) {
    for (std::size_t r = 0; r < ends_.size(); ++r) ends_[r] = std::max(ends_[r], begun[r] + time);
  }
  void pass_after(const GroupCollective& collective) {
    ends_ = begin(collective);
    for (Seconds& end : ends_) end += collective.time();
  }

 private:
  void pass(const Segment& kernels) {
    for (std::size_t r = 0; r < ends_.size(); ++r)
      ends_[r] += kernels.members.empty() ? kernels.compute : kernels.members[r];
  }

  std::vector<Seconds> ends_;
  const ExpertSync& sync_;
};

void keep_share(Segment& part, double share) {
  part.compute = share * part.compute;
  part.streaming = share * part.streaming;
  part.idle = share * part.idle;
  part.weight_gradients = share * part.weight_gradients;
}

// Shortens the kernels of a group's representative to the time that the group takes. Its ranks wait
// for each other only at the start of a collective: one with many rows of one pass is late at the
// next column, where it may have few rows of the other. Let e(r) be the time at which rank r has
// finished the columns before, k(r) its kernels in this one, X its exchange and G(r) the ranks that
// take part:
//
//     e'(r) = max(e(r) + k(r), max over G(r) of e + X)
//
// A representative that is at max e each time has kernels for max(e + k) - max e, at most max k.
// Returns the reduction.
Seconds take_turns(Stretches& columns, const ExpertSync& sync) {
  Seconds spared;
  const std::size_t ranks = ranks_with_own_rows(columns);
  if (ranks == 0) return spared;
  RankEnds ends{ranks, sync};
  for (Segment& column : columns) {
    const Seconds first = ends.last();
    const std::vector<Seconds> begun =
        column.concurrent ? ends.begin(*column.concurrent) : std::vector<Seconds>{};
    ends.pass_kernels(column);
    const ColumnTimes times = times_of(column);
    if (times.slowest > Seconds{}) {
      const double share = std::min(1.0, (ends.last() - first - times.alike) / times.slowest);
      spared += (1.0 - share) * times.slowest;
      for_each_part(column, [&](Segment& part) {
        if (!part.members.empty()) keep_share(part, share);
      });
    }
    if (column.concurrent) ends.overlapped_pass(begun, column.concurrent->time());
    if (column.after) ends.pass_after(*column.after);
  }
  return spared;
}

// Shortens a pass's kernels by `time`, in proportion to their kinds.
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

PassCost overlapped(const PassCost& forward, const PassCost& backward, bool delay_wgrad,
                    const ExpertSync& sync) {
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
  const Seconds spared = take_turns(columns, sync);
  PassCost both = forward;
  both.append(backward);
  both.add_lost(lost, {});
  spare(both, spared);
  both.segments = std::move(columns);
  return both;
}

}  // namespace orrery
