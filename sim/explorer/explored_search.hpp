#pragma once

#include <set>
#include <string>

#include "sim/explorer/warm_inputs.hpp"
#include "sim/search/search.hpp"

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

}  // namespace orrery
