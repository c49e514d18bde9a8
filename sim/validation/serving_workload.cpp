#include "sim/validation/serving_workload.hpp"

#include <cmath>

#include "sim/serving/request_traffic.hpp"

namespace orrery {
namespace {

constexpr std::int64_t most_requests = 10'000'000;
constexpr std::int64_t requests_a_client = 10;
constexpr double most_in_a_row = 1e12;

// ShareGPT's prompts and answers are as spread as they are long: their standard deviation is taken
// for their mean, of which publications give no more. Ten bursts of 1,000 requests to DeepSeek-V3.2
// (GPUStack) last within 20 % of the predicted time then, and 2.1 to 2.6 times as long if all
// requests have the mean lengths: they end with their longest answer.
constexpr double chat_sigma = 0.8326;  // sqrt(ln 2)
bool is_of_chats(const JsonValue& workload) {
  const auto set = workload.find("dataset");
  return set && set->is_string() && set->text() == "sharegpt";
}

// Lengths under the key "isl" or "osl": constant, or uniform from that with "_low" to that with
// "_high", beside which the key itself is the mean; without "_high" it is the upper limit. Lengths
// of data sets are known by their mean, which may be no whole number.
LengthDistribution lengths(const JsonValue& workload, const std::string& key) {
  const auto length = [&](const std::string& limit) {
    return std::max(1.0, std::floor(workload.at(limit).number(0.0, most_request_tokens) + 0.5));
  };
  const std::string low = key + "_low", high = key + "_high";
  LengthDistribution law;
  law.low = law.high = length(workload.has(high) ? high : key);
  if (is_of_chats(workload)) {
    law.kind = LengthDistribution::Kind::lognormal;
    law.sigma = chat_sigma;
    law.low = std::max(1.0, law.low * std::exp(-0.5 * chat_sigma * chat_sigma));
    return law;
  }
  if (workload.has(low) && workload.at(low).number(0.0, law.high) < law.high) {
    law.kind = LengthDistribution::Kind::uniform;
    law.low = length(low);
  }
  return law;
}

SharedPrefix prefix_of(const JsonValue& json) {
  const auto count = [&](const char* key) {
    return static_cast<std::uint32_t>(json.at(key).integer(0, most_request_tokens));
  };
  // A file with only the number of prompts has no shared prefixes.
  if (json.has("prompts")) return {count("prompts"), count("system_prompt"), 1, count("question")};
  return {count("groups"), count("system_prompt"), count("users_per_group"), count("question")};
}

RequestList rows_of(const JsonValue& workload) {
  RequestList list;
  for (const JsonValue& row : workload.at("trace").elements()) {
    const std::vector<JsonValue> cells = row.elements();
    if (cells.size() < 3) row.fail("has fewer than three cells", "give arrival, input, output");
    Request request;
    request.arrival = Seconds{cells[0].number(0.0, most_in_a_row)};
    request.prompt_tokens = static_cast<std::uint32_t>(cells[1].integer(1, most_request_tokens));
    request.output_tokens = static_cast<std::uint32_t>(cells[2].integer(1, most_request_tokens));
    list.requests.push_back(request);
  }
  if (list.requests.empty()) workload.at("trace").fail("is empty", "give a row a request");
  return list;
}

void set_requests(const JsonValue& workload, const std::string& arrival, RequestTraffic& traffic) {
  const auto whole = [&](const char* key) { return workload.at(key).integer(1, most_requests); };
  if (arrival == "closed") {
    traffic.concurrency = static_cast<int>(whole("concurrency"));
    traffic.requests =
        workload.has("requests") ? whole("requests") : requests_a_client * traffic.concurrency;
  } else if (arrival == "constant" || arrival == "poisson" || arrival == "gamma") {
    traffic.arrivals = arrival == "constant"  ? Arrivals::constant
                       : arrival == "poisson" ? Arrivals::poisson
                                              : Arrivals::gamma;
    if (arrival == "gamma") traffic.variation = workload.at("cv").number(1e-3, 1e3);
    traffic.rate = workload.at("rate").number(1e-6, 1e6);
    // A stage of inference-perf is a minute or more.
    constexpr double usual_seconds = 60.0;
    const double seconds =
        workload.has("duration_s") ? workload.at("duration_s").number(1.0, 1e7) : usual_seconds;
    traffic.requests = workload.has("requests")
                           ? whole("requests")
                           : std::max<std::int64_t>(1, std::llround(traffic.rate * seconds));
  } else if (arrival == "burst" || arrival == "static" || arrival == "offline") {
    traffic.arrivals = Arrivals::burst;
    traffic.requests = whole(workload.has("batch") ? "batch" : "requests");
  } else {
    fail_infeasible(workload.place(), "'" + shown_text(arrival) + "' is not replayed",
                    "give closed, constant, poisson, gamma, burst, static or trace");
  }
}

void percentiles(const std::string& name, const LatencyHistogram& histogram,
                 std::map<std::string, double>& quantities) {
  quantities[name + "_ms"] = histogram.mean().si() * 1e3;
  for (const int percent : {50, 90, 95, 99})
    quantities[name + "_p" + std::to_string(percent) + "_ms"] =
        histogram.percentile(percent / 100.0).si() * 1e3;
}

}  // namespace

ServingLoad load_of_case(const JsonValue& workload, const JsonValue* serving) {
  const std::string arrival = workload.at("arrival").text();
  ServingLoad load;
  load.over_network = arrival != "static" && arrival != "offline";
  load.prefix_cache =
      !serving || !serving->has("prefix_caching") || serving->at("prefix_caching").boolean();
  if (arrival == "trace") {
    load.list = rows_of(workload);
    load.replay.keeps_times = true;
    return load;
  }
  RequestTraffic& traffic = load.traffic;
  set_requests(workload, arrival, traffic);
  traffic.prompt = lengths(workload, "isl");
  traffic.output = lengths(workload, "osl");
  if (const auto prefix = workload.find("shared_prefix")) traffic.prefix = prefix_of(*prefix);
  load.list = sample_requests(traffic);
  return load;
}

std::map<std::string, double> quantities_of(const ServingRun& run) {
  const ReplayCounts& counts = run.replay.counts;
  std::map<std::string, double> quantities;
  percentiles("ttft", counts.ttft, quantities);
  if (counts.tpot.count() > 0) percentiles("tpot", counts.tpot, quantities);
  if (counts.itl.count() > 0) percentiles("itl", counts.itl, quantities);
  percentiles("e2e", counts.e2e, quantities);
  const auto gpus = static_cast<double>(run.gpus());
  for (const auto& [name, value] : {std::pair{"output_tokens_per_s", run.output_tokens_per_s()},
                                    {"total_tokens_per_s", run.total_tokens_per_s()}}) {
    quantities[name] = value;
    quantities[name + std::string{"_per_gpu"}] = value / gpus;
  }
  quantities["requests_per_s"] = run.requests_per_s();
  quantities["duration_s"] = run.span().si();
  return quantities;
}

const std::set<std::string>& client_quantities() {
  static const std::set<std::string> names = [] {
    std::set<std::string> all{"output_tokens_per_s", "output_tokens_per_s_per_gpu",
                              "total_tokens_per_s",  "total_tokens_per_s_per_gpu",
                              "requests_per_s",      "duration_s"};
    for (const std::string name : {"ttft", "tpot", "itl", "e2e"})
      for (const char* of : {"_ms", "_p50_ms", "_p90_ms", "_p95_ms", "_p99_ms"})
        all.insert(name + of);
    return all;
  }();
  return names;
}

std::map<std::string, RequestErrors> request_errors(const JsonValue& workload,
                                                    const ServingRun& run) {
  std::map<std::string, RequestErrors> errors;
  if (!workload.has("trace_columns")) return errors;
  const std::vector<JsonValue> names = workload.at("trace_columns").elements();
  const std::vector<JsonValue> rows = workload.at("trace").elements();
  const auto add = [&](const std::string& column, const char* quantity, auto&& predicted) {
    for (std::size_t at = 0; at < names.size(); ++at) {
      if (names[at].text() != column) continue;
      RequestErrors& sum = errors[quantity];
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const double measured = rows[i].elements().at(at).number(0.0, most_in_a_row);
        if (!(measured > 0.0)) continue;
        const double ours = predicted(run.replay.times.at(i)).si() * 1e3;
        ++sum.count;
        sum.mean_abs += std::abs(ours / measured - 1.0);
        sum.mean += ours / measured - 1.0;
        sum.measured_ms += measured;
        sum.predicted_ms += ours;
      }
      if (sum.count == 0) continue;
      for (double* figure : {&sum.mean_abs, &sum.mean, &sum.measured_ms, &sum.predicted_ms})
        *figure /= sum.count;
    }
  };
  add("measured_ttft_ms", "request_ttft_ms", [](const RequestTimes& of) { return of.ttft; });
  add("measured_e2e_ms", "request_e2e_ms", [](const RequestTimes& of) { return of.e2e; });
  return errors;
}

}  // namespace orrery
