#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "sim/core/enum_words.hpp"
#include "sim/core/units.hpp"
#include "sim/serving/replay_counts.hpp"
#include "sim/serving/request.hpp"
#include "sim/serving/serving_batch.hpp"
#include "sim/serving/step_times.hpp"

namespace orrery {

/// Whole tokens that decode steps bring each request, if one brings `a_step` of them on average: k
/// steps bring floor(k a_step + what was left over), so that tokens come as evenly as whole ones
/// can. Units of 2^-24 tokens make k steps bring what one step after the other does.
class StepProgress {
 public:
  /// `a_step`: from 1 to 32.
  explicit StepProgress(double a_step)
      : a_step_{std::llround(a_step * static_cast<double>(token))} {}

  /// `steps`: at most 2^30.
  std::int64_t tokens_of(std::int64_t steps) const {
    return a_step_ == token ? steps : (left_ + steps * a_step_) / token;
  }
  /// The fewest steps that bring `tokens`.
  std::int64_t steps_for(std::int64_t tokens) const {
    if (a_step_ == token || tokens >= many) return tokens;
    return (tokens * token - left_ + a_step_ - 1) / a_step_;
  }
  /// The most steps, at least one, of which each begins with space for `each` tokens, if there is
  /// space for `tokens`.
  std::int64_t steps_within(std::int64_t tokens, std::int64_t each) const {
    if (a_step_ == token || tokens >= many) return tokens;
    // The last of them begins when tokens_of(steps - 1) <= tokens - each.
    const std::int64_t before = (tokens - each + 1) * token - 1 - left_;
    return before < 0 ? 1 : 1 + before / a_step_;
  }
  /// The part of a token that is left over so far.
  double left() const { return static_cast<double>(left_) / static_cast<double>(token); }
  void take(std::int64_t steps) {
    if (a_step_ != token) left_ = (left_ + steps * a_step_) % token;
  }

 private:
  static constexpr std::int64_t token = std::int64_t{1} << 24;
  static constexpr std::int64_t many = std::int64_t{1} << 30;

  std::int64_t a_step_;
  std::int64_t left_ = 0;
};

/// A replica's part of a request: all of it, or, if prompts and answers are computed apart, one of
/// the two.
enum class ReplicaRole { all, prefill, decode };

/// The rule that sends a request to one of several replicas.
enum class Routing {
  round_robin,
  random,
  session,       ///< A new session as least_tokens, and all its later requests to the same one.
  session_hash,  ///< One session to one replica, by a hash: whatever the load of it.
  least_tokens,  ///< The replica whose requests have the fewest tokens.
  power_of_two,  ///< The same of two random ones.
  prefix,        ///< The fewest tokens, less those of the prompt in its cache.
  kv,            ///< The least work: RouterWeights.
  llm_d          ///< The highest score: RouterWeights.
};
template <>
inline const std::vector<std::string> enum_words<Routing>{
    "round-robin",  "random", "session", "session-hash", "least-tokens",
    "power-of-two", "prefix", "kv",      "llm-d"};

/// Weights of two routers that know what each replica has in its cache.
///
/// kv (NVIDIA Dynamo, lib/llm/src/kv_router, DefaultWorkerSelector): the replica with the smallest
/// overlap x P + D, of which P is the tokens of prompts that it has yet to compute, with those of
/// the request that it does not have, and D those in use of its cache, with the request's. Above a
/// temperature of 0 it draws: a replica's weight is e^(-cost / temperature), with costs relative to
/// the largest.
///
/// llm-d (its default plugins prefix-cache-scorer, kv-cache-utilization-scorer and queue-scorer):
/// the largest weighted sum of the share of the prompt that is known, the share of the cache that
/// is free, and where the queue lies between the longest (0) and the shortest (1) of all; of equal
/// ones any. Known is what the router has sent to a replica: the first 256 blocks of 16 tokens of
/// each prompt, as many blocks as the replica has, whatever it has evicted; or, precise, what is in
/// its cache.
struct RouterWeights {
  double overlap = 1.0, temperature = 0.0;        ///< Of kv.
  double prefix = 3.0, cache = 2.0, queue = 2.0;  ///< Of llm-d.
  double precise = 0.0;                           ///< Likewise; not 0: it is.

  bool operator==(const RouterWeights&) const = default;
};

/// Reads "session", "kv:overlap=0.5,temperature=0.1", "llm-d:prefix=3,cache=2,queue=2" into both.
/// Errors (bad_input): no router, a key or a number that is none.
void parse_routing(const std::string& text, const Place& at, Routing& routing,
                   RouterWeights& weights);

/// Settings of a replay: the routing of requests, and what is counted and kept.
struct ReplaySettings {
  Routing routing = Routing::round_robin;
  RouterWeights router_weights{};
  bool counts_prompts = false;  ///< Replica::prompts_to_compute() counts, whatever the router.
  std::optional<Slo> slo;
  /// Steps every iteration by itself, instead of summing up those of an unchanged batch.
  bool unfolded = false;
  bool keeps_times = false;       ///< Keeps the times of all requests.
  bool keeps_iterations = false;  ///< Keeps those of all iterations; by one process.
  int workers = 1;                ///< Processes, for replicas that no router looks at.
};

/// Properties of a replica, except the times of its iterations.
struct ReplicaShape {
  ReplicaRole role = ReplicaRole::all;
  /// ReplicaRole::decode: the last token of the prompt is computed again here, which makes the
  /// answer's first token. Else it comes with the keys and values.
  bool makes_first_token = false;
  BatchRules rules;
  KvShape kv;
  /// Time between a client and the engine, there and back: tokenizer, HTTP, detokenizer.
  Seconds client;
  int stages = 1;  ///< Stages of a pipeline, in which as many such replicas take turns.
  int copies = 1;  ///< Copies of attention, which go in step, each such a replica.
  ReplaySettings replay;
};

/// The work of a replica between two changes of its batch: equal iterations that follow each other,
/// or one with parts of prompts.
struct ReplayedIteration {
  std::uint32_t replica = 0;
  Seconds start, end;
  std::int64_t steps = 1;
  std::int64_t decodes = 0;        ///< Requests that get a token in each.
  std::int64_t prompt_tokens = 0;  ///< Tokens of all parts of prompts.
};

/// A request whose prompt a replica of ReplicaRole::prefill has computed. Its blocks stay until
/// they are released.
struct PrefilledRequest {
  std::uint32_t request = 0;
  std::uint32_t hits = 0;  ///< Tokens of the prompt that were found in the cache.
  Seconds sent, started, done;
  KeptBlocks kept;
};

/// A request that a replica of ReplicaRole::decode has given a place and blocks.
struct PlacedRequest {
  std::uint32_t request = 0;
  std::uint32_t place = 0;
  std::uint32_t known = 0;  ///< Tokens of its prompt that are in this cache.
};

/// One instance of the model that serves requests. Its clock jumps from one change of its batch to
/// the next; the caller passes on what arrives until then:
///
///     while (...) {
///       replica.arrive(...)   of all that arrive until change_at(), in their order
///       replica.complete()    the iteration, or as many equal ones as there were, is over
///       replica.arrive(...)   of what arrives at this very moment
///       replica.start(...)
///     }
///
/// An idle replica has no next change (change_at() is `never`): an arrival starts it.
class Replica {
 public:
  static constexpr Seconds never{1e300};

  /// Keeps references to all arguments. `busy`: the number of replicas with work among those that
  /// share its pipeline, itself included; null: there is no pipeline. `store`: the memory that
  /// KvShape::shares_last says.
  Replica(const RequestList& list, const ReplicaShape& shape, StepTimes& times,
          std::int64_t* busy = nullptr, SharedStore* store = nullptr);

  /// Request `index` reaches the engine at `time`, which is at most change_at(), and was sent
  /// shape.client before.
  void arrive(std::uint32_t index, Seconds time);
  /// The same for a request that is prefilled elsewhere; for ReplicaRole::decode.
  void arrive_remote(std::uint32_t index, Seconds time);
  /// Requests that got a place since the last call.
  std::vector<PlacedRequest> take_placed();
  /// Its keys and values have arrived at `time`: it decodes from the next iteration on.
  void receive(const PlacedRequest& placed, const PrefilledRequest& prefilled, Seconds time);
  /// ReplicaRole::prefill: requests whose prompt the last complete() ended, without answers of one
  /// token, which have ended.
  std::span<const PrefilledRequest> prefilled() const { return prefilled_; }
  void release(const PrefilledRequest& request) { batch_.give_back(request.kept); }

  /// Whether the next start() could begin the prompt of a request that waits. It must not while the
  /// batch holds prompts back.
  bool can_begin_prompt() const;
  void hold_prompts(bool holds) { batch_.hold_prompts(holds); }

  Seconds change_at() const { return change_at_; }
  void complete();
  void start(Seconds now);

  /// The work that start() has begun: one iteration, or as many as `steps` say, of tokens() each.
  const DecodeSteps& steps() const { return steps_; }
  std::int64_t tokens() const;
  /// Takes the times and the smaller number of steps of replicas that go in step with this one.
  void adopt(const DecodeSteps& steps);
  /// It computes nothing until its next change: all of its requests wait for a load.
  bool only_loads() const { return loads_; }
  /// The same, and it makes no step while others do.
  void follow(const DecodeSteps& steps);
  /// Ends after the step that is running at `time`, or, if iterations are planned ahead, after the
  /// next one.
  void cut_at(Seconds time);

  bool is_idle() const { return change_at_ == never; }
  Seconds now() const { return now_; }
  /// Requests that ended with the last complete(), in the order of their places.
  std::span<const RequestTimes> ended() const { return ended_; }
  std::int64_t present() const { return present_; }
  /// Tokens of all present requests, prompts and answers from their beginning: for routers.
  std::int64_t present_tokens() const { return present_tokens_; }
  /// Tokens of prompts that are not computed: of each, those that were not in the cache when it
  /// came. Counted for Routing::kv, or as the settings say.
  std::int64_t prompts_to_compute() const { return prompts_to_compute_; }
  /// Tokens of a request's prompt that are in the cache.
  std::int64_t known_tokens(std::uint32_t index) const { return batch_.known_tokens(index); }
  const ServingBatch& batch() const { return batch_; }
  const ReplayCounts& counts() const { return counts_; }
  /// Empty unless the settings keep times.
  const std::vector<ReplayedIteration>& iterations() const { return iterations_; }

 private:
  void schedule();
  void start_decodes();
  void start_mixed();
  void wait_for_load();
  Seconds with_load(Seconds iteration) const;
  void complete_decodes(std::int64_t steps);
  void complete_chunks();
  void give_token(std::uint32_t place);
  void end(std::uint32_t place);
  void hand_over(std::uint32_t place);
  void enter(const Sequence& sequence, Seconds time);
  void first_steps(Seconds time);
  double beyond() const { return progress_.left() * static_cast<double>(batch_.decodes()); }
  std::int64_t fresh() const { return static_cast<std::int64_t>(fresh_.size()); }
  void count_present(Seconds until);
  void receive(std::int64_t steps);
  void note_memory(Seconds span, double share_before);
  std::uint32_t quarter_of(std::uint32_t index) const;

  const RequestList& list_;
  const ReplicaShape& shape_;
  StepTimes& times_;
  std::int64_t* busy_;
  ServingBatch batch_;
  std::unique_ptr<Scheduler> scheduler_;
  ReplayCounts counts_;
  std::vector<RequestTimes> ended_;
  std::vector<PrefilledRequest> prefilled_;
  std::vector<ChunkShape> chunk_shapes_;
  std::vector<ReplayedIteration> iterations_;

  Seconds now_;
  Seconds change_at_ = never;
  StepProgress progress_;
  DecodeSteps steps_;            // Times until change_at_; `steps` is the number of iterations.
  bool interruptible_ = false;   // An arrival may enter sooner than at change_at_.
  Seconds seen_until_ = never;   // Later arrivals are not in the iteration that begins.
  std::int64_t unreceived_ = 0;  // Decode steps planned since the scheduler looked for requests.
  Seconds counted_until_;

  // Decodes that stood still while prompts were computed: their number, and the part of stall_ that
  // does not count for them.
  struct Stalled {
    std::int64_t requests = 0;
    Seconds since;
  };
  std::vector<Stalled> stalled_;
  Seconds stall_;
  // Decodes that came from another pool and have made no step here: the gap before it is their own.
  std::vector<FinishQueue::Entry> fresh_;
  std::vector<FinishQueue::Entry> received_;         // They join with the next start().
  std::unordered_map<std::uint32_t, Seconds> sent_;  // Sending times of those from another pool.
  std::int64_t present_ = 0, present_tokens_ = 0, prompts_to_compute_ = 0;
  bool at_work_ = false;    // It is counted in busy_.
  bool loads_ = false;      // Nothing is computed until change_at_: all wait for loads,
  bool follows_ = false;    // and other copies, which compute, say when that is.
  bool preempted_ = false;  // A request was preempted, to make space for the step that begins.
  bool rejoined_ = false;   // A kept request joined the decodes again with this iteration.
};

}  // namespace orrery
