#include "sim/cli/serve_traffic.hpp"

#include <algorithm>
#include <iostream>
#include <optional>

#include "sim/cli/measured_runs.hpp"
#include "sim/cli/search_options.hpp"
#include "sim/cli/serve_setup.hpp"
#include "sim/cli/terminal.hpp"
#include "sim/core/nearest.hpp"
#include "sim/core/value_list.hpp"
#include "sim/core/write_file.hpp"
#include "sim/serving/serving_run_text.hpp"

namespace orrery {
namespace {

constexpr std::int64_t most_requests = 100'000'000;
constexpr std::int64_t most_clients = 1 << 20;
constexpr double most_rate = 1e6;
constexpr std::int64_t requests_a_client = 10;  // InferenceX's number.
constexpr std::int64_t requests_of_a_rate = 10'000;

void exclude(const Options& options, const char* one, std::initializer_list<const char*> others) {
  if (!options.has(one)) return;
  for (const char* other : others)
    if (options.has(other))
      fail_input(command_line / one, std::string{"excludes --"} + other, "keep one of them");
}

// The clients of each closed loop; none: requests come at times of their own.
std::vector<int> clients_of(const Options& options, const TrafficOptions& given,
                            const ManyLoads& many) {
  std::string text = given.clients.value_or("");
  if (!given.clients && !many.finds_rate && !given.rate && !options.has("arrival") &&
      !given.finds_goodput)
    text = many.usual_clients;
  std::vector<int> all;
  if (text.empty()) return all;
  for (const std::string& value :
       parse_value_list(text, command_line / "concurrency", {OpenRange::doubles, {}}))
    all.push_back(static_cast<int>(value_of_flag("concurrency", value).integer(1, most_clients)));
  return all;
}

// Reads the arrival process: a closed loop, a rate, all at once, or a trace's.
void read_arrivals(const Options& options, const TrafficOptions& given, int clients,
                   bool finds_rate, RequestTraffic& traffic) {
  exclude(options, "concurrency", {"rate", "arrival", "goodput"});
  exclude(options, "rate", {"goodput"});
  if (finds_rate)
    options.refuse({"concurrency", "rate"}, "is what the search for the largest rate changes",
                   "leave it out");
  if (clients > 0) {
    traffic.arrivals = Arrivals::closed;
    traffic.concurrency = clients;
    return;
  }
  if (!options.has("arrival")) traffic.arrivals = Arrivals::poisson;
  if (traffic.arrivals == Arrivals::burst) {
    if (given.rate || given.finds_goodput || finds_rate)
      fail_input(command_line / "arrival", "a burst has no rate",
                 "leave --rate and --goodput out, or choose poisson, constant or gamma:CV");
    return;
  }
  if (given.rate)
    traffic.rate = *given.rate;
  else if (!given.finds_goodput && !finds_rate)
    fail_input(command_line / "rate", "no load is specified",
               "write --rate 12 a second, --concurrency 64 clients, --arrival burst or --trace "
               "FILE");
}

void read_trace_load(const Options& options, const TrafficOptions& traffic, ServingLoad& load) {
  exclude(options, "trace",
          {"concurrency", "rate", "arrival", "isl", "osl", "lengths", "requests", "shared-prefix",
           "goodput", "class"});
  RequestTrace trace = read_request_trace(*traffic.trace, traffic.reading);
  if (!trace.has_times)
    fail_input({*traffic.trace, ""}, "says how long requests are, but not when they came",
               "give it as --lengths, with --rate or --concurrency");
  load.list = std::move(trace.list);
  load.list.seed = load.traffic.seed;
  load.traffic.arrivals = Arrivals::trace;
  load.file = *traffic.trace;
}

void read_sampled_load(const Options& options, const TrafficOptions& given, int clients,
                       bool finds_rate, ServingLoad& load) {
  const auto of_traces = [&](std::initializer_list<const char*> names) {
    options.refuse(names, "is for traces", "add --trace FILE, or leave it out");
  };
  if (given.lengths)
    of_traces({"speed"});
  else
    of_traces({"trace-format", "speed", "first"});
  RequestTraffic& traffic = load.traffic;
  read_arrivals(options, given, clients, finds_rate, traffic);
  std::optional<RequestTrace> file;
  if (given.lengths) {
    exclude(options, "lengths", {"isl", "osl", "goodput"});
    if (finds_rate)
      fail_input(command_line / "lengths", "is no law of which the largest rate can be found",
                 "write --isl and --osl");
    file = read_request_trace(*given.lengths, given.reading);
    load.file = *given.lengths;
    if (!given.classes.empty())
      fail_input(command_line / "class", "has no lengths of its own beside those of a file",
                 "leave out --lengths");
    load.lengths = std::make_shared<RequestList>(std::move(file->list));
    traffic.requests = static_cast<std::int64_t>(load.lengths->requests.size());
  } else {
    read_classes(given, traffic);
    traffic.requests = traffic.arrivals == Arrivals::closed
                           ? requests_a_client * traffic.concurrency
                           : requests_of_a_rate;
  }
  const bool burst = traffic.arrivals == Arrivals::burst;
  if (given.requests)
    traffic.requests = *given.requests;
  else if (burst && !file)
    fail_input(command_line / "requests", "is missing", "write how many come at once");
  load.part = burst ? MeasuredPart::all : given.part;
  if (load.part == MeasuredPart::steady) {
    traffic.stationary = true;
    load.skipped = given.skipped.value_or(-1);
    // A timeline of a long run could not be looked at, and stepping one takes minutes.
    load.finds_length = !given.requests && !given.perfetto && !load.replay.unfolded;
  }
  if (load.finds_length) traffic.requests = 0;
  load.list = requests_of(load);
}

// One load as the options say it, in a closed loop of so many clients, if any.
RequestedLoad load_of(const Options& options, const TrafficOptions& traffic, int clients,
                      bool finds_rate) {
  RequestedLoad requested;
  requested.load = traffic.rules;
  requested.load.replay.keeps_times = traffic.requests_out || traffic.perfetto;
  requested.load.replay.keeps_iterations = traffic.perfetto.has_value();
  requested.load.traffic = traffic.arrivals;
  if (traffic.trace)
    read_trace_load(options, traffic, requested.load);
  else
    read_sampled_load(options, traffic, clients, finds_rate, requested.load);
  const auto requests = static_cast<std::int64_t>(requested.load.list.requests.size());
  if (traffic.skipped.value_or(0) >= requests && !requested.load.finds_length)
    fail_input(command_line / "skip-first", "leaves no request to count",
               "there are " + std::to_string(requests));
  if (requested.load.part == MeasuredPart::all)
    options.refuse({"skip-first"}, "is the warm-up of a steady load, of which only part counts",
                   "leave it out: all requests of a trace, a burst or --counted all count");
  for (const char* option :
       {"isl", "osl", "lengths", "trace", "trace-format", "speed", "first", "rate", "arrival",
        "requests", "shared-prefix", "class", "prefix-cache", "router", "slo", "counted",
        "skip-first", "seed", "economics"})
    if (options.has(option))
      requested.flags += (requested.flags.empty() ? "--" : " --") + std::string{option} + " " +
                         options.text(option);
  if (clients > 0) requested.flags += " --concurrency " + std::to_string(clients);
  return requested;
}

}  // namespace

void read_classes(const TrafficOptions& options, RequestTraffic& traffic) {
  for (const std::string& text : options.classes)
    traffic.classes.push_back(parse_traffic_class(text, command_line / "class"));
  constexpr std::size_t most_classes = 100;
  if (traffic.classes.size() > most_classes)
    fail_input(command_line / "class", "is given more than a hundred times", "leave some out");
  for (std::size_t i = 0; i < traffic.classes.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (traffic.classes[i].of.name == traffic.classes[j].of.name)
        fail_input(command_line / "class", "'" + traffic.classes[i].of.name + "' is there twice",
                   "give each a name of its own");
  const auto law = [&](const char* option, const std::optional<LengthDistribution>& given,
                       std::optional<LengthDistribution> TrafficClass::*own) {
    const bool all_own = std::all_of(traffic.classes.begin(), traffic.classes.end(),
                                     [&](const TrafficClass& one) { return one.*own; });
    if (given) return *given;
    if (traffic.classes.empty() || !all_own)
      fail_input(command_line / option, "is missing",
                 "write --isl 1024 --osl 1024, tokens of prompts and answers, or --lengths FILE");
    return *(traffic.classes.front().*own);
  };
  traffic.prompt = law("isl", options.prompt, &TrafficClass::prompt);
  traffic.output = law("osl", options.output, &TrafficClass::output);
}

bool parse_on_off(const std::string& text, const Place& at) {
  if (text != "on" && text != "off")
    fail_input(at, "'" + text + "' is neither on nor off", "write on or off");
  return text == "on";
}

void add_traffic(Options& options, TrafficOptions& into) {
  ServingLoad& rules = into.rules;
  rules.prefix_cache = true;
  ReplaySettings& replay = rules.replay;
  options.group("Requests");
  options.add("isl", "LENGTHS", help::prompts, into.prompt, parse_length_distribution);
  options.add("osl", "LENGTHS", help::answers, into.output, parse_length_distribution);
  options.add("concurrency", "N", "so many clients, each with one request at a time", into.clients);
  options.add("rate", "R", "requests a second", into.rate, real(1e-6, most_rate));
  options.add("arrival", "PROCESS", "poisson (default), constant, gamma:CV, or burst: all at once",
              [&into](const std::string& text, const Place& at) {
                parse_arrivals(text, at, into.arrivals);
              });
  options.add("requests", "N", "how many (default: until the figures are steady)", into.requests,
              whole(1, most_requests));
  options.add("lengths", "FILE", "lengths of prompts and answers, in an order of the seed",
              into.lengths);
  options.add("trace", "FILE", "requests as they came: docs/guides/serve.md", into.trace);
  options.add("trace-format", "NAME",
              "lines, mooncake, azure, burstgpt, lengths or vllm (default: what it looks like)",
              into.reading.format);
  options.add("speed", "X", "replay the trace X times faster", into.reading.speed, real(1e-6, 1e6));
  options.add("first", "N", "only so many requests of a file", into.reading.first,
              whole(1, most_requests));
  options.add("shared-prefix", "LIST",
              "prompts share prefixes: groups=10,tokens=150[,users=5,user-tokens=600]",
              into.arrivals.prefix, parse_shared_prefix);
  options.add("class", "NAME:LIST",
              "a class of requests: interactive:share=0.7,priority=10,ttft=2000,tpot=40[,isl=,"
              "osl=]; several. The highest priority goes first",
              into.classes);
  options.add("prefix-cache", "on|off", "what prompts begin with stays in the cache (on)",
              rules.prefix_cache, parse_on_off);
  options.add("router", "NAME",
              "round-robin, random, session, session-hash, least-tokens, power-of-two, prefix or "
              "kv[:overlap=1,temperature=0]",
              [&replay](const std::string& text, const Place& at) {
                parse_routing(text, at, replay.routing, replay.router_weights);
              });
  options.add("slo", "LIST", help::limits, [&into](const std::string& text, const Place& at) {
    into.slo = text;
    into.rules.replay.slo = parse_slo(text, at);
  });
  options.add("goodput", "the largest rate at which enough requests keep to --slo",
              into.finds_goodput);
  options.add("counted", "PART",
              "what counts: steady (default: without warm-up and the end), or all, as benchmark "
              "programs count",
              into.part, OneOf{enum_words<MeasuredPart>});
  options.add("skip-first", "N", "so many requests are warm-up (default: it is found)",
              into.skipped, whole(0, most_requests));
  options.add("seed", "N", "of all that is drawn (1)", into.arrivals.seed,
              whole(0, std::int64_t{1} << 53));
  add_jobs(options, replay.workers);
  options.add("unfolded", "step every iteration and every replica by itself", replay.unfolded);
  options.add("requests-out", "FILE", "write a line of JSON for each request", into.requests_out);
  options.add("perfetto", "FILE", "write what was computed when, for ui.perfetto.dev",
              into.perfetto);
  options.add("runs", "LIST",
              "files of runs of yours that were measured, as orrery import bench writes them: the "
              "answer says what they make of it, too",
              into.runs);
  options.add("economics", "FILE[,FILE]",
              "your prices and powers, over those of topologies/economics", into.economics);
  options.add("force", "replace files that Orrery did not write", into.force);
}

bool has_traffic(const Options& options) {
  for (const char* option :
       {"isl", "osl", "concurrency", "rate", "arrival", "requests", "lengths", "trace", "goodput"})
    if (options.has(option)) return true;
  return false;
}

std::vector<RequestedLoad> read_loads(const Options& options, const TrafficOptions& traffic,
                                      const ManyLoads& many) {
  if (traffic.finds_goodput && !traffic.rules.replay.slo)
    fail_input(command_line / "goodput", "needs limits to keep to",
               "add --slo ttft=2000,tpot=40@p90");
  const std::vector<int> clients = clients_of(options, traffic, many);
  std::vector<RequestedLoad> loads;
  for (const int one : clients) loads.push_back(load_of(options, traffic, one, many.finds_rate));
  if (clients.empty() || traffic.trace) loads = {load_of(options, traffic, 0, many.finds_rate)};
  return loads;
}

std::int64_t most_tokens_of_request(const ServingLoad& load) {
  const auto tokens = [](const Request& longest) {
    return std::int64_t{longest.prompt_tokens} + longest.output_tokens;
  };
  if (!load.finds_length) return tokens(longest_of(load.list));
  ServingLoad some = load;
  some.traffic.requests = 1000;
  some.traffic.stationary = false;
  return tokens(longest_of(requests_of(some)));
}

namespace {

// No request is answered in less than a millisecond.
void note_small_limits(const std::optional<Slo>& slo, const std::string& text) {
  if (slo && std::min({slo->ttft, slo->tpot, slo->e2e}) < Seconds{1e-3})
    print_note("--slo " + text +
               " is in milliseconds, and nothing is that quick: half a second is 500");
}

// Clients that are answered together send together, and a router that compares replicas sends them
// to the one that has just got free: waves that answers of one length do not disperse.
void note_waves(const ServingLoad& load, int replicas) {
  const RequestTraffic& traffic = load.traffic;
  if (replicas < 2 || load.list.clients == 0 ||
      traffic.output.kind != LengthDistribution::Kind::fixed)
    return;
  if (load.replay.routing == Routing::least_tokens || load.replay.routing == Routing::power_of_two)
    print_note("answers of one length keep clients in step, and --router " +
               name(load.replay.routing) +
               " sends those that are answered together to one replica: TTFT may be several times "
               "that of lengths that differ (--osl lognormal:N,0.5)");
}

}  // namespace

int serve_traffic(const Options& options, const TrafficOptions& traffic, const Served& served) {
  std::vector<RequestedLoad> loads = read_loads(options, traffic, {});
  if (loads.size() > 1)
    fail_input(command_line / "concurrency", "has several values",
               "write one of them, or compare deployments with --search");
  ServingLoad& load = loads.front().load;
  std::optional<Goodput> goodput;
  if (traffic.finds_goodput) {
    goodput = largest_rate(served.run, load, served.replicas);
    load.traffic.rate = goodput->rate > 0.0 ? goodput->rate : 1.0;
    load.list = requests_of(load);
  }
  const Economics economics = read_economics(served.system, traffic.economics);
  ServingRun run = !goodput           ? serve_until_steady(served.run, load, served.replicas)
                   : goodput->at_rate ? *goodput->at_rate
                                      : *goodput->at_lowest;
  const TokenCost cost =
      token_cost(run.output_tokens_per_s(), static_cast<double>(served.gpus), economics);
  note_small_limits(load.replay.slo, traffic.slo);
  note_waves(load, served.replicas);
  print_deployment_notes(run.setup, run.kv, most_tokens_of_request(load));
  if (goodput && !goodput->at_rate) load.traffic.rate = 0.0;
  ServingRunsByFigure by_runs = read_serving_runs(traffic.runs, run.setup);
  const ServedAnswer answer{std::move(load), std::move(run), goodput, cost, std::move(by_runs)};
  OutputFiles files{traffic.force};
  if (traffic.requests_out)
    files.add(*traffic.requests_out, request_lines(answer.run, answer.load.list));
  if (traffic.perfetto)
    files.add(*traffic.perfetto, replay_trace(answer.run, command_line / "perfetto"));
  files.commit();
  std::cout << (traffic.json ? serving_run_json(answer, served.since.passed().si())
                             : serving_run_text(answer));
  return exit_ok;
}

}  // namespace orrery
