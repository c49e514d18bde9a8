#include "sim/training/result_json.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/core/number_text.hpp"
#include "sim/kernels/kernel_time.hpp"
#include "sim/measurements/calibration.hpp"
#include "sim/plan/plan_keys.hpp"
#include "sim/training/result_figures.hpp"
#include "sim/training/training_text.hpp"

namespace orrery {

using Json = nlohmann::ordered_json;

nlohmann::ordered_json inputs_json(const Scenario& scenario) {
  Json inputs = Json::object();
  const auto add = [&](const char* section, const std::string& name,
                       const std::optional<JsonValue>& document) {
    if (document) inputs[section][name] = Json::parse(document->compact());
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

// Whole nanoseconds, as a trace has them.
double seconds(Seconds time) { return rounded_figure("_s", time.si()); }
std::int64_t whole_bytes(Bytes bytes) { return std::llround(bytes.si()); }

}  // namespace

Json memory_json(const MemoryReport& memory) {
  Json stages = Json::array();
  for (std::size_t i = 0; i < memory.stages.size(); ++i) {
    const StageMemory& stage = memory.stages[i];
    stages.push_back({{"stage", i},
                      {"weights_bytes", whole_bytes(stage.weights)},
                      {"gradients_bytes", whole_bytes(stage.gradients)},
                      {"optimizer_bytes", whole_bytes(stage.optimizer)},
                      {"activations_bytes", whole_bytes(stage.activations)},
                      {"other_bytes", whole_bytes(stage.other)},
                      {"peak_bytes", whole_bytes(stage.peak())}});
  }
  return {{"stages", std::move(stages)},
          {"peak_bytes", whole_bytes(memory.peak())},
          {"capacity_bytes", whole_bytes(memory.capacity)},
          {"host_bytes_per_node", whole_bytes(memory.host)},
          {"fits", memory.fits()}};
}

namespace {

// The object has the keys of PlanRequest, degrees and experts first, and is valid for read_plan().
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

Json breakdown_json(const Breakdown& breakdown) {
  Json json = Json::object();
  for (const auto& [name, time] : breakdown_figures(breakdown)) json[name] = seconds(Seconds{time});
  return json;
}

// The object is flat, so that each line is one key.
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

Json kinds_json(const std::vector<LayersOfKind>& kinds) {
  Json all = Json::array();
  const auto word = [](const std::string& text) { return text.empty() ? Json{} : Json(text); };
  for (const LayersOfKind& of : kinds) {
    Json runs = Json::array();
    for (const LayerRun& run : of.runs) runs.push_back({run.first, run.last});
    all.push_back({{"kind", of.name},
                   {"mixer", word(of.mixer)},
                   {"feed_forward", word(of.feed_forward)},
                   {"layers", of.layers},
                   {"runs", std::move(runs)},
                   {"layers_of_stage", of.of_stage},
                   {"forward_s", seconds(of.forward)},
                   {"backward_s", seconds(of.backward)},
                   {"kept_bytes_of_one", of.kept.si()},
                   {"parameters_of_one", of.parameters},
                   {"active_parameters_of_one", of.active_parameters},
                   {"rank_parameters_of_one", of.rank_parameters},
                   {"sequence_bytes_of_one",
                    {{"per_token", to_nine_digits(of.sequence.per_token)},
                     {"window", to_nine_digits(of.sequence.window)},
                     {"states", of.sequence.states}}}});
  }
  return all;
}

Json stages_json(const Result& result) {
  Json stages = Json::array();
  for (std::size_t i = 0; i < result.stages.size(); ++i) {
    const Breakdown& stage = result.stages[i];
    Json work = Json::object();
    for (std::size_t kind = 0; kind < kinds_of_work; ++kind)
      work[name(static_cast<StepPart>(kind))] = seconds(stage.work.at(static_cast<Work>(kind)));
    // Layers of the chunks in order: "even" in the plan means as even as possible.
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
                       {"over_mean", to_nine_digits(expert.over_mean)}});
  return {{"even", report.even},
          {"rows_mean", to_nine_digits(report.mean_rows)},
          {"rows_max_over_mean", to_nine_digits(report.max_over_mean)},
          {"rows_worst_over_mean", to_nine_digits(report.worst_over_mean)},
          {"rows_gini", to_nine_digits(report.gini)},
          {"dropped_share", to_nine_digits(report.dropped_share)},
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
  Json json = Json::object();
  for (const auto& [name, share] : provenance_figures(result)) json[name] = to_nine_digits(share);
  return json;
}

Json published_json(const std::optional<PublishedSteps>& published) {
  if (!published) return nullptr;
  return {{"publications", published->publications},
          {"steps", published->steps},
          {"described", to_nine_digits(published->described)},
          {"stands_in", to_nine_digits(published->stands_in)},
          {"missing_s", seconds(published->missing)},
          {"same_plan", to_nine_digits(published->same_plan)},
          {"of_publication", to_nine_digits(published->of_publication)},
          {"prices", to_nine_digits(published->prices)}};
}

// Nonzero parts of the critical path, with the standard deviation of their cost's logarithm.
Json step_time_range_json(const StepRange& range) {
  Json parts = Json::array();
  for (std::size_t kind = 0; kind < price_kinds; ++kind)
    for (Tag tag : {Tag::measured, Tag::interpolated, Tag::default_value}) {
      const Seconds time = range.path.at(static_cast<PriceKind>(kind), tag);
      if (seconds(time) <= 0.0) continue;
      parts.push_back(
          {{"kind", name(static_cast<PriceKind>(kind))},
           {"basis", name(tag)},
           {"time_s", seconds(time)},
           {"error", to_nine_digits(range.errors.of[kind][static_cast<std::size_t>(tag)])}});
    }
  return {{"coverage", range_coverage},
          {"low_s", seconds(range.low())},
          {"high_s", seconds(range.high())},
          {"training_error", to_nine_digits(range.errors.training)},
          {"own_error", to_nine_digits(range.errors.own)},
          {"published", published_json(range.errors.published)},
          {"parts", std::move(parts)}};
}

Json by_runs_json(const StepByRuns& by_runs, const StepRange& range) {
  return {{"runs", by_runs.runs},
          {"same_plan", by_runs.same_plan},
          {"offset", to_nine_digits(by_runs.offset)},
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
                    {"busy_fraction", to_nine_digits(link.busy_fraction)},
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
  return {{"low", to_nine_digits(range.low)}, {"high", to_nine_digits(range.high)}};
}

Json bill_json(const Bill& bill) {
  Json json{{"tokens", to_nine_digits(bill.tokens)},
            {"steps", to_nine_digits(bill.steps)},
            {"training_time_s", to_nine_digits(bill.time.si())}};
  for (const auto& [name, range] : bill_ranges(bill)) json[name] = range_json(range);
  json["gpus_bought"] = bill.hardware.gpus();
  json["switches"] = bill.hardware.fabric.switches;
  json["cables"] = bill.hardware.fabric.cables;
  json["unknown_prices"] = bill.unknown_prices;
  return json;
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
  json["step_time_s"] = nullptr;  // Its place: before its range.
  json["step_time_range"] = step_time_range_json(result.range);
  if (result.by_runs) json["by_runs"] = by_runs_json(*result.by_runs, result.range);
  for (const auto& [name, value] : step_figures(result)) json[name] = rounded_figure(name, value);
  json["memory"] = memory_json(result.memory);
  if (!result.kinds.empty()) json["layer_kinds"] = kinds_json(result.kinds);
  json["critical_path_s"] = critical_json(result.critical.parts);
  json["breakdown_s"] = breakdown_json(result.busiest());
  json["breakdown_stage"] = result.busiest_stage;
  json["stages"] = stages_json(result);
  json["provenance"] = provenance_json(result);
  if (result.routing) json["routing"] = routing_json(*result.routing);
  json["links"] = links_json(result.links);
  json["tasks"] = result.tasks;
  json["ranks_simulated"] = result.reps;
  json["simulator"] = name(result.simulator);
  if (options.about_this_run) json["simulation_wall_s"] = seconds(result.simulation_wall);
  if (result.bill) json["bill"] = bill_json(*result.bill);
  json["warnings"] = result.warnings;
  if (options.inputs) json["inputs"] = inputs_json(scenario);
  // Names may hold any bytes; invalid UTF-8 becomes U+FFFD.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace orrery
