#include "sim/explorer/warm_inputs.hpp"

#include <utility>

#include "sim/layers/memory.hpp"
#include "sim/measurements/calibration.hpp"
#include "sim/plan/plan_keys.hpp"
#include "sim/plan/software_keys.hpp"

namespace orrery {

WarmInputs::WarmInputs(NamesAllowed names, Detail detail)
    : names_{std::move(names)}, detail_{detail} {
  // Every answer lists alternative software; reading the files for each would take longer.
  for (const std::string& name : names_.software) near(name);
}

const Model& WarmInputs::model(const std::string& word) {
  const auto found = models_.find(word);
  if (found != models_.end()) return found->second;
  return models_.emplace(word, read_model(word, {"--model", ""})).first->second;
}

EstimateContext& WarmInputs::context(const std::string& system, const std::string& calibration) {
  for (auto machine = machines_.begin(); machine != machines_.end(); ++machine)
    if (machine->system == system && machine->calibration == calibration) {
      machines_.splice(machines_.begin(), machines_, machine);
      return machines_.front().context;
    }
  System read = read_system(system, {"--system", ""});
  if (!calibration.empty()) calibrate(read, calibration, {"--calibration", ""});
  machines_.emplace_front(system, calibration, read);
  if (machines_.size() > most_machines) machines_.pop_back();
  machines_.front().context.make_kernels();
  return machines_.front().context;
}

const Software& WarmInputs::software(const std::string& name) {
  const auto found = software_.find(name);
  if (found != software_.end()) return found->second;
  return software_.emplace(name, read_software(name, {"--software", ""})).first->second;
}

const std::vector<Software>& WarmInputs::near(const std::string& name) {
  const auto found = near_.find(name);
  if (found != near_.end()) return found->second;
  return near_.emplace(name, software_near(software(name))).first->second;
}

// It only reads files and computes nothing that a state could make long: processes forked from here
// may hang, and this one must not.
void WarmInputs::warm_up(const ExploredState& state) {
  try {
    const StateInputs read{state, *this};
    const PlanRequest request = state.request();
    const std::string named = request.software.empty()
                                  ? default_software(request, read.context.system())
                                  : request.software;
    near(named);
    Scenario probe;
    probe.model = read.model;
    probe.software = software(named);
    probe.plan.dtype = request.dtype.value_or(probe.software.dtype);
    read.context.price_errors(probe);
  } catch (const Error&) {
  }
}

StateInputs::StateInputs(const ExploredState& state, WarmInputs& all)
    : model{all.model(state.word("model"))},
      context{all.context(state.word("system"), state.word("calibration"))},
      inputs{all} {}

Scenario StateInputs::scenario(const ExploredState& state) const {
  const PlanRequest request = state.request();
  const System& system = context.system();
  const std::string named =
      request.software.empty() ? default_software(request, system) : request.software;
  const auto near = [&]() -> const std::vector<Software>& { return inputs.near(named); };
  return make_scenario(model, system, inputs.software(named), near, request, state.gpus(), {});
}

namespace {

bool runs(const ExploredState& state, const StateInputs& read) {
  try {
    const Scenario scenario = read.scenario(state);
    const MemoryReport memory = memory_of(scenario, *read.context.loads(scenario));
    return memory.peak() <= safe_share_of_memory * memory.capacity;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

std::optional<ExploredState> repaired(const ExploredState& state, WarmInputs& inputs) {
  const StateInputs read{state, inputs};
  if (runs(state, read)) return state;
  ExploredState bare;
  for (const char* key : {"model", "system", "calibration", "gpus", "gbs", "seq", "tokens",
                          "economics", "dtype", "software"})
    if (state.says(key)) bare = bare.with(key, state.word(key));
  // The new model or system may not support these choices of the old plan.
  std::vector<ExploredState> bases{bare};
  for (const char* key : {"seq", "dtype", "software"})
    if (bases.back().says(key)) bases.push_back(bases.back().with(key, ""));
  const int gpus = state.gpus();
  const std::int64_t domain = read.context.system().nvlink_domain;
  const std::int64_t experts = read.model.experts ? read.model.experts->count : 1;
  // The order is by rising cost in time.
  for (const ExploredState& base : bases)
    for (const char* recompute : {"", "selective", "full"})
      for (int ranks = 1; ranks <= gpus && ranks <= 4096; ranks *= 2)
        for (std::int64_t tp = std::min<std::int64_t>({ranks, domain, 8}); tp >= 1; tp /= 2) {
          if (ranks % tp != 0) continue;
          const ExploredState spread = base.with("recompute", recompute)
                                           .with("tp", std::to_string(tp))
                                           .with("pp", std::to_string(ranks / tp));
          for (std::int64_t ep = std::min<std::int64_t>(experts, 64); ep >= 1; ep /= 2) {
            const ExploredState plan = ep > 1 ? spread.with("ep", std::to_string(ep)) : spread;
            if (runs(plan, read)) return plan;
          }
        }
  return std::nullopt;
}

}  // namespace orrery
