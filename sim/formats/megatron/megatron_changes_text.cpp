#include "sim/formats/megatron/megatron_changes_text.hpp"

#include <algorithm>

#include "sim/core/number_text.hpp"
#include "sim/core/table.hpp"
#include "sim/formats/megatron/megatron_changes.hpp"
#include "sim/plan/plan_keys.hpp"

namespace orrery {
namespace {

// "tp 4 -> 2": what the plan changes, and why its arguments do.
std::string reason_of(const PlanStep& step, const Plan& before) {
  std::string text;
  for (const std::string& name : step.keys) {
    const PlanKey& key = plan_key(name);
    const auto value = [&](const Plan& plan) {
      return key.has_value(plan) ? key.text(plan) : std::string{"none"};
    };
    text += (text.empty() ? "" : ", ") + name + " " + value(before) + " -> " +
            value(step.scenario.plan);
  }
  return text;
}

std::string change_text(const ArgumentChange& change) {
  if (change.after.empty()) return "without " + change.before;
  if (change.before.empty()) return change.after;
  const std::size_t word = change.after.find(' ');
  return change.before + " -> " +
         (word == std::string::npos ? change.after : change.after.substr(word + 1));
}

std::string seconds(std::optional<Seconds> time) {
  return time ? fixed(time->si(), 3) : "does not fit";
}

std::string change(std::optional<Seconds> before, std::optional<Seconds> after) {
  if (!before || !after) return "";
  return signed_percent((after->si() - before->si()) / before->si());
}

}  // namespace

std::string megatron_changes_text(const MegatronArguments& script,
                                  const std::vector<PlanStep>& steps) {
  Table table{{{"step (s)"}, {"change"}, {"because of", Align::left}, {"arguments", Align::left}}};
  table.add_row({seconds(steps.front().step), "", "the script", ""});
  const MegatronFlags first = megatron_flags(steps.front().scenario);
  std::vector<ArgumentChange> so_far;
  for (std::size_t i = 1; i < steps.size(); ++i) {
    const std::vector<ArgumentChange> changes =
        changed_arguments(script, first, megatron_flags(steps[i].scenario));
    std::vector<std::string> cells{seconds(steps[i].step), change(steps[i - 1].step, steps[i].step),
                                   reason_of(steps[i], steps[i - 1].scenario.plan)};
    const auto add = [&](const std::string& argument) {
      cells.push_back(argument);
      table.add_row(std::exchange(cells, {"", "", ""}));
    };
    for (const ArgumentChange& change : changes)
      if (std::find(so_far.begin(), so_far.end(), change) == so_far.end()) add(change_text(change));
    for (const ArgumentChange& change : so_far)  // A later key undoes it.
      if (std::none_of(changes.begin(), changes.end(),
                       [&](const ArgumentChange& other) { return other.name == change.name; }))
        add(change.before.empty() ? "without " + change.after : change.before);
    if (cells.size() == 3 && !cells[0].empty()) table.add_row(cells);
    so_far = changes;
  }
  return table.text() + (steps.size() == 1 ? "the script has this plan\n" : "");
}

}  // namespace orrery
