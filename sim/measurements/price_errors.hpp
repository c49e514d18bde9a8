#pragma once

#include <array>
#include <compare>
#include <optional>
#include <string>
#include <vector>

#include "sim/cluster/dtype.hpp"
#include "sim/core/enum_words.hpp"
#include "sim/core/json_value.hpp"
#include "sim/measurements/published_steps.hpp"

namespace orrery {

/// The properties of a step that the errors of training runs depend on.
struct StepClass {
  bool experts = false;
  bool narrow = false;  ///< Products in 8 bits or fewer.
  auto operator<=>(const StepClass&) const = default;
};

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
  std::optional<PublishedSteps> published;  ///< Null: the range is that of prices alone.
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
