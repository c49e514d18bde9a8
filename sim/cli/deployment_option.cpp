#include "sim/cli/deployment_option.hpp"

#include "sim/serving/deployment_file.hpp"

namespace po = boost::program_options;

namespace orrery {
namespace {

template <class Value>
void put(ParsedOptions& parsed, const std::string& name, const Value& value) {
  parsed.values.insert_or_assign(name, po::variable_value(value, false));
}

bool is_format(const std::string& key) {
  return key == "weights" || key == "experts" || key == "kv";
}

// A user's words for pools, or for a cut without them, replace those of the file as a whole.
bool says_pools(const ParsedOptions& parsed) {
  return parsed.has("prefill") || parsed.has("decode") || parsed.has("pools");
}

void fix(ParsedOptions& parsed, const std::string& key, const std::string& value) {
  std::vector<std::string> all;
  if (parsed.has("fix")) all = parsed.values["fix"].as<std::vector<std::string>>();
  for (const std::string& one : all)
    if (one.starts_with(key + "=")) return;
  all.push_back(key + "=" + value);
  put(parsed, "fix", all);
}

}  // namespace

void take_deployment_file(ParsedOptions& parsed) {
  if (!parsed.has("plan")) return;
  const bool searches = parsed.has("search"), pooled = says_pools(parsed);
  // Other degrees leave open how many replicas there are.
  const bool recut = parsed.has("gpus") || parsed.has("tp") || parsed.has("pp") || parsed.has("dp");
  for (const auto& [name, value] : read_deployment_file(parsed.text("plan"))) {
    if (parsed.has(name)) continue;
    const bool of_pools = name == "prefill" || name == "decode";
    if (searches && is_format(name)) fix(parsed, name, value);
    const bool is_ground = name == "model" || name == "engine" || name == "system" ||
                           name == "gpus" || name == "prefix-cache" || name == "router";
    if (searches && !is_ground) continue;
    if ((of_pools && pooled) || (name == "replicas" && recut)) continue;
    put(parsed, name, value);
  }
}

}  // namespace orrery
