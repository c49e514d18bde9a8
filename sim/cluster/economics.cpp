#include "sim/cluster/economics.hpp"

#include <algorithm>

#include "sim/core/catalog.hpp"
#include "sim/core/object_reader.hpp"

namespace orrery {
namespace {

struct Key {
  const char* name;
  Range Economics::*member;
  double least;
  bool bounded = false;  ///< Other keys bound it.
};

constexpr Key ranges[] = {
    {"rent_usd_per_gpu_hour", &Economics::rent_usd_per_gpu_hour, 0.0},
    {"server_usd_per_gpu", &Economics::server_usd_per_gpu, 0.0},
    {"server_watts_per_gpu", &Economics::server_watts_per_gpu, 0.0},
    {"waiting_watts_per_gpu", &Economics::waiting_watts_per_gpu, 0.0, true},
    {"switch_usd", &Economics::switch_usd, 0.0},
    {"switch_watts", &Economics::switch_watts, 0.0},
    {"cable_usd", &Economics::cable_usd, 0.0},
    {"usd_per_kwh", &Economics::usd_per_kwh, 0.0},
    {"pue", &Economics::pue, 1.0},  // The machines themselves are part of the site.
    {"hardware_years", &Economics::hardware_years, 0.1},
};

constexpr double most = 1e9;

// A number, or {"low", "high"} with source and date.
Range range_of(const JsonValue& json, double least) {
  if (!json.is_object()) {
    const double value = json.number(least, most);
    return {value, value};
  }
  json.allow_only({"low", "high", "source", "date"});
  const Range range{json.at("low").number(least, most), json.at("high").number(least, most)};
  if (range.low > range.high) json.fail("\"low\" is above \"high\"", "exchange them");
  return range;
}

}  // namespace

Economics parse_economics(const JsonValue& json, Economics base) {
  require_schema(json, "orrery.economics/1");
  std::vector<std::string> allowed{"schema", "gpu", "switch_ports", "switch_port_bandwidth"};
  for (const Key& key : ranges) allowed.push_back(key.name);
  json.allow_only(allowed);
  for (const Key& key : ranges)
    if (const auto value = json.find(key.name)) base.*key.member = range_of(*value, key.least);
  if (const auto ports = json.find("switch_ports"))
    base.switch_ports = static_cast<int>(ports->sourced().integer(2, 4096));
  if (const auto port = json.find("switch_port_bandwidth"))
    base.switch_port = port->sourced().bandwidth();
  return base;
}

Economics read_economics(const std::string& gpu, const std::string& overrides) {
  const std::string catalog_folder = "topologies/economics";
  const auto read = [](const std::string& path, const Economics& base) {
    return parse_economics(JsonValue::read_file(path), base);
  };
  Economics economics = read(find_in_catalog(catalog_folder, "site", {}), {});
  const std::vector<std::string> listed = list_catalog(catalog_folder);
  if (std::find(listed.begin(), listed.end(), gpu) != listed.end())
    economics = read(find_in_catalog(catalog_folder, gpu, {}), economics);
  if (!overrides.empty()) economics = read(overrides, economics);
  return economics;
}

std::vector<std::string> unknown_prices(const Economics& economics) {
  std::vector<std::string> keys;
  for (const Key& key : ranges)
    if (!key.bounded && !(economics.*key.member).known()) keys.emplace_back(key.name);
  return keys;
}

std::string price_remedy(const std::vector<std::string>& keys) {
  std::string text = "give a file for --economics: {\"schema\": \"orrery.economics/1\"";
  for (const std::string& key : keys) text += ", \"" + key + "\": ...";
  return text + "}";
}

}  // namespace orrery
