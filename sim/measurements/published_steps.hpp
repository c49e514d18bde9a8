#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/json_value.hpp"

namespace orrery {

/// What a step is, as far as the errors of training runs depend on it.
struct StepClass {
  bool experts = false;
  bool narrow = false;  ///< Products in 8 bits or fewer.
  auto operator<=>(const StepClass&) const = default;
};

/// How published steps of one class and software turned out, as ln(measured / predicted).
struct PublishedSteps {
  std::string software;  ///< Empty: any.
  int runs = 0;
  double offset = 0.0;  ///< Of any software 0, else n / (n + 1) of the median: less where few are.
  /// Nine in ten lie between these, and so would another (split conformal prediction).
  double low = 0.0, high = 0.0;
  /// Standard deviation that prices account for at most in 92 of 100 of them.
  double prices = 0.0;

  /// How many times as far as theirs the limits are from the offset of a step whose prices account
  /// for `deviation`.
  double times_wider(double deviation) const {
    return prices > 0.0 ? std::max(1.0, deviation / prices) : 1.0;
  }
  bool operator==(const PublishedSteps&) const = default;
};

struct PublishedClass {
  StepClass step;
  PublishedSteps steps;
};

/// The class whose steps of any software are counted together: few with experts are in 16 bits.
inline StepClass of_any_software(StepClass step) {
  return {step.experts, step.narrow && !step.experts};
}

/// Those of `software` (empty: of any) and this very class; null where there are none.
const PublishedSteps* find_published(const std::vector<PublishedClass>& classes,
                                     const std::string& software, StepClass step);

/// {"software", "runs", "offset", "low", "high", "prices"}, and whatever else its reader allows.
PublishedSteps parse_summary(const JsonValue& json);
/// Errors: a class that is there twice, limits that do not hold the offset.
std::vector<PublishedClass> parse_published_steps(const JsonValue& json);
/// Those of calibration/data/published_steps.json: of this software and class, else of any
/// software's class, if there are any.
std::optional<PublishedSteps> read_published_steps(const std::string& software, StepClass step);

}  // namespace orrery
