#include "sim/training/trace_slices.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <map>
#include <tuple>

#include "sim/collectives/collective_flows.hpp"
#include "sim/core/units.hpp"

namespace orrery {
namespace {

void drop_loose_arrows(std::vector<Slice>& slices) {
  std::map<int, int> ends;
  for (const Slice& slice : slices) {
    if (slice.sends >= 0) ++ends[slice.sends];
    for (const int arrow : slice.receives) ++ends[arrow];
  }
  const auto loose = [&](int arrow) { return ends[arrow] != 2; };
  for (Slice& slice : slices) {
    if (slice.sends >= 0 && loose(slice.sends)) slice.sends = -1;
    std::erase_if(slice.receives, loose);
  }
}

}  // namespace

void arrange(std::vector<Slice>& slices, const std::vector<int>& reps) {
  drop_loose_arrows(slices);
  std::map<int, int> order;
  for (std::size_t i = 0; i < reps.size(); ++i) order[reps[i]] = static_cast<int>(i);
  const auto place = [&](const Slice& slice) {
    return std::tuple{order.at(slice.rep), slice.track, slice.of_rank, slice.start_ns,
                      -slice.finish_ns};
  };
  std::stable_sort(slices.begin(), slices.end(),
                   [&](const Slice& a, const Slice& b) { return place(a) < place(b); });
}

namespace {

bool is_pass(Label::What what) {
  return what == Label::What::forward || what == Label::What::backward ||
         what == Label::What::weight_gradient;
}

}  // namespace

TaskRelations::TaskRelations(const TrainingStep& step)
    : step_{step}, fed_by_(at(step.graph.size())) {
  members_.fill(std::vector<std::vector<int>>(step.classes.reps().size()));
  const Placement& placement = step.classes.placement();
  for (std::size_t i = 0; i < step.classes.reps().size(); ++i) {
    const Coordinates where = step.classes.reps()[i].at;
    const int rep = static_cast<int>(i);
    for (GroupKind kind : all_group_kinds) {
      const int leader = reps_in(step.classes, placement.group(kind, where)).front();
      members_[static_cast<std::size_t>(kind)][at(leader)].push_back(rep);
    }
  }
  for (int i = 0; i < step.graph.size(); ++i) {
    const Label& label = step.label(TaskId{i});
    if (label.what == Label::What::transfer)
      step.graph.for_each_successor(TaskId{i}, [&](TaskId after) {
        if (step.graph.task(after).owner != label.to_rep || !is_pass(step.label(after).what))
          return;
        fed_by_[at(after.value)].push_back(i);
      });
  }
}

std::vector<int> TaskRelations::data_members(int task) const {
  const int owner = step_.graph.task(TaskId{task}).owner;
  const Label& reduction = step_.label(TaskId{task});
  if (reduction.to_rep >= 0) return {owner, reduction.to_rep};
  return members(reduction.group, owner);
}

namespace {

constexpr int expanded_microbatches = 2;

std::int64_t nanoseconds(Seconds time) { return std::llround(time.si() * 1e9); }

// Bytes of the largest flow of a collective or a transfer.
double most_bytes(const Task& task) {
  double most = 0.0;
  for (const Flow& flow : task.flows) most = std::max(most, flow.bytes.si());
  return most;
}

class SliceBuilder {
 public:
  SliceBuilder(const TrainingStep& step, const Timeline& timeline, const Scenario& scenario,
               const SliceChoice& choice)
      : step_{step},
        timeline_{timeline},
        plan_{scenario.plan},
        choice_{choice},
        staged_norms_{scenario.software.optimizer_post_validation},
        relations_{step},
        shown_(step.classes.reps().size(), false) {}

  Slices draw() {
    for (int chosen : choice_.reps) shown_[at(chosen)] = true;
    for (int i = 0; i < step_.graph.size(); ++i) draw_task(i);
    for (const auto& [key, pass] : split_passes_) draw_whole_pass(key, pass);
    arrange(result_.slices, choice_.reps);
    return std::move(result_);
  }

 private:
  using PassKey = std::tuple<int, Label::What, int, int>;  // rep, direction, chunk, micro-batch
  struct WholePass {
    Span span;
    Label both;  // Label with both micro-batches.
    std::vector<int> receives = {};
  };

  const Task& task(int id) const { return step_.graph.task(TaskId{id}); }
  int owner(int id) const { return task(id).owner; }
  const Label& label(int id) const { return step_.label(TaskId{id}); }
  const Span& span(int id) const { return timeline_.of(TaskId{id}); }
  const RankClass& rep(int index) const { return step_.classes.reps()[at(index)]; }
  bool is_shown(int rep_index) const { return shown_[at(rep_index)]; }

  std::vector<int> shown_members(const std::vector<int>& reps) const {
    std::vector<int> members;
    for (int index : reps)
      if (is_shown(index)) members.push_back(index);
    return members;
  }

  void add(Slice slice, const Span& when) {
    add(std::move(slice), when.start.seconds(), when.finish.seconds());
  }
  void add(Slice slice, Seconds start, Seconds finish) {
    slice.start_ns = nanoseconds(start);
    slice.finish_ns = nanoseconds(finish);
    if (slice.finish_ns <= slice.start_ns) return;
    if (++result_.count <= choice_.most) result_.slices.push_back(std::move(slice));
  }

  std::string pass_name(Label::What direction, int chunk, int microbatch) const {
    std::string text = (direction == Label::What::forward    ? "F "
                        : direction == Label::What::backward ? "B "
                                                             : "W ") +
                       std::to_string(microbatch);
    return plan_.chunks() > 1 ? text + " chunk " + std::to_string(chunk) : text;
  }

  Slice slice_of_pass(int rep_index, Label::What direction, int chunk, int microbatch) const {
    Slice slice;
    slice.rep = rep_index;
    slice.name = pass_name(direction, chunk, microbatch);
    slice.category = direction == Label::What::forward    ? "forward"
                     : direction == Label::What::backward ? "backward"
                                                          : "weight_gradient";
    slice.facts = {{"microbatch", microbatch}};
    if (plan_.chunks() > 1) slice.facts.emplace_back("chunk", chunk);
    return slice;
  }

  static Label::What direction(const Label& of) {
    if (of.what == Label::What::weight_gradient) return of.what;
    return of.backward ? Label::What::backward : Label::What::forward;
  }

  // The slice of two passes that run together is the forward one's, with both names.
  Slice slice_of_both(int rep_index, const Label& part) const {
    if (part.with_microbatch < 0)
      return slice_of_pass(rep_index, direction(part), part.chunk, part.microbatch);
    const auto [down_chunk, down] = forward_of(part);
    const bool swapped = part.backward;
    Slice slice = slice_of_pass(rep_index, Label::What::forward, down_chunk, down);
    slice.name += " + " + pass_name(Label::What::backward, swapped ? part.chunk : part.with_chunk,
                                    swapped ? part.microbatch : part.with_microbatch);
    return slice;
  }
  static std::pair<int, int> forward_of(const Label& part) {
    if (part.backward && part.with_microbatch >= 0) return {part.with_chunk, part.with_microbatch};
    return {part.chunk, part.microbatch};
  }

  void draw_task(int id) {
    const Label& now = label(id);
    switch (now.what) {
      case Label::What::forward:
      case Label::What::backward:
      case Label::What::weight_gradient:
        if (is_shown(owner(id))) draw_pass(id);
        break;
      case Label::What::collective:
        for (int member : shown_members(relations_.members(now.group, owner(id))))
          draw_collective_task(id, member, now.group);
        break;
      case Label::What::transfer:
        if (is_shown(owner(id))) draw_transfer(id);
        break;
      case Label::What::optimizer:
        if (is_shown(owner(id)))
          add({owner(id), Track::compute, 0, 0, "optimizer", "optimizer", {}}, span(id));
        break;
      case Label::What::gradients:
        for (int member : shown_members(relations_.data_members(id)))
          draw_data(id, member, "gradients");
        break;
      case Label::What::weights:
        for (int member : shown_members(relations_.data_members(id)))
          draw_data(id, member, "weights");
        break;
      case Label::What::norm:
        for (int member : choice_.reps)
          if (!staged_norms_ || rep(member).at.stage == now.chunk)
            draw_data(id, member, "gradient norm");
        break;
    }
  }

  void draw_pass(int id) {
    const Label& now = label(id);
    if (!now.cost) {
      note_part(owner(id), id);
      if (now.kind != Label::Kind::compute) return;
      Slice slice = slice_of_pass(owner(id), now.what, now.chunk, now.microbatch);
      slice.name = kernels_name(now, now.backward, now.segment);
      slice.category = "kernels";
      add(std::move(slice), span(id));
      if (now.segment) draw_members(id, *now.segment, span(id).start.seconds());
      return;
    }
    Slice slice = slice_of_both(owner(id), now);
    // Buckets of one pass are consecutive tasks.
    part_ = id > 0 && continues(id - 1, id) ? part_ + 1 : 0;
    if (part_ > 0 || (id + 1 < step_.graph.size() && continues(id, id + 1)))
      slice.facts.emplace_back("part", part_);
    slice.facts.emplace_back("compute_us", now.cost->compute.si() * 1e6);
    slice.facts.emplace_back("exposed_communication_us",
                             (now.cost->time() - now.cost->compute).si() * 1e6);
    slice.receives = relations_.fed_by(id);
    add(std::move(slice), span(id));
    if (choice_.inside_passes && is_expanded(now) && now.cost->has_collectives()) draw_inside(id);
  }

  bool continues(int before, int after) const {
    const auto key = [&](int id) {
      return PassKey{owner(id), label(id).what, label(id).chunk, label(id).microbatch};
    };
    return key(before) == key(after);
  }

  static bool is_expanded(const Label& pass) {
    return pass.microbatch < expanded_microbatches ||
           (pass.with_microbatch >= 0 && pass.with_microbatch < expanded_microbatches);
  }

  // Name of one of two passes that run together.
  std::string name_of_one(const Label& pass, bool backward) const {
    const bool own = backward == pass.backward;
    return pass_name(backward ? Label::What::backward : Label::What::forward,
                     own ? pass.chunk : pass.with_chunk,
                     own ? pass.microbatch : pass.with_microbatch);
  }

  // "layer 12: norm .. qkv"; for two passes that run together "B 3 layer 12: norm .. qkv".
  std::string kernels_name(const Label& pass, bool backward, const Segment* segment) const {
    std::string text = pass.with_microbatch < 0 ? "" : name_of_one(pass, backward) + " ";
    if (!segment || segment->first_kernel.empty()) return text + "kernels";
    if (segment->layer >= 0) text += "layer " + std::to_string(segment->layer) + ": ";
    text += segment->first_kernel;
    if (!segment->last_kernel.empty() && segment->last_kernel != segment->first_kernel)
      text += " .. " + std::string{segment->last_kernel};
    return text;
  }

  void draw_inside(int id) {
    draw_segments(id, label(id).cost->segments, span(id).start.seconds());
  }

  void draw_segments(int id, const std::vector<Segment>& segments, Seconds clock) {
    const Label& pass = label(id);
    const bool two = pass.with_microbatch >= 0;
    const auto draw_collective = [&](const GroupCollective& of_group, bool backward,
                                     Seconds start) {
      const CollectiveCost& cost = of_group.cost;
      Slice slice = slice_of_pass(owner(id), pass.what, pass.chunk, pass.microbatch);
      if (two) slice.name = name_of_one(pass, backward);
      put_on_track(slice, of_group.group);
      slice.name += " " + collective_name(of_group.group, of_group.combine);
      slice.facts.emplace_back("bytes", std::max(cost.scale_up_bytes, cost.network_bytes).si());
      add(std::move(slice), start, start + cost.time());
    };
    for (const Segment& segment : segments) {
      if (segment.fused.empty()) {
        Slice kernels = slice_of_pass(owner(id), pass.what, pass.chunk, pass.microbatch);
        kernels.name = kernels_name(pass, two ? segment.backward : pass.backward, &segment);
        kernels.category = "kernels";
        add(std::move(kernels), clock, clock + segment.compute);
        draw_members(id, segment, clock);
      } else {
        draw_segments(id, segment.fused, clock);
      }
      if (segment.concurrent) {
        const bool other = two && segment.concurrent->group == GroupKind::expert;
        draw_collective(*segment.concurrent, segment.backward != other, clock);
      }
      clock += segment.time();
      if (segment.after)
        draw_collective(*segment.after, segment.backward, clock - segment.after->time());
    }
  }

  // A representative has its expert group's slowest kernels; this shows each member's.
  void draw_members(int id, const Segment& segment, Seconds start) {
    const Label& pass = label(id);
    if (segment.members.empty() || !is_expanded(pass)) return;
    const Placement& placement = step_.classes.placement();
    if (static_cast<int>(step_.classes.reps().size()) == placement.ranks()) return;
    for (Rank member : placement.group(GroupKind::expert, rep(owner(id)).rank)) {
      Slice slice = slice_of_pass(owner(id), pass.what, pass.chunk, pass.microbatch);
      slice.track = Track::experts;
      slice.of_rank = member.value;
      slice.name += " experts";
      slice.category = "kernels";
      const Seconds own = segment.members[at(placement.expert_place(member))];
      slice.facts.emplace_back("waits_us", (segment.compute - own).si() * 1e6);
      add(std::move(slice), start, start + own / rep(owner(id)).speed);
    }
  }

  static std::string collective_name(GroupKind group, bool combine) {
    if (group != GroupKind::expert) return "collective";
    return combine ? "combine" : "dispatch";
  }

  static void put_on_track(Slice& slice, GroupKind group) {
    slice.track = group == GroupKind::tensor    ? Track::tensor
                  : group == GroupKind::context ? Track::context
                                                : Track::expert;
    slice.category = group == GroupKind::tensor    ? "tensor"
                     : group == GroupKind::context ? "context"
                                                   : "expert";
  }

  void draw_collective_task(int id, int member, GroupKind group) {
    const Label& now = label(id);
    note_part(member, id);
    Slice slice = slice_of_pass(member, direction(now), now.chunk, now.microbatch);
    put_on_track(slice, group);
    slice.name += " " + collective_name(group, now.combine);
    slice.facts.emplace_back("bytes", most_bytes(task(id)));
    add(std::move(slice), span(id));
  }

  void note_part(int rep_index, int id) {
    const Label& part = label(id);
    const bool two = part.with_microbatch >= 0;
    const auto [chunk, microbatch] = forward_of(part);
    const PassKey key{rep_index, two ? Label::What::forward : direction(part), chunk, microbatch};
    const auto [found, is_new] = split_passes_.try_emplace(key, WholePass{span(id), part});
    WholePass& pass = found->second;
    pass.span.start = std::min(pass.span.start, span(id).start);
    pass.span.finish = std::max(pass.span.finish, span(id).finish);
    const std::vector<int>& feeds = relations_.fed_by(id);
    pass.receives.insert(pass.receives.end(), feeds.begin(), feeds.end());
  }

  void draw_whole_pass(const PassKey& key, const WholePass& pass) {
    Slice slice = slice_of_both(std::get<0>(key), pass.both);
    slice.receives = pass.receives;
    add(std::move(slice), pass.span);
  }

  void draw_transfer(int id) {
    const Label& now = label(id);
    Slice slice = slice_of_pass(owner(id), direction(now), now.chunk, now.microbatch);
    slice.track = !now.backward ? Track::send_forward : Track::send_backward;
    slice.category = "transfer";
    slice.facts.emplace_back("to_rank", rep(now.to_rep).rank.value);
    slice.facts.emplace_back("bytes", most_bytes(task(id)));
    slice.sends = id;
    add(std::move(slice), span(id));
  }

  void draw_data(int id, int member, const char* what) {
    const Label& now = label(id);
    const bool experts = now.group == GroupKind::expert_data;
    Slice slice{member, experts ? Track::expert_data : Track::data, 0, 0, what, "data", {}};
    if (now.what != Label::What::norm) {
      if (plan_.chunks() > 1) slice.facts.emplace_back("chunk", now.chunk);
      slice.facts.emplace_back("bytes", most_bytes(task(id)));
    }
    add(std::move(slice), span(id));
  }

  const TrainingStep& step_;
  const Timeline& timeline_;
  const Plan& plan_;
  const SliceChoice& choice_;
  const bool staged_norms_;  // One norm for each stage, which is its `chunk`.

  const TaskRelations relations_;
  std::vector<bool> shown_;  // Indexed by representative.
  std::map<PassKey, WholePass> split_passes_;
  int part_ = 0;
  Slices result_;
};

}  // namespace

void sort_by_place(std::vector<int>& reps, const RankClasses& classes) {
  const auto place = [&](int rep) {
    const Coordinates& at = classes.reps()[static_cast<std::size_t>(rep)].at;
    return std::tuple{at.stage, at.data, at.context, at.tensor, rep};
  };
  std::sort(reps.begin(), reps.end(), [&](int a, int b) { return place(a) < place(b); });
}

Slices slices_of(const TrainingStep& step, const Timeline& timeline, const Scenario& scenario,
                 const SliceChoice& choice) {
  assert(timeline.spans.size() == static_cast<std::size_t>(step.graph.size()));
  return SliceBuilder{step, timeline, scenario, choice}.draw();
}

}  // namespace orrery
