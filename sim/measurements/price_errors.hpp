#pragma once

#include <array>
#include <compare>
#include <string>

#include "sim/core/dtype.hpp"
#include "sim/core/json_value.hpp"
#include "sim/measurements/published_steps.hpp"

namespace orrery {

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
inline constexpr std::size_t price_kinds = 11;
const std::string& name(PriceKind kind);

/// How far prices are off: standard deviations of ln(true time / price). calibration/data/
/// price_errors.json has each with its source, docs/RANGES.md the model.
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
