#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/core/number_text.hpp"
#include "sim/core/table.hpp"
#include "sim/fleet/fleet_text.hpp"
#include "sim/serving/serving_json.hpp"
#include "sim/serving/serving_run_text.hpp"
#include "sim/serving/serving_step_text.hpp"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

// Rent of all GPUs for the run.
Range rent_of(const SessionAnswer& answer) {
  return answer.economics.rent_usd_per_gpu_hour *
         (static_cast<double>(answer.run.gpus()) * answer.run.span.si() / 3600.0);
}

struct Price {
  const char* key;
  const char* label;
  double count;
};

// A session costs its turns: those that end within the run are the short ones.
std::vector<Price> prices_of(const SessionRun& run, const SessionTrace& trace) {
  const ReplayTotals& totals = run.counts.totals;
  const double turns_each = static_cast<double>(trace.turns.size()) /
                            static_cast<double>(std::max<std::size_t>(1, trace.sessions.size()));
  return {{"usd_per_session", "a session", static_cast<double>(totals.finished) / turns_each},
          {"usd_per_turn", "a turn", static_cast<double>(totals.finished)},
          {"usd_per_million_computed_tokens", "a million computed tokens",
           1e-6 * static_cast<double>(totals.prompt_tokens + totals.output_tokens -
                                      totals.prefix_hit_tokens)}};
}

std::string load_text(const SessionAnswer& answer) {
  const SessionLoad& load = answer.load;
  const SessionRun& run = answer.run;
  std::string text = plural(std::ssize(load.trace.sessions), "session") + " of " + load.file;
  text += load.lanes > 0
              ? ", replayed in " + plural(std::int64_t{load.lanes}, "lane") + " again and again"
              : ", of which " + fixed(load.rate, 3) + " begin a second";
  text += "; " + plural(run.counts.totals.finished, "turn") + " of " + fixed(run.span.si(), 0) +
          " s counted";
  if (load.warm_turns > 0)
    text += ", after " + plural(std::int64_t{load.warm_turns}, "turn") + " of each lane";
  if (answer.cut_turns > 0)
    text += "; " + plural(answer.cut_turns, "turn") + " left out by --longest-context";
  return wrapped_words("", text, text_columns);
}

std::string times_text(const SessionRun& run) {
  std::vector<NamedLatency> all = latencies(run.counts);
  if (run.session_time.count() > 0) all.push_back({"session", "session", run.session_time});
  return latency_table(all);
}

std::string rates_text(const SessionRun& run) {
  Table table{{{"", Align::left}, {""}, {"", Align::left}}, 0};
  table.add_row({"total", fixed(run.total_tokens_per_s_per_gpu(), 0),
                 "tokens/s a GPU, with those of prompts that were in the cache"});
  table.add_row({"computed", fixed(run.computed_tokens_per_s_per_gpu(), 1), "tokens/s a GPU"});
  table.add_row({"turns", fixed(run.turns_per_s(), 3), "a second"});
  return table.text();
}

std::string cache_text(const SessionRun& run) {
  const ReplayTotals& totals = run.counts.totals;
  std::string text = percent(run.hit_share()) + " of the prompts' tokens were in the cache";
  text += "\nA cache that forgets nothing has " + percent(run.bound_of_hits()) + ", or " +
          percent(run.ideal_hit_share()) + " of prompts alone\n";
  text += "KV cache of " + plural(run.kv.tokens, "token") + " a rank: mean " +
          percent(totals.mean_kv_share()) + ", peak " + percent(totals.kv_peak) + " in use, " +
          plural(totals.preemptions, "preemption") + "\n";
  text += tier_lines(run.setup.deployment, run.tiers());
  if (run.prompt_tokens_of.size() > 1)
    text += "The busiest replica got " + fixed(run.imbalance(), 2) +
            " times its share of the prompts' tokens\n";
  return text;
}

std::string limits_text(const SessionAnswer& answer) {
  if (!answer.slo) return "";
  std::string text =
      percent(answer.run.slo_share()) + " of the turns keep to " + slo_text(*answer.slo) + "\n";
  if (!answer.lanes_tried) return text;
  const bool none = answer.run.slo_share() < answer.slo->share;
  return text + (none ? "Not even one lane does.\n"
                      : "Most lanes whose turns do: " + std::to_string(answer.load.lanes) + " (" +
                            plural(std::int64_t{*answer.lanes_tried}, "number") + " tried)\n");
}

std::string cost_text(const SessionAnswer& answer) {
  const Range rent = rent_of(answer);
  if (!rent.known()) return "";
  std::string text;
  for (const Price& price : prices_of(answer.run, answer.load.trace)) {
    if (!(price.count > 0.0)) continue;
    const Range each = rent * (1.0 / price.count);
    text += (text.empty() ? "$" : ", $") + fixed(each.low, each.low < 0.1 ? 4 : 2) + " .. " +
            fixed(each.high, each.low < 0.1 ? 4 : 2) + " " + price.label;
  }
  return text.empty() ? "" : text + "\n";
}

}  // namespace

std::string session_text(const SessionAnswer& answer) {
  const SessionRun& run = answer.run;
  return run.setup.model.name + " on " + run.setup.system.name + ", " + plural(run.gpus(), "GPU") +
         "\n" + deployment_text(run.setup) + "\n" + load_text(answer) + "\n" + times_text(run) +
         "\n" + rates_text(run) + "\n" + cache_text(run) + limits_text(answer) + cost_text(answer);
}

std::string session_json(const SessionAnswer& answer, double wall_s) {
  const SessionRun& run = answer.run;
  const SessionLoad& load = answer.load;
  const ReplayTotals& totals = run.counts.totals;
  Json json = serving_head_json(run.setup, run.kv);
  json["schema"] = "orrery.sessions/1";
  json["workload"] = {{"file", load.file},
                      {"sessions", load.trace.sessions.size()},
                      {"lanes", load.lanes > 0 ? Json(load.lanes) : Json(nullptr)},
                      {"session_rate", load.rate > 0.0 ? Json(load.rate) : Json(nullptr)},
                      {"duration_s", rounded(load.duration.si())},
                      {"warm_turns", load.warm_turns},
                      {"seed", load.seed},
                      {"ideal_hit_share", rounded(ideal_hit_share(load.trace))},
                      {"turns_cut", answer.cut_turns}};
  json["turns"] = {{"counted", totals.finished},
                   {"sent", run.sent},
                   {"by_sub_agents", run.sub_agent_turns},
                   {"sessions_begun", run.sessions_begun},
                   {"sessions_ended", run.session_time.count()}};
  json["span_s"] = rounded(run.span.si());
  for (const NamedLatency& one : latencies(run.counts))
    json["latency_ms"][one.key] = latency_json(one.histogram);
  json["latency_ms"]["session"] = latency_json(run.session_time);
  json["throughput"] = {
      {"turns_per_s", rounded(run.turns_per_s())},
      {"total_tokens_per_s_per_gpu", rounded(run.total_tokens_per_s_per_gpu())},
      {"computed_tokens_per_s_per_gpu", rounded(run.computed_tokens_per_s_per_gpu())},
      {"prompt_tokens", totals.prompt_tokens},
      {"output_tokens", totals.output_tokens}};
  json["kv"] = {{"hit_share", rounded(run.hit_share())},
                {"ideal_hit_share", rounded(run.ideal_hit_share())},
                {"bound_of_hit_share", rounded(run.bound_of_hits())},
                {"mean_share", rounded(totals.mean_kv_share())},
                {"peak_share", rounded(totals.kv_peak)},
                {"preemptions", totals.preemptions}};
  if (run.setup.deployment.has_kv_tiers()) json["kv"]["tiers"] = tiers_json(run.tiers());
  json["imbalance"] = rounded(run.imbalance());
  json["slo"] = nullptr;
  if (answer.slo)
    json["slo"] = {{"text", slo_text(*answer.slo)}, {"attainment", rounded(run.slo_share())}};
  if (answer.lanes_tried) json["lanes_tried"] = *answer.lanes_tried;
  const Range rent = rent_of(answer);
  for (const Price& price : prices_of(run, load.trace)) {
    const Range each = price.count > 0.0 ? rent * (1.0 / price.count) : Range{};
    json["cost"][price.key] = rent.known() && price.count > 0.0
                                  ? Json{{"low", rounded(each.low)}, {"high", rounded(each.high)}}
                                  : Json(nullptr);
  }
  json["events"] = totals.events;
  json["iterations"] = totals.iterations;
  if (wall_s >= 0.0) json["simulation_wall_s"] = wall_s;
  return json.dump(2) + "\n";
}

std::string turn_lines(const SessionAnswer& answer) {
  const SessionRun& run = answer.run;
  std::string text;
  for (const RequestTimes& of : run.times) {
    const SessionSource::Origin& origin = run.origins[of.request];
    const Turn& turn = answer.load.trace.turns[origin.turn];
    const Request& request = answer.load.trace.list.requests[turn.request];
    text += Json{{"request", of.request},
                 {"session", origin.instance},
                 {"turn", origin.turn},
                 {"sub_agent", turn.by_sub_agent},
                 {"counted", origin.counts},
                 {"replica", run.replica_of[of.request]},
                 {"input", request.prompt_tokens},
                 {"output", request.output_tokens},
                 {"sent_s", rounded(of.arrival.si())},
                 {"queue_ms", milliseconds(of.queue)},
                 {"ttft_ms", milliseconds(of.ttft)},
                 {"tpot_ms", milliseconds(of.tpot)},
                 {"e2e_ms", milliseconds(of.e2e)},
                 {"prefix_hit_tokens", of.prefix_hits},
                 {"tier_hit_tokens", of.tier_hits},
                 {"known_tokens", turn.known},
                 {"preemptions", of.preemptions}}
                .dump() +
            "\n";
  }
  return text;
}

}  // namespace orrery
