#include "sim/cli/serve_setup.hpp"

#include <algorithm>
#include <charconv>

#include "sim/serving/deployment.hpp"

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

namespace {

constexpr int most_served_gpus = 1 << 16;
constexpr std::int64_t most_tokens = 1 << 30;

}  // namespace

po::options_description deployment_options() {
  po::options_description options{"Options", 100};
  const auto text = [](const char* shown) { return po::value<std::string>()->value_name(shown); };
  options.add_options()                                                       //
      ("model", text("NAME|FILE"), "a model: orrery list models")             //
      ("system", text("NAME|FILE"), "a cluster: orrery list systems")         //
      ("gpus", text("N"), "how many GPUs serve it")                           //
      ("engine", text("NAME|FILE"), "a serving engine: orrery list engines")  //
      ("plan", text("FILE"), "a deployment, as orrery import server writes it; options win");
  for (const DeploymentKey& key : deployment_keys())
    options.add_options()(
        key.name.c_str(),
        po::value<std::string>()->value_name(key.values.size() < 16 ? key.values : "FORMAT"),
        key.help.c_str());
  options.add_options()  //
      ("step", text("NxC[+P[@K]]"),
       "one iteration: N decodes over C tokens each, a prompt of P tokens behind K cached ones");
  return options;
}

DeploymentRequest read_deployment_flags(const ParsedOptions& parsed) {
  DeploymentRequest request;
  for (const DeploymentKey& key : deployment_keys())
    if (parsed.has(key.name)) set_deployment_flag(request, key.name, parsed.text(key.name));
  return request;
}

ServingSetup read_serving_setup(const ParsedOptions& parsed) {
  const DeploymentRequest request = read_deployment_flags(parsed);
  const std::string model = required(parsed, "model", "name one: orrery list models");
  const std::string system = required(parsed, "system", "name one: orrery list systems");
  const std::string engine = required(parsed, "engine", "name one: orrery list engines");
  const int gpus = parse_count(required(parsed, "gpus", "write how many: --gpus 8"), "gpus", 1,
                               most_served_gpus);
  return make_serving_setup(model, system, engine, request, gpus, {"", ""});
}

namespace {

// A whole number at the front of `text`, which loses it.
std::int64_t leading_number(std::string_view& text, const std::string& whole) {
  std::int64_t value = -1;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value < 0 || value > most_tokens)
    fail_input({"", "--step"}, "'" + whole + "' is no iteration",
               "write decodes x tokens each, and prompts: 64x4096, 64x4096+2048, +8192@1024");
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
  return value;
}

bool skip(std::string_view& text, char mark) {
  if (text.empty() || text.front() != mark) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

// "64x4096+2048@512+100": 64 decodes over 4,096 tokens each, a prompt of 2,048 behind 512, and one
// of 100.
Iteration parse_iteration(const std::string& whole) {
  const auto fail = [&](const std::string& why) {
    fail_input({"", "--step"}, "'" + whole + "' " + why,
               "write decodes x tokens each, and prompts: 64x4096, 64x4096+2048, +8192@1024");
  };
  Iteration iteration;
  std::string_view text = whole;
  if (!text.empty() && text.front() != '+') {
    iteration.decodes = leading_number(text, whole);
    if (!skip(text, 'x')) fail("says no tokens of its decodes");
    const std::int64_t each = leading_number(text, whole);
    if (iteration.decodes > most_tokens / std::max<std::int64_t>(1, each)) fail("is too large");
    iteration.context = iteration.decodes * each;
  }
  while (skip(text, '+')) {
    PrefillChunk chunk{leading_number(text, whole), 0};
    if (skip(text, '@')) chunk.cached = leading_number(text, whole);
    if (chunk.tokens == 0) fail("has a prompt without tokens");
    iteration.chunks.push_back(chunk);
  }
  if (!text.empty()) fail("is no iteration");
  if (iteration.tokens() == 0) fail("does nothing");
  iteration.heads = iteration.decodes + static_cast<std::int64_t>(iteration.chunks.size());
  return iteration;
}

}  // namespace orrery
