#include "sim/training/checkpoint_write.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <map>

#include "sim/engine/max_min_network.hpp"
#include "sim/engine/simulation.hpp"
#include "sim/training/context.hpp"
#include "sim/training/step_parts.hpp"

namespace orrery {
namespace {

bool writes(const CheckpointWrite& write, const Coordinates& at) {
  if (write.of_rank[static_cast<std::size_t>(at.stage)] <= Bytes{}) return false;
  return write.every_replica || (at.data == 0 && at.context == 0);
}

// The writer's NIC; in a folded topology the simulated NIC of its class.
std::optional<LinkId> nic_of(const Topology& topology, const RankClasses& classes, int rep,
                             Rank writer, bool outward) {
  const LinkKind kind = outward ? LinkKind::nic_up : LinkKind::nic_down;
  for (int k = 0; k < traffic_kinds; ++k)
    if (const ClassRoute* known = classes.route_of(rep, static_cast<Traffic>(k)))
      for (const LinkUse& use : known->links)
        if (topology.link(use.link).kind == kind) return use.link;
  return topology.nic_of(writer, outward);
}

}  // namespace

std::vector<Writer> writers_of(const CheckpointWrite& write, const RankClasses& classes,
                               Topology& topology) {
  const Placement& placement = classes.placement();
  const std::size_t reps = classes.reps().size();
  std::vector<int> count(reps, 0);
  std::vector<Rank> first(reps);
  std::map<std::pair<int, int>, int> on_nic;  // Writers of a class on one NIC.
  for (int r = 0; r < placement.ranks(); ++r) {
    const Rank rank{r};
    if (!writes(write, placement.coordinates(rank))) continue;
    const auto rep = static_cast<std::size_t>(classes.rep_of(rank));
    if (count[rep]++ == 0) first[rep] = rank;
    ++on_nic[{static_cast<int>(rep), placement.nic(rank)}];
  }
  std::optional<LinkId> port;
  if (write.store) port = topology.add_port(*write.store);
  std::vector<Writer> writers;
  for (std::size_t i = 0; i < reps; ++i) {
    if (count[i] == 0) continue;
    const int rep = static_cast<int>(i);
    const int sharers = on_nic[{rep, placement.nic(first[i])}];
    Flow flow;
    flow.bytes = write.of_rank[static_cast<std::size_t>(placement.coordinates(first[i]).stage)];
    flow.rate = write.off_rank;
    if (const auto out = nic_of(topology, classes, rep, first[i], true))
      flow.route.push_back({*out, sharers});
    if (port)
      flow.route.push_back({*port, count[i]});
    else if (const auto in = nic_of(topology, classes, rep, first[i], false))
      flow.route.push_back({*in, sharers});
    writers.push_back({rep, count[i], std::move(flow)});
  }
  return writers;
}

namespace {

// Share of a writer's bytes below which the remainder is rounding.
constexpr double nothing_left = 1e-9;

bool leaves_its_domain(const GroupShapes& shapes) {
  return shapes.tensor.domains > 1 || shapes.context.domains > 1 ||
         shapes.expert_tensor.domains > 1 || shapes.expert.domains > 1;
}

class WrittenSteps {
 public:
  WrittenSteps(const Scenario& scenario, EstimateContext& context, const CheckpointWrite& write,
               const Detail& detail)
      : routed_{scenario, context},
        context_{context},
        detail_{detail},
        topology_{Topology::build(filled_evenly(scenario.system, scenario.plan.gpus()),
                                  scenario.plan.gpus())},
        layout_{lay_out(scenario.system, Placement{routed_.scenario.plan, scenario.system},
                        topology_, detail.unfolded)},
        cost_{price(routed_, context, layout_)},
        // Collectives that cross NICs share them with the write.
        contraction_{
            detail.expanded || leaves_its_domain(layout_.shapes)
                ? Contraction{false}
                : choose_contraction(routed_.scenario, *cost_, layout_.classes.placement())},
        writers_{writers_of(write, layout_.classes, topology_)} {
    contraction_.fused = !detail.expanded;
  }

  StepsDuringWrite run() const {
    std::vector<double> left(writers_.size());
    for (std::size_t i = 0; i < writers_.size(); ++i) left[i] = writers_[i].flow.bytes.si();
    StepsDuringWrite all;
    all.step = step_with(std::vector<double>(writers_.size(), 0.0)).end;
    double longer = 0.0;
    while (std::any_of(left.begin(), left.end(), [](double bytes) { return bytes > 0.0; })) {
      const Step step = step_with(left);
      if (all.steps == 0) all.throughout = step.end;
      const Seconds last = *std::max_element(step.written.begin(), step.written.end());
      if (last <= step.end) {
        all.write += last;
        ++all.steps;
        longer += (step.end - all.step).si();
        break;
      }
      const std::vector<double> after = moved_after(step, left);
      // Steps in which no writer ends are equal and are counted together.
      double alike = std::numeric_limits<double>::infinity();
      for (std::size_t i = 0; i < left.size(); ++i) {
        if (left[i] == 0.0) continue;
        const double moved = left[i] - after[i];
        alike = std::min(alike, after[i] == 0.0 ? 1.0 : std::floor(left[i] / moved));
      }
      assert(alike >= 1.0 && std::isfinite(alike));
      for (std::size_t i = 0; i < left.size(); ++i) {
        left[i] -= alike * (left[i] - after[i]);
        if (left[i] < nothing_left * writers_[i].flow.bytes.si()) left[i] = 0.0;
      }
      all.write += alike * step.end;
      all.steps += static_cast<std::int64_t>(alike);
      longer += alike * (step.end - all.step).si();
    }
    all.longer = Seconds{std::max(0.0, longer)};
    return all;
  }

 private:
  struct Step {
    Seconds end;
    std::vector<Seconds> written;  // Arrival of each writer's bytes, 0 without any.
  };

  Step step_with(const std::vector<double>& bytes) const {
    const Scenario& scenario = routed_.scenario;
    const StepTraffic traffic{scenario, context_.collectives(scenario.plan), layout_.shapes};
    TrainingStep step =
        build_training_step(scenario, cost_, traffic, layout_.classes, topology_, contraction_);
    const int own = step.graph.size();
    std::vector<TaskId> writes(writers_.size());
    for (std::size_t i = 0; i < writers_.size(); ++i) {
      if (bytes[i] == 0.0) continue;
      StepTask task;
      task.kind = Label::Kind::transfer;
      task.what = Label::What::transfer;  // Belongs to no stage's window.
      task.stream = Stream::data;
      task.owner = writers_[i].rep;
      Flow flow = writers_[i].flow;
      flow.bytes = Bytes{bytes[i]};
      task.flows = std::vector<Flow>{std::move(flow)};
      writes[i] = add_labelled(step.graph, step.labels, std::move(task));
    }
    const Timeline timeline = execute(step.graph, topology_);
    Step answer{end_of(step, timeline, own), std::vector<Seconds>(writers_.size())};
    for (std::size_t i = 0; i < writers_.size(); ++i)
      if (bytes[i] > 0.0) answer.written[i] = timeline.of(writes[i]).finish.seconds();
    return answer;
  }

  // End of the step's own tasks, which come first in the graph.
  Seconds end_of(const TrainingStep& step, const Timeline& timeline, int own) const {
    const Scenario& scenario = routed_.scenario;
    if (scenario.software.optimizer_post_validation)
      return step_window(scenario, step, timeline).length();
    Ticks end;
    for (int i = 0; i < own; ++i) end = std::max(end, timeline.of(TaskId{i}).finish);
    return end.seconds();
  }

  // Bytes that each writer moves after the step, sharing links with those still writing.
  std::vector<double> moved_after(const Step& step, const std::vector<double>& left) const {
    std::vector<double> moved(writers_.size(), 0.0);
    std::vector<std::size_t> active;
    for (std::size_t i = 0; i < writers_.size(); ++i)
      if (left[i] > 0.0 && step.written[i] > step.end) active.push_back(i);
    for (Seconds now = step.end; !active.empty();) {
      std::vector<const Flow*> flows;
      Seconds next{std::numeric_limits<double>::infinity()};
      for (const std::size_t i : active) {
        flows.push_back(&writers_[i].flow);
        next = std::min(next, step.written[i]);
      }
      const std::vector<double> rates = max_min_rates(flows, topology_);
      for (std::size_t k = 0; k < active.size(); ++k)
        moved[active[k]] += rates[k] * (next - now).si();
      std::erase_if(active, [&](std::size_t i) { return step.written[i] <= next; });
      now = next;
    }
    for (std::size_t i = 0; i < moved.size(); ++i) moved[i] = std::min(moved[i], left[i]);
    return moved;
  }

  const Routed routed_;
  EstimateContext& context_;
  Detail detail_;
  Topology topology_;
  Layout layout_;
  std::shared_ptr<const StepCost> cost_;
  Contraction contraction_;
  std::vector<Writer> writers_;
};

}  // namespace

StepsDuringWrite steps_during(const Scenario& scenario, EstimateContext& context,
                              const CheckpointWrite& write, Detail detail) {
  return WrittenSteps{scenario, context, write, detail}.run();
}

}  // namespace orrery
