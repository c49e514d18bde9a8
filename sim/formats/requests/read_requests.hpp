#pragma once

#include <string>
#include <vector>

#include "sim/core/enum_words.hpp"
#include "sim/serving/request.hpp"

namespace orrery {

/// File formats of requests.
enum class RequestFormat {
  lines,     ///< Ours: a JSON object a line with arrival_s, input, output.
  mooncake,  ///< Mooncake's JSON lines: timestamp (ms), input_length, output_length, hash_ids.
  azure,     ///< Azure's CSV: TIMESTAMP, ContextTokens, GeneratedTokens.
  burstgpt,  ///< BurstGPT's CSV: Timestamp, ..., Request tokens, Response tokens, ...
  lengths,   ///< A CSV of input_length, output_length, without times.
  vllm       ///< The result file of vLLM's benchmark: input_lens, output_lens.
};
template <>
inline const std::vector<std::string> enum_words<RequestFormat>{"lines",    "mooncake", "azure",
                                                                "burstgpt", "lengths",  "vllm"};

/// The requests of a trace, by their arrival, the first of which is at 0.
struct RequestTrace {
  RequestList list;
  RequestFormat format = RequestFormat::lines;
  bool has_times = true;
};

struct TraceReading {
  std::string format = {};  ///< One of request_format_names(); "": the one that it looks like.
  double speed = 1.0;       ///< Replay speed, relative to the trace.
  std::int64_t first = 0;   ///< Number of requests that are kept; 0: all.
};

/// All rows of a trace, which is read without regard to its size. A row without an answer is a
/// request that failed: it is left out and counted.
/// Errors (bad_input), with the line: no known form, a row that lacks a field, a time that is no
/// number or negative, a length that is no count from 1 on.
RequestTrace read_request_trace(const std::string& path, const TraceReading& reading);
/// Parses a trace from a text.
RequestTrace parse_request_trace(const std::string& text, const std::string& file,
                                 const TraceReading& reading);

/// The rows of each form, with their own times, in seconds. Errors: those of read_request_trace().
RequestTrace parse_csv_requests(const std::string& text, const std::string& file,
                                RequestFormat format);
RequestTrace parse_json_line_requests(const std::string& text, const std::string& file,
                                      RequestFormat format);
RequestTrace parse_vllm_requests(const std::string& text, const std::string& file);

/// The format that the columns of a CSV's first line suggest; else lines.
RequestFormat csv_format(std::string_view header);

/// Seconds since 1970 of "2023-11-16 18:15:46.6805900", with or without "T", "Z" or "+00:00"; NaN
/// for other text.
double seconds_of_timestamp(std::string_view text);

}  // namespace orrery
