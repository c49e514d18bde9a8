#include "sim/search/comparison.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "sim/core/object_reader.hpp"
#include "sim/core/value_list.hpp"
#include "sim/plan/plan.hpp"
#include "sim/training/step_parts.hpp"

namespace orrery {
namespace {

constexpr double longest_s = 1e9;
constexpr double nanosecond_rounding = 1e-6;  // Some dozen times are in whole nanoseconds.

Seconds time_at(const JsonValue& json, const std::string& key) {
  return Seconds{json.at(key).number(0.0, longest_s)};
}

std::vector<std::string> price_kind_names() {
  std::vector<std::string> names;
  for (std::size_t kind = 0; kind < price_kinds; ++kind)
    names.push_back(name(static_cast<PriceKind>(kind)));
  return names;
}

void read_parts(const JsonValue& parts, StepRange& range) {
  const std::vector<std::string> kinds = price_kind_names();
  const std::vector<std::string> bases{name(Tag::measured), name(Tag::interpolated),
                                       name(Tag::default_value)};
  for (const JsonValue& part : parts.elements()) {
    part.allow_only({"kind", "basis", "time_s", "error"});
    const auto kind = choice<PriceKind>(part.at("kind"), kinds);
    const auto basis = choice<Tag>(part.at("basis"), bases);
    range.path.at(kind, basis) += time_at(part, "time_s");
    range.errors.of[static_cast<std::size_t>(kind)][static_cast<std::size_t>(basis)] =
        part.at("error").number(0.0, 3.0);
  }
}

StepRange read_range(const JsonValue& result) {
  StepRange range;
  range.step = Seconds{result.at("step_time_s").number(1e-9, longest_s)};
  if (!result.has("step_time_range"))
    result.fail("has no step_time_range, as an older orrery wrote it",
                "estimate the plan again: orrery estimate --plan FILE --json");
  const JsonValue stated = result.at("step_time_range");
  stated.allow_only(
      {"coverage", "low_s", "high_s", "training_error", "own_error", "published", "parts"});
  range.errors.training = stated.at("training_error").number(0.0, 3.0);
  range.errors.own = stated.at("own_error").number(0.0, 3.0);
  if (const auto published = stated.find("published")) {
    if (published->has("software"))
      published->fail("is of one software, as an older orrery wrote it",
                      "estimate the plan again: orrery estimate --plan FILE --json");
    range.errors.published = parse_summary(*published);
  }
  read_parts(stated.at("parts"), range);
  if (std::abs((range.path.total() - range.step).si()) >
      nanosecond_rounding * (1.0 + range.step.si()))
    stated.at("parts").fail("do not add up to step_time_s", "leave results as they were written");
  range.gpu = result.at("gpu").text();
  range.system = result.at("system").text();
  range.software = result.at("software").text();
  range.dtype = read_format(result.at("plan").at("dtype"), FormatUse::products);
  const auto stands_in = result.at("plan").find("software_stands_in");
  range.stands_in = stands_in && stands_in->boolean();
  return range;
}

// The order is that of an estimate's table, not of the alphabet.
std::vector<std::string> in_order_of_the_table(std::vector<std::string> lines) {
  std::vector<std::string> order;
  for (std::size_t part = 0; part < step_part_count; ++part)
    for (std::size_t phase = 0; phase < step_phases; ++phase)
      order.push_back(name(static_cast<StepPart>(part), static_cast<StepPhase>(phase)));
  const auto place = [&](const std::string& line) {
    return std::find(order.begin(), order.end(), line) - order.begin();
  };
  std::stable_sort(lines.begin(), lines.end(),
                   [&](const std::string& a, const std::string& b) { return place(a) < place(b); });
  return lines;
}

std::vector<std::pair<std::string, Seconds>> read_critical_path(const JsonValue& result,
                                                                Seconds step) {
  if (!result.has("critical_path_s"))
    result.fail("has no critical_path_s, as an older orrery wrote it",
                "estimate the plan again: orrery estimate --plan FILE --json");
  const JsonValue path = result.at("critical_path_s");
  std::vector<std::pair<std::string, Seconds>> lines;
  Seconds sum;
  for (const std::string& line : in_order_of_the_table(path.keys())) {
    lines.emplace_back(line, time_at(path, line));
    sum += lines.back().second;
  }
  if (std::abs((sum - step).si()) > nanosecond_rounding * (1.0 + step.si()))
    path.fail("does not add up to step_time_s", "leave results as they were written");
  return lines;
}

}  // namespace

Range ComparedPlan::usd_per_trillion_tokens(Range rent_usd_per_gpu_hour) const {
  constexpr double hour = 3600.0;
  return rent_usd_per_gpu_hour * (gpus * range.step.si() / hour / tokens * 1e12);
}

ComparedPlan read_compared_plan(const JsonValue& result, const std::string& source) {
  require_schema(result, "orrery.result/1");
  ComparedPlan plan;
  plan.source = source;
  plan.model = result.at("model").text();
  plan.gpus = static_cast<int>(result.at("gpus").integer(1, 1 << 24));
  const JsonValue keys = result.at("plan");
  for (const std::string& key : keys.keys())
    if (const auto value = keys.find(key)) plan.plan.emplace_back(key, flag_text(*value));
  plan.range = read_range(result);
  const auto whole = [&](const char* key) {
    return static_cast<double>(keys.at(key).integer(1, std::int64_t{1} << 40));
  };
  plan.sequence = keys.at("seq").integer(1, std::int64_t{1} << 40);
  plan.tokens = whole("gbs") * whole("seq");
  plan.tokens_per_s_per_gpu = result.at("tokens_per_s_per_gpu").number(0.0, 1e15);
  plan.mfu = result.at("mfu").number(0.0, 10.0);
  const JsonValue memory = result.at("memory");
  plan.peak = Bytes{memory.at("peak_bytes").number(0.0, 1e18)};
  plan.capacity = Bytes{memory.at("capacity_bytes").number(1.0, 1e18)};
  for (const char* key : {"simulator", "engine"})  // `engine`: results of earlier versions.
    if (const auto simulator = result.find(key)) plan.simulator = choice<Simulator>(*simulator);
  plan.critical_path = read_critical_path(result, plan.range.step);
  return plan;
}

void require_one_model(const std::vector<ComparedPlan>& plans) {
  for (const ComparedPlan& plan : plans)
    if (plan.model != plans.front().model)
      fail_input({plan.source, ""},
                 "is a plan for " + plan.model + ", " + plans.front().source + " one for " +
                     plans.front().model,
                 "compare plans for one model");
}

PlanDifference difference(const ComparedPlan& one, const ComparedPlan& other) {
  const double share = one.tokens / other.tokens;
  const bool same_plan = one.plan == other.plan;
  PlanDifference result{difference(one.range, other.range.scaled(share), same_plan), {}};
  const auto add = [&](const std::string& line, Seconds time) {
    for (auto& [known, sum] : result.critical_path)
      if (known == line) return void(sum += time);
    result.critical_path.emplace_back(line, time);
  };
  for (const auto& [line, time] : one.critical_path) add(line, -1.0 * time);
  for (const auto& [line, time] : other.critical_path) add(line, share * time);
  return result;
}

namespace {

// The step's range, scaled so that the step takes as many seconds as the run takes days.
StepRange range_of_days(const ComparedRun& one) {
  const StepRange& step = one.plan->range;
  return step.scaled(one.run.figures.days.typical() / step.step.si());
}

}  // namespace

RunDifference difference(const ComparedRun& one, const ComparedRun& other) {
  const std::vector<double>& before = one.run.figures.days_of;
  const std::vector<double>& after = other.run.figures.days_of;
  assert(before.size() == after.size());
  std::vector<double> longer;
  for (std::size_t i = 0; i < before.size(); ++i) longer.push_back(after[i] - before[i]);
  const bool same_plan = one.plan->plan == other.plan->plan;
  return {chance_range(std::move(longer)),
          difference(range_of_days(one), range_of_days(other), same_plan).deviation.si()};
}

}  // namespace orrery
