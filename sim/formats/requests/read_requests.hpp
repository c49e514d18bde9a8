#pragma once

#include <string>
#include <vector>

#include "sim/core/enum_words.hpp"
#include "sim/serving/request.hpp"

namespace orrery {

/// In which form requests are written down.
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

/// What a trace says of its requests, by their arrival, the first of which is at 0.
struct RequestTrace {
  RequestList list;
  RequestFormat format = RequestFormat::lines;
  bool has_times = true;
};

struct TraceReading {
  std::string format = {};  ///< One of its words; "": the one that it looks like.
  double speed = 1.0;       ///< So many times as fast as it was.
  std::int64_t first = 0;   ///< Only so many; 0: all.
};

/// All rows of a trace, which is read without regard to its size. A row without an answer is a
/// request that failed: it is left out and counted.
/// Errors (bad_input), with the line: no known form, a row that lacks a field, a time that is no
/// number or negative, a length that is no count from 1 on.
RequestTrace read_request_trace(const std::string& path, const TraceReading& reading);
/// The same of a text.
RequestTrace parse_request_trace(const std::string& text, const std::string& file,
                                 const TraceReading& reading);

/// The rows of each form, with times as they stand there, in seconds. Errors as read_requests.hpp
/// says.
RequestTrace parse_csv_requests(const std::string& text, const std::string& file,
                                RequestFormat format);
RequestTrace parse_json_line_requests(const std::string& text, const std::string& file,
                                      RequestFormat format);
RequestTrace parse_vllm_requests(const std::string& text, const std::string& file);

/// The form that the columns of a CSV's first line speak of; lines where they speak of none.
RequestFormat csv_format(std::string_view header);

/// Seconds since 1970 of "2023-11-16 18:15:46.6805900", with or without "T", "Z" or "+00:00"; NaN
/// for what is none.
double seconds_of_timestamp(std::string_view text);

}  // namespace orrery
