#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "sim/core/units.hpp"

namespace orrery {

/// Times of the parts of an iteration, as functions of its contents. Calls are rare: StepTimes
/// keeps the results.
struct StepCosts {
  /// All kernels whose time depends on the number of tokens alone.
  std::function<Seconds(double tokens)> dense;
  /// The part of `dense` that copies of attention do together, experts and their exchange, if each
  /// of them has `tokens` tokens. Empty: nothing.
  std::function<Seconds(double tokens)> shared;
  /// Attention of `requests` that make a token each and have `context` cached tokens together.
  std::function<Seconds(double requests, double context)> decode_attention;
  /// Attention of a part of a prompt, behind `cached` other tokens.
  std::function<Seconds(double tokens, double cached)> prefill_attention;
  /// Kernels that take parts of `prompts` prompts at once, `tokens` each behind `cached` ones:
  /// scans of mixers with a state, modules of attention. Empty: nothing.
  std::function<Seconds(double prompts, double tokens, double cached)> together;
  std::function<Seconds(double rows)> head;      ///< The output head and sampling.
  std::function<Seconds(double requests)> host;  ///< The engine's work on the CPU.
  std::function<Seconds(double requests)> gap;   ///< Unhidden time between two iterations.
  /// Lower bound of the GPU's time for `tokens` tokens, `prompts` or decodes alone: kernels that
  /// are launched one by one. Empty: there is no such bound.
  std::function<Seconds(double tokens, bool prompts)> launch;
  /// Requests that an iteration of decodes alone computes for so many (Deployment::padded). Empty:
  /// as many.
  std::function<std::int64_t(std::int64_t requests)> padded;
  /// Speculative decoding: tokens of each request that a decode step computes, what it brings on
  /// average, and the time to draft. Empty: none.
  int step_tokens = 1;
  double progress = 1.0;
  std::function<Seconds(double requests)> draft;
  bool host_hidden = true;  ///< An iteration takes the longer of GPU and host, else their sum.
  /// Stages of a pipeline; the functions above are of all stages. While one batch is in a stage,
  /// others are in the other ones: a batch takes the time of all stages, or as many times that of
  /// the longest one as there are batches. The last one has the head as well.
  int stages = 1;
  double longest_stage = 1.0, last_stage = 1.0;  ///< Shares of the time of all layers.
  std::function<Seconds(double tokens)> hop;     ///< Transfer to the next stage; empty: no time.
  /// Work of a stage's host for the requests of all batches between two of them, while the stage
  /// waits; empty: nothing.
  std::function<Seconds(double requests)> planning;
};

/// Consecutive decode steps of an unchanged batch: the first takes `first`, each following one
/// `growth` longer, for `steps` steps at most.
struct DecodeSteps {
  Seconds first;
  Seconds growth;
  std::int64_t steps = 1;

  Seconds time(std::int64_t of) const {
    const auto k = static_cast<double>(of);
    return k * first + 0.5 * k * (k - 1.0) * growth;
  }
  /// The fewest steps, at least one, after which `span` has passed.
  std::int64_t until(Seconds span) const;
};

/// A part of a prompt that an iteration computes.
struct ChunkShape {
  std::uint32_t tokens = 0;
  std::uint32_t cached = 0;
};

/// A point of a table that is linear between its points.
struct TimePoint {
  std::int64_t at = 0;
  Seconds time;
};

/// Times of iterations, from tables that are filled as they are used: of tokens and requests exact
/// up to 64 and then 16 an octave, of contexts 8 and of prompts 16 an octave, linear between them.
/// The tables are the definition: a replay that steps every iteration and one that sums them up see
/// the same times.
class StepTimes {
 public:
  explicit StepTimes(StepCosts costs);

  /// `requests` >= 1. `beyond`: tokens of context that steps have brought beyond whole ones
  /// (StepProgress::left() of each request), so that contexts grow by as many in each step. `busy`:
  /// batches like this one that take turns in a pipeline; 0: as many as there are stages.
  DecodeSteps decode(std::int64_t requests, std::int64_t context, double beyond = 0.0,
                     std::int64_t busy = 0);
  /// An iteration of chunks, and of decodes where `requests` > 0; `finished` of the prompts end.
  Seconds mixed(std::int64_t requests, std::int64_t context, const std::vector<ChunkShape>& chunks,
                std::int64_t finished, double beyond = 0.0, std::int64_t busy = 0);
  /// The part of an iteration that all copies of attention do together.
  Seconds shared(std::int64_t tokens);
  /// The points between which `dense`, `shared` and `head` are linear, from 1 to the first that is
  /// not below `most`.
  std::vector<TimePoint> dense_points(std::int64_t most);
  std::vector<TimePoint> shared_points(std::int64_t most);
  std::vector<TimePoint> head_points(std::int64_t most);
  /// Time until the next part of a prompt can follow one whose output no request waits for: its
  /// time in the longest stage, `busy` times if so many batches take turns.
  Seconds chunk_follows(const std::vector<ChunkShape>& chunks, std::int64_t busy);

 private:
  struct Line {
    double at;         ///< Seconds, at a context.
    double slope;      ///< Seconds a token of context.
    std::int64_t end;  ///< The last context for which this holds.
  };
  /// Time through all stages, its slope over the seconds of the layers, and the seconds of the
  /// layers up to which that holds.
  struct Passage {
    double time;
    double slope;
    double most;
  };
  struct Fixed {
    double layers = -1.0;  ///< Below 0: not known yet.
    double head = 0.0;
    double least = 0.0;
    double overhead = 0.0;
  };

  double dense(std::int64_t tokens);
  double head(std::int64_t rows);
  double draft(std::int64_t requests) const;
  Line attention(std::int64_t requests, std::int64_t context, double beyond);
  double attention_entry(std::size_t row, std::size_t column);
  double prefill(const ChunkShape& chunk);
  using PromptTable = std::vector<std::vector<double>>;  // [tokens][cached], seconds a token
  template <class Cost>
  double prompt_token(PromptTable& table, std::int64_t tokens, std::int64_t cached,
                      const Cost& cost);
  const Fixed& fixed(std::int64_t requests);
  double together(const std::vector<ChunkShape>& chunks, std::int64_t tokens, std::int64_t cached);
  double gpu_of_chunks(const std::vector<ChunkShape>& chunks, std::int64_t& tokens);
  Passage passage(double layers, double head, std::int64_t tokens, double requests,
                  std::int64_t busy) const;
  double handover(std::int64_t tokens, double requests, std::int64_t busy) const;
  double least(std::int64_t tokens, bool prompts, double requests) const;
  double overhead(double requests) const;

  StepCosts costs_;
  std::vector<double> dense_, head_, shared_;   // Indexed by place; NaN: unknown.
  std::vector<std::vector<double>> attention_;  // [requests][context]
  PromptTable prefill_;
  std::map<std::int64_t, PromptTable> together_;  // By the number of prompts.
  std::vector<Fixed> fixed_;                      // Indexed by requests.
};

}  // namespace orrery
