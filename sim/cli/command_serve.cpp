#include <algorithm>
#include <iostream>
#include <thread>

#include "sim/cli/options.hpp"
#include "sim/cli/scenario_options.hpp"
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

namespace po = boost::program_options;

namespace orrery {
namespace {

constexpr std::int64_t most_gpus_to_search = 1 << 16;
constexpr const char* usual_clients = "1..1024";

std::vector<std::string> words_of(const ParsedOptions& parsed, const char* name,
                                  const char* remedy) {
  return split_list(required(parsed, name, remedy), command_line / name);
}

std::vector<int> gpus_of(const ParsedOptions& parsed) {
  const Place at = command_line / "gpus";
  std::vector<int> all;
  for (const std::string& value :
       parse_value_list(required(parsed, "gpus", "write how many: --gpus 8, or 8..64"), at,
                        {OpenRange::doubles, {}})) {
    const auto gpus =
        static_cast<int>(value_of_flag("gpus", value).integer(1, most_gpus_to_search));
    if (std::find(all.begin(), all.end(), gpus) != all.end())
      fail_input(at, "has the value '" + value + "' twice", "keep one of them");
    all.push_back(gpus);
  }
  return all;
}

std::vector<ServingPlatform> platforms_of(const ParsedOptions& parsed,
                                          const std::vector<int>& gpus) {
  std::vector<ServingPlatform> platforms;
  const auto engines = words_of(parsed, "engine", "name one or more: orrery list engines");
  for (const std::string& system :
       words_of(parsed, "system", "name one or more: orrery list systems")) {
    const System machine = read_system(system, command_line / "system");
    for (const std::string& engine : engines) {
      const ServingEngine server = read_serving_engine(engine, command_line / "engine");
      for (const int count : gpus) platforms.push_back({machine, server, count, system, engine});
    }
  }
  return platforms;
}

std::vector<Fixed> fixed_by(const ParsedOptions& parsed, const std::vector<int>& gpus) {
  std::vector<Fixed> fixed;
  if (!parsed.has("fix")) return fixed;
  for (const std::string& one : parsed.values["fix"].as<std::vector<std::string>>()) {
    Fixed key = parse_fixed_key(one, gpus);
    if (std::any_of(fixed.begin(), fixed.end(),
                    [&](const Fixed& other) { return other.key == key.key; }))
      fail_input(command_line / "fix", "'" + key.key + "' is fixed twice",
                 "write its values in one: --fix kv=bf16,fp8");
    fixed.push_back(std::move(key));
  }
  return fixed;
}

// What `orrery serve` takes as an option is searched here, or fixed.
void refuse_what_is_searched(const ParsedOptions& parsed) {
  for (const DeploymentKey& key : deployment_keys())
    if (parsed.has(key.name))
      fail_input(command_line / key.name, "is what a search chooses",
                 "to fix it, write --fix " + key.name + "=" + parsed.text(key.name));
  for (const char* pool : {"prefill", "decode", "kv-transfer", "pools-apart"})
    if (parsed.has(pool))
      fail_input(command_line / pool, "is for one deployment",
                 "write --pools all, and --fix for what both pools must have");
  for (const char* other : {"step", "goodput", "requests-out", "perfetto", "unfolded"})
    if (parsed.has(other))
      fail_input(command_line / other, "is for one deployment",
                 std::string{other} == "goodput" ? "write --objective goodput"
                                                 : "leave it out, or --search");
}

void read_loads(const ParsedOptions& parsed, DeploymentSearchRequest& request,
                DeploymentSearchWords& words) {
  const bool finds_rate = request.goal == ServingGoal::goodput;
  if (finds_rate && !parsed.has("slo"))
    fail_input(command_line / "objective", "goodput needs limits to keep to",
               "add --slo ttft=2000,tpot=40@p90");
  std::vector<AskedLoad> asked = read_loads(parsed, {usual_clients, finds_rate});
  if (parsed.has("slo")) words.limits = parsed.text("slo");
  const ServingLoad& first = asked.front().load;
  words.requests = first.file.empty()
                       ? "prompts of " + length_law_text(first.traffic.prompt) +
                             " tokens, answers of " + length_law_text(first.traffic.output)
                       : "requests of " + first.file;
  for (AskedLoad& one : asked) {
    const RequestTraffic& traffic = one.load.traffic;
    const std::int64_t clients = one.load.list.clients;
    const std::string arrivals = arrivals_name(traffic.arrivals);
    words.loads.push_back(clients > 0 ? plural(clients, "client")
                          : finds_rate || !(traffic.rate > 0.0)
                              ? arrivals
                              : arrivals + ", " + fixed(traffic.rate, 2) + " a second");
    words.load_flags.push_back(one.flags);
    request.loads.push_back(std::move(one.load));
  }
}

DeploymentSearchRequest read_request(const ParsedOptions& parsed, DeploymentSearchWords& words) {
  refuse_what_is_searched(parsed);
  DeploymentSearchRequest request;
  words.model = required(parsed, "model", "name one: orrery list models");
  request.model = read_model(words.model, command_line / "model");
  const std::vector<int> gpus = gpus_of(parsed);
  request.platforms = platforms_of(parsed, gpus);
  request.fixed = fixed_by(parsed, gpus);
  if (parsed.has("objective")) request.goal = parse_serving_goal(parsed.text("objective"));
  request.list.kind = list_kind(parsed);
  if (request.list.is_front())
    for (const char* other : {"top", "all-settings"})
      if (parsed.has(other))
        fail_input(command_line / other, "a Pareto front has all that no other beats",
                   std::string{"leave --"} + other + " or --pareto out");
  if (parsed.has("pools")) request.pools = parse_pool_choice(parsed.text("pools"));
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
  if (parsed.has("top"))
    request.list.most =
        static_cast<int>(value_of_flag("top", parsed.text("top")).integer(1, 10'000));
  if (parsed.has("economics")) request.economics = parsed.text("economics");
  read_loads(parsed, request, words);
  request.workers = request.loads.front().replay.workers;
  return request;
}

std::string progress_text(const DeploymentSearchProgress& progress) {
  if (progress.bounded < progress.layouts)
    return grouped(progress.bounded) + " of " + grouped(progress.layouts) + " deployments priced";
  return grouped(progress.done) + " of " + grouped(progress.points) + " points, " +
         grouped(progress.replayed) + " replayed";
}

}  // namespace

po::options_description serve_search_options() {
  po::options_description options{"Search", 100};
  const auto text = [](const char* shown) { return po::value<std::string>()->value_name(shown); };
  options.add_options()  //
      ("search",
       "the best deployments for what clients do: docs/guides/deployments.md; lists for "
       "--system, --engine, --gpus and --concurrency")  //
      ("objective", text("GOAL"),
       "throughput (default: tokens of answers a second and GPU), cost, energy or goodput")  //
      ("fix", po::value<std::vector<std::string>>()->value_name("KEY=V[,V]")->composing(),
       "only deployments with this: tp=1..8, kv=bf16,fp8")                               //
      ("top", text("K"), "how many to list (default 10)")                                //
      ("all-settings", "list one layout under several loads apart, not its best alone")  //
      ("pareto",
       "instead of the top: all that no other beats in the objective and a user's "
       "speed")                         //
      ("csv", "print the list as CSV")  //
      ("html", text("FILE"), "write a page for a browser, with the list and its Pareto curve");
  return options;
}

int serve_search(const ParsedOptions& parsed, const std::string& command) {
  DeploymentSearchWords words;
  const DeploymentSearchRequest request = read_request(parsed, words);
  const Interruption interruption;
  const DeploymentSearchResult result = [&] {
    StatusLine line;
    return search_deployments(request, [&](const DeploymentSearchProgress& progress) {
      if (line.is_due()) line.draw(progress_text(progress));
    });
  }();
  if (parsed.has("html")) {
    OutputFiles files{parsed.has("force")};
    files.add(parsed.text("html"), deployments_report(result, request, words, {command}));
    files.commit();
  }
  std::cout << (parsed.has("json")  ? deployment_search_json(result, request, words)
                : parsed.has("csv") ? deployment_search_csv(result, request, words)
                                    : deployment_search_document(result, request, words).text());
  return result.interrupted ? exit_interrupted : exit_ok;
}

namespace {

po::options_description serve_options() {
  po::options_description options = deployment_options();
  options.add_options()                   //
      ("json", "print orrery.serving/1")  //
      ("help", "this text");
  return options;
}

}  // namespace

int run_serve(const Arguments& arguments) {
  po::options_description options = serve_options();
  options.add(traffic_options())
      .add(pool_options())
      .add(serve_search_options())
      .add(simulator_option());
  ParsedOptions parsed = parse_options(options, arguments, {"chunked", "mixed"});
  if (parsed.has("help")) {
    std::cout << "usage: orrery serve --model NAME|FILE --system NAME|FILE --gpus N --engine NAME "
                 "--step NxC [options]\n"
                 "       orrery serve ... --isl LAW --osl LAW --concurrency N|--rate R|--arrival "
                 "burst\n"
                 "       orrery serve ... --trace FILE\n"
                 "       orrery serve --plan FILE ...\n"
                 "       orrery serve ... --prefill LIST --decode LIST ...\n"
                 "       orrery serve --search ... --isl LAW --osl LAW [--concurrency LIST]\n\n"
                 "What an iteration of a serving engine costs, and how many tokens its KV cache "
                 "holds\n(docs/explanation/serving.md); or what clients see who send requests "
                 "(docs/guides/serve.md); or\nwhich deployment is the best for them "
                 "(docs/guides/deployments.md).\n\n"
              << options;
    return exit_ok;
  }
  if (!parsed.words.empty())
    fail_input({}, "'" + parsed.words.front() + "' is no option", "write --model, --system, ...");
  const SimulatorChoice simulator{simulator_of(parsed)};
  take_deployment_file(parsed);
  if (parsed.has("search")) return serve_search(parsed, typed_command("serve", arguments));
  for (const char* other : {"objective", "fix", "top", "all-settings", "pareto", "csv", "html"})
    if (parsed.has(other))
      fail_input({"", std::string{"--"} + other}, "belongs to a search", "add --search");
  const Place at{"", ""};
  for (const char* key : {"model", "system", "engine"})
    required(parsed, key, std::string{"name one: orrery list "} + key + "s");
  const std::optional<PoolsRequest> pools = read_pools(parsed, read_deployment_flags(parsed));
  if (has_traffic(parsed) && parsed.has("step"))
    fail_input(at / "step", "is one iteration, and requests take many", "keep one of them");
  std::optional<Iteration> iteration;
  if (!has_traffic(parsed))
    iteration = parse_iteration(
        required(parsed, "step",
                 "write an iteration, --step 64x4096, or requests, --isl 1024 --osl "
                 "1024 --concurrency 64"));
  if (pools) return serve_pools(parsed, *pools, iteration);
  if (!iteration) {
    const Stopwatch watch;
    const PricedServing priced{read_serving_setup(parsed)};
    const auto serve = [&](const ServingLoad& load) { return serve_requests(priced, load, at); };
    return serve_traffic(parsed,
                         {priced.setup.system, priced.setup.deployment.gpus(), serve, watch});
  }
  const ServingSetup setup = read_serving_setup(parsed);
  const ServingStep step = serving_step(setup, *iteration, at);
  const TokenCost cost =
      token_cost(step.tokens_per_s, static_cast<double>(setup.deployment.gpus()),
                 read_economics(setup.system.gpu.name,
                                parsed.has("economics") ? parsed.text("economics") : ""));
  std::cout << (parsed.has("json") ? serving_step_json(step, cost) : serving_step_text(step, cost));
  return exit_ok;
}

}  // namespace orrery
