#include "sim/explorer/explored_state.hpp"

#include <algorithm>

#include "sim/core/catalog.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/quoting.hpp"
#include "sim/core/value_list.hpp"
#include "sim/plan/plan_keys.hpp"

namespace orrery {
namespace {

bool contains(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// "zipf:1.2": letters and, after a colon, a number. No path looks like it.
bool is_shape_of_routing(const std::string& word) {
  const std::size_t colon = word.find(':');
  const std::string name = word.substr(0, colon);
  const std::string number = colon == word.npos ? "" : word.substr(colon + 1);
  return !name.empty() && name.find_first_not_of("abcdefghijklmnopqrstuvwxyz-") == name.npos &&
         number.find_first_not_of("0123456789.") == number.npos;
}

std::vector<std::string> all_keys() {
  std::vector<std::string> keys = keys_outside_plan();
  for (const PlanKey& key : plan_keys()) keys.push_back(key.name);
  return keys;
}

}  // namespace

const std::vector<std::string>& keys_outside_plan() {
  static const std::vector<std::string> keys{"model", "system", "calibration",
                                             "gpus",  "tokens", "economics"};
  return keys;
}

NamesAllowed NamesAllowed::of_catalog() {
  return {list_catalog("workloads/models"),
          list_catalog("topologies/systems"),
          list_catalog("workloads/software"),
          list_catalog("workloads/routing"),
          {}};
}

void NamesAllowed::require(const std::string& key, const std::string& word) const {
  const auto of_command_line = given.find(key);
  if (of_command_line != given.end() && of_command_line->second.contains(word)) return;
  bool known = true;
  if (key == "model") known = contains(models, word);
  if (key == "system") known = contains(systems, word);
  if (key == "software") known = contains(software, word);
  if (key == "routing") known = contains(routings, word) || is_shape_of_routing(word);
  if (key == "schedule") known = contains(schedule_names(), word);
  if (key == "calibration" || key == "economics") known = false;
  if (!known)
    fail_input({"--" + key, ""}, "'" + shown_text(word) + "' is neither of the catalog nor given",
               "a page reads no other files: name it when you start orrery explore");
}

ExploredState ExploredState::read(const std::string& json, const NamesAllowed& names) {
  if (json.size() > most_bytes)
    fail_input({"state", ""}, "has " + std::to_string(json.size()) + " bytes",
               "a state has at most " + std::to_string(most_bytes));
  const JsonValue object = JsonValue::parse(json, "state");
  if (!object.is_object()) object.fail("is no object", "write {\"model\": \"gpt3-175b\", ...}");
  object.allow_only(all_keys());
  ExploredState state;
  PlanRequest probe;
  for (const std::string& key : object.keys()) {
    const auto value = object.find(key);
    if (!value) continue;
    const std::string word = value->text();
    if (word.empty()) continue;
    names.require(key, word);
    if (find_plan_key(key)) set_plan_flag(probe, key, word);
    if (key == "tokens") parse_tokens(word, {"--tokens", ""});
    state.words_[key] = word;
  }
  state.gpus();
  return state;
}

std::string ExploredState::word(const std::string& key) const {
  const auto found = words_.find(key);
  return found == words_.end() ? "" : found->second;
}

ExploredState ExploredState::with(const std::string& key, const std::string& word) const {
  ExploredState other = *this;
  if (word.empty())
    other.words_.erase(key);
  else
    other.words_[key] = word;
  return other;
}

int ExploredState::gpus() const {
  const std::string text = word("gpus");
  return text.empty() ? 0 : static_cast<int>(value_of_flag("gpus", text).integer(1, 1 << 24));
}

PlanRequest ExploredState::request() const {
  PlanRequest request;
  for (const auto& [key, word] : words_)
    if (find_plan_key(key)) set_plan_flag(request, key, word);
  return request;
}

std::string ExploredState::command() const {
  std::string text = "estimate";
  const auto add = [&](const std::string& key) {
    if (says(key)) text += " --" + key + " " + shell_word(word(key));
  };
  for (const char* key : {"model", "system", "calibration", "gpus"}) add(key);
  for (const PlanKey& key : plan_keys()) add(key.name);
  for (const char* key : {"tokens", "economics"}) add(key);
  return text;
}

StateChanges changes_with(const ExploredState& state, const std::string& key,
                          const std::string& word) {
  StateChanges changes{{key, word}};
  const auto open = [&](const char* other) {
    if (state.says(other) && key != other) changes[other] = "";
  };
  const bool one = word == "1";
  if (key == "vpp") open("schedule");
  if (key == "vpp" && one) changes["vpp"] = "";
  if (key == "schedule") open("vpp");
  if (key == "pp" && one) open("schedule"), open("vpp");
  if (key == "pp" || key == "vpp" || key == "schedule") open("layers");
  if (key == "zero" && word != "3") open("reshard");
  if (key == "zero" && word == "0") open("dp_replicate");
  // The number of replicas follows from these keys, so that changing one leaves it open.
  if (key == "tp" || key == "pp" || key == "cp" || key == "gpus") open("dp");
  return changes;
}

ExploredState changed(ExploredState state, const StateChanges& changes) {
  for (const auto& [key, word] : changes) state = state.with(key, word);
  return state;
}

}  // namespace orrery
