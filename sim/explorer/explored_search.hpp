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
/// Of the state's plan stays what a search would not vary, and what the page holds.
struct ExploredSearch {
  ExploredState state;
  std::string gpus, gbs;       ///< Lists and ranges as in --gpus and --gbs.
  std::set<std::string> hold;  ///< Keys that a search would vary and that stay.
  std::string objective;       ///< "": step_time.
  bool pareto = false;
  int top = 10;  ///< Unless pareto.

  /// From {"state": {...}, "gpus": "256..4096", "gbs": "1536", "hold": ["tp"], "objective": "...",
  /// "pareto": false, "top": 10}; gpus and gbs are the state's where they are missing. Errors
  /// (bad_input): as ExploredState::read(), and a key that is none.
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

/// A grid of plans that a page asks for: `orrery sweep run` of a state's plan, of which some keys
/// take several values.
struct ExploredSweep {
  /// More take an afternoon: that is what orrery sweep and its folders are for.
  static constexpr std::int64_t most_points = 2'000;

  ExploredState state;
  Sweep sweep;                    ///< With all keys of the state.
  std::vector<std::string> keys;  ///< That vary, in the order of the sweep's axes.

  /// From {"state": {...}, "axes": {"tp": "1,2,4", "gbs": "256..2048*2"}}. Errors (bad_input): as
  /// ExploredState::read() and parse_axis(), no axis, a name that `names` refuses, a word of the
  /// state that a sweep would take for several, more than `most_points`.
  static ExploredSweep read(const std::string& json, const NamesAllowed& names);

  /// The words after "orrery": "sweep run --model gpt3-175b ... --sweep 'tp=1,2,4' --out sweep".
  std::string command() const;
  /// Of keys(): the axes of `sweep`.
  std::vector<const Axis*> axes() const;
  /// The state with the values that a combination of `grid` has.
  ExploredState state_at(const Grid& grid, std::int64_t number) const;

 private:
  std::map<std::string, std::string> asked_;  ///< As typed, by key.
};

}  // namespace orrery
