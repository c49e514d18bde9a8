#include "sim/cli/cluster_options.hpp"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "sim/core/error.hpp"

namespace orrery {

Shard parse_shard(const std::string& text) {
  Shard shard{-1, 0};
  const Place option{"", "--shard"};
  const char* end = text.data() + text.size();
  const auto [slash, error] = std::from_chars(text.data(), end, shard.index);
  if (error == std::errc{} && slash != end && *slash == '/') {
    const auto [rest, problem] = std::from_chars(slash + 1, end, shard.of);
    if (problem != std::errc{} || rest != end) shard.of = 0;
  }
  if (shard.index < 0 || shard.of < 1 || shard.of > largest_shard_count)
    fail_input(option, "'" + text + "' is not a shard", "write it like 17/1000, from 0/1000 on");
  if (shard.index >= shard.of)
    fail_input(option,
               "shard " + std::to_string(shard.index) + " is none of " + std::to_string(shard.of),
               "shards are counted from 0 to " + std::to_string(shard.of - 1));
  return shard;
}

std::optional<int> count_in_environment(const char* name) {
  const char* text = std::getenv(name);
  int value = 0;
  if (!text) return std::nullopt;
  const char* end = text + std::string_view{text}.size();
  const auto [rest, error] = std::from_chars(text, end, value);
  if (error != std::errc{} || rest != end || value < 0) return std::nullopt;
  return value;
}

int default_workers() {
  for (const char* name : {"SLURM_CPUS_PER_TASK", "SLURM_CPUS_ON_NODE"})
    if (const auto count = count_in_environment(name); count && *count > 0)
      return std::min(*count, most_workers);
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (::sched_getaffinity(0, sizeof cores, &cores) != 0) return 1;
  return std::max(1, CPU_COUNT(&cores));
}

}  // namespace orrery
