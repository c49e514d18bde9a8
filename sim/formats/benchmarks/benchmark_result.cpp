#include "sim/formats/benchmarks/benchmark_result.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/core/text_file.hpp"
#include "sim/core/value_list.hpp"
#include "sim/formats/servers/server_reader.hpp"
#include "sim/model/model_name.hpp"
#include "sim/serving/deployment.hpp"

namespace orrery {
namespace {

constexpr double most = 1e12;
constexpr double most_tokens = 1 << 30;

std::optional<double> number(const JsonValue& json, const std::string& key) {
  const auto value = json.find(key);
  if (!value || !value->is_number()) return std::nullopt;
  return value->number(0.0, most);
}

// Uniform lengths of the same mean and deviation as those that were sent.
void take_lengths(const JsonValue& lengths, double& high, std::optional<double>& low) {
  std::vector<double> all;
  for (const JsonValue& one : lengths.elements())
    if (const double length = one.number(0.0, most_tokens); length > 0.0) all.push_back(length);
  if (all.empty()) return;
  const auto count = static_cast<double>(all.size());
  double sum = 0.0, squares = 0.0;
  for (const double one : all) sum += one;
  const double mean = sum / count;
  for (const double one : all) squares += (one - mean) * (one - mean);
  const double half = std::sqrt(3.0 * squares / count);
  high = mean;
  if (half < 0.5) return;
  high = mean + std::min(half, mean - 1.0);
  low = std::max(1.0, mean - half);
}

void take(BenchmarkResult& result, const std::string& quantity, std::optional<double> value,
          double factor = 1.0) {
  if (value && *value > 0.0) result.measured[quantity] = *value * factor;
}

// The object at `key`; nothing: there is none, or another kind of value.
std::optional<JsonValue> object_in(const JsonValue& json, const char* key) {
  const auto found = json.find(key);
  return found && found->is_object() ? found : std::nullopt;
}

void note_failed(BenchmarkResult& result, const std::optional<double>& requests) {
  if (requests && *requests > 0.0)
    result.notes.push_back("requests that failed: " + std::to_string(std::llround(*requests)));
}

// Mean, median and percentiles of a latency; `key` says how the file calls them.
template <class Key>
void take_latency(BenchmarkResult& result, const std::string& ours, const JsonValue& json,
                  double factor, Key key) {
  take(result, ours + "_ms", number(json, key("mean")), factor);
  take(result, ours + "_p50_ms", number(json, key("median")), factor);
  for (const std::string percent : {"p90", "p95", "p99"})
    take(result, ours + "_" + percent + "_ms", number(json, key(percent)), factor);
}

// vllm/benchmarks/serve.py; python/sglang/bench_serving.py, whose e2e is "e2e_latency".
BenchmarkResult of_bench_serve(const JsonValue& json) {
  BenchmarkResult result;
  const bool sglang = json.has("mean_e2e_latency_ms") || json.has("random_range_ratio");
  result.tool = sglang ? "SGLang bench_serving" : "vLLM bench serve";
  result.requests = json.at("completed").integer(1, 1 << 30);
  const auto answered = static_cast<double>(result.requests);
  result.isl = json.at("total_input_tokens").number(1.0, most) / answered;
  result.osl = json.at("total_output_tokens").number(1.0, most) / answered;
  if (json.has("input_lens")) take_lengths(json.at("input_lens"), result.isl, result.isl_low);
  if (json.has("output_lens")) take_lengths(json.at("output_lens"), result.osl, result.osl_low);
  const auto clients = number(json, "max_concurrency");
  const auto rate = number(json, "request_rate");
  if (rate) {
    const double shape = number(json, "burstiness").value_or(1.0);
    result.rate = *rate;
    result.arrival = shape == 1.0 ? "poisson" : "gamma";
    result.cv = shape > 0.0 ? 1.0 / std::sqrt(shape) : 1.0;
    if (clients)
      result.notes.push_back("no more than " + std::to_string(static_cast<int>(*clients)) +
                             " requests were there at once, which is not replayed");
  } else if (clients) {
    result.arrival = "closed";
    result.concurrency = std::llround(std::max(1.0, *clients));
  } else {
    result.arrival = "burst";
    if (json.has("assumed"))
      result.notes.push_back(
          "neither a rate nor a concurrency is printed; assumed: all requests came at once, as is "
          "the default");
  }
  for (const auto& [theirs, ours] : {std::pair<std::string, std::string>{"ttft_ms", "ttft"},
                                     {"tpot_ms", "tpot"},
                                     {"itl_ms", "itl"},
                                     {"e2el_ms", "e2e"},
                                     {"e2e_latency_ms", "e2e"}})
    take_latency(result, ours, json, 1.0,
                 [&suffix = theirs](const std::string& of) { return of + "_" + suffix; });
  take(result, "output_tokens_per_s", number(json, "output_throughput"));
  take(result, "total_tokens_per_s",
       number(json,
              json.has("total_token_throughput") ? "total_token_throughput" : "total_throughput"));
  take(result, "requests_per_s", number(json, "request_throughput"));
  take(result, "duration_s", number(json, "duration"));
  return result;
}

double milliseconds_of(const JsonValue& metric, const char* key = "unit",
                       const char* otherwise = "ms") {
  const std::string unit = metric.has(key) ? metric.at(key).text() : otherwise;
  if (unit == "ms") return 1.0;
  if (unit == "s" || unit == "sec") return 1e3;
  if (unit == "us") return 1e-3;
  if (unit == "ns") return 1e-6;
  metric.at(key).fail("'" + shown_text(unit) + "' is no unit of time", "write ms");
}

// profile_export_aiperf.json, profile_export_genai_perf.json: their inter-token latency is that of
// a request, (e2e - TTFT) / (tokens - 1), which is TPOT here.
BenchmarkResult of_aiperf(const JsonValue& json) {
  BenchmarkResult result;
  result.tool = "AIPerf";
  const auto average = [&](const char* key) -> std::optional<double> {
    const auto metric = object_in(json, key);
    return metric ? number(*metric, "avg") : std::nullopt;
  };
  const auto input = average("input_sequence_length"), output = average("output_sequence_length");
  if (!input || !output)
    json.fail("says no input_sequence_length and output_sequence_length",
              "export all metrics of the run");
  result.isl = *input;
  result.osl = *output;
  result.requests = std::llround(average("request_count").value_or(0.0));
  for (const auto& [theirs, ours] :
       {std::pair<const char*, std::string>{"time_to_first_token", "ttft"},
        {"inter_token_latency", "tpot"},
        {"request_latency", "e2e"}}) {
    if (const auto metric = json.find(theirs))
      take_latency(result, ours, *metric, milliseconds_of(*metric), [](const std::string& of) {
        return of == "mean" ? "avg" : of == "median" ? "p50" : of;
      });
  }
  take(result, "output_tokens_per_s", average("output_token_throughput"));
  take(result, "requests_per_s", average("request_throughput"));
  // "loadgen" of AIPerf, "perf_analyzer.stimulus" of GenAI-Perf.
  std::optional<double> clients, rate;
  if (const auto config = object_in(json, "input_config")) {
    if (const auto load = object_in(*config, "loadgen")) {
      clients = number(*load, "concurrency");
      rate = number(*load, "request_rate");
      if (load->has("request_rate_mode") && rate &&
          load->at("request_rate_mode").text() == "constant")
        result.arrival = "constant";
    }
    if (const auto analyzer = object_in(*config, "perf_analyzer"))
      if (const auto stimulus = object_in(*analyzer, "stimulus")) {
        clients = number(*stimulus, "concurrency");
        rate = number(*stimulus, "request_rate");
      }
  }
  if (rate && *rate > 0.0) {
    result.rate = *rate;
    if (result.arrival.empty()) result.arrival = "poisson";
  } else if (clients && *clients >= 1.0) {
    result.arrival = "closed";
    result.concurrency = std::llround(*clients);
  } else {
    json.fail("says neither a concurrency nor a request rate in its input_config",
              "give the export of a run with --concurrency or --request-rate");
  }
  return result;
}

// stage_N_lifecycle_metrics.json, in seconds.
BenchmarkResult of_inference_perf(const JsonValue& json) {
  BenchmarkResult result;
  result.tool = "inference-perf";
  const JsonValue load = json.at("load_summary"), good = json.at("successes");
  result.requests = good.at("count").integer(1, 1 << 30);
  result.isl = good.at("prompt_len").at("mean").number(1.0, most_tokens);
  result.osl = good.at("output_len").at("mean").number(1.0, most_tokens);
  const auto requested = number(load, "requested_rate"), clients = number(load, "concurrency");
  if (requested && *requested > 0.0) {
    // Its usual load generator sends at even distances.
    result.arrival = "constant";
    result.rate = *requested;
  } else if (clients && *clients >= 1.0) {
    result.arrival = "closed";
    result.concurrency = std::llround(*clients);
  } else {
    load.fail("says no requested_rate", "give a stage's file: stage_0_lifecycle_metrics.json");
  }
  const JsonValue latency = good.at("latency");
  for (const auto& [theirs, ours] :
       {std::pair<const char*, std::string>{"time_to_first_token", "ttft"},
        {"time_per_output_token", "tpot"},
        {"inter_token_latency", "itl"},
        {"request_latency", "e2e"}}) {
    const auto metric = object_in(latency, theirs);
    if (!metric) continue;
    take_latency(result, ours, *metric, 1e3, [&](const std::string& of) {
      return of == "median" && !metric->has(of) ? "p50" : of;
    });
  }
  if (const auto through = object_in(good, "throughput")) {
    take(result, "output_tokens_per_s", number(*through, "output_tokens_per_sec"));
    take(result, "total_tokens_per_s", number(*through, "total_tokens_per_sec"));
    take(result, "requests_per_s", number(*through, "requests_per_sec"));
  }
  if (const auto failed = object_in(json, "failures"))
    note_failed(result, number(*failed, "count"));
  return result;
}

// genai_bench/metrics: a scenario at one concurrency or rate; times are seconds but for
// --metrics-time-unit ms.
BenchmarkResult of_genai_bench(const JsonValue& json) {
  BenchmarkResult result;
  result.tool = "genai-bench";
  const JsonValue all = json.at("aggregated_metrics"), stats = all.at("stats");
  result.requests = all.at("num_completed_requests").integer(1, 1 << 30);
  result.isl = stats.at("num_input_tokens").at("mean").number(1.0, most_tokens);
  result.osl = stats.at("num_output_tokens").at("mean").number(1.0, most_tokens);
  if (const auto rate = number(all, "arrival_requests_per_second"); rate && *rate > 0.0) {
    result.arrival = "poisson";
    result.rate = *rate;
  } else {
    result.arrival = "closed";
    result.concurrency = std::llround(all.at("num_concurrency").number(1.0, most_tokens));
  }
  for (const auto& [theirs, ours] : {std::pair<const char*, std::string>{"ttft", "ttft"},
                                     {"tpot", "tpot"},
                                     {"e2e_latency", "e2e"}})
    if (const auto metric = object_in(stats, theirs))
      take_latency(result, ours, *metric, milliseconds_of(json, "_time_unit", "s"),
                   [](const std::string& of) { return of == "median" ? "p50" : of; });
  take(result, "output_tokens_per_s", number(all, "mean_output_throughput_tokens_per_s"));
  take(result, "total_tokens_per_s", number(all, "mean_total_tokens_throughput_tokens_per_s"));
  take(result, "requests_per_s", number(all, "requests_per_second"));
  note_failed(result, number(all, "num_error_requests"));
  return result;
}

// tensorrt_llm/bench/dataclasses/reporting.py. It does not say --concurrency: but if requests came
// all at once, which is the default, one of them took as long as the run.
BenchmarkResult of_trtllm_bench(const JsonValue& json) {
  BenchmarkResult result;
  result.tool = "trtllm-bench";
  const JsonValue sent = json.at("request_info"), speed = json.at("performance");
  result.requests = sent.at("num_requests").integer(1, 1 << 30);
  result.isl = sent.at("avg_input_length").number(1.0, most_tokens);
  result.osl = sent.at("avg_output_length").number(1.0, most_tokens);
  const auto shares = [&](const std::string& ours, const JsonValue& in, const char* key) {
    if (const auto metric = object_in(in, key))
      take_latency(result, ours, *metric, 1.0, [](const std::string& of) {
        return of == "mean" ? "average" : of == "median" ? "p50" : of;
      });
  };
  shares("e2e", speed, "request_latency_percentiles_ms");
  take(result, "e2e_ms", number(speed, "avg_request_latency_ms"));
  take(result, "output_tokens_per_s", number(speed, "system_output_throughput_tok_s"));
  take(result, "total_tokens_per_s", number(speed, "system_total_throughput_tok_s"));
  take(result, "requests_per_s", number(speed, "request_throughput_req_s"));
  take(result, "duration_s", number(speed, "total_latency_ms"), 1e-3);
  if (const auto tokens = object_in(json, "streaming_metrics")) {
    shares("ttft", *tokens, "ttft_percentiles");
    shares("tpot", *tokens, "tpot_percentiles");
    take(result, "ttft_ms", number(*tokens, "avg_ttft_ms"));
    take(result, "tpot_ms", number(*tokens, "avg_tpot_ms"));
  }
  const auto latencies = object_in(speed, "request_latency_percentiles_ms");
  const auto longest = latencies ? number(*latencies, "maximum") : std::optional<double>{};
  const auto run = number(speed, "total_latency_ms"),
             there = number(sent, "avg_num_concurrent_requests");
  constexpr double whole = 0.95;
  if (longest && run && *longest >= whole * *run) {
    result.arrival = "burst";
  } else if (there && *there > 0.0) {
    result.arrival = "closed";
    result.concurrency = std::max<std::int64_t>(1, std::llround(*there));
    result.notes.push_back("the concurrency is the mean of those that were there, " +
                           std::to_string(result.concurrency) + ": it does not say --concurrency");
  } else {
    sent.fail("says no avg_num_concurrent_requests", "give the whole report of trtllm-bench");
  }
  return result;
}

std::optional<std::string> inferencex_system(std::string hardware) {
  hardware = hardware.substr(0, hardware.find_first_of("-_ "));
  for (const auto& [theirs, ours] : {std::pair<const char*, const char*>{"h100", "dgx-h100"},
                                     {"h200", "dgx-h200"},
                                     {"b200", "dgx-b200"},
                                     {"b300", "dgx-b300"},
                                     {"gb200", "gb200-nvl72"},
                                     {"gb300", "gb300-nvl72"}})
    if (hardware == theirs) return ours;
  return std::nullopt;
}

// InferenceX, utils/process_result.py: a run of vLLM's benchmark in seconds, and the server.
// Lengths are uniform between 0.8 and 1.0 of isl and osl, with ten requests for each client.
BenchmarkResult of_inferencex(const JsonValue& json) {
  BenchmarkResult result;
  result.tool = "InferenceX";
  result.arrival = "closed";
  const auto whole = [&](const JsonValue& value) -> std::int64_t {
    if (value.is_number()) return value.integer(1, 1 << 20);
    const auto count = plain_integer(value.text(), 1 << 20);
    if (!count || *count == 0) value.fail("is no count", "write a whole number");
    return *count;
  };
  result.concurrency = whole(json.at("conc"));
  result.requests = 10 * result.concurrency;
  result.isl = json.at("isl").number(1.0, most_tokens);
  result.osl = json.at("osl").number(1.0, most_tokens);
  result.isl_low = std::round(0.8 * result.isl);
  result.osl_low = std::round(0.8 * result.osl);
  for (const std::string name : {"ttft", "tpot", "itl", "e2el"})
    take_latency(result, name == "e2el" ? "e2e" : name, json, 1e3,
                 [&](const std::string& of) { return of + "_" + name; });
  take(result, "output_tokens_per_s_per_gpu", number(json, "output_tput_per_gpu"));
  take(result, "total_tokens_per_s_per_gpu", number(json, "tput_per_gpu"));
  result.system = inferencex_system(json.at("hw").text());
  const std::string framework = json.at("framework").text();
  if (framework.find("dynamo") == framework.npos) {
    if (framework.starts_with("vllm")) result.engine = "vllm";
    if (framework.starts_with("sglang")) result.engine = "sglang";
    if (framework.starts_with("trt")) result.engine = "trtllm";
  }
  const CheckpointName name = read_checkpoint_name(json.at("model").text());
  result.model = catalog_model(name.model);
  const std::string precision = json.has("precision") ? json.at("precision").text() : "";
  // The checkpoint's name, else the format in which the model is published, else the precision.
  const CheckpointFormats published =
      result.model ? published_formats(read_model(*result.model, {"", ""})) : CheckpointFormats{};
  if (name.weights) {
    result.weights = orrery::name(*name.weights);
  } else if (published.experts != Dtype::bf16 && precision != "bf16") {
    result.weights = orrery::name(published.weights);
    result.experts = orrery::name(published.experts);
  } else if (precision == "fp8" || precision == "bf16") {
    result.weights = precision;
  } else if (precision == "fp4") {
    result.weights = "nvfp4";
  }
  for (const char* degree : {"tp", "ep"})
    if (json.has(degree)) result.degrees[degree] = whole(json.at(degree));
  const auto attention = json.find("dp_attention");
  if (attention && (attention->is_boolean() ? attention->boolean() : attention->text() == "true"))
    result.degrees["dp"] = result.degrees["tp"];
  if (json.has("spec_decoding") && json.at("spec_decoding").text() != "none" &&
      json.at("spec_decoding").text() != "")
    json.at("spec_decoding")
        .fail("drafts tokens, of which no result says how many are accepted",
              "give results without");
  if (json.has("disagg") && (json.at("disagg").is_boolean() ? json.at("disagg").boolean()
                                                            : json.at("disagg").text() == "true"))
    json.at("disagg").fail("is a run of two pools", "give results without pools");
  return result;
}

constexpr std::string_view no_result =
    "no result of vLLM's or SGLang's benchmark, AIPerf, GenAI-Perf, genai-bench, trtllm-bench, "
    "inference-perf or InferenceX";
constexpr const char* how_to_give_one =
    "give the JSON that one of them writes (vllm bench serve --save-result), or the block that "
    "vllm bench serve, sglang.bench_serving or trtllm-bench prints";

BenchmarkResult result_of(const JsonValue& json) {
  if (!json.is_object()) json.fail("is no result", "give the JSON that a benchmark writes");
  if (json.has("hw") && json.has("conc")) return of_inferencex(json);
  if (json.has("load_summary")) return of_inference_perf(json);
  if (json.has("aggregated_metrics")) return of_genai_bench(json);
  if (json.has("request_info") && json.has("performance")) return of_trtllm_bench(json);
  if (json.has("completed") && json.has("total_output_tokens")) return of_bench_serve(json);
  if (json.has("time_to_first_token") || json.has("request_latency")) return of_aiperf(json);
  json.fail("is " + std::string{no_result}, how_to_give_one);
}

}  // namespace

std::vector<BenchmarkResult> read_benchmark_results(const std::string& text,
                                                    const std::string& file) {
  require_text(text, file, "the result of a benchmark");
  std::vector<BenchmarkResult> results;
  // SGLang writes an object a line.
  const std::vector<std::string_view> lines = lines_of(text);
  const bool is_lines =
      lines.size() > 1 && std::all_of(lines.begin(), lines.end(), [](std::string_view line) {
        const std::string_view rest = trimmed(line);
        return rest.empty() || (rest.starts_with('{') && rest.ends_with('}'));
      });
  if (is_lines) {
    for (std::size_t i = 0; i < lines.size(); ++i)
      if (!trimmed(lines[i]).empty())
        results.push_back(result_of(JsonValue::parse(std::string{trimmed(lines[i])},
                                                     file + ": line " + std::to_string(i + 1))));
    return results;
  }
  const std::string_view content = trimmed(text);
  // A bracket may open a launcher's prefix, "[pod/bench-0] ...", as well as a list of objects.
  const std::string_view behind = content.empty() ? content : trimmed(content.substr(1));
  const bool is_list = content.starts_with('[') && (behind.starts_with('{') || behind == "]");
  if (!content.starts_with('{') && !is_list) {
    for (const JsonValue& one : printed_results(text, file)) results.push_back(result_of(one));
    if (results.empty()) fail_input({file, ""}, "is " + std::string{no_result}, how_to_give_one);
    return results;
  }
  const JsonValue json = JsonValue::parse(text, file);
  if (json.is_array())
    for (const JsonValue& one : json.elements()) results.push_back(result_of(one));
  else
    results.push_back(result_of(json));
  return results;
}

namespace {

using Json = nlohmann::ordered_json;

// The workload of a case. A mean length that is not a whole number is kept.
Json workload_of(const BenchmarkResult& result) {
  Json json = {{"isl", result.isl}, {"osl", result.osl}};
  if (result.isl_low) json["isl_low"] = *result.isl_low;
  if (result.osl_low) json["osl_low"] = *result.osl_low;
  json["arrival"] = result.arrival;
  if (result.concurrency > 0) json["concurrency"] = result.concurrency;
  if (result.rate > 0.0) json["rate"] = result.rate;
  if (result.arrival == "gamma") json["cv"] = result.cv;
  if (result.requests > 0) json["requests"] = result.requests;
  return json;
}

[[noreturn]] void fail_missing(const std::string& file, const std::string& what) {
  fail_input({file, ""}, "does not say " + what,
             "give --plan DEPLOYMENT, as orrery import server writes one, and --system");
}

// The tested server, under the keys of a case.
Json served(const BenchmarkResult& result, const std::string& file,
            const std::optional<JsonValue>& deployment, const std::string& system) {
  Json one = Json::object();
  Json keys = Json::object();
  std::int64_t gpus = 0;
  bool prefix_cache = true;
  if (deployment) {
    deployment_options_of(*deployment);  // Its errors.
    if (deployment->has("prefill"))
      deployment->fail("has pools, of which results cannot be cases", "give one without pools");
    const Json all = Json::parse(deployment->compact());
    for (const char* word : {"model", "engine", "system"})
      if (all.contains(word)) one[word] = all[word];
    if (one.contains("model") && one["model"].is_object()) one["model"] = deployment->place().file;
    if (all.contains("gpus")) gpus = deployment->at("gpus").integer(1, 1 << 20);
    prefix_cache = all.value("prefix_cache", true);
    for (const DeploymentKey& key : deployment_keys())
      if (all.contains(key.name)) keys[key.name] = all[key.name];
  } else {
    if (result.model) one["model"] = *result.model;
    if (result.engine) one["engine"] = *result.engine;
    if (result.system) one["system"] = *result.system;
    const auto degree = [&](const char* name) {
      const auto found = result.degrees.find(name);
      return found == result.degrees.end() ? std::int64_t{1} : found->second;
    };
    if (result.degrees.contains("tp")) {
      // dp of attention is over the ranks of tp.
      gpus = degree("tp");
      keys["tp"] = degree("tp") / degree("dp");
      if (degree("dp") > 1) keys["dp"] = degree("dp");
      if (degree("ep") > 1) keys["ep"] = degree("ep");
    }
    if (result.weights) keys["weights"] = *result.weights;
    if (result.experts) keys["experts"] = *result.experts;
  }
  if (!system.empty()) one["system"] = system;
  for (const char* word : {"model", "engine", "system"})
    if (!one.contains(word)) fail_missing(file, std::string{"which "} + word + " was measured");
  if (gpus == 0) fail_missing(file, "how many GPUs served");
  return {{"system", one["system"]}, {"gpus", gpus},
          {"model", one["model"]},   {"engine", one["engine"]},
          {"deployment", keys},      {"serving", {{"prefix_caching", prefix_cache}}}};
}

// Throughput a GPU as that of all.
Json measured_of(const BenchmarkResult& result) {
  Json json = Json::object();
  for (const auto& [quantity, value] : result.measured) json[quantity] = value;
  return json;
}

}  // namespace

std::string benchmark_cases(const std::vector<BenchmarkResult>& results, const std::string& file,
                            const std::optional<JsonValue>& deployment, const std::string& system) {
  std::string stem = file.substr(file.rfind('/') + 1);
  stem = stem.substr(0, stem.rfind('.'));
  std::string text;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const BenchmarkResult& result = results[i];
    Json one = {{"id", results.size() > 1 ? stem + "-" + std::to_string(i + 1) : stem},
                {"source", {{"title", "result of " + result.tool}, {"locator", file}}}};
    one.update(served(result, file, deployment, system));
    one["workload"] = workload_of(result);
    one["measured"] = measured_of(result);
    if (!result.notes.empty()) one["notes"] = joined(result.notes, "; ");
    text += (i > 0 ? ",\n " : " ") + one.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  return text;
}

}  // namespace orrery
