#include "sim/cluster/economics.hpp"

#include <algorithm>

#include "sim/cluster/system.hpp"
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
  std::vector<std::string> allowed{"schema", "gpu", "system", "switch_ports",
                                   "switch_port_bandwidth"};
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

// What a file of prices names by `key`; nothing: it holds for all.
std::optional<std::string> named_by(const JsonValue& file, const char* key) {
  const auto named = file.is_object() ? file.find(key) : std::nullopt;
  return named ? std::optional{named->text()} : std::nullopt;
}

bool counts_for(const JsonValue& file, const PricedMachine& of) {
  const auto gpu = named_by(file, "gpu"), system = named_by(file, "system");
  return (!gpu || *gpu == of.gpu) && (!system || *system == of.system);
}

// Refuses a file whose `key` names none of what is asked about.
void need_named(const JsonValue& file, const char* key, std::string PricedMachine::*member,
                const std::vector<PricedMachine>& asked) {
  const auto named = named_by(file, key);
  std::vector<std::string> all;
  for (const PricedMachine& one : asked)
    if (named && *named != one.*member)
      all.push_back(one.*member);
    else
      return;
  fail_input(file.place() / key,
             std::string{"holds prices of the "} +
                 (member == &PricedMachine::gpu ? "GPU" : "system") + " '" + shown_text(*named) +
                 "', and what is asked about has " + joined(all),
             std::string{"name that "} + (member == &PricedMachine::gpu ? "GPU" : "system") +
                 ", or leave the key out");
}

std::vector<std::string> listed_files(const std::string& files) {
  return files.empty() ? std::vector<std::string>{} : split_list(files, {"--economics", ""});
}

}  // namespace

PricedMachine::PricedMachine(const System& of) : gpu{of.gpu.name}, system{of.name} {}

std::vector<std::string> price_files(const PricedMachine& of, const std::string& files) {
  std::vector<std::string> own;
  for (const std::string& file : listed_files(files))
    if (counts_for(JsonValue::read_file(file), of)) own.push_back(file);
  return own;
}

Economics read_economics(const PricedMachine& of, const std::string& files,
                         const std::vector<PricedMachine>& asked) {
  const std::string catalog_folder = "topologies/economics";
  const auto read = [](const std::string& path, const Economics& base) {
    return parse_economics(JsonValue::read_file(path), base);
  };
  Economics economics = read(find_in_catalog(catalog_folder, "site", {}), {});
  const std::vector<std::string> listed = list_catalog(catalog_folder);
  if (std::find(listed.begin(), listed.end(), of.gpu) != listed.end())
    economics = read(find_in_catalog(catalog_folder, of.gpu, {}), economics);
  const std::vector<PricedMachine> all = asked.empty() ? std::vector{of} : asked;
  // A file that names the system takes precedence over one that names the GPU, and that over one
  // that names neither; of two of the same rank the later one counts.
  const auto rank = [](const JsonValue& file) {
    return file.has("system") ? 2 : file.has("gpu") ? 1 : 0;
  };
  std::vector<JsonValue> read_files;
  for (const std::string& path : listed_files(files))
    read_files.push_back(JsonValue::read_file(path));
  std::stable_sort(read_files.begin(), read_files.end(),
                   [&](const JsonValue& a, const JsonValue& b) { return rank(a) < rank(b); });
  for (const JsonValue& file : read_files) {
    need_named(file, "gpu", &PricedMachine::gpu, all);
    need_named(file, "system", &PricedMachine::system, all);
    Economics with = parse_economics(file, economics);
    with.has_own_rent |= file.has("rent_usd_per_gpu_hour");
    if (counts_for(file, of)) economics = with;
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
