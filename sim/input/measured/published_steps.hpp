#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/base/text/json_value.hpp"

namespace orrery {

/// What a step is, as far as the errors of training runs depend on it.
struct StepClass {
  bool experts = false;
  bool narrow = false;  ///< Products in 8 bits or fewer.
  auto operator<=>(const StepClass&) const = default;
};

/// How published steps of one class and software turned out, as ln(measured / predicted).
struct PublishedSteps {
  int runs = 0;
  /// n / (n + 1) of the median: towards nothing where there are few.
  double offset = 0.0;
  /// Nine in ten lie as near to the offset, and so would another (split conformal prediction).
  double spread = 0.0;
  /// Of nine in ten the standard deviation that their prices account for is at most this.
  double prices = 0.0;

  bool operator==(const PublishedSteps&) const = default;
};

struct PublishedClass {
  std::string software;
  StepClass step;
  PublishedSteps steps;
};

/// {"runs", "offset", "spread", "prices"}, and whatever else its reader allows.
PublishedSteps parse_summary(const JsonValue& json);
/// Errors: a class that is there twice, a spread that is not positive.
std::vector<PublishedClass> parse_published_steps(const JsonValue& json);
/// Those of calibration/data/published_steps.json, if there are any of this software and class.
std::optional<PublishedSteps> read_published_steps(const std::string& software, StepClass step);

}  // namespace orrery
