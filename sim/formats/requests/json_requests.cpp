#include <algorithm>
#include <string_view>

#include "sim/core/json_value.hpp"
#include "sim/core/text_file.hpp"
#include "sim/formats/requests/read_requests.hpp"

namespace orrery {
namespace {

// Mooncake's blocks (FAST 2025: "hash_ids ... each block contains 512 tokens"), and ours.
constexpr std::uint32_t hash_tokens = 512;
constexpr double most_seconds = 1e9;  // Thirty years.

std::uint32_t length_of(const JsonValue& row, const char* key) {
  return static_cast<std::uint32_t>(row.at(key).integer(1, most_request_tokens));
}

void add_hashes(const JsonValue& ids, Request& request, RequestList& list) {
  request.first_hash = static_cast<std::uint32_t>(list.hashes.size());
  for (const JsonValue& id : ids.elements())
    list.hashes.push_back(static_cast<std::uint64_t>(id.integer(0, std::int64_t{1} << 53)));
  request.hashes = static_cast<std::uint32_t>(list.hashes.size()) - request.first_hash;
  list.hash_tokens = hash_tokens;
}

Request mooncake_row(const JsonValue& row, RequestList& list) {
  Request request;
  request.arrival = Seconds{row.at("timestamp").number(0.0, most_seconds * 1e3) * 1e-3};
  request.prompt_tokens = length_of(row, "input_length");
  request.output_tokens = length_of(row, "output_length");
  if (const auto ids = row.find("hash_ids")) add_hashes(*ids, request, list);
  return request;
}

Request own_row(const JsonValue& row, RequestList& list) {
  row.allow_only({"arrival_s", "input", "output", "prefix_blocks", "session"});
  Request request;
  request.arrival = Seconds{row.at("arrival_s").number(0.0, most_seconds)};
  request.prompt_tokens = length_of(row, "input");
  request.output_tokens = length_of(row, "output");
  if (const auto ids = row.find("prefix_blocks")) add_hashes(*ids, request, list);
  if (const auto session = row.find("session"))
    request.session = static_cast<std::uint32_t>(session->integer(0, Request::no_session - 1));
  return request;
}

}  // namespace

RequestTrace parse_json_line_requests(const std::string& text, const std::string& file,
                                      RequestFormat format) {
  RequestTrace trace;
  trace.format = format;
  const std::vector<std::string_view> lines = lines_of(text);
  for (std::size_t index = 0; index < lines.size(); ++index) {
    const std::string_view line = trimmed(lines[index]);
    if (line.empty()) continue;
    const JsonValue row =
        JsonValue::parse(std::string{line}, file + ": line " + std::to_string(index + 1));
    if (!row.is_object()) row.fail("is not a request", "write an object a line");
    trace.list.requests.push_back(format == RequestFormat::mooncake ? mooncake_row(row, trace.list)
                                                                    : own_row(row, trace.list));
  }
  return trace;
}

// vllm/benchmarks/serve.py: a request that failed has an answer of no tokens.
RequestTrace parse_vllm_requests(const std::string& text, const std::string& file) {
  const JsonValue result = JsonValue::parse(text, file);
  const std::vector<JsonValue> prompts = result.at("input_lens").elements();
  const std::vector<JsonValue> answers = result.at("output_lens").elements();
  if (prompts.size() != answers.size())
    result.at("output_lens")
        .fail("has " + std::to_string(answers.size()) + " lengths, input_lens " +
                  std::to_string(prompts.size()),
              "save the benchmark's result with --save-detailed");
  RequestTrace trace;
  trace.format = RequestFormat::vllm;
  trace.has_times = false;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const std::int64_t answer = answers[i].integer(0, most_request_tokens);
    if (answer == 0) {
      ++trace.list.failed;
      continue;
    }
    Request request;
    request.prompt_tokens = static_cast<std::uint32_t>(prompts[i].integer(1, most_request_tokens));
    request.output_tokens = static_cast<std::uint32_t>(answer);
    trace.list.requests.push_back(request);
  }
  return trace;
}

}  // namespace orrery
