#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/cli/options.hpp"
#include "sim/core/best_candidates.hpp"
#include "sim/core/shard.hpp"
#include "sim/search/dimension.hpp"

namespace orrery {

/// "17/1000". Errors: it is not written so, or 17 is none of them.
Shard parse_shard(const std::string& text, const Place& at);

constexpr int most_workers = 4096;
/// The number of cores that Slurm gave this task, else of those that this process may run on.
int default_workers();

/// The value of a variable of Slurm; nothing: it is not set, or no count.
std::optional<int> count_in_environment(const char* name);

// Options of commands that search.

/// A share above 0 and up to 1.
double parse_share(const std::string& text, const Place& at);
/// --fix, for clusters of these sizes. Errors: a key that is fixed twice.
std::vector<Fixed> fixed_by(const std::vector<std::string>& texts, const std::vector<int>& gpus,
                            std::int64_t most);
/// --top, --all-settings and --pareto.
struct ListOptions {
  std::optional<int> top;
  bool all_settings = false, pareto = false;
  BestList list() const;
};
/// --jobs; default_workers() if it is not given.
void add_jobs(Options& options, int& into);
/// Refuses options of `orrery estimate` that `who` searches or fixes, and states what to write
/// instead.
void point_plan_keys_to_fix(const Options& options, const Arguments& arguments,
                            const std::string& who);

}  // namespace orrery
