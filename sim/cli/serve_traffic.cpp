#include "sim/cli/serve_traffic.hpp"

#include <algorithm>
#include <iostream>
#include <optional>
#include <thread>

#include "sim/cli/measured_runs.hpp"
#include "sim/core/nearest.hpp"
#include "sim/core/value_list.hpp"
#include "sim/core/write_file.hpp"
#include "sim/formats/requests/read_requests.hpp"
#include "sim/serving/replay_trace.hpp"
#include "sim/serving/request_traffic.hpp"
#include "sim/serving/serving_run_text.hpp"

namespace po = boost::program_options;

namespace orrery {
namespace {

constexpr std::int64_t most_requests = 100'000'000;
constexpr std::int64_t most_clients = 1 << 20;
constexpr double most_rate = 1e6;
constexpr std::int64_t requests_a_client = 10;  // As InferenceX asks them.
constexpr std::int64_t requests_of_a_rate = 10'000;

JsonValue value(const ParsedOptions& parsed, const std::string& key) {
  return value_of_flag(key, parsed.text(key));
}

void exclude(const ParsedOptions& parsed, const char* one, const char* other) {
  if (parsed.has(one) && parsed.has(other))
    fail_input(command_line / one, std::string{"excludes --"} + other, "keep one of them");
}

// The clients of each closed loop that is asked for; none: requests come at times of their own.
std::vector<int> clients_of(const ParsedOptions& parsed, const ManyLoads& many) {
  std::string text;
  if (parsed.has("concurrency"))
    text = parsed.text("concurrency");
  else if (!many.finds_rate && !parsed.has("rate") && !parsed.has("arrival") &&
           !parsed.has("goodput"))
    text = many.usual_clients;
  std::vector<int> all;
  if (text.empty()) return all;
  for (const std::string& value :
       parse_value_list(text, command_line / "concurrency", {OpenRange::doubles, {}}))
    all.push_back(static_cast<int>(value_of_flag("concurrency", value).integer(1, most_clients)));
  return all;
}

// How requests arrive: a closed loop, a rate, all at once, or as a trace says.
void read_arrivals(const ParsedOptions& parsed, int clients, bool finds_rate,
                   RequestTraffic& traffic) {
  for (const char* other : {"rate", "arrival", "goodput"}) exclude(parsed, "concurrency", other);
  exclude(parsed, "rate", "goodput");
  if (finds_rate)
    for (const char* said : {"concurrency", "rate"})
      if (parsed.has(said))
        fail_input(command_line / said, "is what the search for the largest rate changes",
                   "leave it out");
  if (clients > 0) {
    traffic.arrivals = Arrivals::closed;
    traffic.concurrency = clients;
    return;
  }
  traffic.arrivals = Arrivals::poisson;
  if (parsed.has("arrival"))
    parse_arrivals(parsed.text("arrival"), command_line / "arrival", traffic);
  if (traffic.arrivals == Arrivals::burst) {
    if (parsed.has("rate") || parsed.has("goodput") || finds_rate)
      fail_input(command_line / "arrival", "a burst has no rate",
                 "leave --rate and --goodput out, or choose poisson, constant or gamma:CV");
    return;
  }
  if (parsed.has("rate"))
    traffic.rate = value(parsed, "rate").number(1e-6, most_rate);
  else if (!parsed.has("goodput") && !finds_rate)
    fail_input(command_line / "rate", "requests come, but nobody says how often",
               "write --rate 12 a second, --concurrency 64 clients, --arrival burst or --trace "
               "FILE");
}

void read_lengths(const ParsedOptions& parsed, RequestTraffic& traffic) {
  if (!parsed.has("isl") || !parsed.has("osl"))
    fail_input(command_line / (parsed.has("isl") ? "osl" : "isl"), "is missing",
               "write --isl 1024 --osl 1024, tokens of prompts and answers, or --lengths FILE");
  traffic.prompt = parse_length_law(parsed.text("isl"), command_line / "isl");
  traffic.output = parse_length_law(parsed.text("osl"), command_line / "osl");
}

// Prompts and answers of a file in an order of the seed, over the drawn ones, again and again.
void take_lengths(const RequestList& file, RequestList& list) {
  std::vector<Request> lengths = file.requests;
  list.failed = file.failed;
  Random random{list.seed, 6};
  for (std::size_t i = lengths.size(); i > 1; --i)
    std::swap(lengths[i - 1], lengths[static_cast<std::size_t>(random.below(i))]);
  for (std::size_t i = 0; i < list.requests.size(); ++i) {
    const Request& from = lengths[i % lengths.size()];
    list.requests[i].prompt_tokens = from.prompt_tokens;
    list.requests[i].output_tokens = from.output_tokens;
  }
}

TraceReading reading_of(const ParsedOptions& parsed) {
  TraceReading reading;
  if (parsed.has("trace-format")) reading.format = parsed.text("trace-format");
  if (parsed.has("speed")) reading.speed = value(parsed, "speed").number(1e-6, 1e6);
  if (parsed.has("first")) reading.first = value(parsed, "first").integer(1, most_requests);
  return reading;
}

void ask_of_trace(const ParsedOptions& parsed, ServingLoad& load) {
  for (const char* other : {"concurrency", "rate", "arrival", "isl", "osl", "lengths", "requests",
                            "shared-prefix", "goodput"})
    exclude(parsed, "trace", other);
  RequestTrace trace = read_request_trace(parsed.text("trace"), reading_of(parsed));
  if (!trace.has_times)
    fail_input({parsed.text("trace"), ""}, "says how long requests are, but not when they came",
               "give it as --lengths, with --rate or --concurrency");
  load.list = std::move(trace.list);
  load.list.seed = load.traffic.seed;
  load.traffic.arrivals = Arrivals::trace;
  load.file = parsed.text("trace");
}

void ask_of_laws(const ParsedOptions& parsed, int clients, bool finds_rate, ServingLoad& load) {
  for (const char* of_trace : {"trace-format", "speed", "first"})
    if (parsed.has(of_trace) && !(parsed.has("lengths") && of_trace != std::string{"speed"}))
      fail_input(command_line / of_trace, "is for traces", "add --trace FILE, or leave it out");
  RequestTraffic& traffic = load.traffic;
  read_arrivals(parsed, clients, finds_rate, traffic);
  if (parsed.has("shared-prefix"))
    traffic.prefix =
        parse_shared_prefix(parsed.text("shared-prefix"), command_line / "shared-prefix");
  std::optional<RequestTrace> file;
  if (parsed.has("lengths")) {
    exclude(parsed, "lengths", "isl");
    exclude(parsed, "lengths", "osl");
    exclude(parsed, "lengths", "goodput");
    if (finds_rate)
      fail_input(command_line / "lengths", "is no law of which the largest rate can be found",
                 "write --isl and --osl");
    file = read_request_trace(parsed.text("lengths"), reading_of(parsed));
    load.file = parsed.text("lengths");
    traffic.requests = static_cast<std::int64_t>(file->list.requests.size());
  } else {
    read_lengths(parsed, traffic);
    traffic.requests = traffic.arrivals == Arrivals::closed
                           ? requests_a_client * traffic.concurrency
                           : requests_of_a_rate;
  }
  if (parsed.has("requests"))
    traffic.requests = value(parsed, "requests").integer(1, most_requests);
  else if (traffic.arrivals == Arrivals::burst && !file)
    fail_input(command_line / "requests", "is missing", "write how many come at once");
  load.list = draw_requests(traffic);
  if (file) take_lengths(file->list, load.list);
}

// One load as the options say it, in a closed loop of so many clients, if any.
AskedLoad asked_by(const ParsedOptions& parsed, const ServingLoad& rules, int clients,
                   bool finds_rate) {
  AskedLoad asked;
  asked.load = rules;
  if (parsed.has("seed"))
    asked.load.traffic.seed =
        static_cast<std::uint64_t>(value(parsed, "seed").integer(0, std::int64_t{1} << 53));
  if (parsed.has("trace"))
    ask_of_trace(parsed, asked.load);
  else
    ask_of_laws(parsed, clients, finds_rate, asked.load);
  if (asked.load.replay.first_counted >= asked.load.list.requests.size())
    fail_input(command_line / "skip-first", "leaves no request to count",
               "there are " + std::to_string(asked.load.list.requests.size()));
  for (const char* option : {"isl", "osl", "lengths", "trace", "trace-format", "speed", "first",
                             "rate", "arrival", "requests", "shared-prefix", "prefix-cache",
                             "router", "slo", "skip-first", "seed", "economics"})
    if (parsed.has(option))
      asked.flags +=
          (asked.flags.empty() ? "--" : " --") + std::string{option} + " " + parsed.text(option);
  if (clients > 0) asked.flags += " --concurrency " + std::to_string(clients);
  return asked;
}

// How they are replayed: all but the requests.
ServingLoad rules_of(const ParsedOptions& parsed) {
  ServingLoad load;
  load.prefix_cache = true;
  if (parsed.has("prefix-cache")) {
    const std::string word = parsed.text("prefix-cache");
    if (word != "on" && word != "off")
      fail_input(command_line / "prefix-cache", "'" + word + "' is neither on nor off",
                 "write on or off");
    load.prefix_cache = word == "on";
  }
  if (parsed.has("router")) {
    const std::vector<std::string>& names = routing_names();
    const auto found = std::find(names.begin(), names.end(), parsed.text("router"));
    if (found == names.end())
      fail_input(command_line / "router", "'" + parsed.text("router") + "' is unknown",
                 suggestion(parsed.text("router"), names));
    load.replay.routing = static_cast<Routing>(found - names.begin());
  }
  ReplaySettings& replay = load.replay;
  if (parsed.has("slo")) replay.slo = parse_slo(parsed.text("slo"), command_line / "slo");
  if (parsed.has("goodput") && !replay.slo)
    fail_input(command_line / "goodput", "needs limits to keep to",
               "add --slo ttft=2000,tpot=40@p90");
  replay.workers = parsed.has("jobs")
                       ? static_cast<int>(value(parsed, "jobs").integer(1, 1024))
                       : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  replay.unfolded = parsed.has("unfolded");
  replay.keeps_times = parsed.has("requests-out") || parsed.has("perfetto");
  if (parsed.has("skip-first"))
    replay.first_counted =
        static_cast<std::uint32_t>(value(parsed, "skip-first").integer(0, most_requests));
  return load;
}

}  // namespace

po::options_description traffic_options() {
  po::options_description options{"Requests", 100};
  const auto text = [](const char* shown) { return po::value<std::string>()->value_name(shown); };
  options.add_options()  //
      ("isl", text("LAW"),
       "tokens of a prompt: 1024, 819..1024 or lognormal:1024,0.8 (median, sigma)")             //
      ("osl", text("LAW"), "tokens of an answer")                                               //
      ("concurrency", text("N"), "so many clients, each with one request at a time")            //
      ("rate", text("R"), "requests a second")                                                  //
      ("arrival", text("LAW"), "poisson (default), constant, gamma:CV, or burst: all at once")  //
      ("requests", text("N"), "how many (10 a client, 10,000 at a rate)")                       //
      ("lengths", text("FILE"), "lengths of prompts and answers, in an order of the seed")      //
      ("trace", text("FILE"), "requests as they came: docs/guides/serve.md")                    //
      ("trace-format", text("NAME"),
       "lines, mooncake, azure, burstgpt, lengths or vllm (default: what it looks like)")  //
      ("speed", text("X"), "a trace so many times as fast")                                //
      ("first", text("N"), "only so many requests of a file")                              //
      ("shared-prefix", text("LIST"),
       "prompts begin alike: groups=10,tokens=150[,users=5,user-tokens=600]")              //
      ("prefix-cache", text("on|off"), "what prompts begin with stays in the cache (on)")  //
      ("router", text("NAME"),
       "round-robin, random, session, least-tokens, power-of-two or prefix")                   //
      ("slo", text("LIST"), "limits in ms, and who must keep to them: ttft=2000,tpot=40@p90")  //
      ("goodput", "the largest rate at which enough requests keep to --slo")                   //
      ("skip-first", text("N"), "so many requests are warm-up, and not counted")               //
      ("seed", text("N"), "of all that is drawn (1)")                                          //
      ("jobs", text("N"), "worker processes (also -j N; default: all cores)")                  //
      ("unfolded", "step every iteration and every replica by itself")                         //
      ("requests-out", text("FILE"), "write a line of JSON for each request")                  //
      ("perfetto", text("FILE"), "write what was computed when, for ui.perfetto.dev")          //
      ("runs", text("LIST"),
       "files of runs of yours that were measured, as orrery import bench writes them: the answer "
       "says what they make of it, too")                                                         //
      ("economics", text("FILE"), "your prices and powers, over those of topologies/economics")  //
      ("force", "overwrite a file that Orrery did not write");
  return options;
}

bool has_traffic(const ParsedOptions& parsed) {
  for (const char* option :
       {"isl", "osl", "concurrency", "rate", "arrival", "requests", "lengths", "trace", "goodput"})
    if (parsed.has(option)) return true;
  return false;
}

std::vector<AskedLoad> read_loads(const ParsedOptions& parsed, const ManyLoads& many) {
  const ServingLoad rules = rules_of(parsed);
  const std::vector<int> clients = clients_of(parsed, many);
  std::vector<AskedLoad> loads;
  for (const int one : clients) loads.push_back(asked_by(parsed, rules, one, many.finds_rate));
  if (clients.empty() || parsed.has("trace")) loads = {asked_by(parsed, rules, 0, many.finds_rate)};
  return loads;
}

int serve_traffic(const ParsedOptions& parsed, const Served& served) {
  std::vector<AskedLoad> loads = read_loads(parsed, {});
  if (loads.size() > 1)
    fail_input(command_line / "concurrency", "has several values",
               "write one of them, or compare deployments with --search");
  ServingLoad& load = loads.front().load;
  std::optional<Goodput> goodput;
  if (parsed.has("goodput")) {
    goodput = largest_rate(served.run, load);
    load.traffic.rate = goodput->rate > 0.0 ? goodput->rate : 1.0;
    load.list = draw_requests(load.traffic);
  }
  const Economics economics = read_economics(
      served.system.gpu.name, parsed.has("economics") ? parsed.text("economics") : "");
  ServingRun run = served.run(load);
  const TokenCost cost =
      token_cost(run.output_tokens_per_s(), static_cast<double>(served.gpus), economics);
  ServingRunsByFigure by_runs = read_serving_runs(parsed, run.setup);
  const ServedAnswer answer{std::move(load), std::move(run), goodput, cost, std::move(by_runs)};
  OutputFiles files{parsed.has("force")};
  if (parsed.has("requests-out")) files.add(parsed.text("requests-out"), request_lines(answer.run));
  if (parsed.has("perfetto"))
    files.add(parsed.text("perfetto"), replay_trace(answer.run, command_line / "perfetto"));
  files.commit();
  std::cout << (parsed.has("json") ? serving_run_json(answer, served.since.passed().si())
                                   : serving_run_text(answer));
  return exit_ok;
}

}  // namespace orrery
