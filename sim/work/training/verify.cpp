#include "sim/work/training/verify.hpp"

#include <cmath>
#include <map>
#include <tuple>

namespace orrery {
namespace {

std::string describe(TaskId id, const TrainingStep& step) {
  const Label& label = step.label(id);
  return "task " + std::to_string(id.value) + " (role " +
         std::to_string(step.graph.task(id).owner) + ", chunk " + std::to_string(label.chunk) +
         ", micro-batch " + std::to_string(label.microbatch) + ")";
}

std::string check_numbers(TaskId id, const TrainingStep& step) {
  const Task& task = step.graph.task(id);
  if (!std::isfinite(task.duration.si()) || task.duration < Seconds{})
    return describe(id, step) + " has a duration that is no time";
  if (step.label(id).kind != Label::Kind::transfer && !task.flows.empty())
    return describe(id, step) + " computes and sends at once";
  for (const Flow& flow : task.flows) {
    if (!std::isfinite(flow.bytes.si()) || flow.bytes.si() <= 0.0)
      return describe(id, step) + " has a flow without bytes";
    if (!std::isfinite(flow.rate.si()) || flow.rate.si() <= 0.0)
      return describe(id, step) + " has a flow that does not move";
    if (flow.way.empty()) return describe(id, step) + " has a flow without a way";
    for (const LinkUse& use : flow.way)
      if (use.times < 1) return describe(id, step) + " uses a link less than once";
  }
  return "";
}

using PassKey = std::tuple<int, int, int>;  // Role, chunk, micro-batch.

struct PassSeen {
  int inputs_only = 0;
  int weights = 0;
  int position[2] = {-1,
                     -1};  // In topological order: of the last forward, the first backward task.
};

}  // namespace

std::string verify(const TrainingStep& step, const Plan& plan) {
  const TaskGraph& graph = step.graph;
  const std::vector<TaskId> order = graph.in_order();
  if (order.empty() && graph.size() > 0) return "the tasks wait for each other in a circle";

  std::map<PassKey, PassSeen> passes;
  std::map<std::pair<int, int>, int> transfers;  // (sender, receiver) -> count
  std::map<std::pair<int, int>, double> sent;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Task& task = graph.task(order[i]);
    const Label& label = step.label(order[i]);
    if (const std::string problem = check_numbers(order[i], step); !problem.empty()) return problem;
    if (label.what == Label::What::transfer) {
      if (label.to_role < 0) return describe(order[i], step) + " sends to nobody";
      ++transfers[{task.owner, label.to_role}];
      for (const Flow& flow : task.flows) sent[{task.owner, label.to_role}] += flow.bytes.si();
    }
    if (task.stream != Stream::compute || label.microbatch < 0) continue;
    PassSeen& seen = passes[{task.owner, label.chunk, label.microbatch}];
    const int position = static_cast<int>(i);
    if (label.what == Label::What::forward) seen.position[0] = position;
    if (label.what == Label::What::backward && seen.position[1] < 0) {
      seen.position[1] = position;
      seen.inputs_only += label.inputs_only ? 1 : 0;
    }
    if (label.what == Label::What::weight_gradient) {
      if (seen.position[1] < 0) return describe(order[i], step) + " comes before its inputs'";
      seen.weights = 1;
    }
    if (label.cost && label.with_microbatch >= 0)
      passes[{task.owner, label.with_chunk, label.with_microbatch}].position[1] = position;
  }

  const std::size_t expected =
      step.cast.roles().size() *
      static_cast<std::size_t>(plan.chunks() * plan.microbatches_of_chunk());
  if (passes.size() != expected)
    return std::to_string(passes.size()) + " passes where the plan has " + std::to_string(expected);
  for (const auto& [key, seen] : passes)
    if (seen.position[0] < 0 || seen.position[1] < 0 || seen.position[0] > seen.position[1])
      return "role " + std::to_string(std::get<0>(key)) + " runs micro-batch " +
             std::to_string(std::get<2>(key)) + " backward before forward, or only one of the two";

  for (const auto& [key, seen] : passes)
    if (seen.inputs_only != seen.weights)
      return "role " + std::to_string(std::get<0>(key)) + " runs micro-batch " +
             std::to_string(std::get<2>(key)) +
             (seen.weights ? " with its weight gradients twice" : " without its weight gradients");

  // A stage receives m tensors a chunk in each direction, but for the two ends of the pipeline and
  // where virtual stages that follow each other lie on one rank.
  std::int64_t count = 0;
  for (const auto& [ends, n] : transfers) count += n;
  for (const auto& [ends, bytes] : sent) {
    const auto back = sent.find({ends.second, ends.first});
    if (back == sent.end())
      return "gradients do not come back to role " + std::to_string(ends.first);
    // Interleaved, the last stage also feeds the first, so that pairs are not symmetric.
    if (plan.vpp == 1 && bytes != back->second) return "stages send other bytes than come back";
  }
  std::int64_t sends = 0;
  for (int v = 0; v < plan.virtual_stages(); ++v) sends += plan.sends_on(v);
  const std::int64_t per_pipeline = 2 * sends * plan.microbatches;
  const auto pipelines = static_cast<std::int64_t>(step.cast.roles().size()) / plan.pp;
  if (count != per_pipeline * pipelines)
    return std::to_string(count) + " transfers between stages where the plan has " +
           std::to_string(per_pipeline * pipelines);
  return "";
}

}  // namespace orrery
