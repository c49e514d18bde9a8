#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/cluster/system.hpp"

namespace orrery {

using Arguments = std::vector<std::string>;

/// The subcommands. Each takes the words after its name and returns an exit code; errors that the
/// user can mend are thrown as Error.
int run_estimate(const Arguments& arguments);
int run_validate(const Arguments& arguments);
int run_collective(const Arguments& arguments);
int run_check(const Arguments& arguments);
int run_list(const Arguments& arguments);
int run_import(const Arguments& arguments);
int run_export(const Arguments& arguments);
int run_place_experts(const Arguments& arguments);
int run_compare(const Arguments& arguments);
int run_search(const Arguments& arguments);
int run_buy(const Arguments& arguments);
int run_run(const Arguments& arguments);
int run_serve(const Arguments& arguments);
int run_post(const Arguments& arguments);

/// `orrery buy --post`: which machine runs a job of orrery.post/1 how fast and for how much.
struct PostPurchase {
  std::string job, economics;
  std::vector<System> systems;
  std::vector<int> gpus;
  std::int64_t steps = 0;
  std::vector<std::pair<std::string, std::string>> keys;  ///< Of the job, in place of the file's.
  bool json = false;
};
/// Keys of a job's lengths, which an imported job does not have.
inline const std::vector<std::string> length_keys{"prompt_length", "response_length",
                                                  "mean_response", "max_response"};
int buy_for_post(const PostPurchase& purchase);

/// `orrery buy --serve`: which machine serves a day's load, with and without scaling.
struct ServingPurchaseOptions {
  std::string load, model, engine, isl, osl, slo, start, economics, weights, kv;
  std::vector<std::string> scalers;
  std::vector<System> systems;
  bool json = false;
};
int buy_for_serving(const ServingPurchaseOptions& purchase);

int run_schedule(const Arguments& arguments);
int run_sweep(const Arguments& arguments);
int run_calibrate(const Arguments& arguments);
int run_kernel(const Arguments& arguments);
int run_explore(const Arguments& arguments);

/// The program about itself.
int run_manual(const Arguments& arguments);
int run_completion(const Arguments& arguments);

/// A subcommand as users know it.
struct Command {
  std::string name;
  std::string summary;  ///< Its purpose in one line.
  int (*run)(const Arguments& arguments);
};

/// All of them, in the order of the usage.
const std::vector<Command>& commands();

/// The one of this name; nullptr: there is none.
const Command* find_command(const std::string& name);

/// Exit codes next to 0 (docs/reference/output.md): internal error, bad input, infeasible plan,
/// threshold, a sweep of which a part is missing, missing hardware.
enum ExitCode {
  exit_ok = 0,
  exit_internal = 1,
  exit_bad_input = 2,
  exit_infeasible = 3,
  exit_threshold = 4,
  exit_partial = 5,
  exit_no_hardware = 77,
  exit_interrupted = 130  ///< Shells report this of a program that Ctrl-C ended.
};

}  // namespace orrery
