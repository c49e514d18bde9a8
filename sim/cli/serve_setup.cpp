#include "sim/cli/serve_setup.hpp"

#include <algorithm>
#include <charconv>
#include <iostream>

#include "sim/cli/terminal.hpp"
#include "sim/formats/servers/checkpoint.hpp"
#include "sim/serving/deployment.hpp"

namespace orrery {
namespace {

constexpr int most_served_gpus = 1 << 16;
constexpr std::int64_t most_tokens = 1 << 30;

bool is_kept_by_search(const std::string& key) {
  return key == "weights" || key == "attention" || key == "experts" || key == "ends_16bit" ||
         key == "kv" || key == "max_length";
}

// Options for the formats of the checkpoint that a file names, unless it states formats itself.
void add_checkpoint_formats(std::vector<std::pair<std::string, std::string>>& options) {
  const auto value_of = [&](const std::string& name) -> const std::string* {
    const auto found = std::ranges::find(options, name, [](const auto& one) { return one.first; });
    return found == options.end() ? nullptr : &found->second;
  };
  const std::string* const checkpoint = value_of("checkpoint");
  const std::string* const word = value_of("model");
  if (!checkpoint || !word || value_of("weights") || value_of("attention") || value_of("experts"))
    return;
  const Model model = read_model(*word, command_line / "model");
  const CheckpointFormats formats = formats_of_name(*checkpoint, &model);
  if (!formats.is_quantised()) return;
  const bool has_ends = value_of("ends_16bit");
  options.emplace_back("weights", name(formats.weights));
  options.emplace_back("attention", name(formats.attention));
  if (model.experts) options.emplace_back("experts", name(formats.experts));
  if (formats.ends_16bit > 0 && !has_ends)
    options.emplace_back("ends_16bit", std::to_string(formats.ends_16bit));
}

void take_deployment_file(Options& options) {
  if (!options.has("plan")) return;
  const auto has = [&](const char* name) { return options.has(name); };
  // A user's words for pools, or for a cut without them, replace those of the file as a whole.
  const bool pooled = has("prefill") || has("decode") || has("pools");
  // Other degrees leave open how many replicas there are.
  const bool recut = has("gpus") || has("tp") || has("pp") || has("dp");
  const bool other_checkpoint =
      has("model") || has("weights") || has("attention") || has("experts") || has("ends_16bit");
  const bool searches = has("search");
  auto stated = read_deployment_file(options.text("plan"));
  if (!other_checkpoint) add_checkpoint_formats(stated);
  for (const auto& [name, value] : stated) {
    const std::string option = deployment_option(name);
    if (has(option.c_str())) continue;
    const bool of_pools = name == "prefill" || name == "decode";
    if (name == "checkpoint" && other_checkpoint) continue;
    if (searches && is_kept_by_search(name)) options.give_also("fix", name + "=", value);
    const bool is_context = name == "model" || name == "engine" || name == "system" ||
                            name == "gpus" || name == "prefix-cache" || name == "router";
    if (searches && !is_context) continue;
    if ((of_pools && pooled) || (name == "replicas" && recut)) continue;
    options.give(option, value);
  }
}

}  // namespace

bool read_with_deployment_file(Options& options, const Arguments& arguments,
                               const std::string& usage, const std::string& remedy,
                               const std::string& problem) {
  if (!options.parse(arguments, usage)) return false;
  options.refuse_words(remedy, problem);
  take_deployment_file(options);
  options.fill();
  return true;
}

std::string deployment_option(const std::string& key) {
  if (key == "budget") return "max-num-batched-tokens";  // As vLLM has it; --budget is money.
  if (key == "checkpoint") return "checkpoint-name";     // --checkpoint is how often a run saves.
  return key;
}

void add_deployment(Options& options, DeploymentOptions& into) {
  options.add("model", "NAME|FILE", "a model: orrery list models", into.model);
  options.add("system", "NAME|FILE", "a cluster: orrery list systems", into.system);
  options.add("gpus", "N", "how many GPUs serve it", into.gpus);
  options.add("engine", "NAME|FILE", "a serving engine: orrery list engines", into.engine);
  options.add("plan", "FILE", "a deployment, as orrery import server writes it; options win",
              into.plan);
  for (const DeploymentKey& key : deployment_keys())
    options.add(deployment_option(key.name), key.values.size() < 16 ? key.values : "FORMAT",
                key.help, [&into, &key](const std::string& text, const Place&) {
                  key.read(into.keys, value_of_flag(deployment_option(key.name), text));
                });
}

void add_step(Options& options) {
  options.add("step", "NxC[+P[@K]]",
              "one iteration of an attention rank (of each of dp x replicas): N decodes over C "
              "tokens each, a prompt of P tokens behind K cached ones");
}

const std::string& named(const std::optional<std::string>& value, const std::string& option) {
  if (!value)
    fail_input(command_line, "--" + option + " is missing",
               "name one: orrery list " + option + "s");
  return *value;
}

ServingSetup read_serving_setup(const DeploymentOptions& given) {
  const std::string& model = named(given.model, "model");
  const std::string& system = named(given.system, "system");
  const std::string& engine = named(given.engine, "engine");
  if (!given.gpus) fail_input(command_line, "--gpus is missing", "write how many: --gpus 8");
  const int gpus = parse_count(*given.gpus, command_line / "gpus", 1, most_served_gpus);
  return make_serving_setup(model, system, engine, given.keys, gpus, command_line);
}

void print_published_note(const Model& model, const DeploymentRequest& request) {
  const std::string note = published_note(model, request);
  if (!note.empty()) print_note(note);
}

void print_deployment_notes(const ServingSetup& setup, const KvCapacity& kv, std::int64_t tokens) {
  for (const std::string& note :
       length_notes(setup.model, setup.deployment, setup.engine, kv, tokens))
    print_note(note);
  for (const std::string& note : unmeasured_notes(setup.system, setup.model, setup.deployment))
    print_note(note);
}

namespace {

// A whole number at the front of `text`, which loses it.
std::int64_t leading_number(std::string_view& text, const std::string& whole) {
  std::int64_t value = -1;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value < 0 || value > most_tokens)
    fail_input(command_line / "step", "'" + whole + "' is no iteration",
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
    fail_input(command_line / "step", "'" + whole + "' " + why,
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
