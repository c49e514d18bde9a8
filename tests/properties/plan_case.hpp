#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>

#include "sim/plan/scenario.hpp"

namespace orrery {

/// A question to the simulator, small enough that its answer takes milliseconds: a model, a system,
/// and keys of a plan that may or may not go together.
struct PlanCase {
  // A name of the catalog, or "" for a model of the sizes below.
  std::string model;
  int layers = 4;
  std::int64_t width = 1024, heads = 8, vocab = 32000, experts = 0, per_token = 1;

  std::string system = "dgx-h100";
  int gpus = 8;
  std::int64_t batch = 32, seq = 2048;
  std::map<std::string, std::string> keys;  ///< Values in the words of a plan's flags.

  Model make_model() const;
  const System& machine() const;  ///< Called `system`; read once.
  /// The plan on `system`; nothing if it is none. `model`: as make_model(), or a variation of it.
  std::optional<Scenario> scenario(const Model& model, const System& system) const;
  std::optional<Scenario> scenario() const;
  /// The same as users get it: the software is read for it alone. Errors: as make_scenario.
  Scenario scenario_as_read() const;
  PlanRequest request() const;
  /// Two lines: what it is, and for a model of the catalog the command that asks it.
  std::string text() const;
};

/// The case of a text(). Errors (std::invalid_argument): it is no such text.
PlanCase case_of(const std::string& text);

/// Mersenne's twister gives the same numbers everywhere, and so do these draws from it.
PlanCase sample_case(std::mt19937_64& random);

/// Simpler cases of the same kind, of which one may fail in the same way: a key less, half of the
/// GPUs, and so on.
std::vector<PlanCase> simpler(const PlanCase& failing);

}  // namespace orrery
