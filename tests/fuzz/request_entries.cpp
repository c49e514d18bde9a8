#include "sim/formats/requests/read_requests.hpp"
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
  Seconds before;
  for (const Request& request : sample_requests(traffic).requests) {
    if (!(request.arrival >= before) || request.prompt_tokens < 1) __builtin_trap();
    before = request.arrival;
  }
  return any;
}

}  // namespace

std::vector<EntryPoint> request_entries() {
  using enum Shape;
  return {{"request_trace", fuzz_request_trace, bytes, true}, {"traffic", fuzz_traffic, bytes}};
}

}  // namespace orrery
