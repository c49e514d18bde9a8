#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <optional>
#include <string>
#include <vector>

#include "sim/cluster/dtype.hpp"
#include "sim/core/enum_words.hpp"
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

/// What a price is of. Prices of one kind come from one method and one source, and are therefore
/// wrong together.
enum class PriceKind {
  gemm,
  grouped_gemm,
  attention,
  batched_gemm,  ///< Unfused attention.
  memory,        ///< Streaming kernels, the optimizer among them.
  host,          ///< The GPU waits for launches.
  nvlink_latency,
  nvlink_bytes,
  network_latency,
  network_bytes,
  exchange,  ///< Dispatch and combine of experts' tokens.
};
template <>
inline const std::vector<std::string> enum_words<PriceKind>{
    "gemm",           "grouped_gemm", "attention",       "batched_gemm",  "memory",  "host",
    "nvlink_latency", "nvlink_bytes", "network_latency", "network_bytes", "exchange"};
inline constexpr std::size_t price_kinds = 11;

/// How far prices are off: standard deviations of ln(true time / price). calibration/data/
/// price_errors.json has each with its source, docs/explanation/ranges.md the model.
struct PriceErrors {
  /// What a price rests on, in the order of Tag: a measurement of this shape, others, nothing.
  static constexpr std::size_t bases = 3;
  std::array<std::array<double, bases>, price_kinds> of{};
  /// What is added where there is a table, but nothing near in it; 0: nothing is known of that.
  std::array<double, price_kinds> outside{};
  /// What a training run adds to that, of each kind by itself.
  double training = 0.0;
  StepClass step_class;
  std::optional<PublishedSteps> published;  ///< Like it, where enough were.
  /// What two runs of different kernels do not have in common, of each run by itself. A part of the
  /// above: it counts between plans alone.
  double own = 0.0;
};

/// The errors of prices on `gpu` in `dtype`. A GPU that has no entry of its own is priced by a
/// stand-in's table or by none.
PriceErrors read_price_errors(const std::string& gpu, Dtype dtype, StepClass step);
PriceErrors parse_price_errors(const JsonValue& json, const std::string& gpu, Dtype dtype,
                               StepClass step);

}  // namespace orrery
