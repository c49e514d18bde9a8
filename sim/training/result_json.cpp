#include "sim/training/result_json.hpp"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/kernels/kernel_time.hpp"
#include "sim/measurements/calibration.hpp"
#include "sim/plan/plan_keys.hpp"
#include "sim/training/verdict.hpp"

namespace orrery {

nlohmann::ordered_json inputs_json(const Scenario& scenario) {
  using Json = nlohmann::ordered_json;
  Json inputs = Json::object();
  const auto add = [&](const char* shelf, const std::string& name,
                       const std::optional<JsonValue>& document) {
    if (document) inputs[shelf][name] = Json::parse(document->compact());
  };
  add("models", scenario.model.name, scenario.model.document);
  add("systems", scenario.system.name, scenario.system.document);
  add("software", scenario.software.name, scenario.software.document);
  if (const auto& calibration = scenario.system.calibration)
    add("calibrations", calibration->file, calibration->document);
  const Schedule& schedule = *scenario.plan.schedule;
  if (const std::string text = schedule.file_text(); !text.empty())
    inputs["schedules"][schedule.name()] = text;
  return inputs;
}

namespace {

using Json = nlohmann::ordered_json;

std::int64_t whole(Bytes bytes) { return std::llround(bytes.si()); }

}  // namespace

Json memory_json(const MemoryReport& memory) {
  Json stages = Json::array();
  for (std::size_t i = 0; i < memory.stages.size(); ++i) {
    const StageMemory& stage = memory.stages[i];
    stages.push_back({{"stage", i},
                      {"weights_bytes", whole(stage.weights)},
                      {"gradients_bytes", whole(stage.gradients)},
                      {"optimizer_bytes", whole(stage.optimizer)},
                      {"activations_bytes", whole(stage.activations)},
                      {"other_bytes", whole(stage.other)},
                      {"peak_bytes", whole(stage.peak())}});
  }
  return {{"stages", std::move(stages)},
          {"peak_bytes", whole(memory.peak())},
          {"capacity_bytes", whole(memory.capacity)},
          {"fits", memory.fits()}};
}

namespace {

using Json = nlohmann::ordered_json;

// More digits than any prediction has, and fewer than show the rounding of the clock, which depends
// on what the process simulated before.
constexpr int significant_digits = 9;

double rounded(double value) {
  char text[64];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value,
                                          std::chars_format::general, significant_digits);
  std::from_chars(text, end, value);
  return value;
}

// Whole nanoseconds, as a trace has them.
double seconds(Seconds time) { return static_cast<double>(std::llround(time.si() * 1e9)) / 1e9; }
std::int64_t whole_bytes(Bytes bytes) { return std::llround(bytes.si()); }

// The keys of PlanRequest, so that read_plan() takes the object as it is; the experts' after the
// degrees.
Json plan_json(const Plan& plan) {
  Json json = Json::object();
  const auto add = [&](bool early) {
    for (const PlanKey& key : plan_keys()) {
      if ((key.part == PlanPart::degrees || key.part == PlanPart::experts) != early) continue;
      json[key.name] = nullptr;
      if (key.has_value(plan))
        std::visit([&](const auto& value) { json[key.name] = value; }, key.access.value(plan));
    }
  };
  add(true);
  add(false);
  return json;
}

// Expert parallelism has its key already, so that scripts need not change when plans with it can be
// estimated.
Json breakdown_json(const Breakdown& breakdown) {
  return {
      {"compute", seconds(breakdown.compute)},       {"tp_exposed", seconds(breakdown.tp_exposed)},
      {"pp_bubble", seconds(breakdown.pp_bubble)},   {"pp_exposed", seconds(breakdown.pp_exposed)},
      {"ep_exposed", seconds(breakdown.ep_exposed)}, {"cp_exposed", seconds(breakdown.cp_exposed)},
      {"dp_exposed", seconds(breakdown.dp_exposed)}, {"optimizer", seconds(breakdown.optimizer)},
      {"imbalance", seconds(breakdown.imbalance)},   {"other", seconds(breakdown.other)}};
}

// Flat, so that a line is one key.
Json critical_json(const TimeByPart& parts) {
  Json json = Json::object();
  for (std::size_t i = 0; i < step_part_count; ++i)
    for (std::size_t j = 0; j < step_phases; ++j) {
      const auto part = static_cast<StepPart>(i);
      const auto phase = static_cast<StepPhase>(j);
      const double time = seconds(parts.at(part, phase));
      if (time != 0.0) json[name(part, phase)] = time;
    }
  return json;
}

Json stages_json(const Result& result) {
  Json stages = Json::array();
  for (std::size_t i = 0; i < result.stages.size(); ++i) {
    const Breakdown& stage = result.stages[i];
    Json work = Json::object();
    for (std::size_t kind = 0; kind < kinds_of_work; ++kind)
      work[name(static_cast<StepPart>(kind))] = seconds(stage.work.at(static_cast<Work>(kind)));
    // Of its chunks in order: "even" in the plan is as even as they go.
    const Plan& plan = result.scenario.plan;
    Json layers = Json::array();
    for (int chunk = 0; chunk < plan.chunks(); ++chunk)
      layers.push_back(
          result.scenario
              .layers_of[static_cast<std::size_t>(plan.virtual_stage(static_cast<int>(i), chunk))]);
    stages.push_back({{"stage", i},
                      {"layers", std::move(layers)},
                      {"busy_s", seconds(stage.busy())},
                      {"on_critical_path_s", seconds(result.critical.by_stage[i])},
                      {"breakdown_s", breakdown_json(stage)},
                      {"compute_s", std::move(work)}});
  }
  return stages;
}

Json routing_json(const RoutingReport& report) {
  Json hottest = Json::array();
  for (const RoutingReport::HotExpert& expert : report.hottest)
    hottest.push_back({{"layer", expert.layer},
                       {"expert", expert.expert},
                       {"over_mean", rounded(expert.over_mean)}});
  return {{"even", report.even},
          {"rows_mean", rounded(report.mean_rows)},
          {"rows_max_over_mean", rounded(report.max_over_mean)},
          {"rows_worst_over_mean", rounded(report.worst_over_mean)},
          {"rows_gini", rounded(report.gini)},
          {"dropped_share", rounded(report.dropped_share)},
          {"dropped_copies", report.dropped_a_step},
          {"nvlink_bytes_per_gpu", whole_bytes(report.scale_up_bytes)},
          {"network_bytes_per_gpu", whole_bytes(report.network_bytes)},
          {"lost_s",
           {{"dispatch", seconds(report.lost.dispatch)},
            {"compute", seconds(report.lost.compute)},
            {"combine", seconds(report.lost.combine)}}},
          {"hottest_experts", std::move(hottest)},
          {"groups_drawn", report.groups},
          {"micro_batches_drawn", report.micro_batches},
          {"standard_error_s", seconds(report.standard_error)}};
}

Json provenance_json(const Result& result) {
  Json json;
  for (Tag tag : {Tag::measured, Tag::interpolated, Tag::default_value})
    json[name(tag)] = rounded(result.provenance[static_cast<std::size_t>(tag)]);
  return json;
}

Json published_json(const std::optional<PublishedSteps>& published) {
  if (!published) return nullptr;
  return {{"software", published->software},      {"runs", published->runs},
          {"offset", rounded(published->offset)}, {"low", rounded(published->low)},
          {"high", rounded(published->high)},     {"prices", rounded(published->prices)}};
}

// Parts of the deciding path that are there, with the deviation of their price's logarithm.
Json step_time_range_json(const StepRange& range) {
  Json parts = Json::array();
  for (std::size_t kind = 0; kind < price_kinds; ++kind)
    for (Tag tag : {Tag::measured, Tag::interpolated, Tag::default_value}) {
      const Seconds time = range.path.at(static_cast<PriceKind>(kind), tag);
      if (seconds(time) <= 0.0) continue;
      parts.push_back({{"kind", name(static_cast<PriceKind>(kind))},
                       {"basis", name(tag)},
                       {"time_s", seconds(time)},
                       {"error", rounded(range.errors.of[kind][static_cast<std::size_t>(tag)])}});
    }
  return {{"coverage", range_coverage},
          {"low_s", seconds(range.low())},
          {"high_s", seconds(range.high())},
          {"training_error", rounded(range.errors.training)},
          {"own_error", rounded(range.errors.own)},
          {"published", published_json(range.errors.published)},
          {"parts", std::move(parts)}};
}

Json by_runs_json(const StepByRuns& by_runs, const StepRange& range) {
  return {{"runs", by_runs.runs},
          {"offset", rounded(by_runs.offset)},
          {"step_time_s", seconds(by_runs.step(range))},
          {"low_s", seconds(by_runs.low(range))},
          {"high_s", seconds(by_runs.high(range))}};
}

Json links_json(const std::vector<LinkReport>& links) {
  Json json = Json::array();
  for (const LinkReport& link : links) {
    const Bytes dispatch = link.of(LinkUser::dispatch);
    const Bytes combine = link.of(LinkUser::combine);
    const Bytes tensor = link.of(LinkUser::expert_tensor);
    json.push_back({{"class", link.kind},
                    {"busiest", link.name},
                    {"busy_fraction", rounded(link.busy_fraction)},
                    {"bytes", whole_bytes(link.bytes)},
                    {"by_user",
                     {{"tensor", whole_bytes(link.of(LinkUser::tensor))},
                      {"context", whole_bytes(link.of(LinkUser::context))},
                      {"expert", whole_bytes(dispatch + combine + tensor)},
                      {"pipeline", whole_bytes(link.of(LinkUser::pipeline))},
                      {"data", whole_bytes(link.of(LinkUser::data))}}},
                    {"expert",
                     {{"dispatch", whole_bytes(dispatch)},
                      {"combine", whole_bytes(combine)},
                      {"tensor", whole_bytes(tensor)}}}});
  }
  return json;
}

Json range_json(Range range) {
  if (!range.known()) return nullptr;
  return {{"low", rounded(range.low)}, {"high", rounded(range.high)}};
}

Json bill_json(const Bill& bill) {
  return {{"tokens", rounded(bill.tokens)},
          {"steps", rounded(bill.steps)},
          {"training_time_s", rounded(bill.time.si())},
          {"usd_per_step", range_json(bill.usd_per_step)},
          {"usd_per_trillion_tokens", range_json(bill.usd_per_trillion_tokens)},
          {"rent_usd", range_json(bill.rent_usd)},
          {"power_w", range_json(bill.watts)},
          {"energy_kwh", range_json(bill.energy_kwh)},
          {"energy_usd", range_json(bill.energy_usd)},
          {"hardware_usd", range_json(bill.hardware_usd)},
          {"switches", bill.fabric.switches},
          {"cables", bill.fabric.cables},
          {"unknown_prices", bill.unknown_prices}};
}

}  // namespace

std::string result_json(const Result& result, const ResultJsonOptions& options) {
  const Scenario& scenario = result.scenario;
  Json json;
  json["schema"] = "orrery.result/1";
  if (options.about_this_run) json["orrery_version"] = ORRERY_VERSION;
  json["model"] = scenario.model.name;
  json["system"] = scenario.system.name;
  json["gpu"] = scenario.system.gpu.name;
  if (scenario.system.calibration) json["calibration"] = scenario.system.calibration->file;
  json["software"] = scenario.software.name;
  json["gpus"] = scenario.plan.gpus();
  json["plan"] = plan_json(scenario.plan);
  json["verdict"] = verdict(result);
  if (result.measured) json["measured_s"] = seconds(*result.measured);
  json["step_time_s"] = seconds(result.step_time);
  json["step_time_range"] = step_time_range_json(result.range);
  if (result.by_runs) json["by_runs"] = by_runs_json(*result.by_runs, result.range);
  json["lower_bound_s"] = seconds(result.lower_bound);
  json["tokens_per_s"] = rounded(result.tokens_per_s);
  json["tokens_per_s_per_gpu"] = rounded(result.tokens_per_s_per_gpu);
  json["model_tflops_per_gpu"] = rounded(result.model_tflops_per_gpu);
  json["model_tflops_per_gpu_full_attn"] = rounded(result.model_tflops_per_gpu_full);
  json["mfu"] = rounded(result.mfu);
  json["mfu_full_attn"] = rounded(result.mfu_full);
  json["memory"] = memory_json(result.memory);
  json["critical_path_s"] = critical_json(result.critical.parts);
  json["breakdown_s"] = breakdown_json(result.busiest());
  json["breakdown_stage"] = result.busiest_stage;
  json["stages"] = stages_json(result);
  json["provenance"] = provenance_json(result);
  if (result.routing) json["routing"] = routing_json(*result.routing);
  json["links"] = links_json(result.links);
  json["tasks"] = result.tasks;
  json["ranks_simulated"] = result.roles;
  json["simulator"] = name(result.simulator);
  if (options.about_this_run) json["simulation_wall_s"] = seconds(result.simulation_wall);
  if (result.bill) json["bill"] = bill_json(*result.bill);
  json["warnings"] = result.warnings;
  if (options.inputs) json["inputs"] = inputs_json(scenario);
  // A name may hold anything; what is no UTF-8 becomes U+FFFD.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace orrery
