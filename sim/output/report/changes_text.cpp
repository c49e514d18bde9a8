#include "sim/output/report/changes_text.hpp"

#include <algorithm>

#include "sim/base/text/number_text.hpp"
#include "sim/base/text/table.hpp"

namespace orrery {

std::string changes_text(const std::vector<SingleChange>& changes) {
  if (changes.empty())
    return "No single change of the plan shortens its step; orrery search tries several "
           "together.\n";
  Table table{{{"change", Align::left}, {"step"}, {"against now"}, {"", Align::left}}};
  bool ties = false;
  for (const SingleChange& change : changes) {
    const Seconds before = change.step - change.difference.mean;
    const bool tie = change.difference.is_tie();
    ties = ties || tie;
    table.add_row({change.flags, duration_text(change.step),
                   percent(change.difference.mean / before), tie ? "=" : ""});
  }
  return "One change of the plan at a time that shortens its step, the best of each key\n" +
         table.text() + (ties ? "= marks gains that are not significant (9 in 10).\n" : "") +
         "orrery search tries several together.\n";
}

}  // namespace orrery
