#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/core/json_value.hpp"
#include "sim/plan/plan.hpp"

namespace orrery {

/// Names that a page may use: the catalog, and the files that the command line of the explorer
/// named. A page must never make the program open another file.
struct NamesAllowed {
  std::vector<std::string> models, systems, software, routings;
  std::map<std::string, std::set<std::string>> given;  ///< Words of the command line, by key.

  static NamesAllowed of_catalog();
  /// Refuses a word that is none of these names if its key names something to read. Words of other
  /// keys pass. Errors (bad_input): the key and the word.
  void require(const std::string& key, const std::string& word) const;
};

/// The state of a page: the options of `orrery estimate`, by name and as typed. Absent ones have
/// their defaults.
class ExploredState {
 public:
  /// Longer texts are refused.
  static constexpr std::size_t most_bytes = 1 << 16;

  ExploredState() = default;
  /// Parses {"model": "gpt3-175b", "gpus": "1024", "tp": "8", ...}: every value is a string. Errors
  /// (bad_input): no such object, an unknown key (with the nearest), a name that `names` refuses, a
  /// word that its key does not take.
  static ExploredState read(const std::string& json, const NamesAllowed& names);

  const std::map<std::string, std::string>& words() const { return words_; }
  /// "": not given.
  std::string word(const std::string& key) const;
  bool says(const std::string& key) const { return words_.contains(key); }
  /// The state with `key` set to `word`; "" leaves it open.
  ExploredState with(const std::string& key, const std::string& word) const;

  int gpus() const;  ///< 0: not given. Errors: no number of GPUs.
  /// Its plan keys. Errors: a word that a key does not take.
  PlanRequest request() const;
  /// The words after "orrery": "estimate --model gpt3-175b ... --tp 8", as a shell takes them.
  std::string command() const;

 private:
  std::map<std::string, std::string> words_;
};

/// Keys of a state that no plan has: "model", "system", "calibration", "gpus", "tokens",
/// "economics".
const std::vector<std::string>& keys_outside_plan();

/// `key` = `word` and changes of keys that conflict with it: chunks need their schedule, and one
/// stage has neither. "": is left open.
using StateChanges = std::map<std::string, std::string>;
StateChanges changes_with(const ExploredState& state, const std::string& key,
                          const std::string& word);
ExploredState changed(ExploredState state, const StateChanges& changes);

}  // namespace orrery
