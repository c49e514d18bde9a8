#include <algorithm>
#include <iostream>
#include <thread>

#include "sim/cli/options.hpp"
#include "sim/cli/scenario_options.hpp"
#include "sim/cli/search_options.hpp"
#include "sim/cli/serve_fleet.hpp"
#include "sim/cli/serve_pools.hpp"
#include "sim/cli/serve_setup.hpp"
#include "sim/cli/serve_traffic.hpp"
#include "sim/cli/terminal.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/progress.hpp"
#include "sim/core/quoting.hpp"
#include "sim/core/value_list.hpp"
#include "sim/core/write_file.hpp"
#include "sim/explorer/reports.hpp"
#include "sim/serving/serving_step_text.hpp"

namespace orrery {
namespace {

constexpr std::int64_t most_gpus_to_search = 1 << 16;
constexpr const char* usual_clients = "1..1024";

// The options of `orrery serve`.
struct ServeOptions {
  DeploymentOptions deployment;
  TrafficOptions traffic;
  SessionOptions sessions;
  ScaledOptions scaled;
  PoolOptions pools;
  bool searches = false;
  DeploymentSearchRequest search;  ///< Filled from its own options.
  std::vector<std::string> fixed;
  ListOptions list;
  bool csv = false;
  TextWidth width = TextWidth::terminal;
  std::optional<std::string> html;
};

std::vector<int> gpus_of(const Options& options) {
  const Place at = command_line / "gpus";
  std::vector<int> all;
  for (const std::string& value :
       parse_value_list(options.required("gpus", "write how many: --gpus 8, or 8..64"), at,
                        {OpenRange::doubles, {}})) {
    const auto gpus =
        static_cast<int>(value_of_flag("gpus", value).integer(1, most_gpus_to_search));
    if (std::find(all.begin(), all.end(), gpus) != all.end())
      fail_input(at, "has the value '" + value + "' twice", "keep one of them");
    all.push_back(gpus);
  }
  return all;
}

std::vector<ServingPlatform> platforms_of(const Options& options, const std::vector<int>& gpus) {
  const auto listed = [&](const char* name) {
    return split_list(
        options.required(name, std::string{"name one or more: orrery list "} + name + "s"),
        command_line / name);
  };
  std::vector<ServingPlatform> platforms;
  const auto engines = listed("engine");
  for (const std::string& system : listed("system")) {
    const System machine = read_system(system, command_line / "system");
    for (const std::string& engine : engines) {
      const ServingEngine server = read_serving_engine(engine, command_line / "engine");
      for (const int count : gpus) platforms.push_back({machine, server, count, system, engine});
    }
  }
  return platforms;
}

std::vector<Fixed> fixed_by(const std::vector<std::string>& texts, const std::vector<int>& gpus) {
  std::vector<Fixed> fixed;
  for (const std::string& one : texts) {
    Fixed key = parse_fixed_key(one, gpus);
    if (std::any_of(fixed.begin(), fixed.end(),
                    [&](const Fixed& other) { return other.key == key.key; }))
      fail_input(command_line / "fix", "'" + key.key + "' is fixed twice",
                 "write its values in one: --fix kv=bf16,fp8");
    fixed.push_back(std::move(key));
  }
  return fixed;
}

// Options of `orrery serve` are searched here, or fixed.
void refuse_what_is_searched(const Options& options) {
  for (const DeploymentKey& key : deployment_keys())
    if (const std::string option = deployment_option(key.name); options.has(option))
      fail_input(command_line / option, "is what a search chooses",
                 "to fix it, write --fix " + key.name + "=" + options.text(option));
  options.refuse({"prefill", "decode", "kv-transfer", "pools-apart"}, "is for one deployment",
                 "write --pools all, and --fix for what both pools must have");
  options.refuse({"step"}, "is for one deployment", "leave it out, or --search");
  options.refuse({"goodput"}, "is for one deployment", "write --objective goodput");
  options.refuse({"requests-out", "perfetto", "unfolded", "runs"}, "is for one deployment",
                 "leave it out, or --search");
  for (const char* group : {"Sessions", "Fleets that scale"})
    options.refuse_rest(group, {}, "is for one deployment", "leave it out, or --search");
}

void read_loads(const Options& options, const TrafficOptions& traffic,
                DeploymentSearchRequest& request, DeploymentSearchWords& words) {
  const bool finds_rate = request.goal == ServingGoal::goodput;
  if (finds_rate && !traffic.rules.replay.slo)
    fail_input(command_line / "objective", "goodput needs limits to keep to",
               "add --slo ttft=2000,tpot=40@p90");
  std::vector<RequestedLoad> loads = read_loads(options, traffic, {usual_clients, finds_rate});
  words.limits = traffic.slo;
  const ServingLoad& first = loads.front().load;
  words.requests = first.file.empty()
                       ? "prompts of " + length_distribution_text(first.traffic.prompt) +
                             " tokens, answers of " + length_distribution_text(first.traffic.output)
                       : "requests of " + first.file;
  for (RequestedLoad& one : loads) {
    const RequestTraffic& requests = one.load.traffic;
    const std::int64_t clients = one.load.list.clients;
    const std::string arrivals = name(requests.arrivals);
    words.loads.push_back(clients > 0 ? plural(clients, "client")
                          : finds_rate || !(requests.rate > 0.0)
                              ? arrivals
                              : arrivals + ", " + fixed(requests.rate, 2) + " a second");
    words.load_flags.push_back(one.flags);
    request.loads.push_back(std::move(one.load));
  }
}

DeploymentSearchRequest read_request(const Options& options, const ServeOptions& given,
                                     DeploymentSearchWords& words) {
  refuse_what_is_searched(options);
  DeploymentSearchRequest request = given.search;
  words.model = named(given.deployment.model, "model");
  request.model = read_model(words.model, command_line / "model");
  const std::vector<int> gpus = gpus_of(options);
  request.platforms = platforms_of(options, gpus);
  request.fixed = fixed_by(given.fixed, gpus);
  DeploymentRequest stated;
  for (const Fixed& key : request.fixed) set_deployment_flag(stated, key.key, key.values.front());
  print_published_note(request.model, stated);
  request.list = given.list.list();
  if (request.list.is_front())
    for (const char* other : {"top", "all-settings"})
      options.refuse({other}, "a Pareto front has all that no other beats",
                     std::string{"leave --"} + other + " or --pareto out");
  if (given.pools.pools) request.pools = parse_pool_choice(*given.pools.pools);
  if (request.pools != PoolChoice::none)
    for (const Fixed& one : request.fixed)
      if (one.key == "replicas")
        fail_input(command_line / "fix", "replicas follow from the GPUs of both pools",
                   "leave replicas or --pools out");
  if (request.pools == PoolChoice::only &&
      std::none_of(
          request.platforms.begin(), request.platforms.end(),
          [](const ServingPlatform& platform) { return platform.engine.pools.has_value(); }))
    fail_infeasible(command_line / "pools", "none of the engines has pools",
                    "use " + schedulers_with(&SchedulerKind::continuous));
  request.economics = given.traffic.economics;
  read_loads(options, given.traffic, request, words);
  request.workers = request.loads.front().replay.workers;
  return request;
}

std::string progress_text(const DeploymentSearchProgress& progress) {
  if (progress.bounded < progress.layouts)
    return grouped(progress.bounded) + " of " + grouped(progress.layouts) + " deployments priced";
  return grouped(progress.done) + " of " + grouped(progress.points) + " points, " +
         grouped(progress.replayed) + " replayed";
}

void add_serving_search(Options& options, ServeOptions& into) {
  DeploymentSearchRequest& search = into.search;
  options.group("Search");
  options.add(
      "search",
      "the best deployments for what clients do: docs/guides/deployments.md; lists for --system, "
      "--engine, --gpus and --concurrency",
      into.searches);
  options.add(
      "objective", "GOAL",
      "throughput (default: tokens of answers a second and GPU), cost, energy or goodput",
      [&search](const std::string& text, const Place&) { search.goal = parse_serving_goal(text); });
  options.add("fix", "KEY=V[,V]", "only deployments with this: tp=1..8, kv=bf16,fp8", into.fixed);
  options.add("top", "K", "how many to list (default 10)", into.list.top, whole(1, 10'000));
  options.add("all-settings", "list one layout under several loads apart, not its best alone",
              into.list.all_settings);
  options.add("pareto",
              "instead of the top: all that no other beats in the objective and a user's speed",
              into.list.pareto);
  options.add("csv", "print the list as CSV", into.csv);
  options.add("html", "FILE", "write a page for a browser, with the list and its Pareto curve",
              into.html);
  options.wide(into.width);
}

int serve_search(const Options& options, const ServeOptions& given, const std::string& command) {
  DeploymentSearchWords words;
  const DeploymentSearchRequest request = read_request(options, given, words);
  const Interruption interruption;
  const DeploymentSearchResult result = [&] {
    StatusLine line;
    return search_deployments(request, [&](const DeploymentSearchProgress& progress) {
      if (line.is_due()) line.draw(progress_text(progress));
    });
  }();
  for (const ServingLoad& load : request.loads) {
    const std::int64_t tokens = most_tokens_of_request(load);
    if (request.model.max_sequence == 0 || tokens <= request.model.max_sequence) continue;
    print_note(too_long_note(request.model, tokens));
    break;
  }
  if (given.html)
    write_output(*given.html, deployments_report(result, request, words, {command}),
                 given.traffic.force);
  std::cout << (given.traffic.json ? deployment_search_json(result, request, words)
                : given.csv        ? deployment_search_csv(result, request, words)
                            : deployment_search_document(result, request, words).text(given.width));
  return result.interrupted ? exit_interrupted : exit_ok;
}

constexpr const char* serve_usage =
    "usage: orrery serve --model NAME|FILE --system NAME|FILE --gpus N --engine NAME "
    "--step NxC [options]\n"
    "       orrery serve ... --isl LENGTHS --osl LENGTHS --concurrency N|--rate R|--arrival burst\n"
    "       orrery serve ... --trace FILE\n"
    "       orrery serve ... --load FILE --isl LENGTHS --osl LENGTHS [--autoscale LAW]\n"
    "       orrery serve ... --sessions FILE --lanes N|--session-rate R|--most-lanes\n"
    "       orrery serve --plan FILE ...\n"
    "       orrery serve ... --prefill LIST --decode LIST ...\n"
    "       orrery serve --search ... --isl LENGTHS --osl LENGTHS [--concurrency LIST]\n\n"
    "What an iteration of a serving engine costs, and how many tokens its KV cache holds\n"
    "(docs/explanation/serving.md); or what clients see who send requests (docs/guides/serve.md); "
    "or\n"
    "which deployment is the best for them (docs/guides/deployments.md).";

}  // namespace

int run_serve(const Arguments& arguments) {
  ServeOptions given;
  Options options;
  add_deployment(options, given.deployment);
  add_step(options);
  options.add("json", "print orrery.serving/1", given.traffic.json);
  options.help();
  add_traffic(options, given.traffic);
  add_sessions(options, given.sessions);
  add_scaled(options, given.scaled);
  add_pools(options, given.pools);
  add_serving_search(options, given);
  options.basic({"model",   "system", "gpus",   "engine",    "plan", "tp",          "ep",
                 "weights", "kv",     "step",   "isl",       "osl",  "concurrency", "rate",
                 "trace",   "slo",    "search", "objective", "json", "help"});
  if (!read_with_deployment_file(options, arguments, serve_usage, "write --model, --system, ...",
                                 "is no option"))
    return exit_ok;
  if (given.searches) return serve_search(options, given, typed_command("serve", arguments));
  options.refuse({"objective", "fix", "top", "all-settings", "pareto", "csv", "html", "wide"},
                 "belongs to a search", "add --search");
  named(given.deployment.model, "model");
  named(given.deployment.system, "system");
  named(given.deployment.engine, "engine");
  if (!given.sessions.file)
    options.refuse_rest("Sessions", {}, "is about sessions",
                        "add --sessions FILE, or leave it out");
  const std::optional<PoolsRequest> pools = read_pools(options, given.pools, given.deployment.keys);
  if (!given.scaled.load)
    options.refuse_rest("Fleets that scale", {}, "is about a load that changes",
                        "add --load FILE, or leave it out");
  const Stopwatch watch;
  const auto priced_for = [&](const char* option, const char* problem) {
    options.refuse({"step"}, "is one iteration, and this takes many", "keep one of them");
    if (pools) fail_input(command_line / option, problem, "leave out --prefill and --decode");
    ServingSetup setup = read_serving_setup(given.deployment);
    print_published_note(setup.model, given.deployment.keys);
    return PricedServing{std::move(setup)};
  };
  if (given.scaled.load) {
    options.refuse({"sessions"}, "is no load that changes", "keep one of them");
    return serve_scaled(options, given.scaled, given.traffic,
                        priced_for("load", "is for one pool, and prompts have one of their own"),
                        watch);
  }
  if (given.sessions.file)
    return serve_sessions(
        options, given.sessions, given.traffic,
        priced_for("sessions", "are for one pool, and prompts have one of their own"), watch);
  if (has_traffic(options))
    options.refuse({"step"}, "is one iteration, and requests take many", "keep one of them");
  std::optional<Iteration> iteration;
  if (!has_traffic(options))
    iteration = parse_iteration(
        options.required("step",
                         "write an iteration, --step 64x4096, or requests, --isl 1024 --osl "
                         "1024 --concurrency 64"));
  if (iteration)
    options.refuse_rest("Requests", {"economics"}, "is about requests, and --step is one iteration",
                        "leave it out, or replace --step by --isl, --osl and --concurrency");
  if (pools) return serve_pools(options, given.deployment, given.traffic, *pools, iteration);
  if (!iteration) {
    const PricedServing priced{read_serving_setup(given.deployment)};
    print_published_note(priced.setup.model, given.deployment.keys);
    const auto serve = [&](const ServingLoad& load) {
      return serve_requests(priced, load, command_line);
    };
    return serve_traffic(options, given.traffic,
                         {priced.setup.system, priced.setup.deployment.gpus(),
                          priced.setup.deployment.replicas, serve, watch});
  }
  const ServingSetup setup = read_serving_setup(given.deployment);
  print_published_note(setup.model, given.deployment.keys);
  const ServingStep step = serving_step(setup, *iteration, command_line);
  print_deployment_notes(setup, step.kv, longest_of(*iteration));
  for (const std::string& note : batch_notes(setup, *iteration)) print_note(note);
  const TokenCost cost = token_cost(step.tokens_per_s, static_cast<double>(setup.deployment.gpus()),
                                    read_economics(setup.system, given.traffic.economics));
  std::cout << (given.traffic.json ? serving_step_json(step, cost) : serving_step_text(step, cost));
  return exit_ok;
}

}  // namespace orrery
