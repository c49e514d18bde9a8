#include "sim/search/changes_text.hpp"

#include <algorithm>

#include "sim/core/number_text.hpp"
#include "sim/core/table.hpp"
#include "sim/training/result_items.hpp"

namespace orrery {
namespace {

// "tensor parallel -4.0 %": the part of the critical path that gains the most, of the step before.
std::string largest_gain(const SingleChange& change, Seconds before) {
  std::size_t most = 0;
  const auto gain = [&](std::size_t part) { return change.gain.sum(static_cast<StepPart>(part)); };
  for (std::size_t part = 1; part < step_part_count; ++part)
    if (gain(part) > gain(most)) most = part;
  return title(static_cast<StepPart>(most)) + " " + percent(-1.0 * (gain(most) / before));
}

}  // namespace

std::string changes_text(const std::vector<SingleChange>& changes) {
  if (changes.empty())
    return "No single change of the plan shortens its step; orrery search tries several "
           "together.\n";
  Table table{{{"change", Align::left},
               {"step"},
               {"against now"},
               {"", Align::left},
               {"most of it", Align::left}}};
  bool ties = false;
  for (const SingleChange& change : changes) {
    const Seconds before = change.step - change.difference.mean;
    const bool tie = change.difference.is_tie();
    ties = ties || tie;
    table.add_row({change.flags, duration_text(change.step),
                   percent(change.difference.mean / before), tie ? "=" : "",
                   largest_gain(change, before)});
  }
  return "One change of the plan at a time that shortens its step, the best of each key\n" +
         table.text() + (ties ? "= marks gains that are not significant (9 in 10).\n" : "") +
         "orrery search tries several together.\n";
}

}  // namespace orrery
