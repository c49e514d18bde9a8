#pragma once

#include <string>
#include <vector>

#include "sim/model/model.hpp"

namespace orrery {

/// How a router's preferences spread over the experts.
enum class PopularityKind {
  uniform,    ///< All alike.
  zipf,       ///< The i-th expert's weight is i^-parameter.
  hot,        ///< One expert is among those of `parameter` of all tokens; the others are alike.
  power_law,  ///< Weights have the density x^-parameter, from 1 to 1000.
  spread      ///< Weights lie evenly from 1 + parameter to 1 - parameter.
};

struct Popularity {
  PopularityKind kind = PopularityKind::uniform;
  double parameter = 0.0;
};

/// For each expert the share of tokens that visit it, falling; they sum to per_token, and none is
/// over 1: a token visits an expert once. Which expert has which share is the layer's.
std::vector<double> visit_shares(const Popularity& popularity, const Experts& experts);

}  // namespace orrery
