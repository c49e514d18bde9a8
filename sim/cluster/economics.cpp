#include "sim/cluster/economics.hpp"

#include <algorithm>

#include "sim/core/catalog.hpp"
#include "sim/core/nearest.hpp"
#include "sim/core/object_reader.hpp"
#include "sim/core/value_list.hpp"

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

namespace {

// The GPU that a file of prices names; nothing: it holds for all.
std::optional<std::string> gpu_of(const JsonValue& file) {
  const auto named = file.is_object() ? file.find("gpu") : std::nullopt;
  return named ? std::optional{named->text()} : std::nullopt;
}

std::vector<std::string> listed_files(const std::string& files) {
  return files.empty() ? std::vector<std::string>{} : split_list(files, {"--economics", ""});
}

}  // namespace

std::vector<std::string> price_files(const std::string& gpu, const std::string& files) {
  std::vector<std::string> own;
  for (const std::string& file : listed_files(files))
    if (const auto named = gpu_of(JsonValue::read_file(file)); !named || *named == gpu)
      own.push_back(file);
  return own;
}

Economics read_economics(const std::string& gpu, const std::string& files,
                         const std::vector<std::string>& gpus) {
  const std::string catalog_folder = "topologies/economics";
  const auto read = [](const std::string& path, const Economics& base) {
    return parse_economics(JsonValue::read_file(path), base);
  };
  Economics economics = read(find_in_catalog(catalog_folder, "site", {}), {});
  const std::vector<std::string> listed = list_catalog(catalog_folder);
  if (std::find(listed.begin(), listed.end(), gpu) != listed.end())
    economics = read(find_in_catalog(catalog_folder, gpu, {}), economics);
  for (const std::string& path : listed_files(files)) {
    const JsonValue file = JsonValue::read_file(path);
    const auto named = gpu_of(file);
    if (!named || *named == gpu)
      economics = parse_economics(file, economics);
    else if (std::find(gpus.begin(), gpus.end(), *named) == gpus.end())
      fail_input({path, "/gpu"},
                 "holds prices of the GPU '" + shown_text(*named) +
                     "', and what is asked about has " +
                     joined(gpus.empty() ? std::vector{gpu} : gpus),
                 "name that GPU, or leave the key out");
  }
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
