#pragma once

#include "sim/cli/options.hpp"
#include "sim/core/progress.hpp"
#include "sim/formats/requests/read_requests.hpp"
#include "sim/serving/request_traffic.hpp"
#include "sim/serving/serving_run.hpp"
#include "sim/serving/serving_run_text.hpp"

namespace orrery {

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
