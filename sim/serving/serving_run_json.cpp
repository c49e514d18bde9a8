#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/engine/network_model.hpp"
#include "sim/serving/pools_text.hpp"
#include "sim/serving/serving_error.hpp"
#include "sim/serving/serving_json.hpp"
#include "sim/serving/serving_run_text.hpp"
#include "sim/serving/token_cost.hpp"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

// Whole nanoseconds, in milliseconds.
double milliseconds(Seconds time) {
  return static_cast<double>(std::llround(time.si() * 1e9)) / 1e6;
}

Json workload_json(const ServingLoad& load) {
  const RequestTraffic& traffic = load.traffic;
  const RequestList& list = load.list;
  const bool follows_laws = load.file.empty();
  return {{"arrival", name(traffic.arrivals)},
          {"concurrency", list.clients > 0 ? Json(list.clients) : Json(nullptr)},
          {"rate", traffic.rate > 0.0 ? Json(traffic.rate) : Json(nullptr)},
          {"isl", follows_laws ? Json(length_law_text(traffic.prompt)) : Json(nullptr)},
          {"osl", follows_laws ? Json(length_law_text(traffic.output)) : Json(nullptr)},
          {"file", follows_laws ? Json(nullptr) : Json(load.file)},
          {"requests", list.requests.size()},
          {"failed_rows", list.failed},
          {"seed", list.seed}};
}

Json throughput_json(const ServingRun& run) {
  const double output = run.output_tokens_per_s();
  return {{"requests_per_s", rounded(run.requests_per_s())},
          {"output_tokens_per_s", rounded(output)},
          {"total_tokens_per_s", rounded(run.total_tokens_per_s())},
          {"output_tokens_per_s_per_gpu", rounded(output / static_cast<double>(run.gpus()))},
          {"interactivity_tokens_per_s", rounded(run.interactivity())}};
}

Json kv_json(const ServingRun& run) {
  const ReplayTotals& totals = run.replay.counts.totals;
  const double prompts = static_cast<double>(std::max<std::int64_t>(1, totals.prompt_tokens));
  Json json{{"mean_share", rounded(totals.busy > Seconds{} ? totals.kv_used / totals.busy : 0.0)},
            {"peak_share", rounded(totals.kv_peak)},
            {"preemptions", totals.preemptions},
            {"prefix_hit_share", rounded(static_cast<double>(totals.prefix_hit_tokens) / prompts)}};
  if (run.setup.deployment.host_kv > Bytes{})
    json["host"] = {{"hit_share", rounded(static_cast<double>(totals.host_hit_tokens) / prompts)},
                    {"stored_bytes", std::llround(run.host_stored().si())},
                    {"loaded_bytes", std::llround(run.host_loaded().si())},
                    {"link_share", rounded(run.host_link_share())}};
  return json;
}

Json limit(Seconds time) { return time < Slo::any ? Json(milliseconds(time)) : Json(nullptr); }

Json slo_json(const ServedAnswer& answer) {
  const std::optional<Slo>& slo = answer.load.replay.slo;
  if (!slo) return nullptr;
  const ServingRun& run = answer.run;
  return {{"ttft_ms", limit(slo->ttft)},
          {"tpot_ms", limit(slo->tpot)},
          {"e2e_ms", limit(slo->e2e)},
          {"share", slo->share},
          {"attainment", rounded(run.slo_share())},
          {"goodput_requests_per_s", rounded(run.slo_share() * run.requests_per_s())},
          {"largest_rate", answer.goodput ? Json(rounded(answer.goodput->rate)) : Json(nullptr)}};
}

Json range_json(const ServingRun& run) {
  const auto between = [&](double predicted, ServingFigure figure) -> Json {
    const Range range = serving_range(predicted, figure, run.setup.model);
    return {{"low", rounded(range.low)}, {"high", rounded(range.high)}};
  };
  const ReplayCounts& counts = run.replay.counts;
  return {{"coverage", serving_coverage},
          {"ttft_ms", between(counts.ttft.mean().si() * 1e3, ServingFigure::ttft)},
          {"tpot_ms", between(counts.tpot.mean().si() * 1e3, ServingFigure::tpot)},
          {"output_tokens_per_s", between(run.output_tokens_per_s(), ServingFigure::throughput)}};
}

Json by_runs_json(const ServedAnswer& answer) {
  const ServingRun& run = answer.run;
  Json json = Json::object();
  const auto add = [&](const char* key, ServingFigure figure, double predicted) {
    const auto found = answer.by_runs.find(figure);
    if (found == answer.by_runs.end()) return;
    const ServingByRuns& by = found->second;
    const Range range = by.range(predicted);
    json[key] = {{"runs", by.runs},
                 {"offset", rounded(by.offset)},
                 {"value", rounded(by.value(predicted))},
                 {"low", rounded(range.low)},
                 {"high", rounded(range.high)}};
  };
  const ReplayCounts& counts = run.replay.counts;
  add("ttft_ms", ServingFigure::ttft, counts.ttft.mean().si() * 1e3);
  add("tpot_ms", ServingFigure::tpot, counts.tpot.mean().si() * 1e3);
  add("output_tokens_per_s", ServingFigure::throughput, run.output_tokens_per_s());
  return json;
}

}  // namespace

Json latency_json(const LatencyHistogram& histogram) {
  return {{"mean", milliseconds(histogram.mean())},
          {"p50", milliseconds(histogram.percentile(0.5))},
          {"p90", milliseconds(histogram.percentile(0.9))},
          {"p95", milliseconds(histogram.percentile(0.95))},
          {"p99", milliseconds(histogram.percentile(0.99))},
          {"max", milliseconds(histogram.most())}};
}

std::string serving_run_json(const ServedAnswer& answer, double wall_s) {
  const ServingRun& run = answer.run;
  const ReplayCounts& counts = run.replay.counts;
  Json json = serving_head_json(run.setup, run.kv);
  if (run.pools) {
    json["gpus"] = run.gpus();
    json["deployment"] = json["memory"] = nullptr;
    json["pools"] = pools_json(run);
  }
  json["workload"] = workload_json(answer.load);
  json["latency_ms"] = {{"ttft", latency_json(counts.ttft)},
                        {"tpot", latency_json(counts.tpot)},
                        {"itl", latency_json(counts.itl)},
                        {"e2e", latency_json(counts.e2e)},
                        {"queue", latency_json(counts.queue)}};
  json["throughput"] = throughput_json(run);
  json["range"] = range_json(run);
  if (!answer.by_runs.empty()) json["by_runs"] = by_runs_json(answer);
  json["saturated"] = run.saturated;
  json["slo"] = slo_json(answer);
  json["kv"] = run.pools ? Json(nullptr) : kv_json(run);
  if (run.pools) {
    json["transfers"] = transfers_json(*run.pools);
    json["simulator"] = name(chosen_simulator());
  }
  json["cost"] = token_cost_json(answer.cost);
  json["requests_finished"] = counts.totals.finished;
  json["duration_s"] = rounded(run.span().si());
  json["events"] = counts.totals.events;
  json["iterations"] = counts.totals.iterations;
  json["replicas_replayed"] = run.replay.replayed;
  if (wall_s >= 0.0) json["simulation_wall_s"] = wall_s;
  return json.dump(2) + "\n";
}

std::string request_lines(const ServingRun& run) {
  std::string text;
  for (const RequestTimes& of : run.replay.times) {
    Json json{{"request", of.request},
              {"arrival_s", rounded(of.arrival.si())},
              {"queue_ms", milliseconds(of.queue)},
              {"ttft_ms", milliseconds(of.ttft)},
              {"tpot_ms", milliseconds(of.tpot)},
              {"e2e_ms", milliseconds(of.e2e)},
              {"prefix_hit_tokens", of.prefix_hits},
              {"host_hit_tokens", of.host_hits},
              {"preemptions", of.preemptions}};
    if (run.pools) {
      const PoolTimes& passed = run.pools->times[of.request];
      json["prefill_ms"] = milliseconds(passed.prefill);
      json["place_ms"] = milliseconds(passed.place);
      json["transfer_ms"] = milliseconds(passed.transfer);
    }
    text += json.dump() + "\n";
  }
  return text;
}

}  // namespace orrery
