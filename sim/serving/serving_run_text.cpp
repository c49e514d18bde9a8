#include "sim/serving/serving_run_text.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/core/figures.hpp"
#include "sim/core/number_text.hpp"
#include "sim/engine/network_model.hpp"
#include "sim/serving/pools_text.hpp"
#include "sim/serving/serving_error.hpp"
#include "sim/serving/serving_json.hpp"
#include "sim/serving/serving_step_text.hpp"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

std::string workload_text(const ServingLoad& load, const ServingRun& run) {
  const RequestTraffic& traffic = load.traffic;
  std::string text = plural(run.sampled, "request");
  text += " of " + (load.file.empty()
                        ? length_distribution_text(traffic.prompt) + " tokens, answered with " +
                              length_distribution_text(traffic.output)
                        : load.file);
  if (load.list.clients > 0) {
    text += ", from " + plural(std::int64_t{load.list.clients}, "client") + " at a time";
  } else if (traffic.rate > 0.0) {
    text += ", " + name(traffic.arrivals) + ", " + fixed(traffic.rate, 2) + " a second";
  } else if (traffic.arrivals == Arrivals::burst) {
    text += ", all at once";
  }
  if (load.list.failed > 0)
    text += "; " + plural(load.list.failed, "row") + " without an answer left out";
  return wrapped_words("", text, text_columns);
}

std::string within(double half) { return "±" + fixed(100.0 * half, 1) + " %"; }

// Names the part of the run that is measured, and the sampling errors of its means.
std::string window_text(const ServingLoad& load, const ServingRun& run) {
  const SteadyWindow& window = run.window;
  if (window.whole)
    return load.part == MeasuredPart::steady
               ? "All are counted, the first and the last ones as well: they are too few for a "
                 "steady\n"
                 "state, and rates are lower than those of a longer run (--requests N)\n"
               : "";
  std::string text =
      run.saturated && window.overloaded
          ? plural(window.requests, "request") + " counted, and tokens of the " +
                fixed(window.span().si(), 1) + " s in which requests waited throughout"
          : plural(window.requests, "request") + " of " + fixed(window.span().si(), 1) +
                " s counted, after " + plural(window.warm_up, "request") + " of warm-up";
  if (run.represented > 1.0)
    text += ", on " + plural(std::int64_t{run.replay.replayed}, "replica") +
            ", each representing " + fixed(run.represented, 0);
  text += "\n";
  if (!run.saturated)
    text += "Sampling (90 %): TTFT " + within(window.ttft.relative()) + ", TPOT " +
            within(window.tpot.relative()) + ", output " + within(window.output_rate.relative()) +
            "\n" + (window.steady ? "" : "They still vary: a longer run is --requests N.\n");
  return text;
}

Figures figures_of(const LatencyHistogram& histogram, const std::string& label = "") {
  Figures list;
  list.show({"ms", Align::left}, "  " + label);
  const auto add = [&](const char* key, Seconds time) {
    list.add(key, milliseconds(time)).shown({key}, fixed(time.si() * 1e3, 2));
  };
  add("mean", histogram.mean());
  add("p50", histogram.percentile(0.5));
  add("p90", histogram.percentile(0.9));
  add("p95", histogram.percentile(0.95));
  add("p99", histogram.percentile(0.99));
  add("max", histogram.most());
  return list;
}

std::string latencies_text(const ServingRun& run) {
  std::vector<NamedLatency> all = latencies(run.replay.counts);
  if (run.pools)
    for (const PoolLatency& one : pool_latencies(run.pools->transfers))
      all.push_back({"", one.name, one.histogram});
  return latency_table(all);
}

std::string throughput(const ServingRun& run) {
  const double output = run.output_tokens_per_s();
  const auto gpus = static_cast<double>(run.gpus());
  Table table{{{"", Align::left}, {""}, {"", Align::left}}};
  table.add_row({"output", fixed(output, 1),
                 "tokens/s" + (gpus > 1.0 ? ", " + fixed(output / gpus, 1) + " a GPU" : "")});
  table.add_row({"all", fixed(run.total_tokens_per_s(), 1), "tokens/s with those of prompts"});
  table.add_row({"requests", fixed(run.requests_per_s(), 3), "a second"});
  if (run.interactivity() > 0.0)
    table.add_row({"a user", fixed(run.interactivity(), 1), "tokens/s: 1 / median TPOT"});
  return table.text();
}

// A figure whose deviation from measurements is known, in the unit of its key.
struct JudgedFigure {
  ServingFigure figure;
  std::string key, label, unit;
  double predicted;
  int decimals;

  std::string text(Range range) const {
    return fixed(range.low, decimals) + " .. " + fixed(range.high, decimals);
  }
};

std::vector<JudgedFigure> judged_figures(const ServingRun& run) {
  const ReplayCounts& counts = run.replay.counts;
  return {{ServingFigure::ttft, "ttft_ms", "TTFT, mean", "ms", counts.ttft.mean().si() * 1e3, 0},
          {ServingFigure::tpot, "tpot_ms", "TPOT, mean", "ms", counts.tpot.mean().si() * 1e3, 1},
          {ServingFigure::throughput, "output_tokens_per_s", "output", "tokens/s",
           run.output_tokens_per_s(), 0}};
}

// The range of a figure, cut for throughput at the load that clients offer, which a deployment that
// is not overloaded serves.
Range within_offer(const ServingRun& run, ServingFigure figure, double predicted, Range range) {
  if (figure == ServingFigure::throughput && run.open && !run.saturated)
    range.high = std::min(range.high, predicted);
  return range;
}

// The ranges of nine in ten measurements.
std::string ranges_text(const ServingRun& run) {
  Table table{{{"In 9 of 10", Align::left}, {"", Align::left}}, 0};
  for (const JudgedFigure& one : judged_figures(run))
    if (one.figure != ServingFigure::tpot || one.predicted > 0.0)
      table.add_row(
          {"  " + one.label, one.text(within_offer(run, one.figure, one.predicted,
                                                   serving_range(one.predicted, one.figure))) +
                                 " " + one.unit});
  return table.text();
}

// The same after the user's own runs.
std::string by_runs_text(const ServedAnswer& answer) {
  if (answer.by_runs.empty()) return "";
  Table table{{{"As your runs", Align::left}, {""}, {"", Align::left}}, 0};
  for (const JudgedFigure& one : judged_figures(answer.run)) {
    const auto found = answer.by_runs.find(one.figure);
    if (found == answer.by_runs.end() || !(one.predicted > 0.0)) continue;
    const ServingByRuns& by = found->second;
    table.add_row(
        {"  " + one.label, fixed(by.value(one.predicted), one.decimals),
         one.unit + "  " + one.text(by.range(one.predicted)) + " by " + plural(by.runs, "run")});
  }
  return table.text() + "\n";
}

std::string longest_line(const ServingRun& run) {
  const std::string longest = longest_text(run.setup.deployment, run.kv);
  return longest.empty() ? "" : "The KV cache holds " + longest + "\n";
}

std::string states_line(const ServedAnswer& answer) {
  const KvCapacity& kv = answer.run.kv;
  if (kv.state_slots == 0) return "";
  const std::int64_t most = requests_with_states(answer.run.setup, answer.load.prefix_cache, kv);
  const std::int64_t each = kv.state_slots / std::max<std::int64_t>(1, most);
  return "States for " + plural(most, "request") + " at a time a rank" +
         (each > 1 ? ", " + std::to_string(each) + " each since prefixes are kept" : "") + "\n";
}

std::string windows_line(const ServedAnswer& answer) {
  const WindowPool pool = answer.run.kv.windows.of_batch(1, answer.load.prefix_cache);
  if (pool.tokens == 0) return "";
  ServingLoad load = answer.load;
  if (load.list.requests.empty()) {  // The run found its length.
    load.traffic.requests = 1000;
    load.list = requests_of(load);
  }
  double held = 0.0;
  for (const Request& request : load.list.requests)
    held += static_cast<double>(pool.of(request.prompt_tokens));
  held /= static_cast<double>(load.list.requests.size());
  return "Pool of windows of " + plural(pool.tokens, "token") + " a rank, for " +
         plural(static_cast<std::int64_t>(static_cast<double>(pool.tokens) / held), "request") +
         " at a time\n";
}

std::string memory_line(const ServingRun& run) {
  const ReplayTotals& totals = run.replay.counts.totals;
  std::string text = "KV cache of " + plural(run.kv.tokens, "token") + " a rank: mean " +
                     percent(totals.mean_kv_share()) + ", peak " + percent(totals.kv_peak) +
                     " in use, " + plural(totals.preemptions, "preemption") + "\n";
  if (totals.prefix_hit_tokens > 0)
    text += percent(totals.prefix_hit_share()) + " of the prompts' tokens were in the cache\n";
  return text + (run.pools ? "" : tier_lines(run.setup.deployment, run.tiers()));
}

std::string limits(const ServedAnswer& answer) {
  const std::optional<Slo>& slo = answer.load.replay.slo;
  std::string text;
  const bool has_limits =
      slo || std::any_of(answer.load.list.classes.begin(), answer.load.list.classes.end(),
                         [](const RequestClass& one) { return one.slo.has_value(); });
  if (has_limits)
    text += percent(answer.run.slo_share()) + " of the requests keep to the limits, " +
            fixed(answer.run.slo_share() * answer.run.requests_per_s(), 3) + " a second\n";
  if (answer.goodput)
    text += "Largest rate at which " + percent(slo->share) +
            " do: " + fixed(answer.goodput->rate, 3) + " a second (" +
            plural(answer.goodput->rates_tried, "rate") + " tried)\n";
  return text;
}

// For limits that no rate meets: the nearest limits that requests meet at the lowest rate.
std::string no_rate_text(const ServedAnswer& answer) {
  const Slo& slo = *answer.load.replay.slo;
  const std::optional<Slo> kept = kept_limits(answer.run, slo);
  return "At no rate do " + percent(slo.share) + " of the requests keep to " + slo_text(slo) +
         (kept ? ".\nThe nearest that they keep to, one at a time: --slo " + slo_text(*kept)
               : ": more come than are answered even at the lowest") +
         "\n";
}

}  // namespace

std::vector<NamedLatency> latencies(const ReplayCounts& counts) {
  return {{"ttft", "TTFT", counts.ttft},
          {"tpot", "TPOT", counts.tpot},
          {"itl", "ITL", counts.itl},
          {"e2e", "end to end", counts.e2e},
          {"queue", "queue", counts.queue}};
}

std::string latency_table(const std::vector<NamedLatency>& latencies) {
  std::vector<Figures> rows;
  for (const NamedLatency& one : latencies) rows.push_back(figures_of(one.histogram, one.label));
  return table_of(rows, 0).text();
}

std::string serving_run_text(const ServedAnswer& answer) {
  const ServingRun& run = answer.run;
  const std::string heading =
      run.setup.model.name + " on " + run.setup.system.name + ", " + plural(run.gpus(), "GPU") +
      "\n" +
      (run.pools ? pools_text(run.pools->prefill.setup, run.pools->decode.setup)
                 : deployment_text(run.setup)) +
      "\n";
  if (answer.goodput && !answer.goodput->at_rate) return heading + no_rate_text(answer);
  std::string text = heading + workload_text(answer.load, run) + window_text(answer.load, run) +
                     "\n" + latencies_text(run) + "\n" + throughput(run) + "\n" + ranges_text(run) +
                     "\n" + by_runs_text(answer) +
                     (run.pools ? pooled_outcome_text(run)
                                : memory_line(run) + states_line(answer) + windows_line(answer)) +
                     longest_line(run) + limits(answer) + class_table(run.classes) +
                     token_cost_text(answer.cost);
  if (run.saturated)
    text += "Overloaded: more requests come than are answered, " + fixed(run.requests_per_s(), 3) +
            " a second.\nTTFT and end-to-end times say how long the run lasted, not how long "
            "requests take;\njudge the throughput.\n";
  return text;
}

namespace {

Json workload_json(const ServingLoad& load, const ServingRun& run) {
  const RequestTraffic& traffic = load.traffic;
  const RequestList& list = load.list;
  const bool is_sampled = load.file.empty();
  return {{"arrival", name(traffic.arrivals)},
          {"concurrency", list.clients > 0 ? Json(list.clients) : Json(nullptr)},
          {"rate", traffic.rate > 0.0 ? Json(traffic.rate) : Json(nullptr)},
          {"isl", is_sampled ? Json(length_distribution_text(traffic.prompt)) : Json(nullptr)},
          {"osl", is_sampled ? Json(length_distribution_text(traffic.output)) : Json(nullptr)},
          {"file", is_sampled ? Json(nullptr) : Json(load.file)},
          {"requests", run.sampled},
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
  Json json{{"mean_share", rounded(totals.mean_kv_share())},
            {"peak_share", rounded(totals.kv_peak)},
            {"preemptions", totals.preemptions},
            {"prefix_hit_share", rounded(totals.prefix_hit_share())}};
  if (run.setup.deployment.has_kv_tiers()) json["tiers"] = tiers_json(run.tiers());
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

Json ranges_json(const ServingRun& run) {
  Json json{{"coverage", serving_coverage}};
  for (const JudgedFigure& one : judged_figures(run)) {
    const Range range =
        within_offer(run, one.figure, one.predicted, serving_range(one.predicted, one.figure));
    json[one.key] = {{"low", rounded(range.low)}, {"high", rounded(range.high)}};
  }
  return json;
}

Json window_json(const ServingRun& run) {
  const SteadyWindow& window = run.window;
  Json json{{"part", window.whole ? "all" : "steady"},
            {"begin_s", rounded(window.begin.si())},
            {"end_s", rounded(window.end.si())},
            {"warm_up_requests", window.warm_up},
            {"requests", window.requests}};
  if (window.whole) return json;
  json["steady"] = window.steady;
  const auto half = [&](const char* key, double value) {
    json["half_width"][key] = rounded(value);
  };
  half("ttft_ms", window.ttft.half * 1e3);
  half("tpot_ms", window.tpot.half * 1e3);
  half("output_tokens_per_s", window.output_rate.half * run.represented);
  half("attainment", window.attainment.half);
  return json;
}

Json by_runs_json(const ServedAnswer& answer) {
  Json json = Json::object();
  for (const JudgedFigure& one : judged_figures(answer.run)) {
    const auto found = answer.by_runs.find(one.figure);
    if (found == answer.by_runs.end()) continue;
    const ServingByRuns& by = found->second;
    const Range range = by.range(one.predicted);
    json[one.key] = {{"runs", by.runs},
                     {"offset", rounded(by.offset)},
                     {"value", rounded(by.value(one.predicted))},
                     {"low", rounded(range.low)},
                     {"high", rounded(range.high)}};
  }
  return json;
}

}  // namespace

Json latency_json(const LatencyHistogram& histogram) { return figures_of(histogram).json(); }

std::string serving_run_json(const ServedAnswer& answer, double wall_s) {
  const ServingRun& run = answer.run;
  const ReplayCounts& counts = run.replay.counts;
  Json json = serving_head_json(run.setup, run.kv);
  if (run.pools) {
    json["gpus"] = run.gpus();
    json["deployment"] = json["memory"] = nullptr;
    json["pools"] = pools_json(run);
  }
  json["workload"] = workload_json(answer.load, run);
  json["window"] = window_json(run);
  for (const NamedLatency& one : latencies(counts))
    json["latency_ms"][one.key] = latency_json(one.histogram);
  json["throughput"] = throughput_json(run);
  json["range"] = ranges_json(run);
  if (!answer.by_runs.empty()) json["by_runs"] = by_runs_json(answer);
  json["saturated"] = run.saturated;
  json["slo"] = slo_json(answer);
  if (!run.classes.empty()) json["classes"] = classes_json(run.classes);
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

std::string class_table(const std::vector<ClassOutcome>& classes) {
  if (classes.empty()) return "";
  Table table{{{"class", Align::left},
               {"requests"},
               {"TTFT p50"},
               {"p90"},
               {"TPOT p50"},
               {"p90"},
               {"in limits"}}};
  const auto ms = [](const LatencyHistogram& of, double share) {
    return fixed(of.percentile(share).si() * 1e3, 1);
  };
  for (const ClassOutcome& of : classes)
    table.add_row({of.name, grouped(of.requests), ms(of.ttft, 0.5), ms(of.ttft, 0.9),
                   ms(of.tpot, 0.5), ms(of.tpot, 0.9),
                   of.requests > 0 ? percent(of.attainment()) : "-"});
  return table.text();
}

Json classes_json(const std::vector<ClassOutcome>& classes) {
  Json json = Json::array();
  for (const ClassOutcome& of : classes)
    json.push_back({{"name", of.name},
                    {"requests", of.requests},
                    {"attainment", rounded(of.attainment())},
                    {"latency_ms",
                     {{"ttft", latency_json(of.ttft)},
                      {"tpot", latency_json(of.tpot)},
                      {"e2e", latency_json(of.e2e)}}}});
  return json;
}

std::string tier_lines(const Deployment& plan, const std::vector<TierUse>& uses) {
  std::string text;
  for (const TierUse& use : uses) {
    text += use.name == "host"   ? "Host memory of " + bytes_text(plan.host_kv) + " a GPU"
            : use.name == "nvme" ? "NVMe drives"
                                 : "Remote store";
    text += ": " + percent(use.hit_share) + " of the prompts' tokens; " + bytes_text(use.stored) +
            " went there, " + bytes_text(use.loaded) + " came back, for which a link was in use " +
            percent(use.link_share) + " of the time\n";
  }
  return text;
}

Json tiers_json(const std::vector<TierUse>& uses) {
  Json json = Json::array();
  for (const TierUse& use : uses)
    json.push_back({{"name", use.name},
                    {"hit_share", rounded(use.hit_share)},
                    {"stored_bytes", whole(use.stored)},
                    {"loaded_bytes", whole(use.loaded)},
                    {"link_share", rounded(use.link_share)}});
  return json;
}

std::string request_lines(const ServingRun& run, const RequestList& list) {
  std::string text;
  for (const RequestTimes& of : run.replay.times) {
    Json json{{"request", of.request},
              {"arrival_s", rounded(of.arrival.si())},
              {"queue_ms", milliseconds(of.queue)},
              {"ttft_ms", milliseconds(of.ttft)},
              {"tpot_ms", milliseconds(of.tpot)},
              {"e2e_ms", milliseconds(of.e2e)},
              {"prefix_hit_tokens", of.prefix_hits},
              {"tier_hit_tokens", of.tier_hits},
              {"preemptions", of.preemptions}};
    if (!list.classes.empty())
      json["class"] = list.classes[list.requests[of.request].of_class].name;
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
