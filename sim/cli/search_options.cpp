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

double parse_share(const std::string& text, const std::string& option) {
  double value = 0.0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || rest != end || !(value > 0.0 && value <= 1.0))
    fail_input({"", "--" + option}, "'" + text + "' is not a share of a memory",
               "write a number above 0 and up to 1: 0.9");
  return value;
}

std::vector<std::string> texts_of(const ParsedOptions& options, const std::string& name) {
  return options.has(name) ? options.values[name].as<std::vector<std::string>>()
                           : std::vector<std::string>{};
}

std::vector<Fixed> fixed_by(const ParsedOptions& options, const std::vector<int>& gpus,
                            std::int64_t most) {
  std::vector<Fixed> fixed;
  for (const std::string& one : texts_of(options, "fix")) {
    Fixed key = parse_fixed(one, gpus, most);
    if (std::any_of(fixed.begin(), fixed.end(),
                    [&](const Fixed& other) { return other.key == key.key; }))
      fail_input({"", "--fix"}, "'" + key.key + "' is fixed twice",
                 "write its values in one: --fix mbs=1,2");
    fixed.push_back(std::move(key));
  }
  return fixed;
}

BestList::Kind list_kind(const ParsedOptions& options) {
  if (options.has("pareto")) return BestList::Kind::front;
  return options.has("all-settings") ? BestList::Kind::top : BestList::Kind::per_layout;
}

int workers_of(const ParsedOptions& options) {
  return options.has("jobs")
             ? static_cast<int>(
                   value_of_flag("jobs", options.text("jobs")).integer(1, most_workers))
             : default_workers();
}

void point_plan_keys_to_fix(const boost::program_options::options_description& options,
                            const Arguments& arguments, const std::string& who) {
  for (const std::string& word : arguments) {
    if (!word.starts_with("--")) continue;
    const std::string name = word.substr(2, word.find('=') - 2);
    const auto is_it = [&](const PlanKey& key) { return key.name == name; };
    // The key first: an option's name that is empty is for Boost the beginning of any.
    if (std::none_of(plan_keys().begin(), plan_keys().end(), is_it) ||
        options.find_nothrow(name, false))
      continue;
    fail_input({}, who + " has no option '--" + name + "'",
               "to fix it, write --fix " + name + "=VALUE");
  }
}

}  // namespace orrery
