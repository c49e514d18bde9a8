#pragma once

#include <set>
#include <string>
#include <vector>

#include "sim/explorer/explored_state.hpp"
#include "sim/explorer/warm_inputs.hpp"
#include "sim/search/search.hpp"
#include "sim/sweep/grid.hpp"

namespace orrery {

/// A search that a page asks for: `orrery search` for the model, system and training of a state.
/// The state's plan keeps the keys that a search does not vary, and those that the page holds.
struct ExploredSearch {
  ExploredState state;
  std::string gpus, gbs;       ///< Lists and ranges as in --gpus and --gbs.
  std::set<std::string> hold;  ///< Keys that a search would vary and that stay.
  std::string objective;       ///< "": step_time.
  bool pareto = false;
  int top = 10;  ///< Unless pareto.

  /// Parses {"state": {...}, "gpus": "256..4096", "gbs": "1536", "hold": ["tp"], "objective":
  /// "...", "pareto": false, "top": 10}; absent gpus and gbs are the state's. Errors (bad_input):
  /// as ExploredState::read(), and an unknown key.
  static ExploredSearch read(const std::string& json, const NamesAllowed& names);

  /// Keys that --fix names, in the order of --help.
  std::vector<std::string> fixed_keys() const;
  /// Errors: as `orrery search`.
  SearchRequest request(WarmInputs& inputs) const;
  /// The words after "orrery": "search --model gpt3-175b ... --fix tp=8", as a shell takes them.
  std::string command() const;
  /// The state of a plan that was found: `flags` as Found has them.
  ExploredState state_of(const std::string& flags, int of_gpus, std::int64_t of_gbs) const;
};

/// A grid of plans that a page asks for: `orrery sweep run` of a state's plan, with several values
/// for some keys.
struct ExploredSweep {
  /// Larger grids take an afternoon and belong to `orrery sweep` and its folders.
  static constexpr std::int64_t most_points = 2'000;

  ExploredState state;
  Sweep sweep;                    ///< It holds all keys of the state.
  std::vector<std::string> keys;  ///< Varied keys, in the order of the sweep's axes.

  /// Parses {"state": {...}, "axes": {"tp": "1,2,4", "gbs": "256..2048*2"}}. Errors (bad_input): as
  /// ExploredState::read() and parse_axis(), no axis, a name that `names` refuses, a word of the
  /// state that a sweep would take for several, more than `most_points`.
  static ExploredSweep read(const std::string& json, const NamesAllowed& names);

  /// The words after "orrery": "sweep run --model gpt3-175b ... --sweep 'tp=1,2,4' --output sweep".
  std::string command() const;
  /// The axes of `sweep` that keys() names.
  std::vector<const Axis*> axes() const;
  /// The state with the values that a combination of `grid` has.
  ExploredState state_at(const Grid& grid, std::int64_t number) const;

 private:
  std::map<std::string, std::string> typed_;  ///< Words as typed, by key.
};

}  // namespace orrery
