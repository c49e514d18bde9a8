#pragma once

#include <string>
#include <vector>

#include "sim/cluster/economics.hpp"

namespace orrery {

/// The figure that the best deployment has the most, or the least, of.
enum class ServingGoal {
  throughput,  ///< Tokens of answers a second and GPU.
  cost,        ///< Rent of a million tokens of answers, the middle of its range.
  energy,      ///< Joules a token of an answer, of the whole site, likewise.
  goodput      ///< Requests a second and GPU that keep to their limits, at the largest rate at
               ///< which enough of them do.
};
const std::vector<std::string>& serving_goal_names();
/// Errors (bad_input): an unknown one, with the nearest.
ServingGoal parse_serving_goal(const std::string& text);

/// Refuses a goal whose prices are not known of a GPU. Errors (bad_input): which they are.
void need_prices(ServingGoal goal, const Economics& economics, const std::string& gpu);

/// The figure of a goal, in the unit above, where a GPU makes `rate` tokens (requests) a second.
double goal_figure(ServingGoal goal, double rate, const Economics& economics);
/// The same as something to be minimized: it falls as `rate` rises, whatever the goal. Infinite at
/// a rate of 0.
double serving_score(ServingGoal goal, double rate, const Economics& economics);

}  // namespace orrery
