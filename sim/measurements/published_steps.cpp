#include "sim/measurements/published_steps.hpp"

#include "sim/core/catalog.hpp"
#include "sim/core/choice.hpp"

namespace orrery {
const PublishedSteps* find_published(const std::vector<PublishedClass>& classes,
                                     const std::string& software, StepClass step) {
  for (const PublishedClass& one : classes)
    if (one.steps.software == software && one.step == step) return &one.steps;
  return nullptr;
}

PublishedSteps parse_summary(const JsonValue& json) {
  PublishedSteps steps;
  steps.software = json.at("software").text();
  steps.runs = static_cast<int>(json.at("runs").integer(1, 1'000'000));
  steps.offset = json.at("offset").number(-2.0, 2.0);
  steps.low = json.at("low").number(-4.0, steps.offset);
  steps.high = json.at("high").number(steps.offset, 4.0);
  steps.prices = json.at("prices").number(1e-6, 2.0);
  return steps;
}

std::vector<PublishedClass> parse_published_steps(const JsonValue& json) {
  require_schema(json, "orrery.published_steps/1");
  json.allow_only({"schema", "source", "published_steps"});
  json.at("source").text();
  std::vector<PublishedClass> all;
  for (const JsonValue& entry : json.at("published_steps").elements()) {
    entry.allow_only({"software", "experts", "narrow", "runs", "offset", "low", "high", "prices"});
    PublishedClass one{{entry.at("experts").boolean(), entry.at("narrow").boolean()},
                       parse_summary(entry)};
    if (find_published(all, one.steps.software, one.step))
      entry.fail("is there twice", "keep one of them");
    all.push_back(std::move(one));
  }
  return all;
}

std::optional<PublishedSteps> read_published_steps(const std::string& software, StepClass step) {
  const auto all = parse_published_steps(
      JsonValue::read_file(find_in_catalog("calibration/data", "published_steps", {})));
  if (const PublishedSteps* own = find_published(all, software, step)) return *own;
  if (const PublishedSteps* any = find_published(all, "", of_any_software(step))) return *any;
  return std::nullopt;
}

}  // namespace orrery
