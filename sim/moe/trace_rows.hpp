#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace orrery {

/// One line of a routing trace.
struct TraceRow {
  int line = 0;  ///< From 1.
  int layer = 0, micro_batch = 0, rank = 0;
  /// Tokens for each expert; of CSV one expert's.
  int expert = -1;
  std::vector<std::uint32_t> tokens;
};

/// The lines of a trace, told apart by the first character: '{' is JSON lines, else CSV. Empty
/// lines are skipped. Errors (bad_input): a line that does not say what it should.
std::vector<TraceRow> parse_trace_rows(const std::string& text, const std::string& file);

/// "file: line N", where an error is.
std::string trace_place(const std::string& file, int line);

}  // namespace orrery
