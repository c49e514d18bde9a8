#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/cluster/economics.hpp"

namespace orrery {

/// What the best deployment has the most, or the least, of.
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

/// A deployment under a load, as far as it decides its place: the less of both, the better.
struct DeploymentStanding {
  std::int64_t point = 0;  ///< Its number in the enumeration.
  int layout = 0;
  double score = 0.0;    ///< serving_score(); infinite: it must not lead.
  double between = 0.0;  ///< Seconds between two tokens: 1 / interactivity.
};

/// Those that lead so far: the best few, the best of each of the best few layouts, or all that no
/// other beats in score and in time between tokens. Of equals the one that was enumerated first.
class DeploymentLeaders {
 public:
  enum class Kind { top, layouts, front };
  DeploymentLeaders(Kind kind, int most) : kind_{kind}, most_{static_cast<std::size_t>(most)} {}

  /// Whether a point may enter that is nowhere better than `bound`. Once false, always false.
  bool may_take(const DeploymentStanding& bound) const;
  void offer(const DeploymentStanding& standing);
  /// Best first.
  const std::vector<DeploymentStanding>& ranked() const { return leaders_; }

 private:
  std::vector<DeploymentStanding>::const_iterator of_layout(int layout) const;

  Kind kind_;
  std::size_t most_;
  std::vector<DeploymentStanding> leaders_;
};

}  // namespace orrery
