#pragma once

#include <list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/cluster/economics.hpp"
#include "sim/explorer/explored_state.hpp"
#include "sim/training/estimate.hpp"

namespace orrery {

/// Inputs that states name, read once and kept: an estimate of a plan then takes as long as its
/// simulation.
class WarmInputs {
 public:
  explicit WarmInputs(NamesAllowed names, Detail detail);

  const NamesAllowed& names() const { return names_; }
  const Detail& detail() const { return detail_; }

  /// `word` must be among names(). Errors: those of reading it.
  const Model& model(const std::string& word);
  EstimateContext& context(const std::string& system, const std::string& calibration);
  const Software& software(const std::string& name);
  const std::vector<Software>& near(const std::string& software);  ///< software_near() of it.

  /// Reads the inputs of a state, so that processes forked from here have them. Errors: none; a
  /// process that needs them meets them again.
  void warm_up(const ExploredState& state);

 private:
  struct Machine {
    Machine(std::string name, std::string measured, const System& read)
        : system{std::move(name)}, calibration{std::move(measured)}, context{read} {}
    std::string system, calibration;
    EstimateContext context;
  };
  /// Each of these has some megabytes of tables.
  static constexpr std::size_t most_machines = 6;

  NamesAllowed names_;
  Detail detail_;
  std::map<std::string, Model> models_;
  std::list<Machine> machines_;  ///< The most recently used one is the first.
  std::map<std::string, Software> software_;
  std::map<std::string, std::vector<Software>> near_;
};

/// A state with its inputs.
struct StateInputs {
  StateInputs(const ExploredState& state, WarmInputs& inputs);

  /// Errors: as make_scenario().
  Scenario scenario(const ExploredState& state) const;

  const Model& model;
  EstimateContext& context;
  WarmInputs& inputs;
};

/// A plan like that of `state` that runs; the state's model, system, GPUs, batch and tokens stay.
/// Nothing: none of the usual plans runs.
std::optional<ExploredState> repaired(const ExploredState& state, WarmInputs& inputs);

}  // namespace orrery
