#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/core/enum_words.hpp"
#include "sim/posttraining/rl_samples.hpp"

namespace orrery {

/// How a framework forms micro-batches of samples.
enum class SamplePacking {
  bins,      ///< Bins of a number of tokens, each sample in the first that holds it, longest first.
  balanced,  ///< As few micro-batches as a number of tokens allows, with equal work.
  fixed,     ///< The same number of samples each, without padding.
  padded     ///< The same, padded to the longest sample that there may be.
};
template <>
inline const std::vector<std::string> enum_words<SamplePacking>{"bins", "balanced", "fixed",
                                                                "padded"};

/// Whether a micro-batch is filled up to a number of tokens. Else it has a number of samples.
inline bool packs_by_tokens(SamplePacking packing) {
  return packing == SamplePacking::bins || packing == SamplePacking::balanced;
}

/// What micro-batches are made by.
struct PackingRule {
  SamplePacking packing = SamplePacking::bins;
  std::int64_t tokens = 0;   ///< Of a micro-batch, at most: bins and balanced.
  std::int64_t samples = 1;  ///< Of a micro-batch: fixed and padded.
  std::int64_t longest = 0;  ///< Tokens that a sample is padded to: padded.
  std::int64_t round = 1;    ///< Samples are padded to a multiple of it.
  int ranks = 1;             ///< Data-parallel ranks.
  /// All bins of a rank are padded to its longest, as stages of a pipeline exchange tensors of one
  /// size.
  bool equal_bins = false;
  /// Tokens of a document at which its attention takes as long as its products.
  double square = 1e18;
  /// Ranks wait for each other in every micro-batch (shards of weights, experts), not once a step.
  bool meets_each = false;
};

/// The micro-batches of a pass over samples, alike on all ranks: as many as each rank has, with the
/// mean tokens and documents of those that others wait for.
struct MicroBatches {
  std::int64_t count = 0;
  double tokens = 0.0;    ///< Of one of them, with padding.
  double attended = 0.0;  ///< Sum of squares of documents over their tokens.
  double useful = 0.0;    ///< Work on samples over what all ranks compute or wait for.
};

/// Packs `samples` in optimizer steps of `batch` each, and returns the mean of the steps. Requires
/// whole steps.
MicroBatches pack_samples(const std::vector<Sample>& samples, std::int64_t batch,
                          const PackingRule& rule);

}  // namespace orrery
