#include "sim/serving/token_cost.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/core/number_text.hpp"
#include "sim/serving/serving_json.hpp"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

std::string range_text(Range range, int decimals) {
  const std::string low = fixed(range.low, decimals), high = fixed(range.high, decimals);
  return low == high ? low : low + " .. " + high;
}

Json range_json(Range range) {
  if (!range.known()) return nullptr;
  return {{"low", rounded(range.low)}, {"high", rounded(range.high)}};
}

}  // namespace

std::string token_cost_text(const TokenCost& cost) {
  std::string text;
  if (cost.usd_per_million.known())
    text += "$" + range_text(cost.usd_per_million, 2) + " a million output tokens";
  if (cost.joules.known())
    text += (text.empty() ? "" : ", ") + range_text(cost.joules, 2) + " J an output token";
  return text.empty() ? text : text + "\n";
}

Json token_cost_json(const TokenCost& cost) {
  return {{"usd_per_million_output_tokens", range_json(cost.usd_per_million)},
          {"joules_per_output_token", range_json(cost.joules)}};
}

}  // namespace orrery
