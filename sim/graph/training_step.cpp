#include "sim/graph/training_step.hpp"

#include <cassert>
#include <map>
#include <tuple>

#include "sim/graph/group_flows.hpp"
#include "sim/schedule/schedule.hpp"

namespace orrery {
namespace {

using Tasks = std::vector<TaskId>;

std::size_t at(int index) { return static_cast<std::size_t>(index); }

// First and last task of a pass, or of one bucket of it.
struct Stretch {
  TaskId entry;
  TaskId exit;
};

struct PassTasks {
  Slot slot;
  std::vector<Stretch> buckets;  // In the order of running; one unless gradients or weights overlap.

  TaskId entry() const { return buckets.front().entry; }
  TaskId exit() const { return buckets.back().exit; }
};

// What a collective of a tensor group is known by: its members come to it one after another.
using CollectiveKey = std::tuple<int, Pass, int, int, std::size_t, std::size_t, bool>;

class Builder {
 public:
  Builder(const Scenario& scenario, const StepCost& cost, const CollectiveTime& collectives,
          const GroupShapes& shapes, const Cast& cast, Topology& topology,
          Contraction contraction)
      : scenario_{scenario},
        plan_{scenario.plan},
        cost_{cost},
        collectives_{collectives},
        shapes_{shapes},
        cast_{cast},
        placement_{cast.placement()},
        topology_{topology},
        contraction_{contraction},
        passes_(cast.roles().size()),
        slot_index_(cast.roles().size()),
        ready_(cast.roles().size()) {}

  TaskGraph build() {
    for (int role = 0; role < role_count(); ++role) add_passes(role);
    add_weight_prefetch();
    for (int role = 0; role < role_count(); ++role) add_transfers(role);
    add_gradient_reduction();
    add_tied_gradients();
    add_optimizer();
    return std::move(graph_);
  }

 private:
  int role_count() const { return static_cast<int>(cast_.roles().size()); }
  const Role& role(int index) const { return cast_.roles()[at(index)]; }
  int virtual_stage(int role_index, int chunk) const {
    return chunk * plan_.pp + role(role_index).at.stage;
  }
  const StageCost& stage_cost(int role_index, int chunk) const {
    return cost_.stages[at(virtual_stage(role_index, chunk))];
  }
  bool overlaps_data() const { return plan_.dp_overlap && plan_.dp > 1; }

  TaskId add_after(Task task, const Tasks& before) {
    const TaskId id = graph_.add(std::move(task));
    for (TaskId earlier : before) graph_.depends(id, earlier);
    return id;
  }

  // ---- passes ----

  void add_passes(int role_index) {
    const std::vector<Slot> order =
        order_of_passes(plan_.schedule, role(role_index).at.stage, plan_.pp, plan_.vpp,
                        plan_.microbatches);
    slot_index_[at(role_index)].assign(2 * at(plan_.vpp) * at(plan_.microbatches), -1);
    std::vector<int> forwards_seen(at(plan_.vpp), 0);
    std::vector<int> backwards_seen(at(plan_.vpp), 0);
    const SlotRange busy = overlapped_slots(order);
    Tasks frontier;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const Slot& slot = order[i];
      contract_now_ = i < busy.first || i >= busy.last ? contraction_.overlapped : contraction_.quiet;
      // Only the first forward and the last backward pass have buckets that something waits for.
      const bool forward = slot.pass == Pass::forward;
      const bool cut = overlaps_data() &&
                       (forward ? plan_.zero >= 1 && forwards_seen[at(slot.chunk)]++ == 0
                                : ++backwards_seen[at(slot.chunk)] == plan_.microbatches);
      PassTasks pass = add_pass(role_index, slot, cut, frontier);
      frontier = {pass.exit()};
      index_of(role_index, slot) = static_cast<int>(passes_[at(role_index)].size());
      passes_[at(role_index)].push_back(std::move(pass));
    }
    ready_[at(role_index)] = frontier;
  }

  // Slots from the last first forward pass to the first last backward pass: no gradients or weights
  // travel beside what lies between.
  struct SlotRange {
    std::size_t first = 0;
    std::size_t last = 0;
  };
  SlotRange overlapped_slots(const std::vector<Slot>& order) const {
    SlotRange quiet{0, order.size()};
    if (!overlaps_data()) return quiet;
    std::vector<int> left(at(plan_.vpp), plan_.microbatches);
    for (std::size_t i = 0; i < order.size(); ++i) {
      const bool forward = order[i].pass == Pass::forward;
      if (forward && plan_.zero >= 1 && is_first_forward(order[i])) quiet.first = i + 1;
      if (!forward && --left[at(order[i].chunk)] == 0) quiet.last = std::min(quiet.last, i);
    }
    return quiet;
  }

  int& index_of(int role_index, const Slot& slot) {
    const int pass = slot.pass == Pass::forward ? 0 : 1;
    return slot_index_[at(role_index)]
                      [at((pass * plan_.vpp + slot.chunk) * plan_.microbatches + slot.microbatch)];
  }
  const PassTasks& pass_of(int role_index, const Slot& slot) {
    return passes_[at(role_index)][at(index_of(role_index, slot))];
  }

  PassTasks add_pass(int role_index, const Slot& slot, bool cut, Tasks before) {
    const StageCost& stage = stage_cost(role_index, slot.chunk);
    const bool forward = slot.pass == Pass::forward;
    PassTasks pass{slot, {}};
    if (!cut) {
      pass.buckets.push_back(
          add_stretch(role_index, slot, 0, forward ? stage.forward : stage.backward, before));
      return pass;
    }
    for (std::size_t i = 0; i < stage.buckets.size(); ++i) {
      const Bucket& bucket = stage.buckets[forward ? i : stage.buckets.size() - 1 - i];
      pass.buckets.push_back(
          add_stretch(role_index, slot, i, forward ? bucket.forward : bucket.backward, before));
      before = {pass.exit()};
    }
    return pass;
  }

  Task compute_task(int role_index, const Slot& slot, Seconds duration, const PassCost* cost) const {
    Task task;
    task.what = slot.pass == Pass::forward ? Task::What::forward : Task::What::backward;
    task.role = role_index;
    task.chunk = slot.chunk;
    task.microbatch = slot.microbatch;
    task.duration = duration;
    task.cost = cost;
    return task;
  }

  Stretch add_stretch(int role_index, const Slot& slot, std::size_t bucket, const PassCost& cost,
                      const Tasks& before) {
    if (contract_now_ || plan_.tp == 1) {
      const TaskId task =
          add_after(compute_task(role_index, slot, cost.time(), &cost), before);
      return {task, task};
    }
    // A join first, so that what the pass waits for is waited for by all that it begins with.
    Task gate = compute_task(role_index, slot, Seconds{}, nullptr);
    gate.kind = Task::Kind::join;
    const TaskId entry = add_after(gate, before);
    Tasks frontier{entry};
    for (std::size_t i = 0; i < cost.segments.size(); ++i) {
      const Segment& segment = cost.segments[i];
      Tasks done;
      if (segment.beside)
        done.push_back(
            tensor_collective(role_index, slot, bucket, i, false, *segment.beside, frontier));
      if (segment.compute > Seconds{} || !segment.beside)
        done.push_back(
            add_after(compute_task(role_index, slot, segment.compute, nullptr), frontier));
      frontier = done;
      if (segment.after)
        frontier = {tensor_collective(role_index, slot, bucket, i, true, *segment.after, frontier)};
    }
    if (frontier.size() == 1) return {entry, frontier.front()};
    return {entry, add_after(gate, frontier)};
  }

  // The first member to come creates the task; the others only add what they must finish first.
  TaskId tensor_collective(int role_index, const Slot& slot, std::size_t bucket, std::size_t segment,
                           bool after, const CollectiveCost& cost, const Tasks& before) {
    const std::vector<Rank> group = placement_.tensor_group(role(role_index).at);
    const int leader = roles_in(cast_, group).front();
    const CollectiveKey key{leader, slot.pass, slot.chunk, slot.microbatch, bucket, segment, after};
    const auto found = tensor_tasks_.find(key);
    if (found != tensor_tasks_.end()) {
      for (TaskId earlier : before) graph_.depends(found->second, earlier);
      return found->second;
    }
    Task task = compute_task(leader, slot, cost.latency, nullptr);
    task.kind = Task::Kind::transfer;
    task.what = Task::What::tensor;
    task.stream = Stream::tensor;
    task.flows = collective_flows(topology_, cast_, group, cost);
    const TaskId id = add_after(std::move(task), before);
    tensor_tasks_.emplace(key, id);
    return id;
  }

  // ---- transfers between stages ----

  // Every pass but the first virtual stage's forward and the last one's backward waits for a tensor
  // from the stage before it (backward: behind it).
  void add_transfers(int receiver) {
    const int last = plan_.virtual_stages() - 1;
    Tasks previous_of_direction[2];
    for (const PassTasks& pass : passes_[at(receiver)]) {
      const bool forward = pass.slot.pass == Pass::forward;
      const int own = virtual_stage(receiver, pass.slot.chunk);
      if (own == (forward ? 0 : last)) {
        if (!forward) graph_.depends(pass.entry(), forward_twin(receiver, pass).exit());
        continue;
      }
      const int from = own + (forward ? -1 : 1);
      Coordinates sender_at = role(receiver).at;
      sender_at.stage = from % plan_.pp;
      const int sender = cast_.role_of(sender_at);
      Slot sent = pass.slot;
      sent.chunk = from / plan_.pp;

      const Rank from_rank = placement_.rank(sender_at);
      const CollectiveCost cost = collectives_.send(
          cost_.transfer_bytes, placement_.same_domain(from_rank, role(receiver).rank));
      Task task;
      task.kind = Task::Kind::transfer;
      task.what = Task::What::transfer;
      task.stream = Stream::pipeline;
      task.role = sender;
      task.to_role = receiver;
      task.chunk = sent.chunk;
      task.microbatch = sent.microbatch;
      task.duration = cost.latency;
      task.flows = {{way(topology_, cast_, sender, receiving_rank(sender, pass.slot, own)),
                     cost_.transfer_bytes,
                     cost.network_bytes.si() > 0.0 ? cost.network_rate : cost.scale_up_rate}};
      const TaskId transfer = graph_.add(std::move(task));
      graph_.depends(transfer, pass_of(sender, sent).exit());
      // One channel for each direction between two ranks: sends keep their order.
      Tasks& previous = previous_of_direction[forward ? 0 : 1];
      for (TaskId earlier : previous) graph_.depends(transfer, earlier);
      previous = {transfer};
      graph_.depends(pass.entry(), transfer);
      if (!scenario_.software.overlap_pp) block_sender(sender, sent, transfer);
    }
  }

  const PassTasks& forward_twin(int role_index, const PassTasks& backward) {
    Slot slot = backward.slot;
    slot.pass = Pass::forward;
    return pass_of(role_index, slot);
  }

  Rank receiving_rank(int sender, const Slot&, int virtual_stage_of_receiver) const {
    Coordinates to = role(sender).at;
    to.stage = virtual_stage_of_receiver % plan_.pp;
    return placement_.rank(to);
  }

  // Blocking transfers: the sender's next pass starts when the tensor has left.
  void block_sender(int sender, const Slot& sent, TaskId transfer) {
    const std::size_t next = at(index_of(sender, sent)) + 1;
    if (next < passes_[at(sender)].size())
      graph_.depends(passes_[at(sender)][next].entry(), transfer);
    else
      ready_[at(sender)].push_back(transfer);
  }

  // ---- data parallelism ----

  // Each data group once: by the smallest role among its members.
  template <class Visit>
  void for_each_data_group(const Visit& visit) {
    std::vector<bool> seen(cast_.roles().size(), false);
    for (int index = 0; index < role_count(); ++index) {
      const std::vector<Rank> group = placement_.data_group(role(index).at);
      const std::vector<int> members = roles_in(cast_, group);
      if (seen[at(members.front())]) continue;
      seen[at(members.front())] = true;
      visit(group, members);
    }
  }

  Task data_task(Task::What what, CollectiveKind kind, double bytes, int chunk,
                 const std::vector<Rank>& group, int leader) {
    const CollectiveCost cost = collectives_(kind, Bytes{bytes}, shapes_.data);
    Task task;
    task.kind = Task::Kind::transfer;
    task.what = what;
    task.stream = Stream::data;
    task.role = leader;
    task.chunk = chunk;
    task.duration = cost.latency;
    task.flows = collective_flows(topology_, cast_, group, cost);
    return task;
  }

  // The optimizer's all-gather of the step before, where it overlaps with this step's start.
  void add_weight_prefetch() {
    if (!overlaps_data() || plan_.zero < 1) return;
    for_each_data_group([&](const std::vector<Rank>& group, const std::vector<int>& members) {
      Tasks previous;
      for (const PassTasks& pass : passes_[at(members.front())]) {
        if (pass.slot.pass != Pass::forward || !is_first_forward(pass.slot)) continue;
        const StageCost& stage = stage_cost(members.front(), pass.slot.chunk);
        for (std::size_t b = 0; b < pass.buckets.size(); ++b) {
          const double bytes = 2.0 * static_cast<double>(stage.buckets[b].parameters);
          const TaskId gather =
              add_after(data_task(Task::What::weights, CollectiveKind::all_gather, bytes,
                                  pass.slot.chunk, group, members.front()),
                        previous);
          previous = {gather};
          for (int member : members)
            graph_.depends(pass_of(member, pass.slot).buckets[b].entry, gather);
        }
      }
    });
  }

  static bool is_first_forward(const Slot& slot) { return slot.microbatch == 0; }

  CollectiveKind reduction() const {
    return plan_.zero >= 1 ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
  }

  void add_gradient_reduction() {
    if (plan_.dp == 1) return;
    for_each_data_group([&](const std::vector<Rank>& group, const std::vector<int>& members) {
      if (overlaps_data())
        reduce_in_buckets(group, members);
      else
        reduce_at_the_end(group, members);
    });
  }

  void reduce_in_buckets(const std::vector<Rank>& group, const std::vector<int>& members) {
    Tasks previous;
    for (const PassTasks& pass : passes_[at(members.front())]) {
      const StageCost& stage = stage_cost(members.front(), pass.slot.chunk);
      if (pass.slot.pass != Pass::backward || !is_last_backward(members.front(), pass.slot)) continue;
      for (std::size_t b = 0; b < pass.buckets.size(); ++b) {
        const Bucket& bucket = stage.buckets[pass.buckets.size() - 1 - b];
        const double bytes =
            scenario_.software.gradient_bytes * static_cast<double>(bucket.parameters);
        const TaskId reduce = add_after(data_task(Task::What::gradients, reduction(), bytes,
                                                  pass.slot.chunk, group, members.front()),
                                        previous);
        previous = {reduce};
        for (int member : members)
          graph_.depends(reduce, pass_of(member, pass.slot).buckets[b].exit);
      }
    }
    for (int member : members)
      ready_[at(member)].insert(ready_[at(member)].end(), previous.begin(), previous.end());
  }

  bool is_last_backward(int role_index, const Slot& slot) {
    for (std::size_t i = at(index_of(role_index, slot)) + 1; i < passes_[at(role_index)].size(); ++i) {
      const Slot& later = passes_[at(role_index)][i].slot;
      if (later.pass == Pass::backward && later.chunk == slot.chunk) return false;
    }
    return true;
  }

  void reduce_at_the_end(const std::vector<Rank>& group, const std::vector<int>& members) {
    double bytes = 0.0;
    for (int chunk = 0; chunk < plan_.vpp; ++chunk)
      bytes += scenario_.software.gradient_bytes *
               static_cast<double>(stage_cost(members.front(), chunk).parameters);
    const TaskId reduce = graph_.add(
        data_task(Task::What::gradients, reduction(), bytes, 0, group, members.front()));
    for (int member : members) {
      for (TaskId earlier : ready_[at(member)]) graph_.depends(reduce, earlier);
      ready_[at(member)] = {reduce};
    }
  }

  // ---- end of the step ----

  // First and last stage hold a copy each of a tied embedding and add up their gradients.
  void add_tied_gradients() {
    if (cost_.tied_gradient_bytes.si() <= 0.0) return;
    for (int index = 0; index < role_count(); ++index) {
      if (role(index).at.stage != 0) continue;
      Coordinates last_at = role(index).at;
      last_at.stage = plan_.pp - 1;
      const Rank last_rank = placement_.rank(last_at);
      const int last = cast_.role_of(last_rank);
      const bool same_domain = placement_.same_domain(role(index).rank, last_rank);
      const GroupShape pair{2, same_domain ? 1 : 2, same_domain ? 2 : 1};
      const CollectiveCost cost =
          collectives_(CollectiveKind::all_reduce, cost_.tied_gradient_bytes, pair);
      Task task;
      task.kind = Task::Kind::transfer;
      task.what = Task::What::gradients;
      task.stream = Stream::data;
      task.role = index;
      task.to_role = last;
      task.duration = cost.latency;
      task.flows = collective_flows(topology_, cast_, {role(index).rank, last_rank}, cost);
      const TaskId tied = graph_.add(std::move(task));
      for (int end : {index, last}) {
        for (TaskId earlier : ready_[at(end)]) graph_.depends(tied, earlier);
        ready_[at(end)] = {tied};
      }
    }
  }

  // Every rank needs the norm of all gradients (and to know whether any is infinite) before it may
  // change a weight: a small all-reduce over all that hold a part of the model.
  void add_optimizer() {
    Task norm;
    norm.kind = Task::Kind::transfer;
    norm.what = Task::What::norm;
    norm.stream = Stream::data;
    norm.duration = collectives_(CollectiveKind::all_reduce, Bytes{8.0}, shapes_.model).latency;
    const TaskId normed = graph_.add(std::move(norm));
    for (const Tasks& tasks : ready_)
      for (TaskId earlier : tasks) graph_.depends(normed, earlier);
    std::vector<TaskId> updated;
    for (int index = 0; index < role_count(); ++index) {
      Task task;
      task.what = Task::What::optimizer;
      task.role = index;
      task.duration = cost_.optimizer[at(role(index).at.stage)];
      updated.push_back(add_after(std::move(task), {normed}));
    }
    if (plan_.zero < 1 || plan_.dp == 1 || overlaps_data()) return;
    for_each_data_group([&](const std::vector<Rank>& group, const std::vector<int>& members) {
      double bytes = 0.0;
      for (int chunk = 0; chunk < plan_.vpp; ++chunk)
        bytes += 2.0 * static_cast<double>(stage_cost(members.front(), chunk).parameters);
      const TaskId gather = graph_.add(data_task(Task::What::weights, CollectiveKind::all_gather,
                                                 bytes, 0, group, members.front()));
      for (int member : members) graph_.depends(gather, updated[at(member)]);
    });
  }

  const Scenario& scenario_;
  const Plan& plan_;
  const StepCost& cost_;
  const CollectiveTime& collectives_;
  const GroupShapes& shapes_;
  const Cast& cast_;
  const Placement& placement_;
  Topology& topology_;
  const Contraction contraction_;

  bool contract_now_ = true;  // What holds for the slot at hand.
  TaskGraph graph_;
  std::vector<std::vector<PassTasks>> passes_;  // By role, in the schedule's order.
  std::vector<std::vector<int>> slot_index_;    // By role: where in passes_ a slot is.
  std::vector<Tasks> ready_;  // By role: what must finish before the step can be closed.
  std::map<CollectiveKey, TaskId> tensor_tasks_;
};

}  // namespace

TrainingStep build_training_step(const Scenario& scenario, std::shared_ptr<const StepCost> cost,
                                 const CollectiveTime& collectives, const GroupShapes& shapes,
                                 const Cast& cast, Topology& topology, Contraction contraction) {
  Builder builder{scenario, *cost, collectives, shapes, cast, topology, contraction};
  TaskGraph graph = builder.build();
  std::vector<std::vector<LinkUse>> tensor_ways(cast.roles().size());
  if (shapes.tensor.per_domain > 1)
    for (int r = 0; r < static_cast<int>(cast.roles().size()); ++r)
      tensor_ways[at(r)] = way(topology, cast, r, r, true);  // What it sends, it also receives.
  return {std::move(cost), cast, std::move(graph), contraction.quiet, std::move(tensor_ways)};
}

}  // namespace orrery
