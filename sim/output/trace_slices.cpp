#include "sim/output/trace_slices.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <map>
#include <tuple>

#include "sim/output/task_relations.hpp"

namespace orrery {
namespace {

constexpr int microbatches_drawn_inside = 2;

std::size_t at(int index) { return static_cast<std::size_t>(index); }
std::int64_t nanoseconds(Seconds time) { return std::llround(time.si() * 1e9); }

// What a collective or a transfer brings to the busiest of its ways.
double most_bytes(const Task& task) {
  double most = 0.0;
  for (const Flow& flow : task.flows) most = std::max(most, flow.bytes.si());
  return most;
}

class Drawing {
 public:
  Drawing(const TrainingStep& step, const Timeline& timeline, const Scenario& scenario,
          const SliceChoice& choice)
      : step_{step},
        timeline_{timeline},
        plan_{scenario.plan},
        choice_{choice},
        relations_{step},
        drawn_(step.cast.roles().size(), false) {}

  Slices draw() {
    for (int chosen : choice_.roles) drawn_[at(chosen)] = true;
    for (int i = 0; i < step_.graph.size(); ++i) draw_task(i);
    for (const auto& [key, pass] : drawn_in_parts_) draw_whole_pass(key, pass);
    arrange(result_.slices, choice_.roles);
    return std::move(result_);
  }

 private:
  using PassKey = std::tuple<int, Task::What, int, int>;  // role, direction, chunk, micro-batch
  struct WholePass {
    Span span;
    int receives = -1;
  };

  const Task& task(int id) const { return step_.graph.task(TaskId{id}); }
  const Span& span(int id) const { return timeline_.spans[at(id)]; }
  const Role& role(int index) const { return step_.cast.roles()[at(index)]; }
  bool is_drawn(int role_index) const { return drawn_[at(role_index)]; }

  std::vector<int> drawn_members(const std::vector<int>& roles) const {
    std::vector<int> members;
    for (int index : roles)
      if (is_drawn(index)) members.push_back(index);
    return members;
  }

  void add(Slice slice, const Span& when) {
    slice.start_ns = nanoseconds(when.start);
    slice.finish_ns = nanoseconds(when.finish);
    if (slice.finish_ns <= slice.start_ns) return;
    if (++result_.count <= choice_.most) result_.slices.push_back(std::move(slice));
  }

  std::string pass_name(Task::What direction, int chunk, int microbatch) const {
    std::string text =
        (direction == Task::What::forward ? "F " : "B ") + std::to_string(microbatch);
    return plan_.vpp > 1 ? text + " chunk " + std::to_string(chunk) : text;
  }

  Slice slice_of_pass(int role_index, Task::What direction, int chunk, int microbatch) const {
    Slice slice;
    slice.role = role_index;
    slice.name = pass_name(direction, chunk, microbatch);
    slice.category = direction == Task::What::forward ? "forward" : "backward";
    slice.facts = {{"microbatch", microbatch}};
    if (plan_.vpp > 1) slice.facts.emplace_back("chunk", chunk);
    return slice;
  }

  void draw_task(int id) {
    const Task& now = task(id);
    switch (now.what) {
      case Task::What::forward:
      case Task::What::backward:
        if (is_drawn(now.role)) draw_pass(id);
        break;
      case Task::What::collective:
        for (int member : drawn_members(relations_.members(now.group, now.role)))
          draw_collective_task(id, member, now.group);
        break;
      case Task::What::transfer:
        if (is_drawn(now.role)) draw_transfer(id);
        break;
      case Task::What::optimizer:
        if (is_drawn(now.role))
          add({now.role, Track::compute, 0, 0, "optimizer", "optimizer", {}}, span(id));
        break;
      case Task::What::gradients:
        for (int member : drawn_members(relations_.gradient_members(id)))
          draw_data(id, member, "gradients");
        break;
      case Task::What::weights:
        for (int member : drawn_members(relations_.members(now.group, now.role)))
          draw_data(id, member, "weights");
        break;
      case Task::What::norm:
        for (int member : choice_.roles) draw_data(id, member, "gradient norm");
        break;
    }
  }

  void draw_pass(int id) {
    const Task& now = task(id);
    Slice slice = slice_of_pass(now.role, now.what, now.chunk, now.microbatch);
    if (!now.cost) {
      note_part(now.role, id);
      if (now.kind != Task::Kind::compute) return;
      slice.name = "kernels";
      slice.category = "kernels";
      return add(std::move(slice), span(id));
    }
    // Buckets of one pass are tasks that follow each other.
    part_ = id > 0 && continues(id - 1, id) ? part_ + 1 : 0;
    if (part_ > 0 || (id + 1 < step_.graph.size() && continues(id, id + 1)))
      slice.facts.emplace_back("part", part_);
    slice.facts.emplace_back("compute_us", now.cost->compute.si() * 1e6);
    slice.facts.emplace_back("exposed_communication_us",
                             (now.cost->time() - now.cost->compute).si() * 1e6);
    slice.receives = relations_.fed_by(id);
    add(std::move(slice), span(id));
    if (choice_.inside_passes && now.microbatch < microbatches_drawn_inside &&
        now.cost->has_collectives())
      draw_inside(id);
  }

  bool continues(int before, int after) const {
    const auto key = [&](int id) {
      return PassKey{task(id).role, task(id).what, task(id).chunk, task(id).microbatch};
    };
    return key(before) == key(after);
  }

  void draw_inside(int id) {
    const Task& now = task(id);
    Slice kernels = slice_of_pass(now.role, now.what, now.chunk, now.microbatch);
    Slice collective = kernels;
    collective.name += " collective";
    kernels.name = "kernels";
    kernels.category = "kernels";
    Seconds clock = span(id).start;
    const auto draw_collective = [&](const GroupCollective& of_group, Seconds start) {
      const CollectiveCost& cost = of_group.cost;
      Slice slice = collective;
      put_on_track(slice, of_group.group);
      slice.facts.emplace_back("bytes", std::max(cost.scale_up_bytes, cost.network_bytes).si());
      add(std::move(slice), {start, start + cost.time()});
    };
    for (const Segment& segment : now.cost->segments) {
      add(kernels, {clock, clock + segment.compute});
      if (segment.beside) draw_collective(*segment.beside, clock);
      clock += segment.time();
      if (segment.after) draw_collective(*segment.after, clock - segment.after->time());
    }
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
    const Task& now = task(id);
    note_part(member, id);
    Slice slice = slice_of_pass(member, relations_.direction(id), now.chunk, now.microbatch);
    put_on_track(slice, group);
    slice.name += " collective";
    slice.facts.emplace_back("bytes", most_bytes(now));
    add(std::move(slice), span(id));
  }

  void note_part(int role_index, int id) {
    const PassKey key{role_index, relations_.direction(id), task(id).chunk, task(id).microbatch};
    const auto [found, is_new] = drawn_in_parts_.try_emplace(key, WholePass{span(id), -1});
    WholePass& pass = found->second;
    pass.span.start = std::min(pass.span.start, span(id).start);
    pass.span.finish = std::max(pass.span.finish, span(id).finish);
    if (relations_.fed_by(id) >= 0) pass.receives = relations_.fed_by(id);
  }

  void draw_whole_pass(const PassKey& key, const WholePass& pass) {
    const auto& [role_index, direction, chunk, microbatch] = key;
    Slice slice = slice_of_pass(role_index, direction, chunk, microbatch);
    slice.receives = pass.receives;
    add(std::move(slice), pass.span);
  }

  void draw_transfer(int id) {
    const Task& now = task(id);
    const bool forward = relations_.direction(id) == Task::What::forward;
    Slice slice = slice_of_pass(now.role, relations_.direction(id), now.chunk, now.microbatch);
    slice.track = forward ? Track::send_forward : Track::send_backward;
    slice.category = "transfer";
    slice.facts.emplace_back("to_rank", role(now.to_role).rank.value);
    slice.facts.emplace_back("bytes", most_bytes(now));
    slice.sends = id;
    add(std::move(slice), span(id));
  }

  void draw_data(int id, int member, const char* what) {
    const Task& now = task(id);
    const bool experts = now.group == GroupKind::expert_data;
    Slice slice{member, experts ? Track::expert_data : Track::data, 0, 0, what, "data", {}};
    if (now.what != Task::What::norm) {
      if (plan_.vpp > 1) slice.facts.emplace_back("chunk", now.chunk);
      slice.facts.emplace_back("bytes", most_bytes(now));
    }
    add(std::move(slice), span(id));
  }

  const TrainingStep& step_;
  const Timeline& timeline_;
  const Plan& plan_;
  const SliceChoice& choice_;

  const TaskRelations relations_;
  std::vector<bool> drawn_;  // By role.
  std::map<PassKey, WholePass> drawn_in_parts_;
  int part_ = 0;
  Slices result_;
};

}  // namespace

Slices slices_of(const TrainingStep& step, const Timeline& timeline, const Scenario& scenario,
                 const SliceChoice& choice) {
  assert(timeline.spans.size() == static_cast<std::size_t>(step.graph.size()));
  return Drawing{step, timeline, scenario, choice}.draw();
}

}  // namespace orrery
