#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace orrery {

/// An amount that mixes only with its own kind. `Tag` names the dimension; the value is always held
/// in its SI unit, so no expression in the program carries a hidden 1e9.
template <class Tag>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(double si) : si_{si} {}

  /// The bare number, for SimGrid, JSON and printing.
  constexpr double si() const { return si_; }

  constexpr auto operator<=>(const Quantity&) const = default;
  constexpr Quantity& operator+=(Quantity other) { return si_ += other.si_, *this; }
  constexpr Quantity& operator-=(Quantity other) { return si_ -= other.si_, *this; }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return Quantity{a.si_ + b.si_}; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return Quantity{a.si_ - b.si_}; }
  friend constexpr Quantity operator*(double k, Quantity a) { return Quantity{k * a.si_}; }
  friend constexpr Quantity operator*(Quantity a, double k) { return Quantity{k * a.si_}; }
  friend constexpr Quantity operator/(Quantity a, double k) { return Quantity{a.si_ / k}; }
  friend constexpr double operator/(Quantity a, Quantity b) { return a.si_ / b.si_; }

 private:
  double si_ = 0.0;
};

using Seconds = Quantity<struct SecondsTag>;
using Bytes = Quantity<struct BytesTag>;
using Flop = Quantity<struct FlopTag>;
using BytesPerSecond = Quantity<struct BytesPerSecondTag>;
using FlopPerSecond = Quantity<struct FlopPerSecondTag>;

constexpr Seconds operator/(Bytes b, BytesPerSecond r) { return Seconds{b.si() / r.si()}; }
constexpr Seconds operator/(Flop f, FlopPerSecond r) { return Seconds{f.si() / r.si()}; }
constexpr BytesPerSecond operator/(Bytes b, Seconds t) { return BytesPerSecond{b.si() / t.si()}; }
constexpr FlopPerSecond operator/(Flop f, Seconds t) { return FlopPerSecond{f.si() / t.si()}; }
constexpr Bytes operator*(BytesPerSecond r, Seconds t) { return Bytes{r.si() * t.si()}; }

constexpr Seconds microseconds(double us) { return Seconds{us * 1e-6}; }

/// An index that does not mix with other indices: a stage cannot be passed where a rank is meant.
template <class Tag>
struct Id {
  std::int32_t value = 0;
  constexpr auto operator<=>(const Id&) const = default;
};

using Rank = Id<struct RankTag>;    ///< One process on one GPU, numbered over the whole cluster.
using LinkId = Id<struct LinkTag>;  ///< One direction of one physical link of a topology.
using TaskId = Id<struct TaskTag>;  ///< A vertex of the task graph.

/// Index of a rank, stage, micro-batch or other number that is never negative.
constexpr std::size_t at(int index) { return static_cast<std::size_t>(index); }

}  // namespace orrery

template <class Tag>
struct std::hash<orrery::Id<Tag>> {
  std::size_t operator()(orrery::Id<Tag> id) const noexcept {
    return std::hash<std::int32_t>{}(id.value);
  }
};
