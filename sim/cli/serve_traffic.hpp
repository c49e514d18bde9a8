#pragma once

#include "sim/cli/options.hpp"
#include "sim/core/progress.hpp"
#include "sim/formats/requests/read_requests.hpp"
#include "sim/serving/request_traffic.hpp"
#include "sim/serving/serving_run.hpp"
#include "sim/serving/serving_run_text.hpp"

namespace orrery {

/// Explanations of options that several commands have.
namespace help {
inline constexpr const char* prompts =
    "tokens of a prompt: 1024, 819..1024 or lognormal:1024,0.8 (median, sigma)";
inline constexpr const char* answers = "tokens of an answer";
inline constexpr const char* limits =
    "SLO in ms, and the share of requests that must meet it: ttft=2000,tpot=40@p90";
inline constexpr const char* autoscale =
    "fixed, oracle, wva[:up=.55,...], hpa[:kv=0.7,queue=2], knative[:concurrency=100] or "
    "planner[:target=sla,...]; min= and max= replicas; several are compared";
inline constexpr const char* start =
    "from asking for a replica until it takes requests: 100s, or as predicted: cold (default), "
    "snapshot or sleep";
}  // namespace help

/// The options on requests, their replay and what is printed.
struct TrafficOptions {
  std::optional<LengthDistribution> prompt, output;
  std::optional<std::string> clients;  ///< A list.
  std::optional<double> rate;
  RequestTraffic arrivals;  ///< --arrival, the prefix and the seed.
  std::vector<std::string> classes;
  std::optional<std::int64_t> requests, skipped;
  MeasuredPart part = MeasuredPart::steady;
  std::optional<std::string> lengths, trace;  ///< Files.
  TraceReading reading;
  ServingLoad rules;  ///< All but the requests.
  std::string slo;    ///< The user's text.
  bool finds_goodput = false;
  std::optional<std::string> requests_out, perfetto;
  std::string runs, economics;
  bool force = false, json = false;
};
void add_traffic(Options& options, TrafficOptions& into);

/// Adds the classes of the options to a stream, which takes the lengths of the first one where no
/// option gives any and all classes have their own.
void read_classes(const TrafficOptions& options, RequestTraffic& traffic);

/// Parses "on" or "off".
bool parse_on_off(const std::string& text, const Place& at);

/// True if an option about requests is given.
bool has_traffic(const Options& options);

/// A load as options say it.
struct RequestedLoad {
  ServingLoad load;
  std::string flags;  ///< Options that give this load.
};

/// Choices of a search: its number of clients if no option gives the load; and true if it finds the
/// largest rate, so that none is given.
struct ManyLoads {
  std::string usual_clients;
  bool finds_rate = false;
};

/// One for each value of --concurrency, which may be a list: "4,16" or "1..64" (doubling).
std::vector<RequestedLoad> read_loads(const Options& options, const TrafficOptions& traffic,
                                      const ManyLoads& many);

/// Prompt and answer of the longest request; of a load whose length is found, of a thousand that it
/// may have.
std::int64_t most_tokens_of_request(const ServingLoad& load);

/// The system that serves the requests.
struct Served {
  const System& system;
  std::int64_t gpus = 0;
  int replicas = 0;  ///< 0: pools.
  std::function<ServingRun(const ServingLoad&)> run;
  Stopwatch since;  ///< Started when the command began.
};

/// Replays the requests of the options and prints the results.
int serve_traffic(const Options& options, const TrafficOptions& traffic, const Served& served);

}  // namespace orrery
