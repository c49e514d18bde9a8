#include "sim/cluster/economics.hpp"
#include "sim/cluster/system.hpp"
#include "sim/core/number_text.hpp"
#include "sim/measurements/kernel_tables.hpp"
#include "sim/measurements/price_errors.hpp"
#include "sim/measurements/serving_table.hpp"
#include "sim/model/model.hpp"
#include "sim/plan/software.hpp"
#include "sim/posttraining/rl_step.hpp"
#include "sim/reliability/fault_trace.hpp"
#include "sim/reliability/run_policy.hpp"
#include "sim/serving/deployment.hpp"
#include "sim/serving/fitted_table.hpp"
#include "sim/validation/kernel_case.hpp"
#include "tests/fuzz/entry_groups.hpp"
#include "tests/fuzz/fuzz_checks.hpp"

namespace orrery {
namespace {

// The first uses of a model: totals must neither overflow nor come out negative.
bool fuzz_model(const std::string& text) {
  return is_accepted([&] {
    const Model model = parse_model(parsed(text));
    const ParameterCount count = count_parameters(model);
    if (count.total <= 0 || count.active <= 0) __builtin_trap();
  });
}

bool fuzz_gpu(const std::string& text) {
  return is_accepted([&] { parse_gpu(parsed(text)); });
}

bool fuzz_system(const std::string& text) {
  return is_accepted([&] {
    const System system = parse_system(parsed(text));
    if (system.gpus_per_node < 1 || system.nics_per_node < 1) __builtin_trap();
  });
}

bool fuzz_kernel_tables(const std::string& text) {
  return is_accepted([&] { parse_kernel_tables(parsed(text)); });
}

// An accepted table gives every one of its rows back.
bool fuzz_serving_table(const std::string& text) {
  return is_accepted([&] {
    const ServingTable table = parse_serving_table(parsed(text));
    const RoofRates rates{FlopPerSecond{1e15}, BytesPerSecond{1e12}};
    const FittedTable fitted{table, {}, rates};
    const Seconds time = fitted.at(table.row(0), rates).time;
    if (!(time > Seconds{})) __builtin_trap();
  });
}

// An accepted kernel is one that was timed, on a GPU of the catalog.
bool fuzz_kernel_cases(const std::string& text) {
  bool any = false;
  is_accepted([&] {
    const JsonValue json = parsed(text);
    if (!is_kernel_cases(json)) return;
    for (const KernelCase& one : read_kernel_cases(json).cases) {
      any = true;
      if (!(one.measured > Seconds{}) || one.id.empty()) __builtin_trap();
    }
  });
  return any;
}

bool fuzz_serving_engine(const std::string& text) {
  return is_accepted([&] { parse_serving_engine(parsed(text)); });
}

// An accepted deployment fills the GPUs that were requested.
bool fuzz_deployment(const std::string& text) {
  static const Model model = read_model("deepseek-v3", nowhere);
  static const System system = read_system("dgx-b200", nowhere);
  static const ServingEngine engine = read_serving_engine("vllm", nowhere);
  return is_accepted([&] {
    DeploymentRequest request;
    read_deployment(request, parsed(text));
    const Deployment plan = make_deployment(model, system, engine, request, 16, nowhere);
    if (plan.gpus() != 16 || plan.ep * plan.moe_tp != plan.tp * plan.dp) __builtin_trap();
  });
}

// An accepted profile states how often a job fails, and how long repairs take, from short to long.
bool fuzz_reliability(const std::string& text) {
  static const Reliability base = read_reliability("default", nowhere);
  return is_accepted([&] {
    const Reliability profile = parse_reliability(parsed(text), base);
    if (!(profile.per_day(16384) >= 0.0) || profile.repair.size() < 2) __builtin_trap();
    for (const FailureCause& cause : profile.causes)
      if (cause.group >= profile.groups.size()) __builtin_trap();
  });
}

// An accepted trace can be replayed: faults in order, within the record, of servers that are up.
bool fuzz_fault_trace(const std::string& text) {
  static const Reliability base = read_reliability("default", nowhere);
  return is_accepted([&] {
    const JsonValue json = parsed(text);
    const FaultTrace trace =
        parse_fault_trace(json, json.is_array() ? std::optional<int>{400} : std::optional<int>{});
    Seconds before;
    for (const ServerFault& fault : trace.faults) {
      if (fault.start < before || fault.end < fault.start || fault.end > trace.length ||
          fault.down_before >= trace.servers || fault.cause >= trace.causes.size())
        __builtin_trap();
      before = fault.start;
    }
    const Reliability profile = profile_of(trace, base, 8);
    if (!(profile.per_day(8) > 0.0) || profile.repair.size() < 2) __builtin_trap();
  });
}

bool fuzz_checkpoints(const std::string& text) {
  return is_accepted([&] {
    const std::vector<CheckpointRule> rules = parse_checkpoints(text, nowhere);
    if (rules.empty() || rules.back().tier != CheckpointTier::store) __builtin_trap();
  });
}

bool fuzz_price_errors(const std::string& text) {
  return is_accepted([&] {
    const JsonValue json = parsed(text);
    const PriceErrors errors = parse_price_errors(json, "h100-sxm", Dtype::bf16, {});
    parse_published_steps(
        parsed(R"({"schema": "orrery.published_steps/2", "source": "s", "publications": 1,)"
               R"( "steps": 1, "described": 3, "prices": 0.1})"),
        json);
    for (const auto& kind : errors.of)
      for (const double error : kind)
        if (!(error >= 0.0 && error <= 3.0)) __builtin_trap();
  });
}

bool fuzz_published_steps(const std::string& text) {
  return is_accepted([&] {
    const JsonValue constants = parsed(R"({"ranges": {"stands_in": {"value": 0.4, "source": "s"},)"
                                       R"( "missing_s": {"value": 0.1, "source": "s"},)"
                                       R"( "same_plan": {"value": 1e-6, "source": "s"},)"
                                       R"( "of_publication": {"value": 0.4, "source": "s"}}})");
    const PublishedSteps steps = parse_published_steps(parsed(text), constants);
    if (!(steps.half_width(Seconds{1.0}, false, 1.0) >= steps.described)) __builtin_trap();
  });
}

bool fuzz_economics(const std::string& text) {
  return is_accepted([&] {
    const Range pue = parse_economics(parsed(text), {}).pue;
    if (pue.known() && !(1.0 <= pue.low && pue.low <= pue.high)) __builtin_trap();
  });
}

bool fuzz_software(const std::string& text) {
  return with_file("software.json", text,
                   [](const std::string& path) { read_software(path, nowhere); });
}

template <class Quantity>
bool is_quantity(const std::string& text, Quantity (*parse)(std::string_view, const Place&)) {
  return is_accepted([&] {
    const double si = parse(text, nowhere).si();
    if (!(si >= 0.0 && si < 1e24)) __builtin_trap();  // NaN fails both.
  });
}

bool fuzz_quantity(const std::string& text) {
  bool any = is_quantity(text, parse_bandwidth);
  any |= is_quantity(text, parse_span);
  any |= is_quantity(text, parse_bytes);
  any |= is_quantity(text, parse_duration);
  any |= is_quantity(text, parse_flop_rate);
  any |= is_accepted([&] {
    if (!(parse_tokens(text, nowhere) > 0.0)) __builtin_trap();
  });
  return any;
}

}  // namespace

bool fuzz_rl_framework(const std::string& text) {
  return is_accepted([&] { parse_rl_framework(parsed(text)); });
}

// A small accepted job has a step whose phases add up to it.
bool fuzz_rl_job(const std::string& text) {
  static const Model model = read_model("llama3.1-8b", {"", ""});
  static const System system = read_system("dgx-h100", {"", ""});
  static const RlFramework framework = read_rl_framework("nemo-rl", {"", ""});
  return is_accepted([&] {
    RlRequest request;
    read_rl_request(request, parsed(text), {"model", "system", "gpus", "framework"});
    constexpr std::int64_t few = 64, short_ones = 4096;
    if (request.prompts > few || request.samples > few || request.max_staleness > 4) return;
    if (request.max_response.value_or(short_ones) > short_ones) return;
    if (request.oversampling > 2.0 || request.prompts_in_flight.value_or(1) > few) return;
    const RlStep step = rl_step(make_rl_job(model, system, framework, request, 8, {"", ""}));
    Seconds sum;
    for (const RlPhaseTime& phase : step.phases) sum += phase.time;
    if (!(step.time > Seconds{}) || sum != step.time) __builtin_trap();
  });
}

std::vector<EntryPoint> catalog_entries() {
  using enum Shape;
  return {{"model", fuzz_model, json},
          {"gpu", fuzz_gpu, json},
          {"system", fuzz_system, json},
          {"kernel_tables", fuzz_kernel_tables, json},
          {"economics", fuzz_economics, json},
          {"price_errors", fuzz_price_errors, json},
          {"published_steps", fuzz_published_steps, json},
          {"quantity", fuzz_quantity, bytes},
          {"software", fuzz_software, json},
          {"serving_table", fuzz_serving_table, json},
          {"kernel_cases", fuzz_kernel_cases, json},
          {"serving_engine", fuzz_serving_engine, json},
          {"deployment", fuzz_deployment, json},
          {"reliability", fuzz_reliability, json},
          {"fault_trace", fuzz_fault_trace, json},
          {"checkpoints", fuzz_checkpoints, bytes},
          {"rl_framework", fuzz_rl_framework, json},
          {"rl_job", fuzz_rl_job, json, true}};
}

}  // namespace orrery
