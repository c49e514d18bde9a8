#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/sweep/sweep.hpp"

namespace orrery {

/// The points of a sweep. All combinations are numbered, the last dimension varying fastest; a
/// point is a combination that fulfils every condition and keeps its number whatever else does not.
class Grid {
 public:
  /// Errors (bad_input): more than 10^8 combinations; a condition on a key that has no value.
  explicit Grid(const Sweep& sweep);

  std::int64_t combinations() const { return combinations_; }
  bool is_point(std::int64_t number) const;

  /// Axes in the order of the dimensions, and the value that each has at a combination.
  const std::vector<const Axis*>& axes() const { return axes_; }
  std::vector<const AxisValue*> values(std::int64_t number) const;

  /// Counts the points, which takes a look at each combination. Errors (bad_input): there is none;
  /// which condition or smallest set of contradicting ones is to blame.
  std::int64_t count_points() const;

 private:
  // Operands of conditions: the axes' values, then those of keys that are no axis.
  using Slots = std::vector<Operand>;

  std::size_t slot_of(const std::string& key, const Place& at);
  Slots slots_at(std::int64_t number) const;
  std::int64_t fulfilling(const std::vector<std::size_t>& conditions, std::int64_t enough) const;
  [[noreturn]] void explain_emptiness() const;

  const Sweep& sweep_;
  std::int64_t combinations_ = 1;
  std::vector<const Axis*> axes_;
  Slots defaults_;                                ///< Behind the axes.
  std::optional<std::array<std::size_t, 4>> dp_;  ///< Slots of gpus, tp, pp, cp, where dp follows.
  std::size_t dp_slot_ = 0;
  std::vector<std::vector<std::size_t>> slots_of_keys_;  ///< Each condition's.
};

}  // namespace orrery
