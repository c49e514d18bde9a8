#include "sim/serving/serving_run_text.hpp"

#include <cmath>

#include "sim/core/number_text.hpp"
#include "sim/core/table.hpp"
#include "sim/serving/pools_text.hpp"
#include "sim/serving/serving_error.hpp"
#include "sim/serving/serving_step_text.hpp"
#include "sim/serving/token_cost.hpp"

namespace orrery {
namespace {

std::string workload_text(const ServingLoad& load) {
  const RequestTraffic& traffic = load.traffic;
  std::string text = plural(static_cast<std::int64_t>(load.list.requests.size()), "request");
  text +=
      " of " + (load.file.empty() ? length_law_text(traffic.prompt) + " tokens, answered with " +
                                        length_law_text(traffic.output)
                                  : load.file);
  if (load.list.clients > 0) {
    text += ", from " + plural(std::int64_t{load.list.clients}, "client") + " at a time";
  } else if (traffic.rate > 0.0) {
    text += ", " + name(traffic.arrivals) + ", " + fixed(traffic.rate, 2) + " a second";
  } else if (traffic.arrivals == Arrivals::burst) {
    text += ", all at once";
  }
  if (load.list.failed > 0)
    text += "\n" + plural(load.list.failed, "row") + " without an answer left out";
  return text + "\n";
}

void latency_row(Table& table, const std::string& what, const LatencyHistogram& histogram) {
  std::vector<std::string> cells{what};
  const auto cell = [&](Seconds time) { cells.push_back(fixed(time.si() * 1e3, 2)); };
  cell(histogram.mean());
  for (const double share : {0.5, 0.9, 0.95, 0.99}) cell(histogram.percentile(share));
  cell(histogram.most());
  table.add_row(std::move(cells));
}

std::string latencies(const ServingRun& run) {
  const ReplayCounts& counts = run.replay.counts;
  Table table{{{"ms", Align::left}, {"mean"}, {"p50"}, {"p90"}, {"p95"}, {"p99"}, {"max"}}, 0};
  latency_row(table, "  TTFT", counts.ttft);
  latency_row(table, "  TPOT", counts.tpot);
  latency_row(table, "  ITL", counts.itl);
  latency_row(table, "  end to end", counts.e2e);
  latency_row(table, "  queue", counts.queue);
  if (run.pools)
    for (const PoolLatency& latency : pool_latencies(run.pools->transfers))
      latency_row(table, "  " + latency.name, latency.histogram);
  return table.text();
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

// Where nine in ten measurements lie.
std::string ranges(const ServingRun& run) {
  const Model& model = run.setup.model;
  const ReplayCounts& counts = run.replay.counts;
  const auto between = [&](double predicted, ServingFigure figure, double unit, int decimals) {
    const Range range = serving_range(predicted, figure, model);
    return fixed(range.low / unit, decimals) + " .. " + fixed(range.high / unit, decimals);
  };
  Table table{{{"In 9 of 10", Align::left}, {"", Align::left}}, 0};
  table.add_row(
      {"  TTFT, mean", between(counts.ttft.mean().si(), ServingFigure::ttft, 1e-3, 0) + " ms"});
  if (counts.tpot.count() > 0)
    table.add_row(
        {"  TPOT, mean", between(counts.tpot.mean().si(), ServingFigure::tpot, 1e-3, 1) + " ms"});
  table.add_row({"  output", between(run.output_tokens_per_s(), ServingFigure::throughput, 1.0, 0) +
                                 " tokens/s"});
  return table.text();
}

// The same after runs of the user's own.
std::string by_runs_text(const ServedAnswer& answer) {
  if (answer.by_runs.empty()) return "";
  const ServingRun& run = answer.run;
  const ReplayCounts& counts = run.replay.counts;
  Table table{{{"As your runs", Align::left}, {""}, {"", Align::left}}, 0};
  const auto row = [&](const std::string& what, ServingFigure figure, double predicted, double unit,
                       int decimals, const std::string& unit_name) {
    const auto found = answer.by_runs.find(figure);
    if (found == answer.by_runs.end() || !(predicted > 0.0)) return;
    const ServingByRuns& by = found->second;
    const Range range = by.range(predicted);
    table.add_row({what, fixed(by.value(predicted) / unit, decimals),
                   unit_name + "  " + fixed(range.low / unit, decimals) + " .. " +
                       fixed(range.high / unit, decimals) + " by " + plural(by.runs, "run")});
  };
  row("  TTFT, mean", ServingFigure::ttft, counts.ttft.mean().si(), 1e-3, 0, "ms");
  row("  TPOT, mean", ServingFigure::tpot, counts.tpot.count() > 0 ? counts.tpot.mean().si() : 0.0,
      1e-3, 1, "ms");
  row("  output", ServingFigure::throughput, run.output_tokens_per_s(), 1.0, 0, "tokens/s");
  return table.text() + "\n";
}

// Keys and values that went to the host's memory and came back.
std::string host_line(const ServingRun& run) {
  const Deployment& plan = run.setup.deployment;
  if (!(plan.host_kv > Bytes{})) return "";
  return "Host memory of " + bytes_text(plan.host_kv) + " a GPU: " + bytes_text(run.host_stored()) +
         " went there, " + bytes_text(run.host_loaded()) +
         " came back, for which a link was in use " + percent(run.host_link_share()) +
         " of the time\n";
}

std::string memory_line(const ServingRun& run) {
  const ReplayTotals& totals = run.replay.counts.totals;
  std::string text = "KV cache of " + plural(run.kv.tokens, "token") + " a rank: " +
                     percent(totals.busy > Seconds{} ? totals.kv_used / totals.busy : 0.0) +
                     " in use on average, " + percent(totals.kv_peak) + " at most, " +
                     plural(totals.preemptions, "preemption") + "\n";
  if (totals.prefix_hit_tokens > 0)
    text += percent(static_cast<double>(totals.prefix_hit_tokens) /
                    static_cast<double>(totals.prompt_tokens)) +
            " of the prompts' tokens were in the cache" +
            (totals.host_hit_tokens > 0 ? ", " +
                                              percent(static_cast<double>(totals.host_hit_tokens) /
                                                      static_cast<double>(totals.prompt_tokens)) +
                                              " on the host"
                                        : "") +
            "\n";
  return text + host_line(run);
}

std::string limits(const ServedAnswer& answer) {
  const std::optional<Slo>& slo = answer.load.replay.slo;
  std::string text;
  if (slo)
    text += percent(answer.run.slo_share()) + " of the requests keep to the limits, " +
            fixed(answer.run.slo_share() * answer.run.requests_per_s(), 3) + " a second\n";
  if (answer.goodput)
    text += answer.goodput->rate > 0.0
                ? "Largest rate at which " + percent(slo->share) +
                      " do: " + fixed(answer.goodput->rate, 3) + " a second (" +
                      plural(answer.goodput->replays, "replay") + ")\n"
                : "At no rate do " + percent(slo->share) + "\n";
  return text;
}

}  // namespace

std::string serving_run_text(const ServedAnswer& answer) {
  const ServingRun& run = answer.run;
  std::string text = run.setup.model.name + " on " + run.setup.system.name + ", " +
                     plural(run.gpus(), "GPU") + "\n" +
                     (run.pools ? pools_text(run.pools->prefill.setup, run.pools->decode.setup)
                                : deployment_text(run.setup)) +
                     "\n" + workload_text(answer.load) + "\n" + latencies(run) + "\n" +
                     throughput(run) + "\n" + ranges(run) + "\n" + by_runs_text(answer) +
                     (run.pools ? pooled_outcome_text(run) : memory_line(run)) + limits(answer) +
                     token_cost_text(answer.cost);
  if (run.saturated)
    text +=
        "Saturated: the queue grows through the run. TTFT and end-to-end times say how long it\n"
        "lasted, not how long requests take; judge the throughput.\n";
  return text;
}

}  // namespace orrery
