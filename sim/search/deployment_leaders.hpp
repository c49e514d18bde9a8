#pragma once

#include <cstdint>
#include <vector>

namespace orrery {

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
