#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace orrery {

/// One line of a routing trace.
struct TraceRow {
  int line = 0;  ///< Numbered from 1.
  int layer = 0, micro_batch = 0, rank = 0;
  /// The expert of a CSV line; -1 for JSON lines, whose tokens are those of all experts.
  int expert = -1;
  std::vector<std::uint32_t> tokens;
};

/// The lines of a trace, as JSON lines if the first character is '{', else as CSV. Empty lines are
/// skipped. Errors (bad_input): malformed lines.
std::vector<TraceRow> parse_trace_rows(const std::string& text, const std::string& file);

/// Formats "file: line N", the place of an error.
std::string trace_place(const std::string& file, int line);

/// The router's choices in a real run: tokens of each rank for each expert, for every layer with
/// experts and every micro-batch.
struct RoutingTrace {
  std::string file;
  int layers = 0;  ///< Layers with experts, numbered from 0.
  int micro_batches = 0;
  int ranks = 0;  ///< Ranks of the expert-parallel group.
  int experts = 0;
  std::vector<std::uint32_t> counts;  ///< [layer][micro-batch][rank][expert]

  std::span<const std::uint32_t> of(int layer, int micro_batch, int rank) const {
    const std::size_t row =
        (static_cast<std::size_t>(layer) * static_cast<std::size_t>(micro_batches) +
         static_cast<std::size_t>(micro_batch)) *
            static_cast<std::size_t>(ranks) +
        static_cast<std::size_t>(rank);
    return std::span{counts}.subspan(row * static_cast<std::size_t>(experts),
                                     static_cast<std::size_t>(experts));
  }
  /// Tokens that visit each expert of one layer, summed over all ranks and micro-batches.
  std::vector<double> totals(int layer) const;
};

/// The sizes that a trace must agree with; 0 is any.
struct TraceExpectation {
  int layers = 0;
  int ranks = 0;
  int experts = 0;
  std::int64_t tokens = 0;  ///< Tokens of one rank in one micro-batch.
  std::int64_t per_token = 0;
};

/// Reads a trace, of either form (docs/explanation/moe.md):
///   JSON lines  {"layer": 0, "micro_batch": 0, "rank": 0, "tokens": [12, 0, ...]}
///   CSV         a first line layer,micro_batch,rank,expert,tokens; what is not listed is 0, but
///               every layer, micro-batch and rank must be there.
/// Errors (bad_input) name the line: invalid counts, repeated or missing cells, mismatches.
RoutingTrace parse_trace(const std::string& text, const std::string& file,
                         const TraceExpectation& expected = {});
/// The same for a file of at most 1 GiB.
RoutingTrace read_trace(const std::string& path, const TraceExpectation& expected = {});

}  // namespace orrery
