#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/core/enum_words.hpp"
#include "sim/model/model.hpp"

namespace orrery {

/// The source of the drafted tokens that a decode step verifies.
enum class DraftMethod {
  mtp,    ///< The model's own layer for further tokens (DeepSeek-V3, section 2.2).
  eagle,  ///< A layer trained for it (EAGLE-3, arXiv 2503.01840).
  draft,  ///< A smaller model.
  ngram   ///< The prompt and the answer so far; it needs no GPU.
};
template <>
inline const std::vector<std::string> enum_words<DraftMethod>{"mtp", "eagle3", "draft", "ngram"};

/// Speculative decoding: so many tokens of each request are drafted one after the other, and
/// verified in one step with the token that is certain.
struct Speculation {
  DraftMethod method = DraftMethod::mtp;
  int tokens = 1;
  /// The share of steps in which each drafted position is accepted: it never rises. Engines log it
  /// (vLLM: "per-position acceptance rate"); if only their mean is known, accepted over drafted
  /// tokens, all have it.
  std::vector<double> accepted;
  std::string model;  ///< The model of DraftMethod::draft.

  /// Tokens of a step: the certain one, and the accepted ones on average.
  double a_step() const;
  /// The most tokens that one step brings: steps bring whole tokens, evenly
  /// (docs/explanation/serving.md).
  int most_a_step() const;
  bool operator==(const Speculation&) const = default;
};

/// Reads "mtp:2@0.7", "eagle3:3@0.66/0.39/0.24", "draft:llama3.2-1b:4@0.6", or the mean length that
/// is accepted, with the certain token: "mtp:3@2.49", as benchmarks set it. Errors (bad_input):
/// another form, unknown methods, no tokens or more than 16, rates that are none or rise.
Speculation parse_speculation(const std::string& text, const Place& at);
std::string speculation_text(const Speculation& speculation);

/// The draft model: one layer and the head, or the smaller model. Null for DraftMethod::ngram.
/// Errors: infeasible if the model has no such layer; as read_model() of another model.
std::shared_ptr<const Model> drafting_model(const Model& model, const Speculation& speculation,
                                            const Place& at);

}  // namespace orrery
