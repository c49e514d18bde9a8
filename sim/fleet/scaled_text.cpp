#include <algorithm>
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

// GPU hours that a fleet of this capacity cannot do without.
double least_gpu_hours(const ScaledAnswer& answer) {
  return least_replica_seconds(answer.curve, answer.capacity).si() / 3600.0 *
         answer.runs.front().gpus_a_replica();
}

std::string minutes(Seconds time) { return fixed(time.si() / 60.0, 1); }

std::string table_of_policies(const ScaledAnswer& answer) {
  Table table{{{"policy", Align::left},
               {"GPU h"},
               {"replicas"},
               {"in limits"},
               {"TTFT p50"},
               {"p90"},
               {"changes"}}};
  for (std::size_t i = 0; i < answer.runs.size(); ++i) {
    const ScaledRun& run = answer.runs[i];
    const PolicySamples& samples = answer.samples[i];
    const auto [low, high] =
        std::minmax_element(samples.attainment.begin(), samples.attainment.end());
    std::string within = answer.has_limits() ? percent(mean_of(samples.attainment)) : "-";
    if (answer.has_limits() && samples.attainment.size() > 1)
      within += " (" + fixed(100.0 * *low, 1) + " .. " + fixed(100.0 * *high, 1) + ")";
    table.add_row({scaler_text(run.scaler), fixed(mean_of(samples.gpu_hours), 2),
                   fixed(mean_of(samples.replicas), 2), within,
                   fixed(samples.counts.ttft.percentile(0.5).si() * 1e3, 0),
                   fixed(samples.counts.ttft.percentile(0.9).si() * 1e3, 0),
                   fixed(mean_of(samples.changes), 0)});
  }
  return table.text();
}

// The policy with the fewest GPU hours, and those that may be as good.
std::string best_text(const ScaledAnswer& answer) {
  if (!answer.slo || answer.runs.size() < 2) return "";
  std::vector<ScalerRequest> policies;
  for (const ScaledRun& run : answer.runs) policies.push_back(run.scaler);
  const BestPolicy best = best_policy(policies, answer.samples, answer.slo->share);
  const std::string share = percent(answer.slo->share) + " of the requests within the limits";
  if (!best.best) return "No policy keeps " + share + "\n";
  std::string text =
      "The fewest GPU hours that keep " + share + ": " + scaler_text(policies[*best.best]);
  for (const std::size_t tie : best.ties)
    text += (tie == best.ties.front() ? "; as good: " : ", ") + scaler_text(policies[tie]);
  return wrapped_words("", text, text_columns);
}

std::string timeline_text(const ScaledRun& run, bool has_limits) {
  Table table{
      {{"minute"}, {"requests/s"}, {"ready"}, {"starting"}, {"draining"}, {"within limits"}}};
  const std::size_t every = std::max<std::size_t>(1, run.timeline.size() / 24);
  for (std::size_t i = 0; i < run.timeline.size(); i += every) {
    const FleetMoment& of = run.timeline[i];
    table.add_row({minutes(of.time), fixed(of.rate, 2), std::to_string(of.ready),
                   std::to_string(of.starting), std::to_string(of.draining),
                   has_limits ? percent(of.attainment) : "-"});
  }
  return table.text();
}

std::string decisions_text(const ScaledRun& run) {
  constexpr std::size_t most = 40;
  std::string text;
  for (std::size_t i = 0; i < std::min(most, run.decisions.size()); ++i) {
    const ScalingDecision& of = run.decisions[i];
    text += "  " + minutes(of.time) + " min  " + std::to_string(of.from) + " -> " +
            std::to_string(of.to) + "  " + of.why + "\n";
  }
  if (run.decisions.size() > most)
    text += "  and " + std::to_string(run.decisions.size() - most) + " more\n";
  return text.empty() ? "" : "Decisions\n" + text;
}

}  // namespace

std::string scaled_text(const ScaledAnswer& answer) {
  const ScaledRun& first = answer.runs.front();
  std::string text =
      first.setup.model.name + " on " + first.setup.system.name + "\n" +
      deployment_text(first.setup) + "\n" +
      wrapped_words("",
                    plural(answer.requests, "request") + " of " +
                        length_distribution_text(answer.traffic.prompt) +
                        " tokens, answered with " +
                        length_distribution_text(answer.traffic.output) + ", over the " +
                        minutes(answer.curve.end) + " minutes of " + answer.file +
                        "; a replica takes " + fixed(answer.start.si(), 0) + " s to start",
                    text_columns) +
      "\n" + table_of_policies(answer);
  text += best_text(answer);
  for (const ScaledRun& run : answer.runs)
    if (!run.classes.empty())
      text += "\n" + scaler_text(run.scaler) + "\n" + class_table(run.classes);
  if (answer.capacity > 0.0)
    text += "At " + fixed(answer.capacity, 3) +
            " requests a second a replica, whole replicas that follow the load exactly\ntake " +
            fixed(least_gpu_hours(answer), 2) + " GPU hours\n";
  if (answer.runs.size() == 1) {
    const PolicySamples& draws = answer.samples.front();
    text += "Of the GPU hours " + fixed(mean_of(draws.starting), 2) +
            " are of replicas that start and " + fixed(mean_of(draws.draining), 2) +
            " of those that drain;\nat most " + plural(first.longest_queue, "request") +
            " waited at a decision" +
            (draws.gpu_hours.size() > 1 ? " of the first draw, whose decisions follow" : "") +
            "\n\n" + timeline_text(first, answer.has_limits()) + "\n" + decisions_text(first);
    if (const Range rent = answer.economics.rent_usd_per_gpu_hour * mean_of(draws.gpu_hours);
        rent.known())
      text += "$" + fixed(rent.low, 2) + " .. " + fixed(rent.high, 2) + " for all, $" +
              fixed(rent.low / static_cast<double>(answer.requests) * 1e3, 3) + " .. " +
              fixed(rent.high / static_cast<double>(answer.requests) * 1e3, 3) +
              " a thousand requests\n";
  }
  return text;
}

std::string scaled_json(const ScaledAnswer& answer, double wall_s) {
  const ScaledRun& first = answer.runs.front();
  Json json = serving_head_json(first.setup, first.kv);
  json["schema"] = "orrery.fleet/1";
  json["workload"] = {{"file", answer.file},
                      {"requests", answer.requests},
                      {"isl", length_distribution_text(answer.traffic.prompt)},
                      {"osl", length_distribution_text(answer.traffic.output)},
                      {"duration_s", rounded(answer.curve.end.si())},
                      {"seed", answer.traffic.seed}};
  json["slo"] = answer.slo ? Json(slo_text(*answer.slo)) : Json(nullptr);
  json["start_s"] = rounded(answer.start.si());
  json["capacity_requests_per_s"] =
      answer.capacity > 0.0 ? Json(rounded(answer.capacity)) : Json(nullptr);
  json["least_gpu_hours"] =
      answer.capacity > 0.0 ? Json(rounded(least_gpu_hours(answer))) : Json(nullptr);
  for (std::size_t i = 0; i < answer.runs.size(); ++i) {
    const ScaledRun& run = answer.runs[i];
    const PolicySamples& draws = answer.samples[i];
    const auto mean = [](const std::vector<double>& of) { return rounded(mean_of(of)); };
    Json policy{{"policy", scaler_text(run.scaler)},
                {"gpu_hours",
                 {{"all", mean(draws.gpu_hours)},
                  {"serving", mean(draws.serving)},
                  {"starting", mean(draws.starting)},
                  {"draining", mean(draws.draining)}}},
                {"mean_replicas", mean(draws.replicas)},
                {"attainment", answer.has_limits() ? Json(mean(draws.attainment)) : Json(nullptr)},
                {"span_s", rounded(run.span.si())},
                {"requests_finished", draws.counts.totals.finished},
                {"longest_queue", run.longest_queue}};
    policy["draws"] = {{"gpu_hours", draws.gpu_hours}, {"replicas", draws.replicas}};
    if (answer.has_limits()) policy["draws"]["attainment"] = draws.attainment;
    policy["latency_ms"] = {{"ttft", latency_json(draws.counts.ttft)},
                            {"tpot", latency_json(draws.counts.tpot)},
                            {"e2e", latency_json(draws.counts.e2e)}};
    if (!run.classes.empty()) policy["classes"] = classes_json(run.classes);
    policy["decisions"] = Json::array();
    for (const ScalingDecision& of : run.decisions)
      policy["decisions"].push_back(
          {{"t", rounded(of.time.si())}, {"from", of.from}, {"to", of.to}, {"why", of.why}});
    policy["timeline"] = Json::array();
    for (const FleetMoment& of : run.timeline)
      policy["timeline"].push_back(
          {{"t", rounded(of.time.si())},
           {"requests_per_s", rounded(of.rate)},
           {"ready", of.ready},
           {"starting", of.starting},
           {"draining", of.draining},
           {"attainment", answer.has_limits() ? Json(rounded(of.attainment)) : Json(nullptr)}});
    json["policies"].push_back(policy);
  }
  if (wall_s >= 0.0) json["simulation_wall_s"] = wall_s;
  return json.dump(2) + "\n";
}

}  // namespace orrery
