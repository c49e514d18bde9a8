#include <map>
#include <optional>
#include <set>
#include <utility>

#include "sim/plan/rank_classes.hpp"
#include "sim/training/step_draft.hpp"

namespace orrery {
namespace {

class TransferBuilder {
 public:
  explicit TransferBuilder(StepDraft& draft) : draft_{draft}, plan_{draft.plan} {}

  void build() {
    for (int rep = 0; rep < draft_.rep_count(); ++rep) add_transfers(rep);
  }

 private:
  // Every pass waits for a tensor from the stage before it (backward: behind it), except forward
  // passes of the first virtual stage and backward passes of the last.
  void add_transfers(int receiver) {
    const int last = plan_.virtual_stages() - 1;
    std::map<int, Tasks> previous_of_channel[2];  // Keyed by sender.
    std::vector<std::optional<StepTask>> alike[2];
    for (auto& of_direction : alike) of_direction.resize(at(plan_.chunks()));
    for (const PassTasks& pass : draft_.passes[at(receiver)]) {
      if (pass.slot.pass == Pass::weight_gradient) continue;
      const bool forward = pass.slot.pass == Pass::forward;
      const int own = draft_.virtual_stage(receiver, pass.slot.chunk);
      if (own == (forward ? 0 : last)) {
        if (!forward) draft_.graph.depends(pass.entry(), matching_forward(receiver, pass).exit());
        continue;
      }
      // Virtual stages on one rank need no transfer: its passes are ordered.
      if (!plan_.sends_on(forward ? own - 1 : own)) continue;
      // Transfers differ only in the micro-batch.
      std::optional<StepTask>& known = alike[forward ? 0 : 1][at(pass.slot.chunk)];
      if (!known) known = transfer_to(receiver, pass.slot);
      StepTask task = *known;
      task.microbatch = pass.slot.microbatch;
      const int sender = task.owner;
      const Slot sent{pass.slot.pass, task.chunk, task.microbatch};
      const TaskId transfer = draft_.add(std::move(task));
      draft_.graph.depends(transfer, draft_.pass_of(sender, sent).exit());
      // One channel for each direction between two ranks: sends keep their order.
      Tasks& previous = previous_of_channel[forward ? 0 : 1][sender];
      for (TaskId earlier : previous) draft_.graph.depends(transfer, earlier);
      previous = {transfer};
      let_wait(receiver, pass, transfer);
      if (!draft_.scenario.software.overlap_pp) block_sender(sender, sent, transfer);
    }
  }

  StepTask transfer_to(int receiver, const Slot& pass) {
    const bool forward = pass.pass == Pass::forward;
    const int own = draft_.virtual_stage(receiver, pass.chunk);
    const int from = own + (forward ? -1 : 1);
    Coordinates sender_at = draft_.rep(receiver).at;
    sender_at.stage = plan_.stage_of(from, pass.chunk);
    const int sender = draft_.classes.rep_of(sender_at);
    const Rank from_rank = draft_.placement.rank(sender_at);
    const CollectiveCost cost = draft_.traffic.transfer(
        draft_.cost.transfer_bytes, draft_.pair(from_rank, draft_.rep(receiver).rank));
    StepTask task;
    task.kind = Label::Kind::transfer;
    task.what = Label::What::transfer;
    task.stream = Stream::pipeline;
    task.owner = sender;
    task.to_rep = receiver;
    task.chunk = plan_.chunk_of(from, pass.chunk);
    task.backward = !forward;
    task.duration = cost.latency;
    task.tag = cost.tag;
    // The direction is that between stages of ranks, not of the micro-batch. With two stages each
    // is both the next and the previous one.
    const int to = draft_.rep(receiver).at.stage;
    const bool onward = forward ? to == (sender_at.stage + 1) % plan_.pp
                                : to != (sender_at.stage + plan_.pp - 1) % plan_.pp;
    const ClassRoute* known =
        draft_.classes.route_of(sender, onward ? Traffic::forward : Traffic::backward);
    const BytesPerSecond rate =
        cost.network_bytes.si() > 0.0 ? cost.network_rate : cost.scale_up_rate;
    task.flows = std::vector<Flow>{
        {known ? known->links
               : route(draft_.topology, draft_.classes, sender, facing(sender, receiver)),
         draft_.cost.transfer_bytes, rate}};
    return task;
  }

  const PassTasks& matching_forward(int rep_index, const PassTasks& backward) {
    Slot slot = backward.slot;
    slot.pass = Pass::forward;
    slot.inputs_only = false;
    return draft_.pass_of(rep_index, slot);
  }

  // The sender's peer on the receiver's stage.
  Rank facing(int sender, int receiver) const {
    Coordinates to = draft_.rep(sender).at;
    to.stage = draft_.rep(receiver).at.stage;
    return draft_.placement.rank(to);
  }

  // Blocking transfers: the sender's next pass starts when the tensor has left.
  void block_sender(int sender, const Slot& sent, TaskId transfer) {
    const std::vector<PassTasks>& passes = draft_.passes[at(sender)];
    const std::size_t own = at(draft_.index_of(sender, sent));
    std::size_t next = own + 1;
    while (next < passes.size() && passes[next].entry() == passes[own].entry()) ++next;
    if (next < passes.size())
      let_wait(sender, passes[next], transfer);
    else
      draft_.ready[at(sender)].push_back(transfer);
  }

  // Transfers that share links reach the ranks of a tensor or context group one after another, and
  // all wait for the last at the first collective of the pass. The kernels before it are equal, so
  // that a contracted pass may wait for all of them at its start.
  void let_wait(int rep, const PassTasks& pass, TaskId transfer) {
    draft_.graph.depends(pass.entry(), transfer);
    const bool one_rep_a_stage = draft_.rep_count() == plan_.pp;
    if (!pass.contracted || one_rep_a_stage) return;
    for (int other : partners_of(rep, pass.slot))
      draft_.graph.depends(draft_.pass_of(other, pass.slot).entry(), transfer);
  }

  // Other representatives with collectives in a representative's pass.
  const std::vector<int>& partners_of(int rep, const Slot& slot) {
    const StageCost& stage = draft_.stage_cost(rep, slot.chunk);
    const PassCost& cost = slot.pass == Pass::forward ? stage.forward : stage.backward;
    const auto [known, fresh] = partners_.try_emplace({rep, &cost});
    if (!fresh) return known->second;
    std::set<GroupKind> kinds;
    for_each_collective(cost.segments,
                        [&](const GroupCollective& one) { kinds.insert(one.group); });
    std::set<int> others;
    for (GroupKind kind : kinds) {
      const std::vector<int> members =
          reps_in(draft_.classes, draft_.placement.group(kind, draft_.rep(rep).rank));
      others.insert(members.begin(), members.end());
    }
    others.erase(rep);
    known->second.assign(others.begin(), others.end());
    return known->second;
  }

  StepDraft& draft_;
  const Plan& plan_;
  std::map<std::pair<int, const PassCost*>, std::vector<int>> partners_;
};

}  // namespace

void add_transfers(StepDraft& draft) { TransferBuilder{draft}.build(); }

}  // namespace orrery
