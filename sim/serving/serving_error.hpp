#pragma once

#include <optional>
#include <string>

#include "sim/cluster/economics.hpp"
#include "sim/model/model.hpp"

namespace orrery {

/// What clients see, as far as predictions of it were compared with measurements.
enum class ServingFigure { ttft, tpot, throughput };

/// Of a measured quantity ("ttft_ms", "tpot_ms", "output_tokens_per_s", "total_tokens_per_s"); none
/// of others.
std::optional<ServingFigure> serving_figure(const std::string& quantity);

/// |ln(measured / predicted)| that nine in ten published measurements do not exceed. Means and
/// medians; tails of TTFT were compared too rarely.
double serving_error(ServingFigure figure, const Model& model);
inline constexpr double serving_coverage = 0.9;

/// predicted x exp(-+ error): where nine in ten measurements lie.
Range serving_range(double predicted, ServingFigure figure, const Model& model);

/// |ln| of how much more one deployment makes than another, measured over predicted, that nine in
/// ten pairs do not exceed; `alike`: on one system and by one engine, whose errors they share.
double serving_pair_error(bool alike, const Model& model);

}  // namespace orrery
