#include <algorithm>
#include <array>
#include <cassert>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <tuple>

#include "sim/core/ticks.hpp"
#include "sim/engine/fused_task.hpp"
#include "sim/pipeline/schedule.hpp"
#include "sim/training/step_draft.hpp"

namespace orrery {
namespace {

// Identifies a collective of a group, to which members are added one after another.
using CollectiveKey = std::tuple<int, Pass, int, int, int>;

// Parameters that determine the flows of a representative's collective.
using FlowsKey = std::tuple<int, GroupKind, Bytes, Bytes, BytesPerSecond, BytesPerSecond>;

// The last tasks of a stretch of a pass, without an allocation for each stretch.
class Ends {
 public:
  Ends() = default;
  Ends(TaskId task) { push_back(task); }

  void push_back(TaskId task) {
    // A collective that overlaps kernels adds one, and nesting is not as deep as this.
    assert(size_ < few_.size());
    few_[size_++] = task;
  }
  std::span<const TaskId> tasks() const { return {few_.data(), size_}; }

 private:
  std::array<TaskId, 8> few_{};
  std::size_t size_ = 0;
};

class PassBuilder {
 public:
  explicit PassBuilder(StepDraft& draft, Contraction contraction)
      : draft_{draft},
        plan_{draft.plan},
        contraction_{contraction},
        groups_(draft.classes.reps().size()) {}

  void build() {
    orders_ = plan_.orders(pass_lengths(), transfer_time());
    draft_.reserve(expected_tasks());
    for (int rep = 0; rep < draft_.rep_count(); ++rep) add_passes(rep);
  }

 private:
  // Capacity for passes and their transfers, so that growing lists are not copied repeatedly.
  // Unused capacity takes addresses, no memory.
  std::size_t expected_tasks() const {
    constexpr std::size_t transfers = 2, joins = 4;  // Sum of both passes.
    std::size_t sum = 0;
    for (int rep = 0; rep < draft_.rep_count(); ++rep)
      for (int chunk = 0; chunk < plan_.chunks(); ++chunk) {
        const StageCost& stage = draft_.stage_cost(rep, chunk);
        const bool expanded = !contraction_.quiet && !contraction_.fused;
        const std::size_t tasks =
            expanded ? tasks_in(stage.forward.segments) + tasks_in(stage.backward.segments) + joins
                     : 2;
        sum += at(plan_.microbatches_of_chunk()) * (tasks + transfers);
      }
    return sum;
  }

  // Isolated lengths with even routing, as a profile of a few steps measures them.
  std::vector<PassLengths> pass_lengths() const {
    std::vector<PassLengths> lengths;
    if (!plan_.schedule->follows_lengths()) return lengths;
    for (const StageCost& stage : draft_.cost.stages)
      lengths.push_back(
          {stage.forward.time(), stage.input_gradient.time(), stage.weight_gradient.time()});
    return lengths;
  }
  // Time of the slowest transfer from a stage to the next.
  Seconds transfer_time() const {
    Seconds longest;
    if (!plan_.schedule->follows_lengths()) return longest;
    for (int stage = 0; stage + 1 < plan_.pp; ++stage) {
      const Rank from = draft_.placement.rank({stage});
      const Rank to = draft_.placement.rank({stage + 1});
      longest = std::max(
          longest,
          draft_.traffic.transfer(draft_.cost.transfer_bytes, draft_.pair(from, to)).time());
    }
    return longest;
  }

  void add_passes(int rep_index) {
    const std::vector<Slot>& order = orders_[at(draft_.rep(rep_index).at.stage)];
    std::vector<int> forwards_seen(at(plan_.chunks()), 0);
    std::vector<int> gradients_seen(at(plan_.chunks()), 0);
    const SlotRange busy = overlapped_slots(order);
    Ends frontier;
    draft_.passes[at(rep_index)].reserve(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      const Slot& slot = order[i];
      contract_now_ =
          i < busy.first || i >= busy.last ? contraction_.overlapped : contraction_.quiet;
      const bool forward = slot.pass == Pass::forward;
      const bool first = forward && forwards_seen[at(slot.chunk)]++ == 0;
      const bool last = completes_gradients(slot) &&
                        ++gradients_seen[at(slot.chunk)] == plan_.microbatches_of_chunk();
      const bool gathers = gathers_for(forward, first);
      const bool reduces = reduces_after(completes_gradients(slot), last);
      PassTasks pass{slot, {}, gathers, reduces, first, contract_now_};
      if (i > 0 && order[i - 1].with_next) {
        pass.buckets = draft_.passes[at(rep_index)].back().buckets;
      } else if (slot.with_next) {
        pass.buckets.push_back(add_two(rep_index, slot, order[i + 1], frontier));
      } else {
        pass.buckets = add_pass(rep_index, slot, gathers, reduces, frontier);
      }
      // Schedules begin with enough forward passes that neither the first ones nor the last
      // backward passes run together with others.
      assert(pass.buckets.size() == 1 || !slot.with_next);
      assert(!(gathers || reduces) || !(slot.with_next || (i > 0 && order[i - 1].with_next)));
      frontier = pass.exit();
      draft_.index_of(rep_index, slot) = static_cast<int>(draft_.passes[at(rep_index)].size());
      draft_.passes[at(rep_index)].push_back(std::move(pass));
    }
    draft_.ready[at(rep_index)].assign(frontier.tasks().begin(), frontier.tasks().end());
  }

  // True if weights are gathered for a pass, or its gradients reduced, bucket by bucket: for the
  // first forward and the last backward pass of a chunk with overlap, and for more with shards.
  bool gathers_for(bool forward, bool first) const {
    if (!plan_.has_copies()) return false;
    if (plan_.shards_weights()) return plan_.reshard || (forward && (first || plan_.pp == 1));
    return draft_.overlaps_data() && plan_.zero >= 1 && first;
  }
  bool reduces_after(bool completes, bool last) const {
    if (!completes || !plan_.has_copies()) return false;
    return plan_.shards_gradients() || (last && (plan_.shards_weights() || draft_.overlaps_data()));
  }

  // Slots after each chunk's first forward pass and before any chunk's last backward pass, during
  // which no gradients or weights are sent.
  struct SlotRange {
    std::size_t first = 0;
    std::size_t last = 0;
  };
  SlotRange overlapped_slots(const std::vector<Slot>& order) const {
    SlotRange quiet{0, order.size()};
    if (plan_.reshard || plan_.shards_gradients()) return {order.size(), order.size()};
    if (!draft_.overlaps_data()) return quiet;
    std::vector<int> left(at(plan_.chunks()), plan_.microbatches_of_chunk());
    std::vector<bool> opened(at(plan_.chunks()), false);
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (order[i].pass == Pass::forward && plan_.zero >= 1 && !opened[at(order[i].chunk)]) {
        opened[at(order[i].chunk)] = true;
        quiet.first = i + 1;
      }
      if (completes_gradients(order[i]) && --left[at(order[i].chunk)] == 0)
        quiet.last = std::min(quiet.last, i);
    }
    return quiet;
  }

  // Adds a pass bucket by bucket, or as a whole.
  Stretches add_pass(int rep_index, const Slot& slot, bool gathers, bool reduces,
                     const Ends& first) {
    const StageCost& stage = draft_.pass_cost(rep_index, slot);
    const bool forward = slot.pass == Pass::forward;
    Part part{rep_index, slot};
    Stretches buckets;
    if (!gathers && !reduces) {
      buckets.push_back(add_stretch(part, cost_of(stage, slot), first));
      return buckets;
    }
    Ends before = first;
    for (std::size_t i = 0; i < stage.count(forward); ++i) {
      const Bucket& bucket = stage.bucket(forward, i);
      buckets.push_back(add_stretch(part, cost_of(bucket, slot), before));
      const PassCost& lost = forward ? bucket.lost_to_gather : bucket.lost_to_reduction;
      if (!lost.segments.empty())
        buckets.back().exit = add_stretch(part, lost, buckets.back().exit).exit;
      before = buckets.back().exit;
    }
    return buckets;
  }

  // Cost of the slot's pass in a stage or in one of its buckets.
  template <class Cost>
  static const PassCost& cost_of(const Cost& cost, const Slot& slot) {
    switch (slot.pass) {
      case Pass::forward:
        return cost.forward;
      case Pass::backward:
        return slot.inputs_only ? cost.input_gradient : cost.backward;
      case Pass::weight_gradient:
        break;
    }
    return cost.weight_gradient;
  }

  Stretch add_two(int rep_index, const Slot& forward, const Slot& backward, const Ends& before) {
    const PassCost& down = draft_.pass_cost(rep_index, forward).forward;
    const PassCost& up = draft_.pass_cost(rep_index, backward).backward;
    const auto [known, fresh] = draft_.overlapped.try_emplace({&down, &up});
    if (!meetings_) meetings_.emplace(draft_.placement);
    if (fresh) known->second = overlapped(down, up, plan_.delay_wgrad, *meetings_);
    Part part{rep_index, forward, &backward};
    return add_stretch(part, known->second, before);
  }

  // The pass that is added, or two that run together.
  struct Part {
    int rep;
    const Slot& slot;
    const Slot* backward = nullptr;
    int collectives = 0;  // Collectives added so far.

    const Slot& of(bool is_backward) const { return backward && is_backward ? *backward : slot; }
  };

  StepTask compute_task(const Part& part, bool backward, Seconds duration,
                        const PassCost* cost) const {
    const Slot& slot = part.of(backward);
    StepTask task;
    task.what = slot.pass == Pass::forward    ? Label::What::forward
                : slot.pass == Pass::backward ? Label::What::backward
                                              : Label::What::weight_gradient;
    task.owner = part.rep;
    task.chunk = slot.chunk;
    task.microbatch = slot.microbatch;
    task.duration = duration;
    task.cost = cost;
    task.backward = slot.pass != Pass::forward;
    task.inputs_only = slot.inputs_only;
    if (part.backward) {
      const Slot& other = part.of(!backward);
      task.with_chunk = other.chunk;
      task.with_microbatch = other.microbatch;
    }
    return task;
  }

  Stretch add_stretch(Part& part, const PassCost& cost, const Ends& before) {
    if (contract_now_ || !cost.has_collectives()) {
      const TaskId task = draft_.add_after(
          compute_task(part, false, length(cost, draft_.rep(part.rep).pace), &cost),
          before.tasks());
      return {task, task};
    }
    if (contraction_.fused && !part.backward)
      if (const auto fused = fused_of(part.rep, cost)) {
        StepTask task = compute_task(part, false, Seconds{}, nullptr);
        task.fused = fused;
        const TaskId id = draft_.add_after(std::move(task), before.tasks());
        return {id, id};
      }
    // The pass begins with a join, so that all its first tasks have the same predecessors.
    const auto join = [&](const Ends& after) {
      StepTask gate = compute_task(part, false, Seconds{}, nullptr);
      gate.kind = Label::Kind::join;
      return draft_.add_after(std::move(gate), after.tasks());
    };
    const TaskId entry = join(before);
    const Ends end = add_segments(part, cost.segments, entry);
    if (end.tasks().size() == 1) return {entry, end.tasks().front()};
    return {entry, join(end)};
  }

  Ends add_segments(Part& part, const std::vector<Segment>& segments, Ends frontier) {
    for (const Segment& segment : segments) frontier = add_segment(part, segment, frontier);
    return frontier;
  }

  Ends add_segment(Part& part, const Segment& segment, const Ends& before) {
    Ends done;
    if (segment.concurrent) {
      // The kernels of one pass overlap with the exchanges of the other.
      const bool other = part.backward && segment.concurrent->group == GroupKind::expert;
      done = group_collective(part, segment.backward != other, *segment.concurrent, before);
    }
    if (!segment.fused.empty()) {
      const Ends end = add_segments(part, segment.fused, before);
      for (TaskId task : end.tasks()) done.push_back(task);
    } else if (segment.compute > Seconds{} || !segment.concurrent) {
      const Seconds duration = own_compute(part.rep, segment) / draft_.rep(part.rep).speed;
      StepTask own = compute_task(part, segment.backward, duration, nullptr);
      own.segment = &segment;
      done.push_back(draft_.add_after(std::move(own), before.tasks()));
    }
    if (segment.after) done = group_collective(part, segment.backward, *segment.after, done);
    return done;
  }

  // A representative's pass as one fused task; null if its collectives involve other classes,
  // interfere with each other, or overlap with several segments.
  std::shared_ptr<const FusedTask> fused_of(int rep_index, const PassCost& cost) {
    const auto [known, fresh] = fused_.try_emplace({&cost, rep_index});
    if (fresh) known->second = new_fused(rep_index, cost);
    return known->second;
  }

  std::shared_ptr<const FusedTask> new_fused(int rep_index, const PassCost& cost) {
    const double speed = draft_.rep(rep_index).speed;
    std::vector<FusedTask::Phase> phases;
    for (const Segment& segment : cost.segments) {
      if (!segment.fused.empty()) return nullptr;
      // Phases are rounded to ticks one by one, as separate tasks would be.
      const Ticks compute = Ticks::nearest(own_compute(rep_index, segment) / speed);
      Ticks before = compute;
      if (segment.concurrent) {
        const auto flows = own_flows(rep_index, *segment.concurrent);
        if (!flows) return nullptr;
        phases.push_back({compute, Ticks::nearest(segment.concurrent->cost.latency), *flows});
        before = {};
      }
      if (segment.after) {
        const auto flows = own_flows(rep_index, *segment.after);
        if (!flows) return nullptr;
        phases.push_back({{}, before + Ticks::nearest(segment.after->cost.latency), *flows});
      } else if (!segment.concurrent) {
        phases.push_back({{}, before, {}});
      }
    }
    return std::make_shared<const FusedTask>(std::move(phases), draft_.topology);
  }

  // Flows of a collective of one class; nothing if others take part or its flows interfere.
  std::optional<Flows> own_flows(int rep_index, const GroupCollective& collective) {
    const SameFlows& same = same_flows(rep_index, collective);
    if (!same.apart) return std::nullopt;
    return same.flows;
  }

  // Flows that equal collectives of a representative and group share.
  struct SameFlows {
    Flows flows;
    bool apart = false;  // One class alone, without interference.
  };
  const SameFlows& same_flows(int rep_index, const GroupCollective& collective) {
    const CollectiveCost& cost = collective.cost;
    const FlowsKey key{rep_index,          collective.group,   cost.scale_up_bytes,
                       cost.network_bytes, cost.scale_up_rate, cost.network_rate};
    const auto [known, fresh] = same_flows_.try_emplace(key);
    if (fresh) {
      known->second.flows =
          collective_flows(draft_.topology, draft_.classes, draft_.rep(rep_index).rank, collective);
      known->second.apart = group_of(rep_index, collective.group).one_rep &&
                            FusedTask::has_disjoint_links(known->second.flows);
    }
    return known->second;
  }

  // Lengths are cached: summing a pass's segments takes longer than adding its task.
  Seconds length(const PassCost& cost, double pace) {
    const auto [known, fresh] = lengths_.try_emplace({&cost, pace});
    if (fresh) known->second = cost.time(pace);
    return known->second;
  }

  // Each rank has its own rows if all are simulated; else a representative computes as long as the
  // slowest member of its group.
  Seconds own_compute(int rep_index, const Segment& segment) const {
    const bool unfolded = draft_.rep_count() == draft_.placement.ranks();
    if (segment.members.empty() || !unfolded) return segment.compute;
    return segment.members[at(draft_.placement.expert_place(draft_.rep(rep_index).rank))];
  }

  // The first member creates the task; the others only add their predecessors.
  TaskId group_collective(Part& part, bool backward, const GroupCollective& collective,
                          const Ends& before) {
    const Group& group = group_of(part.rep, collective.group);
    const CollectiveKey key{group.leader, part.slot.pass, part.slot.chunk, part.slot.microbatch,
                            part.collectives++};
    if (!group.one_rep) {
      const auto found = collectives_.find(key);
      if (found != collectives_.end()) {
        for (TaskId earlier : before.tasks()) draft_.graph.depends(found->second, earlier);
        return found->second;
      }
    }
    StepTask task = compute_task(part, backward, collective.cost.latency, nullptr);
    task.owner = group.leader;
    task.kind = Label::Kind::transfer;
    task.what = Label::What::collective;
    task.tag = collective.cost.tag;
    task.group = collective.group;
    task.combine = collective.combine;
    task.stream = Stream::tensor;
    task.flows = flows_of(part.rep, collective);
    const TaskId id = draft_.add_after(std::move(task), before.tasks());
    if (!group.one_rep) collectives_.emplace(key, id);
    return id;
  }

  // The first member of a group, and whether the group is of one class.
  struct Group {
    int leader = -1;
    bool one_rep = false;
  };
  const Group& group_of(int rep_index, GroupKind kind) {
    Group& group = groups_[at(rep_index)][static_cast<std::size_t>(kind)];
    if (group.leader < 0) {
      const Rank member = draft_.rep(rep_index).rank;
      const std::vector<int> reps = reps_in(draft_.classes, draft_.placement.group(kind, member));
      group = {reps.front(), reps.size() == 1};
    }
    return group;
  }

  // Passes of equal cost send the same in all micro-batches.
  const Flows& flows_of(int rep_index, const GroupCollective& collective) {
    const auto [known, fresh] = flows_.try_emplace({&collective, rep_index});
    if (fresh) known->second = same_flows(rep_index, collective).flows;
    return known->second;
  }

  StepDraft& draft_;
  const Plan& plan_;
  const Contraction contraction_;
  Orders orders_;  // Indexed by stage.
  std::optional<ExpertSync> meetings_;
  bool contract_now_ = true;  // Contraction of the current slot.
  std::map<CollectiveKey, TaskId> collectives_;
  std::map<std::pair<const PassCost*, double>, Seconds> lengths_;
  std::map<std::pair<const PassCost*, int>, std::shared_ptr<const FusedTask>> fused_;
  std::map<FlowsKey, SameFlows> same_flows_;
  std::vector<std::array<Group, group_kinds>> groups_;
  std::map<std::pair<const GroupCollective*, int>, Flows> flows_;
};

}  // namespace

void add_passes(StepDraft& draft, Contraction contraction) {
  PassBuilder{draft, contraction}.build();
}

}  // namespace orrery
