#include "sim/sweep/point_evaluator.hpp"

#include <algorithm>

#include "sim/engine/network_model.hpp"
#include "sim/measurements/calibration.hpp"
#include "sim/moe/routing_plan.hpp"
#include "sim/pipeline/schedule_file.hpp"
#include "sim/plan/plan_keys.hpp"
#include "sim/plan/software_keys.hpp"
#include "sim/sweep/sweep.hpp"
#include "sim/training/bill.hpp"
#include "sim/training/estimate.hpp"

namespace orrery {
namespace {

RowFigures texts_of(const SweepFigures& figures) {
  RowFigures row;
  for (const auto& [name, value] : figures)
    if (value) row.emplace_back(name, figure_text(name, *value));
  return row;
}

const Schedule& schedule_of(const Sweep& sweep, const JsonValue& name) {
  const JsonValue* held = sweep.plan.find_held("schedule");
  return held ? user_schedule(name.text(), held->text())
              : schedule_of_word(name.text(), name.place());
}

}  // namespace

SweepInputs read_inputs(const Sweep& sweep) {
  SweepInputs inputs;
  std::map<std::string, System> systems;
  std::vector<std::string> calibrations;
  for (const Dimension& dimension : sweep.dimensions)
    for (const Axis& axis : dimension.axes)
      for (const AxisValue& value : axis.values) {
        const Place at{"--" + axis.key, ""};
        const JsonValue* held = sweep.plan.find_held(axis.key);
        if (axis.key == "model")
          inputs.models.emplace(value.text, held ? parse_model(*held) : read_model(value.text, at));
        if (axis.key == "system")
          systems.emplace(value.text, held ? parse_system(*held) : read_system(value.text, at));
        if (axis.key == "calibration") calibrations.push_back(value.text);
        if (axis.key == "software")
          inputs.software.emplace(value.text,
                                  held ? parse_software(*held) : read_software(value.text, at));
        // Read again where they are needed; that they can be read is to be known before.
        if (axis.key == "routing") read_routing(value.text, at);
        if (axis.key == "schedule") schedule_of(sweep, value.json);
      }
  for (const auto& [name, system] : systems) {
    if (calibrations.empty()) inputs.systems.emplace(SweepInputs::SystemName{name, ""}, system);
    for (const std::string& file : calibrations) {
      System measured = system;
      const Place at{"--calibration", ""};
      if (const JsonValue* held = sweep.plan.find_held("calibration"))
        calibrate(measured, *held, file, at);
      else
        calibrate(measured, file, at);
      inputs.systems.emplace(SweepInputs::SystemName{name, file}, std::move(measured));
    }
  }
  if (!sweep.tokens) return inputs;
  std::vector<PricedMachine> machines;
  for (const auto& [name, system] : inputs.systems) machines.emplace_back(system);
  for (const auto& [name, system] : inputs.systems)
    inputs.economics.emplace(name, read_economics(system, sweep.economics, machines));
  return inputs;
}

PointEvaluator::PointEvaluator(const Sweep& sweep, const Grid& grid, const SweepInputs& inputs)
    : sweep_{sweep}, grid_{grid}, inputs_{inputs}, softwares_{inputs.software} {
  if (sweep.memory_only) return;
  for (const auto& [name, system] : inputs.systems)
    contexts_.try_emplace(name, system).first->second.make_kernels();
}

Answer PointEvaluator::operator()(std::int64_t point) {
  try {
    return answer(point);
  } catch (const Error& error) {
    // Also keys that contradict each other: each was checked by itself when the sweep was read. And
    // a routing that does not suit the plan, and a dtype that the GPU has not got.
    return infeasible(point, error.what());
  }
}

Answer PointEvaluator::answer(std::int64_t point) {
  const Scenario scenario = scenario_of(point);
  if (sweep_.memory_only) {
    const MemoryReport memory = memory_of(scenario, *loads_.of(scenario));
    if (!memory.fits()) return infeasible(point, shortfall_text(memory));
    return {ok_row(grid_, point, texts_of(sweep_figures(memory)), scenario.why_software), false};
  }
  const SweepInputs::SystemName system = system_of(point);
  EstimateContext& context = contexts_.at(system);
  const MemoryReport memory = memory_of(scenario, *context.loads(scenario));
  if (!memory.fits()) return infeasible(point, shortfall_text(memory));
  Result result = estimate(scenario, context).result;
  if (sweep_.tokens)
    result.bill = bill_of(scenario, result.step_time, *sweep_.tokens, inputs_.economics.at(system));
  return {ok_row(grid_, point, texts_of(sweep_figures(result)), scenario.why_software),
          chosen_simulator() == Simulator::simgrid};
}

Answer PointEvaluator::infeasible(std::int64_t point, const std::string& reason) const {
  return {row_without_answer(grid_, point, PointStatus::infeasible, reason), false};
}

// A file for each point would take longer than many a point.
const Software& PointEvaluator::software(const std::string& name) {
  const auto found = softwares_.find(name);
  if (found != softwares_.end()) return found->second;
  return softwares_.emplace(name, read_software(name, {"", "--software"})).first->second;
}

SweepInputs::SystemName PointEvaluator::system_of(std::int64_t point) const {
  SweepInputs::SystemName name;
  const std::vector<const AxisValue*> values = grid_.values(point);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (grid_.axes()[i]->key == "system") name.first = values[i]->text;
    if (grid_.axes()[i]->key == "calibration") name.second = values[i]->text;
  }
  return name;
}

Scenario PointEvaluator::scenario_of(std::int64_t point) {
  const std::vector<const AxisValue*> values = grid_.values(point);
  PlanRequest request;
  const Model* model = nullptr;
  const System& system = inputs_.systems.at(system_of(point));
  int gpus = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::string& key = grid_.axes()[i]->key;
    if (key == "model") {
      model = &inputs_.models.at(values[i]->text);
    } else if (key == "system" || key == "calibration") {
      continue;
    } else if (key == "gpus") {
      gpus = static_cast<int>(values[i]->number);
    } else if (key == "schedule") {
      request.schedule = &schedule_of(sweep_, values[i]->json);
    } else {
      set_plan_key(request, key, values[i]->json);
    }
  }
  const std::string name =
      request.software.empty() ? default_software(request, system) : request.software;
  const auto near = [&]() -> const std::vector<Software>& {
    const auto found = near_.find(name);
    if (found != near_.end()) return found->second;
    return near_.emplace(name, software_near(software(name))).first->second;
  };
  return make_scenario(*model, system, software(name), near, request, gpus, {});
}

}  // namespace orrery
