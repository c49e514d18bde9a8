#include <optional>
#include <sstream>

#include "sim/collectives/collective_program.hpp"
#include "sim/moe/router.hpp"
#include "sim/pipeline/schedule_file.hpp"
#include "sim/pipeline/schedule_replay.hpp"
#include "sim/plan/plan_keys.hpp"
#include "sim/plan/scenario.hpp"
#include "sim/search/comparison.hpp"
#include "sim/training/estimate.hpp"
#include "sim/validation/validate.hpp"
#include "tests/fuzz/entry_groups.hpp"
#include "tests/fuzz/fuzz_checks.hpp"
#include "tests/support/scenarios.hpp"

namespace orrery {
namespace {

// A request for every cluster size; what comes out must add up.
bool make_scenarios(const PlanRequest& request) {
  bool any = false;
  static const Model model = read_model("gpt3-175b", nowhere);
  static const System system = read_system("dgx-h100", nowhere);
  for (const int gpus : {0, 8, 1024, 1 << 24})
    any |= is_accepted([&] {
      const Scenario scenario = make_scenario(model, system, request, gpus, nowhere);
      const Plan& plan = scenario.plan;
      int layers = 0;
      for (const int held : scenario.layers_of) layers += held;
      if (layers != model.layers || (gpus && plan.gpus() != gpus) ||
          plan.microbatches * plan.mbs * plan.dp != plan.gbs)
        __builtin_trap();
    });
  return any;
}

bool fuzz_plan(const std::string& text) {
  PlanRequest request;
  return is_accepted([&] { read_plan(request, parsed(text)); }) && make_scenarios(request);
}

// Lines of "key=value", as the command line hands them over.
void set_flags(PlanRequest& request, const std::string& text) {
  std::istringstream lines{text};
  for (std::string line; std::getline(lines, line);)
    if (const std::size_t equals = line.find('='); equals != line.npos)
      set_plan_flag(request, line.substr(0, equals), line.substr(equals + 1));
}

bool fuzz_flags(const std::string& text) {
  PlanRequest request;
  return is_accepted([&] { set_flags(request, text); }) && make_scenarios(request);
}

// An accepted schedule runs, and is the same after it was printed and read again.
bool fuzz_schedule(const std::string& text) {
  return is_accepted([&] {
    const ExplicitOrder order = read_schedule(text, "fuzz");
    if (!replay(order, {Seconds{1.0}, Seconds{1.0}, Seconds{1.0}}, Seconds{}).complete)
      __builtin_trap();
    if (read_schedule(schedule_text(order), "fuzz") != order) __builtin_trap();
  });
}

// From the words of a plan to its answer, which is sound or refused. Of small models, and of no
// more than some 5,000 tasks at 300 bytes: a longer step does the same more often.
bool fuzz_estimate(const std::string& text) {
  static const Model dense = small_gpt(8, 2048, 16, 32000);
  static const Model mixture = small_mixture(8, 2048, 16, 32000, 8, 2);
  constexpr Bytes most{5'000 * 300.0};
  static const System system = read_system("dgx-h200", nowhere);
  static EstimateContext context{system};
  const bool experts = !text.empty() && text.front() == 'e';
  PlanRequest request;
  std::optional<Scenario> scenario;
  if (!is_accepted([&] {
        set_flags(request, text);
        scenario = make_scenario(experts ? mixture : dense, system, request, 16, nowhere);
      }))
    return false;
  if (scenario->plan.microbatches > 64 || scenario->plan.seq > 65536) return false;
  return is_accepted([&] { estimate(*scenario, context, {.host_memory = most}); });
}

// Every token is somewhere: kept or dropped.
bool fuzz_routing(const std::string& text) {
  return is_accepted([&] {
    const RoutingPlan plan = parse_routing(parsed(text));
    RoutingShape shape;
    shape.experts.count = 16;
    shape.experts.per_token = 2;
    shape.ranks = shape.per_domain = 4;
    shape.tokens = 64;
    const RoutedBatch batch = Router{plan, shape, nowhere}.route(0, 0, 0);
    if (batch.total_kept() + batch.total_dropped() != shape.copies()) __builtin_trap();
  });
}

bool fuzz_routing_trace(const std::string& text) {
  bool any = false;
  for (const TraceExpectation& expected : {TraceExpectation{}, TraceExpectation{1, 2, 4, 64, 2}})
    any |= is_accepted([&] {
      const RoutingTrace trace = parse_trace(text, "fuzz.jsonl", expected);
      double copies = 0.0;
      for (int layer = 0; layer < trace.layers; ++layer)
        for (const double tokens : trace.totals(layer)) copies += tokens;
      if (trace.counts.empty() || copies < 0.0) __builtin_trap();
      if (expected.tokens > 0 && copies != trace.micro_batches * 2.0 * 64 * 2) __builtin_trap();
    });
  return any;
}

bool fuzz_collective_program(const std::string& text) {
  return is_accepted([&] {
    const CollectiveProgram program = parse_collective_program(parsed(text));
    for (const Message& message : program.messages)
      if (message.src >= program.ranks || message.dst >= program.ranks ||
          message.src == message.dst || message.step < 0 || message.bytes.si() < 0.0)
        __builtin_trap();
  });
}

// A result is like itself, and its step lies in its range.
bool fuzz_result(const std::string& text) {
  return is_accepted([&] {
    const ComparedPlan plan = read_compared_plan(parsed(text), "fuzz");
    const StepRange& range = plan.range;
    if (!(range.low() <= range.step && range.step <= range.high())) __builtin_trap();
    if (!difference(plan, plan).step.is_tie()) __builtin_trap();
  });
}

// Whatever is accepted is predicted, with figures or a reason.
bool fuzz_validation(const std::string& text) {
  if (text.size() > 4096) return false;  // Many cases take long, and say no more.
  return with_file("validation.json", text, [](const std::string& path) { validate_file(path); });
}

}  // namespace

std::vector<EntryPoint> plan_entries() {
  using enum Shape;
  return {{"plan", fuzz_plan, json},
          {"schedule", fuzz_schedule, bytes},
          {"flags", fuzz_flags, lines},
          {"result", fuzz_result, json},
          {"collective_program", fuzz_collective_program, json},
          {"routing", fuzz_routing, json},
          {"routing_trace", fuzz_routing_trace, bytes},
          {"estimate", fuzz_estimate, lines, true},
          {"validation", fuzz_validation, json, true}};
}

}  // namespace orrery
