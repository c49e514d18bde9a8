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

/// The properties of a step that the errors of training runs depend on.
struct StepClass {
  bool experts = false;
  bool narrow = false;  ///< Products in 8 bits or fewer.
  auto operator<=>(const StepClass&) const = default;
};

/// Errors of published steps of one class and software, as ln(measured / predicted).
struct PublishedSteps {
  std::string software;  ///< Empty: any.
  int runs = 0;
  double offset = 0.0;  ///< 0 for all software, else n / (n + 1) of the median.
  /// 90 % lie between these, and so would another (split conformal prediction).
  double low = 0.0, high = 0.0;
  /// Upper limit of the standard deviation due to prices, for 92 of 100 of them.
  double prices = 0.0;

  /// Factor on the limits' distance from the offset for a step whose prices explain `deviation`.
  double times_wider(double deviation) const {
    return prices > 0.0 ? std::max(1.0, deviation / prices) : 1.0;
  }
  bool operator==(const PublishedSteps&) const = default;
};

struct PublishedClass {
  StepClass step;
  PublishedSteps steps;
};

/// The class whose steps of all software are counted together, as few with experts are in 16 bits.
inline StepClass of_any_software(StepClass step) {
  return {step.experts, step.narrow && !step.experts};
}

/// The steps of `software` (empty: of any) and this very class; null if there are none.
const PublishedSteps* find_published(const std::vector<PublishedClass>& classes,
                                     const std::string& software, StepClass step);

/// {"software", "runs", "offset", "low", "high", "prices"}; the caller checks other keys.
PublishedSteps parse_summary(const JsonValue& json);
/// Errors: a repeated class, limits that do not contain the offset.
std::vector<PublishedClass> parse_published_steps(const JsonValue& json);
/// The steps in calibration/data/published_steps.json of this software and class, else of any
/// software's class, if there are any.
std::optional<PublishedSteps> read_published_steps(const std::string& software, StepClass step);

/// The subject of a price. Prices of one kind have one method and one source, and therefore common
/// errors.
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

/// Share of measurements that lie in their range.
inline constexpr double range_coverage = 0.9;
/// Half-width of a range that nine in ten measurements lie in, in standard deviations of a normal
/// distribution.
inline constexpr double range_deviations = 1.645;

/// Errors of prices: standard deviations of ln(true time / price).
/// calibration/data/price_errors.json has each with its source, docs/explanation/ranges.md the
/// model.
struct PriceErrors {
  /// Bases of a price, in the order of Tag: a measurement of this shape, others, none.
  static constexpr std::size_t bases = 3;
  std::array<std::array<double, bases>, price_kinds> of{};
  /// Added if there is a table, but no near row; 0: unknown.
  std::array<double, price_kinds> outside{};
  /// Added for a training run, independently for each kind.
  double training = 0.0;
  StepClass step_class;
  std::optional<PublishedSteps> published;  ///< Similar published steps, if there are enough.
  /// The part of the above that runs of different kernels do not share; for comparisons of plans.
  double own = 0.0;
};

/// The errors of prices on `gpu` in `dtype`, without an entry those of a proxy's table or of none;
/// between nodes on a kind of network (NetworkKind::name), without an entry those of all kinds.
PriceErrors read_price_errors(const std::string& gpu, Dtype dtype, StepClass step,
                              const std::string& network = {});
PriceErrors parse_price_errors(const JsonValue& json, const std::string& gpu, Dtype dtype,
                               StepClass step, const std::string& network = {});

}  // namespace orrery
