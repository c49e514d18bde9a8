#include <algorithm>
#include <map>
#include <string>

#include "sim/core/catalog.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/progress.hpp"
#include "sim/fleet/scaled_run.hpp"
#include "sim/fleet/session_run.hpp"
#include "sim/validation/validate_kinds.hpp"

namespace orrery {
namespace {

using Quantities = std::map<std::string, double>;

constexpr std::int64_t most_gpus_of_a_fleet = 1 << 16;
constexpr double longest_stage = 1e6, most_rate_of_a_load = 1e5;
constexpr std::uint32_t sessions_of_case = 400;

ServingSetup setup_of(const JsonValue& fleet) {
  DeploymentRequest request;
  if (const auto deployment = fleet.find("deployment")) read_deployment(request, *deployment);
  return make_serving_setup(
      fleet.at("model").text(), relative_to_file(fleet.at("system").text(), fleet.place()),
      fleet.at("engine").text(), request,
      static_cast<int>(fleet.at("gpus").integer(1, most_gpus_of_a_fleet)), fleet.place());
}

ServingLoad rules_of(const JsonValue& fleet) {
  ServingLoad load;
  load.prefix_cache = true;
  if (const auto router = fleet.find("router"))
    parse_routing(router->text(), router->place(), load.replay.routing, load.replay.router_weights);
  if (const auto slo = fleet.find("slo")) load.replay.slo = parse_slo(slo->text(), slo->place());
  return load;
}

Seconds span_at(const JsonValue& json, const char* key, Seconds otherwise) {
  const auto span = json.find(key);
  return span ? parse_span(span->text(), span->place()) : otherwise;
}

// A day's load on a fleet that scales: means over so many samples of its arrivals, of which one
// decides much where the load meets the capacity of the replicas.
Quantities of_load(const JsonValue& fleet, const JsonValue& json) {
  json.allow_only(
      {"stages", "isl", "osl", "between_stages", "start", "scaler", "initial", "window", "seeds"});
  ScaledLoad load;
  Seconds at;
  for (const JsonValue& stage : json.at("stages").elements()) {
    const std::vector<JsonValue> cells = stage.elements();
    if (cells.size() != 2) stage.fail("is no pair", "give requests a second, and seconds");
    load.curve.stages.push_back({at, cells[0].number(0.0, most_rate_of_a_load)});
    at += Seconds{cells[1].number(1.0, longest_stage)};
  }
  load.curve.end = at;
  const JsonValue scaler = json.at("scaler");
  load.scaler = parse_scaler(scaler.text(), scaler.place());
  load.initial = static_cast<int>(json.at("initial").integer(1, most_gpus_of_a_fleet));
  const PricedServing priced{setup_of(fleet)};
  load.start = span_at(json, "start", start_time(priced.setup, ReplicaStart::cold));
  if (json.has("between_stages")) load.between_stages = span_at(json, "between_stages", {});
  RequestTraffic traffic;
  traffic.prompt = parse_length_distribution(json.at("isl").text(), json.at("isl").place());
  traffic.output = parse_length_distribution(json.at("osl").text(), json.at("osl").place());
  const std::int64_t seeds = json.at("seeds").integer(1, 100);
  Quantities sums;
  for (std::int64_t seed = 1; seed <= seeds; ++seed) {
    traffic.seed = static_cast<std::uint64_t>(seed);
    const ScaledRun run = serve_scaled(priced, load, requests_of_curve(load.curve, false, traffic),
                                       rules_of(fleet), fleet.place());
    const double each = 1.0 / static_cast<double>(seeds);
    sums["attainment"] += each * run.attainment();
    sums["mean_replicas"] += each * run.mean_replicas(span_at(json, "window", run.span));
  }
  return sums;
}

Quantities of_sessions(const JsonValue& fleet, const JsonValue& json) {
  json.allow_only(
      {"profile", "lanes", "duration", "longest_wait", "warm_turns", "longest_context"});
  const JsonValue name = json.at("profile");
  const SessionProfile* profile = session_profile(name.text());
  if (!profile) name.fail("is no profile of sessions", "write claude-code or codex");
  SessionLoad load;
  load.file = profile->name;
  load.trace = draw_sessions(*profile, sessions_of_case,
                             json.at("longest_context").integer(1, most_request_tokens), 1);
  load.lanes = static_cast<std::uint32_t>(json.at("lanes").integer(1, 1 << 16));
  load.duration = span_at(json, "duration", load.duration);
  load.longest_wait = span_at(json, "longest_wait", load.longest_wait);
  load.warm_turns = static_cast<std::uint32_t>(json.at("warm_turns").integer(0, 1000));
  load.start_low = 0.25, load.start_high = 0.75;
  const PricedServing priced{setup_of(fleet)};
  const SessionRun run = serve_sessions(priced, load, rules_of(fleet), fleet.place());
  const ReplayCounts& counts = run.counts;
  const auto ms = [](const LatencyHistogram& of, double share) {
    return of.percentile(share).si() * 1e3;
  };
  return {{"gpu_hit_share", run.hit_share()},
          {"total_tokens_per_s_per_gpu", run.total_tokens_per_s_per_gpu()},
          {"output_tokens_per_s_per_gpu", static_cast<double>(counts.totals.output_tokens) /
                                              run.span.si() / static_cast<double>(run.gpus())},
          {"ttft_p50_ms", ms(counts.ttft, 0.5)},
          {"ttft_p90_ms", ms(counts.ttft, 0.9)},
          {"tpot_p50_ms", ms(counts.tpot, 0.5)},
          {"tpot_p90_ms", ms(counts.tpot, 0.9)},
          {"e2e_p90_ms", ms(counts.e2e, 0.9)}};
}

// Requests to a fixed fleet with memories behind the GPUs', and the same without them: what they
// are worth.
Quantities of_tiers(const JsonValue& fleet, const JsonValue& json) {
  json.allow_only({"isl", "osl", "groups", "prefix", "clients", "requests"});
  const auto count = [&](const char* key) { return json.at(key).integer(1, 10'000'000); };
  ServingLoad load = rules_of(fleet);
  RequestTraffic& traffic = load.traffic;
  const auto length = [&](const char* key) {
    const auto tokens = static_cast<double>(count(key));
    return LengthDistribution{LengthDistribution::Kind::fixed, tokens, tokens, 0.0};
  };
  traffic.prompt = length("isl");
  traffic.output = length("osl");
  traffic.prefix.groups = static_cast<std::uint32_t>(count("groups"));
  traffic.prefix.group_tokens = static_cast<std::uint32_t>(count("prefix"));
  traffic.concurrency = static_cast<int>(count("clients"));
  // The publication's servers were warm: as many requests come before.
  traffic.requests = 2 * count("requests");
  load.part = MeasuredPart::steady;
  load.skipped = count("requests");
  load.list = sample_requests(traffic);
  ServingSetup with = setup_of(fleet);
  ServingSetup without = with;
  without.deployment.host_kv = Bytes{};
  without.deployment.kv_tiers.clear();
  const auto run_of = [&](const ServingSetup& setup) {
    return serve_requests(PricedServing{setup}, load, fleet.place());
  };
  const ServingRun more = run_of(with), less = run_of(without);
  const auto mean = [](const LatencyHistogram& of) { return of.mean().si() * 1e3; };
  return {{"throughput_ratio", more.total_tokens_per_s() / less.total_tokens_per_s()},
          {"total_tokens_per_s", more.total_tokens_per_s()},
          {"total_tokens_per_s_without", less.total_tokens_per_s()},
          {"ttft_ms", mean(more.replay.counts.ttft)},
          {"ttft_ms_without", mean(less.replay.counts.ttft)},
          {"e2e_ms", mean(more.replay.counts.e2e)},
          {"e2e_ms_without", mean(less.replay.counts.e2e)}};
}

Quantities of_transfer(const JsonValue& fleet, const JsonValue& json) {
  json.allow_only({"tokens", "prefill", "decode"});
  PoolsRequest request;
  read_deployment(request.prefill, json.at("prefill"));
  read_deployment(request.decode, json.at("decode"));
  const PricedPools pools = price_pools(
      fleet.at("model").text(), relative_to_file(fleet.at("system").text(), fleet.place()),
      fleet.at("engine").text(), request, fleet.place(), fleet.place(), fleet.place());
  const auto tokens = json.at("tokens").integer(1, most_request_tokens);
  return {{"transfer_ms", isolated_transfer(pools, tokens).time.si() * 1e3}};
}

Quantities predict(const JsonValue& fleet) {
  fleet.allow_only({"model", "system", "gpus", "engine", "deployment", "router", "slo", "load",
                    "sessions", "tiers", "transfer", "start"});
  if (const auto load = fleet.find("load")) return of_load(fleet, *load);
  if (const auto sessions = fleet.find("sessions")) return of_sessions(fleet, *sessions);
  if (const auto tiers = fleet.find("tiers")) return of_tiers(fleet, *tiers);
  if (const auto transfer = fleet.find("transfer")) return of_transfer(fleet, *transfer);
  const JsonValue start = fleet.at("start");
  return {{"start_s", start_time(setup_of(fleet), choice<ReplicaStart>(start)).si()}};
}

}  // namespace

bool is_fleet_case(const JsonValue& entry) { return entry.is_object() && entry.has("fleet"); }

void compare_fleets(const JsonValue& json, ValidationReport& report) {
  const std::vector<JsonValue> entries = json.elements();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    ProgressListener::report({Progress::Of::cases, i, entries.size()});
    const JsonValue& entry = entries[i];
    entry.allow_only({"id", "source", "fleet", "measured", "notes"});
    const std::string id = entry.at("id").text();
    try {
      const Quantities predicted = predict(entry.at("fleet"));
      const JsonValue measured = entry.at("measured");
      for (const std::string& quantity : measured.keys()) {
        const auto found = predicted.find(quantity);
        if (found == predicted.end())
          measured.at(quantity).fail("is not predicted", "leave it out");
        Comparison row{id, quantity, measured.at(quantity).number(1e-9, 1e12), found->second, {}};
        row.publication = entry.at("source").at("title").text();
        report.comparisons.push_back(row);
      }
    } catch (const Error& error) {
      report.refusals.push_back({id, error.what()});
    }
  }
}

}  // namespace orrery
