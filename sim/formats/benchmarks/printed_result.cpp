#include <algorithm>
#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/core/nearest.hpp"
#include "sim/core/text_file.hpp"
#include "sim/formats/benchmarks/benchmark_result.hpp"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

struct PrintedLabel {
  std::string_view text;
  const char* pointer;
};

// vllm/benchmarks/serve.py and python/sglang/bench_serving.py, in lower case; their releases write
// capitals differently.
constexpr PrintedLabel of_serve[] = {
    {"successful requests", "/completed"},
    {"benchmark duration (s)", "/duration"},
    {"total input tokens", "/total_input_tokens"},
    {"total generated tokens", "/total_output_tokens"},
    {"request throughput (req/s)", "/request_throughput"},
    {"output token throughput (tok/s)", "/output_throughput"},
    {"total token throughput (tok/s)", "/total_token_throughput"},
    {"maximum request concurrency", "/max_concurrency"},
    {"max request concurrency", "/max_concurrency"},
    {"request rate configured (rps)", "/request_rate"},
    {"traffic request rate", "/request_rate"},
    {"burstiness factor", "/burstiness"},
};

// tensorrt_llm/bench/dataclasses/reporting.py.
constexpr PrintedLabel of_trtllm[] = {
    {"number of requests", "/request_info/num_requests"},
    {"number of concurrent requests", "/request_info/avg_num_concurrent_requests"},
    {"average input length (tokens)", "/request_info/avg_input_length"},
    {"average output length (tokens)", "/request_info/avg_output_length"},
    {"request throughput (req/sec)", "/performance/request_throughput_req_s"},
    {"total output throughput (tokens/sec)", "/performance/system_output_throughput_tok_s"},
    {"total token throughput (tokens/sec)", "/performance/system_total_throughput_tok_s"},
    {"total latency (ms)", "/performance/total_latency_ms"},
    {"average request latency (ms)", "/performance/avg_request_latency_ms"},
    {"average time-to-first-token [ttft] (ms)", "/streaming_metrics/avg_ttft_ms"},
    {"average time-per-output-token [tpot] (ms)", "/streaming_metrics/avg_tpot_ms"},
};
constexpr PrintedLabel percentiles_of_trtllm[] = {
    {"[ttft] ", "/streaming_metrics/ttft_percentiles/"},
    {"[tpot] ", "/streaming_metrics/tpot_percentiles/"},
    {"[latency] ", "/performance/request_latency_percentiles_ms/"},
};

// "mean e2e latency (ms)" is "/mean_e2e_latency_ms", "p99 ttft (ms)" is "/p99_ttft_ms".
std::string latency_pointer(std::string label) {
  constexpr std::string_view unit = " (ms)";
  const bool is_latency = label.starts_with("mean ") || label.starts_with("median ") ||
                          (label.starts_with("p") && plain_integer(label.substr(1, 2), 99));
  if (!is_latency || !label.ends_with(unit)) return "";
  label.resize(label.size() - unit.size());
  std::replace(label.begin(), label.end(), ' ', '_');
  if (!std::all_of(label.begin(), label.end(),
                   [](char c) { return c == '_' || std::isalnum(static_cast<unsigned char>(c)); }))
    return "";
  return "/" + label + "_ms";
}

std::string pointer_of(const std::string& label, bool trtllm) {
  if (!trtllm) {
    for (const PrintedLabel& known : of_serve)
      if (label == known.text) return known.pointer;
    return latency_pointer(label);
  }
  for (const PrintedLabel& known : of_trtllm)
    if (label == known.text) return known.pointer;
  for (const PrintedLabel& known : percentiles_of_trtllm)
    if (label.starts_with(known.text)) {
      const std::string of{trimmed(label.substr(known.text.size()))};
      for (const char* word : {"average", "maximum", "p50", "p90", "p95", "p99"})
        if (of == word) return known.pointer + of;
    }
  return "";
}

class PrintedReader {
 public:
  PrintedReader(const std::string& text, const std::string& file) : file_{file}, text_{text} {}

  std::vector<JsonValue> read() {
    for (const std::string_view line : lines_of(text_)) {
      read_line(line);
      ++line_;
    }
    end_block();
    return std::move(all_);
  }

 private:
  void read_line(std::string_view line) {
    const bool serve = line.find(" Serving Benchmark Result ") != line.npos;
    const bool trtllm = line.find("= REQUEST DETAILS") != line.npos;
    if (serve || trtllm) {
      end_block();
      begun_ = line_ + 1;
      trtllm_ = trtllm;
      return;
    }
    // The line of signs below a block of vLLM's or SGLang's.
    if (begun_ && !trtllm_ && trimmed(line).ends_with("====")) return end_block();
    // Quotations and tables have signs in front.
    while (!line.empty() && std::string_view{" \t>|*"}.find(line.front()) != line.npos)
      line.remove_prefix(1);
    for (std::size_t colon = line.find(':'); colon != line.npos; colon = line.find(':', colon + 1))
      if (take_behind_prefix(line.substr(0, colon), line.substr(colon + 1))) return;
    if (!begun_) take_command(line);
  }

  // A launcher, a container or a clock may stand before a label: "bench-1  | Successful requests".
  bool take_behind_prefix(std::string_view label, std::string_view value) {
    if (take(label, value)) return true;
    for (std::size_t at = label.find(' '); at != label.npos; at = label.find(' ', at + 1))
      if (take(label.substr(at + 1), value)) return true;
    return false;
  }

  // Above a block only the arrival is of interest.
  bool take(std::string_view label, std::string_view value) {
    const std::string pointer = pointer_of(lower_case(std::string{trimmed(label)}), trtllm_);
    const std::vector<std::string_view> words = words_of(value);
    if (pointer.empty() || words.empty()) return false;
    const bool arrival = is_arrival(pointer);
    if (arrival) says_arrival_ = true;
    const auto number = plain_number(words[0]);
    if (number && (begun_ || arrival)) json_[Json::json_pointer{pointer}] = *number;
    return true;
  }

  static bool is_arrival(const std::string& pointer) {
    return pointer == "/max_concurrency" || pointer == "/request_rate" || pointer == "/burstiness";
  }

  // "--request-rate 4", "Namespace(..., request_rate=4.0, max_concurrency=None".
  void take_command(std::string_view line) {
    std::string text{line};
    for (char& c : text) {
      if (c == ',' || c == '(' || c == ')' || c == '=' || c == '\\') c = ' ';
      if (c == '-') c = '_';
    }
    const std::vector<std::string_view> words = words_of(text);
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
      const std::size_t first = words[i].find_first_not_of('_');
      if (first == words[i].npos) continue;
      const std::string pointer = "/" + std::string{words[i].substr(first)};
      if (!is_arrival(pointer)) continue;
      says_arrival_ = true;
      if (const auto number = plain_number(words[i + 1]))
        json_[Json::json_pointer{pointer}] = *number;
    }
  }

  void end_block() {
    if (begun_) {
      if (!trtllm_ && !says_arrival_) assume_burst();
      all_.push_back(JsonValue::parse(json_.dump(), file_ + ": line " + std::to_string(begun_)));
      json_ = Json::object();
      says_arrival_ = false;
    }
    begun_ = 0;
    trtllm_ = false;
  }

  // Of requests that came all at once, half are there in the mean while a server answers at a
  // constant rate. By Little's law those that are there are rate x latency.
  void assume_burst() {
    const auto value = [&](const char* key) { return json_.value(key, 0.0); };
    const double requests = value("completed"), tokens = value("total_output_tokens");
    if (requests < 1.0) return;
    const double latency_ms =
        value("mean_ttft_ms") + value("mean_tpot_ms") * std::max(0.0, tokens / requests - 1.0);
    const double there = value("request_throughput") * latency_ms / 1e3;
    if (there > 0.0 && there < requests / 4.0)
      fail_input(line_place(file_, begun_ - 1),
                 "does not say how requests came, and " + rounded(there) + " of " +
                     rounded(requests) + " were there in the mean: they came not all at once",
                 "add the line 'Maximum request concurrency: N' or 'Traffic request rate: N'");
    json_["assumed"] = "burst";
  }

  static std::string rounded(double count) { return std::to_string(std::llround(count)); }

  std::string file_;
  const std::string& text_;
  std::vector<JsonValue> all_;
  Json json_ = Json::object();
  std::size_t line_ = 0;   ///< Counted from 0.
  std::size_t begun_ = 0;  ///< Line of the block's head, counted from 1; 0: outside.
  bool trtllm_ = false;
  bool says_arrival_ = false;
};

}  // namespace

std::vector<JsonValue> printed_results(const std::string& text, const std::string& file) {
  return PrintedReader{text, file}.read();
}

}  // namespace orrery
