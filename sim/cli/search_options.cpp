#include "sim/cli/search_options.hpp"

#include <algorithm>
#include <charconv>

#include "sim/cli/cluster_options.hpp"
#include "sim/core/flag_value.hpp"
#include "sim/core/value_list.hpp"
#include "sim/plan/plan_keys.hpp"

namespace orrery {

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
