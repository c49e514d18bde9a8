#include "sim/validation/measured_steps.hpp"

#include "sim/plan/scenario.hpp"
#include "sim/training/estimate.hpp"

namespace orrery {
namespace {

using calibration::Measurement;
using calibration::Outcome;

std::optional<double> figure(const Measurement& one, const std::string& name) {
  const auto found = one.figures.find(name);
  if (found == one.figures.end()) return std::nullopt;
  return found->second;
}

Seconds required_figure(const Measurement& one, const std::string& name, const std::string& file) {
  const auto us = figure(one, name);
  if (!us)
    fail_input({file, ""}, one.what.id() + " has no figure '" + name + "'",
               "measure it again: orrery-gpu measure --kinds training_step");
  return microseconds(*us);
}

std::string name_of(const calibration::StepModel& m, const std::string& launch) {
  return std::to_string(m.layers) + (m.layers == 1 ? " layer of " : " layers of ") +
         std::to_string(m.hidden) + ", " + std::to_string(m.tokens()) + " tokens, " + launch;
}

// A CUDA graph is one host launch per pass.
Software software_for(bool in_graphs, const LaunchCosts& costs) {
  Software software = read_software("orrery-gpu", {});
  const auto& gap = in_graphs ? costs.graph_gap : costs.eager_gap;
  if (gap) software.kernel_overhead = *gap;
  if (!in_graphs && costs.host_launch) software.host_launch = *costs.host_launch;
  return software;
}

StepParts predicted_parts(const Estimate& estimate) {
  const StageCost& stage = estimate.step.cost->stages.front();
  return {stage.forward.time(), stage.backward.time(), estimate.result.busiest().optimizer,
          estimate.result.step_time};
}

}  // namespace

LaunchCosts launch_costs_of(const calibration::Record& record) {
  LaunchCosts costs;
  for (const Measurement& one : record.measurements) {
    if (one.what.kind != "launch" || one.outcome != Outcome::measured) continue;
    const std::string& op = one.what.choice("op");
    if (op == "chain" && one.warm) costs.eager_gap = microseconds(one.warm->median_us);
    if (op == "graph" && one.warm) costs.graph_gap = microseconds(one.warm->median_us);
    if (const auto us = figure(one, "host_us"); op == "kernel" && us)
      costs.host_launch = microseconds(*us);
  }
  return costs;
}

Model model_of(const calibration::StepModel& step) {
  Model model;
  model.name = "orrery-gpu step";
  model.source = "orrery-gpu";
  model.layers = step.layers;
  model.hidden = step.hidden;
  model.heads = step.heads;
  model.kv_heads = step.kv_heads;
  model.head_dim = step.head_dim();
  model.ffn = step.ffn;
  model.gated = true;
  model.vocab = step.vocab;
  model.max_sequence = step.sequence;
  return model;
}

std::vector<MeasuredStep> predict_steps(const calibration::Record& record, const std::string& file,
                                        const System& system) {
  const LaunchCosts costs = launch_costs_of(record);
  std::vector<MeasuredStep> steps;
  for (const Measurement& one : record.measurements) {
    if (one.what.kind != "training_step" || one.outcome != Outcome::measured || !one.warm) continue;
    const calibration::StepModel model = calibration::step_model_of(one.what);
    const std::string& launch = one.what.choice("launch");
    MeasuredStep step;
    step.name = name_of(model, launch);
    step.measured = {required_figure(one, "forward_us", file),
                     required_figure(one, "backward_us", file),
                     required_figure(one, "optimizer_us", file), microseconds(one.warm->median_us)};
    step.launches = static_cast<int>(figure(one, "launches_count").value_or(0.0));
    const auto forward = figure(one, "host_forward_us"), backward = figure(one, "host_backward_us"),
               optimizer = figure(one, "host_optimizer_us");
    if (forward && backward && optimizer)
      step.host = microseconds(*forward + *backward + *optimizer);

    PlanRequest request;
    request.mbs = request.gbs = model.batch;
    request.seq = model.sequence;
    const Scenario scenario = make_scenario(model_of(model), system,
                                            software_for(launch == "graph", costs), request, 1, {});
    const Estimate predicted = estimate(scenario);
    step.predicted = predicted_parts(predicted);
    step.range = predicted.result.range;
    steps.push_back(std::move(step));
  }
  if (steps.empty())
    fail_input({file, ""}, "holds no measured training step",
               "measure some: orrery-gpu measure --resume --kinds training_step -o " + file);
  return steps;
}

}  // namespace orrery
