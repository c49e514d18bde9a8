#pragma once

#include "sim/cli/options.hpp"
#include "sim/core/progress.hpp"
#include "sim/serving/request_traffic.hpp"
#include "sim/serving/serving_run.hpp"
#include "sim/serving/serving_run_text.hpp"

namespace orrery {

/// Options of `orrery serve` that say what clients ask, and how it is replayed.
boost::program_options::options_description traffic_options();

/// Whether they say anything of clients.
bool has_traffic(const ParsedOptions& parsed);

/// A load as options say it.
struct AskedLoad {
  ServingLoad load;
  std::string flags;  ///< The options that say it.
};

/// For a search: how many clients there are where nobody says how requests come; and whether a
/// search finds the largest rate, so that none is said.
struct ManyLoads {
  std::string usual_clients;
  bool finds_rate = false;
};

/// One for each value of --concurrency, which may be a list: "4,16" or "1..64" (doubling).
std::vector<AskedLoad> read_loads(const ParsedOptions& parsed, const ManyLoads& many);

/// What serves the requests.
struct Served {
  const System& system;
  std::int64_t gpus = 0;
  std::function<ServingRun(const ServingLoad&)> run;
  Stopwatch since;  ///< When the command began to work on it.
};

/// Replays what the options say and prints what came of it.
int serve_traffic(const ParsedOptions& parsed, const Served& served);

}  // namespace orrery
