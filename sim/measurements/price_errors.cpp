#include "sim/measurements/price_errors.hpp"

#include <algorithm>
#include <vector>

#include "sim/core/catalog.hpp"
#include "sim/core/object_reader.hpp"

namespace orrery {

namespace {

// Limit of errors: a factor of e^3.
double error_of(const JsonValue& json, const std::string& key) {
  return json.at(key).number(0.0, 3.0);
}

// Errors of measurements default to those of derived prices, and these to those of assumed ones.
std::array<double, PriceErrors::bases> errors_of(const JsonValue& entry, const std::string& gpu,
                                                 Dtype dtype, const std::string& network) {
  entry.allow_only({"kind", "source", "measured", "interpolated", "outside", "default", "own"});
  required_text(entry, "source");
  double assumed = error_of(entry, "default");
  double derived = entry.has("interpolated") ? error_of(entry, "interpolated") : assumed;
  double measured = entry.has("measured") ? error_of(entry, "measured") : derived;
  const auto own = entry.find("own");
  if (!own) return {measured, derived, assumed};
  for (const JsonValue& table : own->elements()) {
    table.allow_only({"gpu", "dtype", "network", "error", "source"});
    const double error = error_of(table, "error");
    if (const auto kind = table.find("network")) {
      if (kind->text() == network) derived = assumed = error;
      continue;
    }
    const auto of = table.find("dtype");
    if (table.at("gpu").text() == gpu &&
        (!of || read_format(*of, FormatUse::products) == measured_as(dtype)))
      measured = derived = error;
  }
  return {measured, derived, assumed};
}

}  // namespace

PriceErrors parse_price_errors(const JsonValue& json, const std::string& gpu, Dtype dtype,
                               StepClass step, const std::string& network) {
  require_schema(json, "orrery.price_errors/1");
  json.allow_only({"schema", "prices", "training", "own", "ranges"});
  PriceErrors errors;
  errors.step_class = step;
  const JsonValue own = json.at("own");
  own.allow_only({"source", "error"});
  required_text(own, "source");
  errors.own = error_of(own, "error");
  std::vector<bool> known(price_kinds, false);
  for (const JsonValue& entry : json.at("prices").elements()) {
    const JsonValue named = entry.at("kind");
    const auto kind = static_cast<std::size_t>(choice<PriceKind>(named));
    if (known[kind]) named.fail("'" + named.text() + "' is there twice", "keep one of them");
    known[kind] = true;
    errors.of[kind] = errors_of(entry, gpu, dtype, network);
    if (entry.has("outside")) errors.outside[kind] = error_of(entry, "outside");
  }
  for (std::size_t kind = 0; kind < price_kinds; ++kind)
    if (!known[kind])
      json.at("prices").fail("says nothing of '" + enum_words<PriceKind>[kind] + "'",
                             "add an object");
  bool found = false;
  for (const JsonValue& entry : json.at("training").elements()) {
    entry.allow_only({"experts", "narrow", "source", "error"});
    required_text(entry, "source");
    const double error = error_of(entry, "error");
    if (entry.at("experts").boolean() != step.experts ||
        entry.at("narrow").boolean() != step.narrow)
      continue;
    if (found) entry.fail("is there twice", "keep one of them");
    found = true;
    errors.training = error;
  }
  if (!found)
    json.at("training").fail("lacks a combination of experts and narrow", "add all four of them");
  return errors;
}

PriceErrors read_price_errors(const std::string& gpu, Dtype dtype, StepClass step,
                              const std::string& network) {
  return parse_price_errors(
      JsonValue::read_file(find_in_catalog("calibration/data", "price_errors", {})), gpu, dtype,
      step, network);
}

}  // namespace orrery
