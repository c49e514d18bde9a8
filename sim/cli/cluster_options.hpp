#pragma once

#include <optional>
#include <string>

#include "sim/core/shard.hpp"

namespace orrery {

/// "17/1000", the value of --shard. Errors: it is not written so, or 17 is none of them.
Shard parse_shard(const std::string& text);

constexpr int most_workers = 4096;
/// As many as Slurm gave this task cores, else as this process may run on.
int default_workers();

/// What Slurm says in a variable of this name; nothing: it is not set, or no count.
std::optional<int> count_in_environment(const char* name);

}  // namespace orrery
