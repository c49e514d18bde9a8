#include "sim/measurements/published_steps.hpp"

#include <algorithm>
#include <cmath>

#include "sim/core/catalog.hpp"
#include "sim/core/object_reader.hpp"

namespace orrery {
namespace {

// Limits of half-widths: a factor of e^3.
double half_width_of(const JsonValue& json, const std::string& key) {
  return json.at(key).number(1e-6, 3.0);
}

int count_of(const JsonValue& json, const std::string& key) {
  return static_cast<int>(json.at(key).integer(1, 1'000'000));
}

double with_source(const JsonValue& ranges, const std::string& key, double most) {
  const JsonValue entry = ranges.at(key);
  entry.allow_only({"value", "source"});
  required_text(entry, "source");
  return entry.at("value").number(1e-6, most);
}

}  // namespace

double PublishedSteps::less_known(double prices_deviation) const {
  const double more = prices_deviation * prices_deviation - prices * prices;
  return range_deviations * std::sqrt(std::max(0.0, more));
}

double PublishedSteps::share_missing(Seconds step) const { return missing / (step + missing); }

double PublishedSteps::half_width(Seconds step, bool another_runs, double prices_deviation) const {
  return std::hypot(another_runs ? stands_in : described, share_missing(step),
                    less_known(prices_deviation));
}

PublishedSteps parse_summary(const JsonValue& json) {
  json.allow_only({"publications", "steps", "described", "stands_in", "missing_s", "same_plan",
                   "of_publication", "prices"});
  PublishedSteps steps;
  steps.publications = count_of(json, "publications");
  steps.steps = count_of(json, "steps");
  steps.described = half_width_of(json, "described");
  steps.stands_in = half_width_of(json, "stands_in");
  steps.missing = Seconds{json.at("missing_s").number(0.0, 60.0)};
  steps.same_plan = half_width_of(json, "same_plan");
  steps.of_publication = json.at("of_publication").number(0.0, 1.0);
  steps.prices = json.at("prices").number(1e-6, 2.0);
  return steps;
}

PublishedSteps parse_published_steps(const JsonValue& found, const JsonValue& price_errors) {
  require_schema(found, "orrery.published_steps/2");
  found.allow_only({"schema", "source", "publications", "steps", "described", "prices"});
  required_text(found, "source");
  const JsonValue ranges = price_errors.at("ranges");
  ranges.allow_only({"stands_in", "missing_s", "same_plan", "of_publication"});
  PublishedSteps steps;
  steps.publications = count_of(found, "publications");
  steps.steps = count_of(found, "steps");
  steps.described = half_width_of(found, "described");
  steps.prices = found.at("prices").number(1e-6, 2.0);
  steps.stands_in = with_source(ranges, "stands_in", 3.0);
  steps.missing = Seconds{with_source(ranges, "missing_s", 60.0)};
  steps.same_plan = with_source(ranges, "same_plan", steps.described);
  steps.of_publication = with_source(ranges, "of_publication", 1.0);
  return steps;
}

PublishedSteps read_published_steps() {
  const auto file = [](const char* name) {
    return JsonValue::read_file(find_in_catalog("calibration/data", name, {}));
  };
  return parse_published_steps(file("published_steps"), file("price_errors"));
}

}  // namespace orrery
