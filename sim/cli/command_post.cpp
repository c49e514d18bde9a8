#include <algorithm>
#include <iostream>

#include "sim/cli/options.hpp"
#include "sim/cli/scenario_options.hpp"
#include "sim/cli/terminal.hpp"
#include "sim/core/quoting.hpp"
#include "sim/core/write_file.hpp"
#include "sim/explorer/reports.hpp"
#include "sim/formats/requests/read_requests.hpp"
#include "sim/posttraining/rl_text.hpp"
#include "sim/serving/pools.hpp"

namespace orrery {
namespace {

constexpr int most_gpus = 1 << 20;
constexpr std::size_t listed_steps = 10;

// The options of `orrery post`.
struct PostOptions {
  std::optional<std::string> model, system, framework, job, lengths;
  std::optional<Model> carried;  ///< A model within the job file.
  TraceReading reading;
  std::optional<int> gpus;
  RlRequest request;
  std::int64_t steps = 0;
  std::string economics;
  std::optional<std::string> perfetto, html;
  bool json = false, changes = false, searches = false, force = false;
};

void read_typed_key(const Field<RlRequest>& key, const std::string& text, RlRequest& request) {
  // "100..900" is a word, though it begins as a number does.
  const bool is_range = text.find("..") != text.npos;
  key.read(request, is_range ? JsonValue::parse(json_quoted(text), "--" + key.name)
                             : value_of_flag(key.name, text));
}

void add_post(Options& options, PostOptions& into) {
  options.group("What is trained, and where");
  options.add("job", "FILE",
              "a JSON file of orrery.post/1 with the keys below, as orrery import writes it; "
              "options override it",
              into.job);
  options.add("model", "NAME|FILE", "a model: orrery list models", into.model);
  options.add("system", "NAME|FILE", "a cluster: orrery list systems", into.system);
  options.add("gpus", "N", "GPUs in all", into.gpus, whole<int>(1, most_gpus));
  options.add("framework", "NAME|FILE", "what runs the loop: orrery list frameworks",
              into.framework);
  options.group("Loop");
  for (const Field<RlRequest>& key : rl_keys())
    options.add(key.name, key.values.size() < 20 ? key.values : "NAME", key.help,
                [&into, &key](const std::string& text, const Place&) {
                  read_typed_key(key, text, into.request);
                });
  options.add("sample_lengths", "FILE",
              "lengths of prompts and answers, a line for each sample, in place of distributions",
              into.lengths);
  options.add("trace-format", "NAME",
              "lines, mooncake, azure, burstgpt, lengths or vllm (default: what it looks like)",
              into.reading.format);
  options.group("Its two halves");
  options.add("training", "LIST", "keys of the training plan: tp=4,pp=2,zero=1 (orrery estimate)",
              [&into](const std::string& text, const Place& at) {
                parse_training_keys(text, into.request, at);
              });
  options.add("rollout", "LIST", "keys of the deployment that generates: tp=2 (orrery serve)",
              [&into](const std::string& text, const Place& at) {
                parse_pool(text, into.request.rollout, at);
              });
  options.group("Output");
  options.add("steps", "N", "adds how long a run of so many steps takes, and its rent", into.steps,
              whole(1, 1 << 30));
  options.add("economics", "FILE[,FILE]",
              "your prices and powers, over those of topologies/economics", into.economics);
  options.add("perfetto", "FILE",
              "write the timeline as Chrome trace JSON; open it at ui.perfetto.dev", into.perfetto);
  options.add("html", "FILE", "write a page for a browser, with the step over time", into.html);
  options.add("force", "replace files that Orrery did not write", into.force);
  options.add("changes", "try one change of the plan at a time, and list what shortens the step",
              into.changes);
  options.add(
      "search",
      "find the shortest step over splits of the GPUs, tp, pp and ep of the trainer and tp of the "
      "engine; what you type stays as it is, the degrees of a job file do not",
      into.searches);
  options.add("json", "print orrery.post-result/1, or of a search orrery.post-search/1", into.json);
  options.help();
}

// The file's values of what no option says.
void take_job_file(PostOptions& into) {
  const JsonValue file = JsonValue::read_file(*into.job);
  read_rl_request(into.request, file, {"model", "system", "gpus", "framework", "sample_lengths"});
  const auto take = [&](const char* key, std::optional<std::string>& value) {
    if (const auto found = file.find(key)) value = found->text();
  };
  const auto model = file.find("model");
  if (model && model->is_object())
    into.carried = parse_model(*model);
  else
    take("model", into.model);
  take("system", into.system);
  take("framework", into.framework);
  take("sample_lengths", into.lengths);
  if (const auto gpus = file.find("gpus"))
    into.gpus = static_cast<int>(gpus->integer(1, most_gpus));
}

const std::string& needed(const std::optional<std::string>& value, const std::string& option) {
  if (!value)
    fail_input(command_line, "--" + option + " is missing",
               "name one: orrery list " + option + "s");
  return *value;
}

std::vector<Sample> samples_of_file(const std::string& path, const TraceReading& reading) {
  const RequestTrace trace = read_request_trace(path, reading);
  std::vector<Sample> samples;
  for (const Request& request : trace.list.requests)
    samples.push_back({request.prompt_tokens, request.output_tokens});
  return samples;
}

}  // namespace

int buy_for_post(const PostPurchase& purchase) {
  PostOptions given;
  given.job = purchase.job;
  take_job_file(given);
  for (const auto& [name, text] : purchase.keys)
    for (const Field<RlRequest>& key : rl_keys())
      if (key.name == name) read_typed_key(key, text, given.request);
  const Place job{purchase.job, ""};
  if (given.lengths) given.request.lengths = samples_of_file(*given.lengths, given.reading);
  if (!given.carried && !given.model) fail_input(job, "names no model", "add \"model\"");
  if (!given.framework)
    fail_input(job, "names no framework", "add one of orrery list frameworks as \"framework\"");
  const Model model = given.carried ? *given.carried : read_model(*given.model, job / "model");
  const RlSearchRequest request{model, purchase.systems.front(),
                                read_rl_framework(*given.framework, job / "framework"),
                                given.request, purchase.gpus.front()};
  const auto offers =
      long_work([&] { return rl_offers(request, purchase.systems, purchase.gpus); });
  std::vector<RlBill> bills;
  for (const RlOffer& offer : offers)
    bills.push_back(
        offer.best
            ? rl_bill(*offer.best, read_economics(offer.system, purchase.economics), purchase.steps)
            : RlBill{});
  if (std::none_of(offers.begin(), offers.end(), [](const RlOffer& one) { return one.best; }))
    fail_infeasible(command_line / "post", "no machine runs the job: " + offers.front().refusal,
                    "");
  std::cout << (purchase.json ? rl_offers_json(offers, bills)
                              : rl_offers_text(request, offers, bills));
  return exit_ok;
}

int run_post(const Arguments& arguments) {
  PostOptions given;
  Options options{""};
  add_post(options, given);
  options.basic({"model", "system", "gpus", "framework", "job", "prompts", "samples", "train_batch",
                 "prompt_length", "response_length", "mean_response", "max_response",
                 "rollout_gpus", "training", "rollout", "json", "help"});
  if (!options.parse(arguments,
                     "usage: orrery post --model M --system S --gpus N --framework F --prompts P "
                     "--samples G\n"
                     "                   --prompt_length LENGTHS --mean_response N --max_response "
                     "N [options]\n\n"
                     "A step of reinforcement learning: how long it takes, why, and whether it "
                     "fits\n(docs/guides/post-train.md)."))
    return exit_ok;
  options.refuse_words("see orrery post --help");
  if (options.has("job")) {
    given.job = options.text("job");
    take_job_file(given);
    if (options.has("search")) free_degrees(given.request);
  }
  options.fill();
  if (!given.lengths)
    options.refuse({"trace-format"}, "is of a file of lengths", "add --sample_lengths FILE");
  if (given.lengths) given.request.lengths = samples_of_file(*given.lengths, given.reading);
  const Model model = given.carried && !given.model
                          ? *given.carried
                          : read_model(needed(given.model, "model"), command_line / "model");
  const System system = read_system(needed(given.system, "system"), command_line / "system");
  if (!given.gpus) fail_input(command_line / "gpus", "is missing", "write how many: --gpus 16");
  const RlFramework framework =
      read_rl_framework(needed(given.framework, "framework"), command_line / "framework");
  const Economics economics = read_economics(system, given.economics);
  if (given.searches) {
    options.refuse({"changes", "steps", "perfetto", "html"}, "is for one job",
                   "leave it out, or --search");
    const RlSearchRequest request{model, system, framework, given.request, *given.gpus};
    const RlSearchResult result = long_work([&] { return search_rl(request, listed_steps); });
    if (result.best.empty())
      fail_infeasible(command_line / "search", "no plan of both halves fits: " + result.refusal,
                      "");
    std::cout << (given.json ? rl_search_json(result, economics) : rl_search_text(request, result));
    return exit_ok;
  }
  const RlJob job = make_rl_job(model, system, framework, given.request, *given.gpus, command_line);
  const RlStep step = long_work([&] { return rl_step(job); });
  const RlBill bill = rl_bill(step, economics, given.steps);
  std::vector<RlChange> changes;
  if (given.changes) changes = long_work([&] { return rl_changes(step); });
  OutputFiles files{given.force};
  if (given.perfetto) files.add(*given.perfetto, rl_trace(step));
  if (given.html)
    files.add(*given.html, post_report(step, bill, changes, {typed_command("post", arguments)}));
  files.commit();
  std::cout << (given.json ? rl_step_json(step, bill, changes) : rl_step_text(step, bill));
  if (given.changes && !given.json) std::cout << "\n" << rl_changes_text(step, changes);
  return exit_ok;
}

}  // namespace orrery
