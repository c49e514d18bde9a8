#include <algorithm>
#include <cmath>
#include <iostream>

#include "sim/cli/scenario_options.hpp"
#include "sim/cli/search_options.hpp"
#include "sim/cli/serve_traffic.hpp"
#include "sim/cli/terminal.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/progress.hpp"
#include "sim/core/quoting.hpp"
#include "sim/core/text_file.hpp"
#include "sim/core/value_list.hpp"
#include "sim/core/write_file.hpp"
#include "sim/explorer/reports.hpp"
#include "sim/plan/unlikely_inputs.hpp"
#include "sim/posttraining/rl_job.hpp"
#include "sim/search/row_search.hpp"

namespace orrery {
namespace {

constexpr int most_gpus_to_buy = 1 << 20;
// "10M", "$2.5M", "800k": a number and a power of 1000.
double parse_dollars(const std::string& text, const Place& at) {
  const auto dollars =
      number_with_unit(text.starts_with('$') ? text.substr(1) : text,
                       {{"", 1.0}, {"k", 1e3}, {"K", 1e3}, {"M", 1e6}, {"B", 1e9}});
  if (!dollars || *dollars <= 0.0)
    fail_input(at, "'" + shown_text(text) + "' is no sum of dollars",
               "write it like 10M, 2.5M or 800k");
  return *dollars;
}

// The field's unit: 16M is 16 x 2^20, as 2,048 sequences of 8,192 are.
std::int64_t parse_batch_tokens(const std::string& text, const Place& at) {
  const auto tokens =
      number_with_unit(text, {{"", 1.0}, {"k", 0x1p10}, {"K", 0x1p10}, {"M", 0x1p20}});
  if (!tokens || *tokens < 1.0 || *tokens > 0x1p40)
    fail_input(at, "'" + shown_text(text) + "' is no number of tokens",
               "write it like 4M or 16M (M: 2^20) or 15728640");
  return static_cast<std::int64_t>(*tokens);
}

Seconds parse_time(const std::string& text, const Place& at) {
  const Seconds time = parse_span(text, at);
  if (time <= Seconds{}) fail_input(at, "leaves no time", "write it like 60d");
  return time;
}

PayBy parse_pay(const std::string& text, const Place& at) {
  if (text != "rent" && text != "own")
    fail_input(at, "'" + shown_text(text) + "' is no way to pay", "write rent or own");
  return text == "own" ? PayBy::own : PayBy::rent;
}

// The options of `orrery buy`, and the request that they make.
struct BuyOptions {
  PurchaseRequest request;
  PurchaseNames names;
  std::vector<std::string> systems, fixed;
  std::optional<std::string> gbs, dtype, html;
  std::optional<std::int64_t> batch_tokens;
  std::vector<std::pair<std::string, std::string>> loop_keys;  ///< Of that job.
  std::optional<std::string> post;  ///< A job of reinforcement learning, in place of a training.
  std::int64_t steps = 0;
  ServingPurchaseOptions serving;
  bool json = false, csv = false, force = false;
  TextWidth width = TextWidth::terminal;
};

void add_buy(Options& options, BuyOptions& into) {
  PurchaseRequest& request = into.request;
  options.add("model", "NAME|FILE", "a model of the catalog, or a Hugging Face config.json",
              into.names.model);
  options.add("tokens", "N", "tokens to train on, as 15T",
              [&into](const std::string& text, const Place& at) {
                into.names.tokens = text;
                into.request.tokens = parse_tokens(text, at);
              });
  options.add("system", "LIST", "what could be bought or rented: orrery list systems",
              into.systems);
  options.add("gpus", "N", "GPUs in all: 1024, 256,512 or 256..4096 (doubling)");
  options.add(
      "post", "FILE",
      "instead of a model and tokens: a job of reinforcement learning, as orrery post --job",
      into.post);
  for (const Field<RlRequest>& key : rl_keys())
    if (std::find(length_keys.begin(), length_keys.end(), key.name) != length_keys.end())
      options.add(key.name, key.values, key.help,
                  [&into, &key](const std::string& text, const Place&) {
                    into.loop_keys.emplace_back(key.name, text);
                  });
  options.add("steps", "N", "adds how long a run of so many steps takes, and its rent", into.steps,
              whole(1, 1 << 30));
  options.add("serve", "FILE",
              "instead of tokens: requests a second by time, as orrery serve --load",
              into.serving.load);
  options.add("engine", "NAME", "what serves them: orrery list engines", into.serving.engine);
  for (const DeploymentKey& key : deployment_keys())
    if (key.name == "weights" || key.name == "kv")
      options.add(key.name, key.values.size() < 16 ? key.values : "FORMAT", key.help,
                  key.name == "kv" ? into.serving.kv : into.serving.weights);
  options.add("isl", "LENGTHS", help::prompts, into.serving.isl);
  options.add("osl", "LENGTHS", help::answers, into.serving.osl);
  options.add("slo", "LIST", help::limits, into.serving.slo);
  options.add("autoscale", "LAW", help::autoscale, into.serving.scalers);
  options.add("start", "TIME", help::start, into.serving.start);
  options.add("deadline", "TIME", "how long it may take, as 60d", request.deadline, parse_time);
  options.add("budget", "USD",
              "what this one training may cost by --pay, as 10M; for a purchase: --capital",
              request.budget_usd, parse_dollars);
  options.add("pay", "HOW",
              "what one training costs: rent (default), or own, its share of the purchase and "
              "electricity",
              request.pay, parse_pay);
  options.add("capital", "USD", "what the whole cluster may cost to buy, as 50M",
              request.capital_usd, parse_dollars);
  options.add("max-batch-tokens", "N",
              "tokens of the largest batch that training can use, as 4M (default 16M)",
              into.batch_tokens, parse_batch_tokens);
  options.add("gbs", "N", "instead: sequences in a step; several as for gpus", into.gbs);
  options.add("reliability", "NAME|FILE",
              "days and money with failures and spares, as orrery run: orrery list reliability",
              [&into](const std::string& text, const Place& at) {
                into.names.reliability = text;
                into.request.reliability = read_reliability(text, at);
              });
  options.add("dtype", "FORMAT", "as --fix dtype=fp8: the same on all systems", into.dtype);
  options.add("fix", "KEY=V[,V]", "only plans with this; any key of a plan, as tp=1..8",
              into.fixed);
  options.add("max-memory", "SHARE", "of the GPU's memory that may be filled (default 0.95)",
              request.max_memory, parse_share);
  options.add("economics", "FILE[,FILE]",
              "your prices and powers, over those of topologies/economics", request.economics);
  add_jobs(options, request.workers);
  options.add("json", "print orrery.purchase/1 instead of the table", into.json);
  options.add("csv", "print the rows as CSV", into.csv);
  options.add("html", "FILE", "write a page for a browser as well", into.html);
  options.add("force", "replace files that Orrery did not write", into.force);
  options.wide(into.width);
  options.help();
  options.basic(
      {"model",     "tokens",  "post",        "system", "gpus",  "deadline", "budget",
       "pay",       "capital", "reliability", "dtype",  "fix",   "gbs",      "max-batch-tokens",
       "economics", "json",    "csv",         "html",   "force", "help"});
}

void read_systems(BuyOptions& given) {
  for (const std::string& list : given.systems)
    for (const std::string& name : split_list(list, command_line / "system")) {
      std::vector<std::string>& names = given.names.systems;
      if (std::find(names.begin(), names.end(), name) != names.end())
        fail_input(command_line / "system", "'" + name + "' is named twice", "keep one of them");
      names.push_back(name);
      given.request.systems.push_back(read_system(name, command_line / "system"));
    }
  if (given.names.systems.empty())
    fail_input({}, "--system is missing", "name one or more: orrery list systems");
}

void read_batches(const BuyOptions& given, PurchaseRequest& request) {
  const Place batch = command_line / "max-batch-tokens", fix = command_line / "fix";
  if (given.gbs) {
    if (given.batch_tokens)
      fail_input(command_line / "gbs", "says the batches that --max-batch-tokens would choose",
                 "leave one of them out");
    request.batches = parse_numbers(*given.gbs, "gbs", RangeRule{}.most);
    return;
  }
  std::int64_t seq = default_sequence(request.model);
  for (const Fixed& fixed : request.fixed) {
    if (fixed.key != "seq") continue;
    if (fixed.values.size() > 1)
      fail_input(fix, "a purchase has sequences of one length",
                 "ask once for each: --fix seq=" + fixed.values.front());
    seq = std::stoll(fixed.values.front());
  }
  if (seq <= 0) fail_input(fix, "the model does not say how long a sequence is", "add --fix seq=N");
  const std::int64_t tokens = given.batch_tokens.value_or(usual_most_batch_tokens);
  request.usual_batch = !given.batch_tokens;
  request.most_batch = tokens / seq;
  if (request.most_batch < 1)
    fail_input(batch, grouped(tokens) + " tokens are less than a sequence of " + grouped(seq),
               "allow more, or shorter sequences (--fix seq=N)");
}

void read_gpus(PurchaseRequest& request, const Options& options) {
  for (const std::int64_t n :
       parse_numbers(options.required("gpus", "write how many: --gpus 1024, or 256..4096"), "gpus",
                     RangeRule{}.most)) {
    if (n > most_gpus_to_buy)
      fail_input(command_line / "gpus", grouped(n) + " GPUs are more than anybody has",
                 "write at most " + grouped(most_gpus_to_buy));
    request.gpus.push_back(static_cast<int>(n));
  }
  std::sort(request.gpus.begin(), request.gpus.end());
}

int buy_for_loop(BuyOptions& given, const Options& options) {
  options.refuse({"model", "tokens", "deadline", "budget", "pay", "capital", "max-batch-tokens",
                  "gbs", "reliability", "dtype", "fix", "max-memory", "csv", "html", "wide"},
                 "is of a training run", "leave it out, or --post");
  read_systems(given);
  read_gpus(given.request, options);
  return buy_for_post({*given.post, given.request.economics, given.request.systems,
                       given.request.gpus, given.steps, given.loop_keys, given.json});
}

int buy_for_requests(BuyOptions& given, const Options& options) {
  options.refuse(
      {"tokens", "gpus", "deadline", "budget", "pay", "capital", "max-batch-tokens", "gbs",
       "reliability", "dtype", "fix", "max-memory", "csv", "html", "wide", "post", "steps"},
      "is of a training run", "leave it out, or --serve");
  for (const std::string& name : length_keys)
    options.refuse({name.c_str()}, "is of a job of reinforcement learning", "leave it out");
  read_systems(given);
  ServingPurchaseOptions& serving = given.serving;
  serving.model = given.names.model;
  serving.economics = given.request.economics;
  serving.systems = given.request.systems;
  serving.json = given.json;
  return buy_for_serving(serving);
}

void complete(BuyOptions& given, const Options& options) {
  PurchaseRequest& request = given.request;
  options.required("model", "name one: orrery list models");
  request.model = read_model(given.names.model, command_line / "model");
  if (options.has("tokens"))
    note_doubt(unlikely_tokens(request.tokens, default_sequence(request.model)));
  options.required("tokens", "say how much to train: --tokens 15T");
  read_systems(given);
  read_gpus(request, options);
  request.fixed = fixed_by(given.fixed, request.gpus, RangeRule{}.most);
  if (given.dtype) {
    if (std::any_of(request.fixed.begin(), request.fixed.end(),
                    [](const Fixed& fixed) { return fixed.key == "dtype"; }))
      fail_input(command_line / "dtype", "is fixed by --fix dtype as well",
                 "leave one of them out");
    request.fixed.push_back(parse_fixed("dtype=" + *given.dtype, request.gpus));
  }
  read_batches(given, request);
}

}  // namespace

int run_buy(const Arguments& arguments) {
  BuyOptions given;
  Options options;
  add_buy(options, given);
  add_simulator(options);
  point_plan_keys_to_fix(options, arguments, "a purchase");
  if (!options.read(arguments,
                    "usage: orrery buy --model M --tokens T --system S,S --gpus N [options]\n"
                    "       orrery buy --post JOB --system S,S --gpus N [options]\n"
                    "       orrery buy --serve LOAD --model M --engine E --system S,S --isl N "
                    "--osl N --slo L\n\n"
                    "Which machine trains a model in how many days for how much money "
                    "(docs/guides/buy.md)."))
    return exit_ok;
  options.refuse_words("see orrery buy --help");
  if (given.json)
    options.refuse({"csv"}, "and --json would be printed into each other", "leave one of them out");
  if (!given.serving.load.empty()) return buy_for_requests(given, options);
  options.refuse({"engine", "weights", "kv", "isl", "osl", "slo", "autoscale", "start"},
                 "is of a load of requests", "add --serve FILE");
  if (given.post) return buy_for_loop(given, options);
  std::vector<std::string> of_loops = length_keys;
  of_loops.push_back("steps");
  for (const std::string& name : of_loops)
    options.refuse({name.c_str()}, "is of a job of reinforcement learning", "add --post FILE");
  complete(given, options);
  const PurchaseRequest& request = given.request;
  const Interruption interruption;
  const Purchase purchase = [&] {
    StatusLine line;
    return buy(request, [&](const PurchaseProgress& progress) {
      if (line.is_due())
        line.draw(std::to_string(progress.done) + " of " + std::to_string(progress.rows) +
                  " rows searched");
    });
  }();
  if (given.html)
    write_output(*given.html,
                 purchase_report(purchase, request, given.names, {typed_command("buy", arguments)}),
                 given.force);
  std::cout << (given.json  ? purchase_json(purchase, request, given.names)
                : given.csv ? purchase_csv(purchase, request)
                            : purchase_document(purchase, request, given.names).text(given.width));
  return purchase.interrupted ? exit_interrupted : exit_ok;
}

}  // namespace orrery
