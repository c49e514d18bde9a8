// A file after --plan, or as a word of compare: keys of a plan, a result, a search, each with the
// inputs that it may carry.
#include "sim/cli/scenario_options.hpp"
#include "sim/search/comparison.hpp"
#include "tests/fuzz/entry_groups.hpp"
#include "tests/fuzz/fuzz_checks.hpp"

namespace orrery {
namespace {

bool fuzz_plan_file(const std::string& text) {
  bool any = with_file("plan.json", text, [](const std::string& path) {
    ScenarioOptions options;
    options.plan = path;
    const Plan plan = read_scenario(options).plan;
    if (plan.microbatches * plan.mbs * plan.dp != plan.gbs) __builtin_trap();
  });
  any |= with_file("plan.json", text, [](const std::string& path) {
    const JsonValue file = read_plan_file(path);
    if (!file.is_object() || !file.has("schema")) return;
    const ComparedPlan plan = read_compared_plan(file, path);
    if (!difference(plan, plan).step.is_tie()) __builtin_trap();
  });
  return any;
}

}  // namespace

std::vector<EntryPoint> plan_file_entries() { return {{"plan_file", fuzz_plan_file, Shape::json}}; }

}  // namespace orrery
