#pragma once

#include <optional>
#include <vector>

#include "sim/serving/serving_run.hpp"
#include "sim/serving/serving_step.hpp"
#include "sim/serving/step_times.hpp"

namespace orrery {

/// A floor under a function of whole numbers, made of straight lines.
class ConvexFloor {
 public:
  /// Points between which the function is linear, by rising arguments; at least one.
  explicit ConvexFloor(const std::vector<TimePoint>& points);

  /// The least that `calls` or more values of the function add up to, whose arguments add up to
  /// `amount` or more: of each line a + b x with a, b >= 0 under all points it is
  /// a calls + b amount.
  Seconds sum(double calls, double amount) const;

 private:
  struct Line {
    Seconds start, slope;
  };
  std::vector<Line> lines_;
};

/// The work of all requests, added up.
struct RequestWork {
  explicit RequestWork(const RequestList& list);

  /// The part of each of two pools: the prompts with the first token of each answer, and all other
  /// tokens.
  RequestWork prompts_alone() const;
  RequestWork answers_alone() const;

  double in_all = 0.0;    ///< Requests.
  double requests = 0.0;  ///< Requests whose prompts are computed.
  double outputs = 0.0;   ///< Tokens of answers.
  double prompts = 0.0;   ///< Tokens of prompts; where these may be in the cache, one each.
  double contexts = 0.0;  ///< Tokens that all decodes find in the cache, one after the other.
  double reserved = 0.0;  ///< The same where a request holds all its blocks from its first
                          ///< token to its last.
  std::int64_t least_prompt = 0, longest_prompt = 0;
  bool shares_prefixes = false;
  bool one_token = false;  ///< Some answers have no second token.
};

/// A lower bound of the time of any replay of a deployment, for every order of its scheduler.
///
/// An iteration with n decodes, q tokens of prompts, r <= rows requests that get a token, and C
/// tokens in the cache takes at least
///
///     T >= dense(n + q) + head(r) + attention + gap(r),   T >= host(r) + gap(r),
///     attention >= start + C x (1.1 bytes a token / bandwidth)        (the floor of cold caches)
///
/// and all iterations of a replica follow each other. Over the whole run the r add up to the tokens
/// of all answers, n + q to those of answers after the first and of prompts, and C to the sum of
/// all contexts, in every order. So there are I >= answers / rows iterations, I >= contexts / KV
/// tokens, and with any line a + b x under dense() they add up to a I + b (answers + prompts): a
/// ConvexFloor takes the best. Engines that keep prompts apart have I iterations of decodes alone,
/// and others of prompts.
///
/// Speculative decoding brings each request d tokens a step at most, the whole number above their
/// mean. So there are at least 1 / d as many of a request's steps, each of which works on all its
/// drafted tokens; the draft's own time is not counted.
///
/// Means over replicas bound the busiest one. Copies of attention that go in step count as one with
/// their mean. One stage of a pipeline, or one replica behind a router that looks at them, may have
/// more than its share of the clients: see least_span().
class ServingBound {
 public:
  /// `longest_prompt`: of all loads that will be bounded.
  ServingBound(const PricedServing& priced, std::int64_t longest_prompt);

  /// The time from the first request sent to the last token.
  Seconds least_span(const RequestWork& work, const ServingLoad& load) const;
  /// The same of a pool of so many replicas for its part of the work. Requests come to it as they
  /// come: one of its replicas may have all of them for a while.
  Seconds least_span_of_pool(const RequestWork& work, const ServingLoad& load, int replicas) const;
  /// The time between two tokens of a request.
  Seconds least_gap() const;

 private:
  struct Share;  // The work of one unit: a replica, or copies in step.
  Seconds on_gpu(const Share& share) const;
  Seconds on_host(const Share& share) const;
  Seconds dense(double calls, double amount) const;
  Seconds least_span(const RequestWork& work, const ServingLoad& load, double of_units,
                     bool together) const;

  const PricedServing& priced_;
  bool in_step_;  // Copies of attention go in step.
  double copies_, units_;
  double most_tokens_ = 1.0;  ///< Tokens that a step brings a request.
  double step_tokens_ = 1.0;  ///< Tokens of a request that a step works on.
  std::optional<ConvexFloor> dense_, shared_, head_;
  AttentionFloor attention_;
  Seconds gap_, gap_each_, host_, host_each_;
};

}  // namespace orrery
