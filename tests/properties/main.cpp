// Samples plans and checks each against some properties, by turns: plan_properties [COUNT] [SEED]
// [PROPERTIES]. Prints what it did and, of each violated property, the first plan that violates it,
// reduced as far as possible. Ctrl-C and SIGTERM end a long run early, with the figures so far.
//
// plan_properties PLAN: one plan, as it was printed, against all properties.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>

#include "tests/properties/plan_properties.hpp"

namespace {

using namespace orrery;

// A crash of the program, or a figure that no step can have.
std::optional<std::string> fault_of(const PlanCase& plan, std::optional<Estimate>& answer,
                                    bool with_remedy = true) {
  try {
    const std::optional<Scenario> scenario = plan.scenario();
    if (scenario) answer = answer_of(*scenario, with_remedy);
  } catch (const std::exception& error) {
    return error.what();
  }
  return std::nullopt;
}

std::optional<std::string> broken(const Property* property, const PlanCase& plan) {
  std::optional<Estimate> answer;
  const auto fault = fault_of(plan, answer);
  if (!property || fault) return property ? std::nullopt : fault;
  if (!answer) return std::nullopt;
  try {
    return property->broken(plan, *answer);
  } catch (const std::exception& error) {
    return error.what();
  }
}

std::optional<std::string> broken(const Property& property, const PlanCase& plan,
                                  const Estimate& answer) {
  try {
    return property.broken(plan, answer);
  } catch (const std::exception& error) {
    return error.what();
  }
}

// The simplest plan on the way down that violates the property too.
PlanCase shrunk(const Property* property, PlanCase plan) {
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (const PlanCase& next : simpler(plan))
      if (broken(property, next)) {
        plan = next;
        smaller = true;
        break;
      }
  }
  return plan;
}

// `at_first`: how it was broken.
void report(const Property* property, const PlanCase& plan, const std::string& at_first) {
  const PlanCase least = shrunk(property, plan);
  // What plans share by then may answer otherwise than it did at first.
  const auto how = broken(property, least);
  std::printf("%s: %s\n  %s\n", property ? property->name : "no answer",
              how ? how->c_str() : (at_first + "; holds when it is repeated").c_str(),
              least.text().c_str());
}

volatile std::sig_atomic_t end_requested = 0;

void end_soon(int) { end_requested = 1; }

// An assertion that fails says what did not hold, and this of which plan.
std::string under_test;

void name_the_plan(int) {
  const auto written = write(STDERR_FILENO, under_test.data(), under_test.size());
  std::signal(SIGABRT, SIG_DFL);
  if (written >= 0) std::abort();
}

int hold_one(const PlanCase& plan) {
  const std::optional<Estimate> answer = answer_of(plan.scenario_as_read(), true);
  if (!answer) {
    std::printf("the plan does not fit, or is large\n");
    return 1;
  }
  std::printf("%.9g s\n", answer->result.step_time.si());
  int failures = 0;
  for (const Property& property : plan_properties()) {
    const auto how = broken(property, plan, *answer);
    failures += how ? 1 : 0;
    std::printf("%s: %s\n", property.name, how ? how->c_str() : "held");
  }
  return failures == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string{argv[1]}.find(" --") != std::string::npos) {
    try {
      return hold_one(case_of(argv[1]));
    } catch (const std::exception& error) {
      std::fprintf(stderr, "plan_properties: %s\n", error.what());
      return 2;
    }
  }
  const long count = argc > 1 ? std::atol(argv[1]) : 2000;
  const long seed = argc > 2 ? std::atol(argv[2]) : 1;
  const std::size_t properties_a_plan = argc > 3 ? static_cast<std::size_t>(std::atol(argv[3])) : 3;
  std::mt19937_64 random{static_cast<std::uint64_t>(seed)};
  long plans = 0, unfit = 0, held = 0, failures = 0;
  std::map<std::string, long> by_property;
  const auto fails = [&](const Property* property, const PlanCase& plan, const std::string& how) {
    ++failures;
    if (by_property[property ? property->name : "no answer"]++ == 0) report(property, plan, how);
  };
  std::signal(SIGABRT, name_the_plan);
  long sampled = 0;
  for (; sampled < count && !end_requested; ++sampled) {
    // Each time: SimGrid's engine takes Ctrl-C for itself when it begins.
    for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, end_soon);
    const PlanCase plan = sample_case(random);
    under_test = plan.text() + "\n";
    const std::uint64_t first = random();
    std::optional<Estimate> answer;
    constexpr std::uint64_t with_remedy = 16;
    if (const auto fault = fault_of(plan, answer, first % with_remedy == 0)) {
      fails(nullptr, plan, *fault);
      continue;
    }
    if (!answer) {
      ++unfit;
      continue;
    }
    ++plans;
    for (std::size_t i = 0; i < properties_a_plan; ++i) {
      const Property& property = plan_properties()[(first + 7 * i) % plan_properties().size()];
      ++held;
      if (const auto how = broken(property, plan, *answer)) fails(&property, plan, *how);
    }
  }
  std::printf(
      "seed %ld: %ld sampled, %ld plans, %ld that do not divide or fit or are large, %ld "
      "properties "
      "checked, %ld violated\n",
      seed, sampled, plans, unfit, held, failures);
  for (const auto& [property, times] : by_property)
    std::printf("  %s: %ld\n", property.c_str(), times);
  std::fflush(stdout);
  std::_Exit(failures == 0 ? 0 : 1);  // SimGrid's engine has nothing left to say.
}
