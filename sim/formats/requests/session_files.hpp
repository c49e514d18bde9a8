#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/core/enum_words.hpp"
#include "sim/fleet/scaling.hpp"
#include "sim/fleet/sessions.hpp"

namespace orrery {

/// File formats of sessions.
enum class SessionFormat {
  /// kv-cache-tester's and AgentX's: a session an object, one in a file or one a line, with
  /// block_size, and requests that have in, out, hash_ids, think_time, api_time, t in seconds, and
  /// sub-agents with requests of their own. `runs` ([first hash, how many], ...) may stand for
  /// hash_ids, `block` for block_size, `think` and `api` for the times.
  weka,
  /// Qwen-Bailian's JSON lines: chat_id, parent_chat_id (-1: none), timestamp in seconds,
  /// input_length, output_length, hash_ids of 16 tokens that are the same in all sessions.
  bailian,
  /// Dynamo's and aiperf's JSON lines, a variant of Mooncake's: session_id, input_length,
  /// output_length, hash_ids of 512 tokens, and delay or timestamp in milliseconds.
  dynamo
};
template <>
inline const std::vector<std::string> enum_words<SessionFormat>{"weka", "bailian", "dynamo"};

/// Sessions of a file, or of all files with one each of a folder. `format`: "" is what it looks
/// like. Errors (bad_input), with file, line and key: no known form, a row that lacks a field, a
/// parent that is not before its child, a length that is no count from 1 on.
SessionTrace read_sessions(const std::string& path, const std::string& format);
SessionTrace parse_sessions(const std::string& text, const std::string& file,
                            const std::string& format);

/// A load by time: a CSV of time_s and requests_per_s, each row until the next one, the last of
/// which has the rate 0 and is the end. Errors (bad_input), with the line: other columns, times
/// that do not begin at 0 or do not rise, a rate below 0, a last row with a rate, no load at all.
LoadCurve read_load_curve(const std::string& path);
LoadCurve parse_load_curve(const std::string& text, const std::string& file);

}  // namespace orrery
