#pragma once

#include <string>
#include <vector>

#include "sim/explorer/explored_state.hpp"
#include "sim/sweep/grid.hpp"

namespace orrery {

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
