#include "sim/reliability/run_policy.hpp"

#include <algorithm>

#include "sim/core/json_value.hpp"
#include "sim/core/nearest.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/text_file.hpp"
#include "sim/core/value_list.hpp"

namespace orrery {
namespace {

constexpr const char* remedy_of_interval = "write it like store:10min,peer:1step";
constexpr double most_steps = 1e9;

void read_interval(CheckpointRule& rule, const std::string& text, const Place& at) {
  if (text == "best") return;
  for (const std::string unit : {"steps", "step"})
    if (text.ends_with(unit)) {
      std::string_view word{text.data(), text.size() - unit.size()};
      if (word.ends_with(' ')) word.remove_suffix(1);
      const auto number = plain_number(word);
      if (!number || *number < 1.0 || *number > most_steps ||
          *number != static_cast<double>(static_cast<std::int64_t>(*number)))
        fail_input(at, "'" + shown_text(text) + "' is no number of steps", remedy_of_interval);
      rule.steps = static_cast<std::int64_t>(*number);
      return;
    }
  rule.every = parse_span(text, at);
  if (rule.every == Seconds{} || rule.every > Seconds{1e9})
    fail_input(at, "'" + shown_text(text) + "' is no interval", remedy_of_interval);
}

CheckpointRule parse_rule(const std::string& text, const Place& at) {
  CheckpointRule rule;
  const std::size_t colon = text.find(':');
  if (colon == text.npos) {
    read_interval(rule, text, at);
    return rule;
  }
  rule.tier = choice<CheckpointTier>(text.substr(0, colon), at, "is no place for a checkpoint");
  read_interval(rule, text.substr(colon + 1), at);
  return rule;
}

}  // namespace

std::vector<CheckpointRule> parse_checkpoints(const std::string& text, const Place& at) {
  std::vector<CheckpointRule> rules;
  for (const std::string& item : split_list(text, at)) rules.push_back(parse_rule(item, at));
  std::stable_sort(rules.begin(), rules.end(),
                   [](const auto& a, const auto& b) { return a.tier < b.tier; });
  for (std::size_t i = 1; i < rules.size(); ++i)
    if (rules[i].tier == rules[i - 1].tier)
      fail_input(at, "names '" + name(rules[i].tier) + "' twice", "keep one of them");
  if (rules.back().tier != CheckpointTier::store)
    fail_input(at, "keeps nothing that outlives every failure", "add store:1h");
  return rules;
}

}  // namespace orrery
