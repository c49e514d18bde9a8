#include "sim/validation/run_case.hpp"

#include <limits>

#include "sim/core/catalog.hpp"
#include "sim/core/number_text.hpp"

namespace orrery {
namespace {

constexpr int most_gpus = 1 << 20;
constexpr double most_of_a_run = 1e18;

PublishedValue read_value(const JsonValue& json) {
  if (!json.is_object()) {
    const double value = json.number(0.0, most_of_a_run);
    return {value, value};
  }
  json.allow_only({"above", "below"});
  PublishedValue value{0.0, std::numeric_limits<double>::infinity()};
  if (const auto above = json.find("above")) value.low = above->number(0.0, most_of_a_run);
  if (const auto below = json.find("below")) value.high = below->number(0.0, most_of_a_run);
  if (value.low >= value.high) json.fail("leaves nothing between its bounds", "exchange them");
  return value;
}

std::optional<Seconds> span(const JsonValue& json, const char* key) {
  const auto value = json.find(key);
  if (!value) return std::nullopt;
  return parse_span(value->text(), value->place());
}

}  // namespace

bool is_run_case(const JsonValue& entry) { return entry.is_object() && entry.has("reliability"); }

RunCase read_run_case(const JsonValue& entry) {
  entry.allow_only({"id", "source", "reliability", "gpus", "days", "constant_rate", "interval",
                    "recovery", "stall", "write", "system", "model", "plan", "tokens", "storage",
                    "slower", "batch", "measured", "notes"});
  RunCase one;
  one.place = entry.place();
  one.id = entry.at("id").text();
  one.reliability = relative_to_file(entry.at("reliability").text(), one.place);
  one.gpus = static_cast<int>(entry.at("gpus").integer(1, most_gpus));
  if (const auto days = entry.find("days")) one.days = days->number(0.01, 10'000.0);
  if (const auto constant = entry.find("constant_rate")) one.constant_rate = constant->boolean();
  one.interval = span(entry, "interval");
  one.recovery = span(entry, "recovery");
  one.stall = span(entry, "stall").value_or(Seconds{});
  one.write = span(entry, "write").value_or(Seconds{});
  if (const auto storage = entry.find("storage")) one.storage = storage->bandwidth();
  if (const auto slower = entry.find("slower")) one.slower = slower->number(0.0, 10.0);
  one.plan = entry.find("plan");
  if (one.plan) {
    one.system = relative_to_file(entry.at("system").text(), one.place);
    one.model = entry.at("model").text();
    one.tokens = entry.at("tokens").number(1.0, most_of_a_run);
    one.batch = entry.find("batch");
  }
  const JsonValue measured = entry.at("measured");
  for (const std::string& quantity : measured.keys())
    one.measured[quantity] = read_value(measured.at(quantity));
  return one;
}

}  // namespace orrery
