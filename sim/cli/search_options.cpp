#include "sim/cli/search_options.hpp"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "sim/core/error.hpp"
#include "sim/core/value_list.hpp"
#include "sim/plan/plan_keys.hpp"

namespace orrery {

Shard parse_shard(const std::string& text, const Place& at) {
  Shard shard{-1, 0};
  const char* end = text.data() + text.size();
  const auto [slash, error] = std::from_chars(text.data(), end, shard.index);
  if (error == std::errc{} && slash != end && *slash == '/') {
    const auto [rest, problem] = std::from_chars(slash + 1, end, shard.of);
    if (problem != std::errc{} || rest != end) shard.of = 0;
  }
  if (shard.index < 0 || shard.of < 1 || shard.of > largest_shard_count)
    fail_input(at, "'" + text + "' is not a shard", "write it like 17/1000, from 0/1000 on");
  if (shard.index >= shard.of)
    fail_input(at,
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

double parse_share(const std::string& text, const Place& at) {
  double value = 0.0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || rest != end || !(value > 0.0 && value <= 1.0))
    fail_input(at, "'" + text + "' is not a share of a memory",
               "write a number above 0 and up to 1: 0.9");
  return value;
}

std::vector<Fixed> fixed_by(const std::vector<std::string>& texts, const std::vector<int>& gpus,
                            std::int64_t most) {
  std::vector<Fixed> fixed;
  for (const std::string& one : texts) {
    Fixed key = parse_fixed(one, gpus, most);
    if (std::any_of(fixed.begin(), fixed.end(),
                    [&](const Fixed& other) { return other.key == key.key; }))
      fail_input(command_line / "fix", "'" + key.key + "' is fixed twice",
                 "write its values in one: --fix mbs=1,2");
    fixed.push_back(std::move(key));
  }
  return fixed;
}

BestList ListOptions::list() const {
  return {pareto         ? BestList::Kind::front
          : all_settings ? BestList::Kind::top
                         : BestList::Kind::per_layout,
          top.value_or(BestList{}.most)};
}

void add_jobs(Options& options, int& into) {
  into = default_workers();
  options.add("jobs", "N", "worker processes (also -j N; default: Slurm's, or all cores)", into,
              whole(1, most_workers));
}

void point_plan_keys_to_fix(const Options& options, const Arguments& arguments,
                            const std::string& who) {
  for (const std::string& word : arguments) {
    if (!word.starts_with("--")) continue;
    const std::string name = word.substr(2, word.find('=') - 2);
    if (!find_plan_key(name) || options.find(name)) continue;
    fail_input({}, who + " has no option '--" + name + "'",
               "to fix it, write --fix " + name + "=VALUE");
  }
}

}  // namespace orrery
