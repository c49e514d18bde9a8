#include <algorithm>
#include <iostream>

#include "sim/cli/command.hpp"
#include "sim/cli/serve_fleet.hpp"
#include "sim/cli/serve_setup.hpp"
#include "sim/cli/terminal.hpp"
#include "sim/core/number_text.hpp"
#include "sim/fleet/fleet_text.hpp"
#include "sim/formats/requests/session_files.hpp"

namespace orrery {
namespace {

constexpr double most_requests_of_load = 5e7;

// The largest rate of one replica within the limits.
double capacity_of(const PricedServing& priced, const TrafficOptions& traffic,
                   const RequestTraffic& lengths, bool constant) {
  ServingSetup one = priced.setup;
  one.deployment.replicas = 1;
  const PricedServing alone{one};
  ServingLoad load = traffic.rules;
  load.traffic = lengths;
  load.traffic.arrivals = constant ? Arrivals::constant : Arrivals::poisson;
  load.traffic.stationary = true;
  load.part = MeasuredPart::steady;
  load.finds_length = true;
  const auto serve = [&](const ServingLoad& of) { return serve_requests(alone, of, command_line); };
  return largest_rate(serve, load, 1).rate;
}

}  // namespace

void add_scaled(Options& options, ScaledOptions& into) {
  options.group("Fleets that scale");
  options.add("load", "FILE", "requests a second by time: docs/guides/sessions.md", into.load);
  options.add("autoscale", "LAW", help::autoscale, into.scalers);
  options.add("draws", "N",
              "so many draws of the arrivals: policies are compared by their means (1)",
              into.samples, whole(1, 100));
  options.add("between-stages", "TIME",
              "each rate begins so long after all requests of the one before are answered, as "
              "inference-perf waits for 2s (default: at its own time)",
              into.between_stages);
  options.add("start", "TIME", help::start, into.start);
}

int serve_scaled(const Options& options, const ScaledOptions& given, const TrafficOptions& traffic,
                 const PricedServing& priced, const Stopwatch& since) {
  options.refuse(
      {"concurrency", "rate", "requests", "lengths", "trace", "trace-format", "speed", "first",
       "goodput", "counted", "skip-first", "runs", "perfetto", "unfolded", "requests-out", "jobs"},
      "is for loads that do not change", "leave it out, or --load");
  ScaledAnswer answer;
  answer.file = *given.load;
  answer.curve = read_load_curve(*given.load);
  if (answer.curve.requests() > most_requests_of_load)
    fail_input({answer.file, ""},
               "has " + grouped(std::llround(answer.curve.requests())) + " requests",
               "scale it down: at most 50 million are simulated");
  answer.traffic = traffic.arrivals;
  read_classes(traffic, answer.traffic);
  answer.slo = traffic.rules.replay.slo;
  const bool constant = options.has("arrival") && traffic.arrivals.arrivals == Arrivals::constant;
  if (options.has("arrival") && !constant && traffic.arrivals.arrivals != Arrivals::poisson)
    fail_input(command_line / "arrival", "is neither poisson nor constant", "write one of them");
  if (constant && given.samples > 1)
    fail_input(command_line / "draws", "are all alike where requests come at equal distances",
               "leave it out, or --arrival constant");
  std::vector<RequestList> lists;
  for (std::int64_t sample = 0; sample < given.samples; ++sample) {
    RequestTraffic drawn = answer.traffic;
    drawn.seed += static_cast<std::uint64_t>(sample);
    lists.push_back(requests_of_curve(answer.curve, constant, drawn));
  }
  if (lists.front().requests.empty())
    fail_input({answer.file, ""}, "brings no request", "raise its rates");
  answer.requests = std::ssize(lists.front().requests);
  answer.start = given.start ? start_time(priced.setup, *given.start, command_line / "start")
                             : start_time(priced.setup, {});
  std::vector<std::string> scalers = given.scalers;
  if (scalers.empty()) scalers.push_back("fixed");
  std::vector<ScalerRequest> requests;
  bool needs_capacity = false;
  for (const std::string& text : scalers) {
    ScalerRequest request = parse_scaler(text, command_line / "autoscale");
    const bool needs_both = request.law == ScalingLaw::planner;
    const bool lacks =
        !answer.slo ||
        (needs_both && (answer.slo->ttft == Slo::any || answer.slo->tpot == Slo::any));
    if (lacks && (needs_both || request.law == ScalingLaw::wva))
      fail_input(command_line / "autoscale",
                 name(request.law) + " compares latencies with limits" +
                     (needs_both ? " of TTFT and TPOT" : ""),
                 "add --slo ttft=3000,tpot=100");
    if (request.law == ScalingLaw::oracle && !answer.slo && request.oracle.capacity == 0.0)
      fail_input(command_line / "autoscale", "the oracle needs what a replica serves",
                 "add --slo ttft=3000,tpot=100, or write oracle:capacity=1.4");
    needs_capacity =
        needs_capacity || (request.law == ScalingLaw::oracle && request.oracle.capacity == 0.0);
    requests.push_back(request);
  }
  if (needs_capacity) {
    answer.capacity = capacity_of(priced, traffic, answer.traffic, constant);
    if (!(answer.capacity > 0.0))
      fail_infeasible(command_line / "slo", "is met by a replica at no rate", "raise the limits");
  }
  for (ScalerRequest& request : requests) {
    if (request.law == ScalingLaw::oracle) {
      if (request.oracle.capacity == 0.0) request.oracle.capacity = answer.capacity;
      answer.capacity = request.oracle.capacity;
    }
    ScaledLoad load;
    load.curve = answer.curve;
    load.scaler = request;
    load.initial = priced.setup.deployment.replicas;
    if (request.law != ScalingLaw::fixed)
      load.initial = std::clamp(load.initial, request.least, request.most);
    load.start = answer.start;
    if (given.between_stages)
      load.between_stages = parse_span(*given.between_stages, command_line / "between-stages");
    PolicySamples& samples = answer.samples.emplace_back();
    for (const RequestList& list : lists) {
      ScaledRun run = orrery::serve_scaled(priced, load, list, traffic.rules, command_line);
      samples.add(run);
      if (&list != &lists.front()) continue;
      run.classes = outcomes_of_classes(list, run.times, answer.slo, {});
      answer.runs.push_back(std::move(run));
    }
  }
  answer.economics = read_economics(priced.setup.system, traffic.economics);
  std::cout << (traffic.json ? scaled_json(answer, since.passed().si()) : scaled_text(answer));
  return exit_ok;
}

int buy_for_serving(const ServingPurchaseOptions& given) {
  const auto needed = [](const std::string& value, const char* option, const char* remedy) {
    if (value.empty()) fail_input(command_line / option, "is missing", remedy);
    return value;
  };
  ServingRequirement asked;
  asked.at = command_line;
  asked.model = read_model(needed(given.model, "model", "name one: orrery list models"),
                           command_line / "model");
  asked.engine = read_serving_engine(
      needed(given.engine, "engine", "name one: orrery list engines"), command_line / "engine");
  asked.curve = read_load_curve(given.load);
  if (!(asked.curve.requests() > 0.0) || asked.curve.requests() > most_requests_of_load)
    fail_input({given.load, ""},
               "has " + grouped(std::llround(asked.curve.requests())) + " requests",
               "give it from one to 50 million");
  asked.traffic.prompt = parse_length_distribution(
      needed(given.isl, "isl", "write --isl 4000, tokens of prompts"), command_line / "isl");
  asked.traffic.output = parse_length_distribution(
      needed(given.osl, "osl", "write --osl 1000, tokens of answers"), command_line / "osl");
  if (!given.weights.empty()) set_deployment_flag(asked.deployment, "weights", given.weights);
  if (!given.kv.empty()) set_deployment_flag(asked.deployment, "kv", given.kv);
  asked.rules.prefix_cache = true;
  asked.rules.replay.routing = Routing::least_tokens;
  asked.rules.replay.slo = parse_slo(needed(given.slo, "slo", "write --slo ttft=3000,tpot=100@p95"),
                                     command_line / "slo");
  for (const std::string& text : given.scalers)
    asked.scalers.push_back(parse_scaler(text, command_line / "autoscale"));
  for (const ScalerRequest& one : asked.scalers)
    if (one.law == ScalingLaw::fixed)
      fail_input(command_line / "autoscale", "a fixed fleet is always there", "leave fixed out");
  if (asked.scalers.empty())
    for (const char* usual : {"hpa", "hpa:kv=0.5", "oracle"})
      asked.scalers.push_back(parse_scaler(usual, command_line / "autoscale"));
  asked.start = given.start;
  const std::vector<ServingOffer> offers =
      long_work([&] { return serving_offers(asked, given.systems, given.economics); });
  if (!offers.front().fixed)
    fail_infeasible(command_line / "serve", "no machine serves the load: " + offers.front().refusal,
                    "");
  std::cout << (given.json ? serving_offers_json(asked, offers)
                           : serving_offers_text(asked, offers));
  return exit_ok;
}

}  // namespace orrery
