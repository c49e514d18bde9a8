#include "sim/fleet/session_run.hpp"
#include "sim/formats/requests/read_requests.hpp"
#include "sim/formats/requests/session_files.hpp"
#include "sim/serving/replay_requests.hpp"
#include "sim/serving/request.hpp"
#include "sim/serving/request_traffic.hpp"
#include "tests/fuzz/entry_groups.hpp"
#include "tests/fuzz/fuzz_checks.hpp"

namespace orrery {
namespace {

StepCosts quick_costs() {
  StepCosts costs;
  costs.dense = [](double tokens) { return Seconds{1e-3 + 1e-6 * tokens}; };
  costs.decode_attention = [](double, double context) { return Seconds{1e-9 * context}; };
  costs.prefill_attention = [](double tokens, double) { return Seconds{1e-7 * tokens}; };
  costs.head = costs.host = costs.gap = [](double) { return Seconds{}; };
  return costs;
}

// An accepted trace is in order, and every scheduler answers all of it.
bool fuzz_request_trace(const std::string& text) {
  return is_accepted([&] {
    RequestTrace trace = parse_request_trace(text, "fuzz", {});
    Seconds before;
    for (const Request& request : trace.list.requests) {
      if (!(request.arrival >= before) || request.prompt_tokens < 1 || request.output_tokens < 1 ||
          request.first_hash + request.hashes > trace.list.hashes.size())
        __builtin_trap();
      before = request.arrival;
    }
    if (trace.list.requests.size() > 200) return;
    ReplayShape shape;
    shape.replica.kv = {20'000, 16, true};
    for (Request& request : trace.list.requests) {
      request.prompt_tokens = std::min(request.prompt_tokens, 9'000u);
      request.output_tokens = std::min(request.output_tokens, 500u);
    }
    for (const SchedulerKind* scheduling : schedulers()) {
      shape.replica.rules.scheduler = scheduling;
      const ReplayTotals totals = replay_requests(trace.list, shape, quick_costs()).counts.totals;
      if (totals.finished != static_cast<std::int64_t>(trace.list.requests.size()) ||
          totals.kv_peak > 1.0)
        __builtin_trap();
    }
  });
}

// Distributions of traffic as flags give them. An accepted one can be sampled.
bool fuzz_traffic(const std::string& text) {
  RequestTraffic traffic;
  traffic.requests = 20;
  traffic.rate = 1.0;
  bool any = is_accepted([&] {
    traffic.prompt = parse_length_distribution(text, nowhere);
    if (parse_length_distribution(length_distribution_text(traffic.prompt), nowhere) !=
        traffic.prompt)
      __builtin_trap();
  });
  any |= is_accepted([&] { parse_arrivals(text, nowhere, traffic); });
  any |= is_accepted([&] { traffic.prefix = parse_shared_prefix(text, nowhere); });
  any |= is_accepted([&] {
    if (!(parse_slo(text, nowhere).share > 0.0)) __builtin_trap();
  });
  any |= is_accepted([&] { traffic.classes.push_back(parse_traffic_class(text, nowhere)); });
  any |= is_accepted([&] {
    const std::vector<KvTier> tiers = parse_kv_tiers(text, nowhere);
    if (kv_tiers_text(parse_kv_tiers(kv_tiers_text(tiers), nowhere)) != kv_tiers_text(tiers))
      __builtin_trap();
  });
  any |= is_accepted([&] {
    Routing routing{};
    RouterWeights weights;
    parse_routing(text, nowhere, routing, weights);
  });
  Seconds before;
  for (const Request& request : sample_requests(traffic).requests) {
    if (!(request.arrival >= before) || request.prompt_tokens < 1) __builtin_trap();
    before = request.arrival;
  }
  return any;
}

// Turns of accepted sessions wait for earlier ones alone; all of them are answered, and hits are
// within what the session had before.
bool fuzz_sessions(const std::string& text) {
  return is_accepted([&] {
    SessionLoad load;
    load.trace = parse_sessions(text, "fuzz", "");
    const SessionTrace& trace = load.trace;
    for (std::uint32_t i = 0; i < trace.turns.size(); ++i) {
      const Request& request = trace.list.requests[trace.turns[i].request];
      if (request.prompt_tokens < 1 || request.output_tokens < 1 ||
          std::max(request.hashes, request.kept_hashes) + request.first_hash >
              trace.list.hashes.size())
        __builtin_trap();
      for (const Follower& next : trace.followers_of(trace.turns[i]))
        if (next.turn <= i || !(next.wait >= Seconds{})) __builtin_trap();
    }
    if (!(ideal_hit_share(trace) <= 1.0)) __builtin_trap();
    cut_long_sessions(5'000, load.trace);
    if (trace.sessions.empty() || trace.turns.size() > 100) return;
    ReplayShape shape;
    shape.replica.kv = {20'000, 16, true, {30'000, 60'000}, true, true};
    shape.replica.rules.load_token = Seconds{1e-6};
    shape.replica.rules.tiers[1] = {Seconds{1e-6}, Seconds{1e-3}};
    shape.replica.replay.routing = Routing::session;
    shape.replicas = 2;
    load.lanes = 2;
    load.longest_wait = Seconds{1.0};
    load.duration = Seconds{20.0};
    StepTimes times{quick_costs()};
    SessionRun run;
    replay_sessions(load, shape, times, run);
    if (run.counts.totals.finished != run.sent || run.hit_share() > 1.0) __builtin_trap();
  });
}

// A load by time, and scalers as flags give them.
bool fuzz_scaled_load(const std::string& text) {
  const bool load = is_accepted([&] {
    const LoadCurve curve = parse_load_curve(text, "fuzz");
    if (!(curve.requests() > 0.0) || curve.most(Seconds{}, curve.end) <= 0.0) __builtin_trap();
  });
  return is_accepted([&] {
           const ScalerRequest scaler = parse_scaler(text, nowhere);
           if (scaler.least > scaler.most ||
               parse_scaler(scaler_text(scaler), nowhere).law != scaler.law)
             __builtin_trap();
         }) ||
         load;
}

}  // namespace

std::vector<EntryPoint> request_entries() {
  using enum Shape;
  return {{"request_trace", fuzz_request_trace, bytes, true},
          {"traffic", fuzz_traffic, bytes},
          {"sessions", fuzz_sessions, lines},
          {"scaled_load", fuzz_scaled_load, bytes}};
}

}  // namespace orrery
