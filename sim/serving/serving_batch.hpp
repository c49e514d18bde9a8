#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "sim/core/units.hpp"
#include "sim/serving/kv_cache.hpp"
#include "sim/serving/request.hpp"
#include "sim/serving/serving_engine.hpp"

namespace orrery {

/// The limits of a batch. The defaults of engines are in their files.
struct BatchRules {
  const SchedulerKind* scheduler = schedulers().front();
  std::int64_t budget = 8192;         ///< Most tokens of an iteration.
  std::int64_t most_requests = 1024;  ///< Most requests of a batch.
  bool chunked = true;                ///< A prompt may be computed in parts.
  bool mixed = false;                 ///< Decodes go on in iterations with prompts.
  /// An iteration is planned while the one before it runs, so that arrivals meanwhile are in the
  /// one after it: vLLM's asynchronous scheduling, the overlapped schedulers of SGLang and
  /// TensorRT-LLM.
  bool plans_ahead = false;
  /// Copies of attention that go in step begin prompts only if all of them can and the fullest has
  /// room for as many as any of them has begun at once, or in the iteration of this number since
  /// some but not all could; 0: each begins whenever it can.
  int prefill_delay = 0;
  /// Decode steps from one look for new requests to the next, as they are planned ahead. Behind
  /// other iterations it looks at once.
  std::int64_t receive_interval = 1;
  /// Tokens of a request that a decode step computes, for which it needs blocks, and their number
  /// that it brings on average: more than one with speculative decoding (StepProgress).
  int step_tokens = 1;
  double progress = 1.0;
  /// The keys and values of a preempted request wait in the host's memory, so that nothing of it is
  /// computed again.
  bool keeps_preempted = false;
  /// Mode of loads from the host's memory, and the time of its link for one token. All that comes
  /// from a memory behind the GPU's passes it.
  HostKvLoading loading = HostKvLoading::before;
  Seconds load_token;
  int load_layers = 1;  ///< Layers, for HostKvLoading::layers.
  /// Reads of each of those memories (KvShape::tiers) by one replica, one after another; the host's
  /// own take no time but that of its link.
  struct TierLink {
    Seconds token, latency;
  };
  std::array<TierLink, most_tiers> tiers{};
  Seconds store_token;  ///< Time of a shared memory (KvShape::shares_last) for a token, of all.
  KvFetching prefetch;
  bool fetches_at_arrival = false;  ///< Reads begin when a request arrives, not at its admission.

  /// The most tokens of a prompt in an iteration.
  std::int64_t at_once() const {
    return chunked ? std::max<std::int64_t>(budget, step_tokens) : KvGroups::unlimited;
  }
};

/// A memory for keys and values that all replicas read and write (KvShape::shares_last). Its reads
/// follow each other at BatchRules::store_token a token.
struct SharedStore {
  TierBlocks blocks;
  Seconds free;  ///< The end of the last read so far.
};

/// A heap of requests by the decode step that makes their last token, so that nothing is touched
/// while the batch runs. Requests that leave sooner stay in it, void by their stamp.
class FinishQueue {
 public:
  struct Entry {
    std::int64_t step = 0;
    std::uint32_t place = 0;
    std::uint32_t stamp = 0;

    // The lower place is first in a step: an order that does not depend on how the heap grew.
    bool operator>(const Entry& other) const {
      return step != other.step ? step > other.step : place > other.place;
    }
  };

  bool empty() const { return heap_.empty(); }
  const Entry& first() const { return heap_.front(); }
  std::span<const Entry> all() const { return heap_; }  ///< In no order.
  void push(const Entry& entry) {
    heap_.push_back(entry);
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>{});
  }
  void pop() {
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>{});
    heap_.pop_back();
  }

 private:
  std::vector<Entry> heap_;
};

/// A request on its way through a replica.
struct Sequence {
  std::uint32_t request = 0;
  std::uint32_t prompt = 0;    ///< Tokens to prefill; after a preemption with those made so far.
  std::uint32_t computed = 0;  ///< Those of them in the cache.
  std::uint32_t made = 0;      ///< Tokens of the answer so far.
  std::uint32_t outputs = 1;   ///< Tokens of the whole answer.
  std::uint32_t hits = 0;      ///< Tokens of the prompt that were found in the cache,
  /// and of them those in each memory behind the GPU's.
  std::array<std::uint32_t, most_tiers> tier_hits{};
  std::uint32_t to_load = 0;  ///< Tokens to load with its first part (HostKvLoading).
  std::uint32_t preemptions = 0;
  std::uint32_t to_compute = 0;  ///< Replica::prompts_to_compute()
  Seconds arrival;               ///< Arrival at the replica.
  Seconds started{-1};           ///< Start of its first iteration; below 0: none yet.
  Seconds first_token{-1}, last_token{-1};
  // State in a batch:
  std::int64_t joined = 0;    ///< The decode step at which it joins the decodes.
  std::int64_t reserved = 0;  ///< Blocks taken at admission for all of it; 0: as tokens come.
  std::uint32_t nodes = 0;    ///< Nodes of the prefix tree that it uses, and the last of them.
  PrefixTree::Index deepest = PrefixTree::none;
  std::uint32_t stamp = 0;  ///< Changes each time that its place is given to another.
  bool decodes = false;
  bool remote = false;  ///< Another pool computes its prompt and sends its keys and values.
};

/// Blocks that are kept for a request after it has left the batch.
struct KeptBlocks {
  std::int64_t blocks = 0;
  PrefixTree::Index deepest = PrefixTree::none;
};

/// A part of a prompt that the next iteration computes.
struct Chunk {
  std::uint32_t place = 0;
  std::uint32_t tokens = 0;
};

/// The requests of a replica: those that wait, those whose prompt is being computed, and those that
/// decode, with their blocks. Decodes are never touched one by one: what changes with every step is
/// kept in sums, and their ends in a heap by the number of the step.
class ServingBatch {
 public:
  /// `store`: the memory that all replicas share, if the shape says so.
  ServingBatch(const RequestList& list, const BatchRules& rules, const KvShape& kv,
               SharedStore* store = nullptr);

  const BatchRules& rules() const { return rules_; }
  const KvBlocks& kv() const { return kv_; }

  // Waiting requests are first come, first served within their priority; a preempted one is the
  // first of its again.
  void wait(const Sequence& sequence) { arriving_.push_back(sequence); }
  bool has_waiting() const { return !waiting_.empty() || !arriving_.empty(); }
  /// From here on the scheduler knows of requests that came until `time`; it is `now`.
  void see_until(Seconds time, Seconds now);
  bool has_seen_waiting() const { return !waiting_.empty(); }
  /// The first one joins the decodes as soon as there are blocks for it.
  bool next_is_kept() const {
    return rules_.keeps_preempted && !waiting_.empty() && waiting_.front().preemptions > 0;
  }
  std::int64_t waiting() const {
    return static_cast<std::int64_t>(waiting_.size() + arriving_.size());
  }
  /// Those of them that the scheduler has seen.
  std::int64_t seen_waiting() const { return static_cast<std::int64_t>(waiting_.size()); }
  /// No prompt begins in the next iteration (BatchRules::prefill_delay).
  void hold_prompts(bool holds) { holds_prompts_ = holds; }
  bool holds_prompts() const { return holds_prompts_; }
  /// Kept requests that joined the decodes again since the last call.
  std::vector<FinishQueue::Entry> take_rejoined() { return std::exchange(rejoined_, {}); }
  /// Tokens of the first one's prompt, without those in the cache; and its blocks.
  struct Candidate {
    std::int64_t tokens = 0;
    std::int64_t prompt = 0;
    std::int64_t outputs_left = 0;
    std::int64_t prompt_blocks = 0;  ///< Blocks that admission takes from available().
    std::int64_t all_blocks = 0;     ///< The same with those of its whole answer.
    /// Tokens of its prompt that come from memories behind the GPU's, and by memory; and the time
    /// at which all of them are in the host's.
    std::int64_t below_tokens = 0;
    std::array<std::int64_t, most_tiers> tier_tokens{};
    Seconds fetched;
    bool remote = false;  ///< There is nothing to compute: another pool does,
    bool kept = false;    ///< or it was computed before a preemption.
    PrefixPath path;      ///< Nodes of its prompt, and how many are present.
    KvBlocks::Match match;
  };
  Candidate candidate() const;
  /// Tokens of a request's prompt that are in the cache.
  std::int64_t known_tokens(std::uint32_t index) const;
  /// Gives the candidate's prompt its blocks, and with `reserving` those of its answer. A remote
  /// one then waits in placed() for its keys and values; one that needs tokens from a memory behind
  /// the GPU's waits, too, if they are not in the host's yet or BatchRules::loading is `apart`.
  /// False: there is nothing to compute yet.
  bool admit(const Candidate& candidate, bool reserving, Seconds now);

  /// Places of remote requests that were admitted since the last clear_placed().
  const std::vector<std::uint32_t>& placed() const { return placed_; }
  void clear_placed() { placed_.clear(); }
  /// Keys and values of a placed request have arrived: it may decode.
  void receive(std::uint32_t place);

  /// Loads that end until `time` are complete: their prompts go on.
  void end_loads(Seconds time);
  /// End of the next of those loads; 1e300 s: there is none.
  Seconds next_load() const { return loads_.empty() ? Seconds{1e300} : loads_.front().end; }
  /// Tokens of all loads so far, by memory.
  const std::array<std::int64_t, most_tiers>& loaded_tokens() const { return loaded_tokens_; }
  /// Tokens to load for prompts that begin in the next iteration, which waits for them.
  std::int64_t tokens_to_load() const { return to_load_; }

  // The next iteration.
  void clear_iteration() { chunks_.clear(), decodes_run_ = false, to_load_ = 0; }
  /// Places of requests whose prompt is not complete, in the order in which they came.
  const std::vector<std::uint32_t>& prefilling() const { return prefilling_; }
  const Sequence& sequence(std::uint32_t place) const { return sequences_[place]; }
  void compute(std::uint32_t place, std::int64_t tokens);
  void run_decodes() { decodes_run_ = decodes_ > 0; }
  const std::vector<Chunk>& chunks() const { return chunks_; }
  bool decodes_run() const { return decodes_run_; }

  std::int64_t running() const { return running_; }
  /// True if one more may run, by the number of requests and the windows of the first that waits.
  bool has_place() const {
    return running_ < rules_.most_requests &&
           (windows_pool_.tokens == 0 || running_ == 0 || !has_waiting() ||
            windows_held_ + windows_pool_.of(first_waiting().prompt) <= windows_pool_.tokens);
  }
  std::int64_t decodes() const { return decodes_; }
  std::int64_t context() const { return context_; }
  std::int64_t step() const { return step_; }  ///< Tokens that decodes have made so far.
  /// Tokens that are still to come of all that run, of each `most` at most.
  double answers_left(std::int64_t most) const;

  /// Blocks that the next step of the decodes may take. Tokens of each decode that blocks last for,
  /// if no request comes, and tokens until the next one is at its end: steps, if a step brings one.
  std::int64_t growth_of_step() const;
  std::int64_t tokens_until_full() const;
  std::int64_t tokens_until_finish();
  /// Of those with the lowest priority, the request that came last waits again. There must be two.
  void preempt_youngest(Seconds now);

  // Results of an iteration.
  void advance(std::int64_t tokens);  ///< Each decode has made them.
  /// A chunk is computed; true if it was the prompt's last.
  bool computed(const Chunk& chunk);
  Sequence& at(std::uint32_t place) { return sequences_[place]; }
  void join_decodes(std::uint32_t place);
  /// The place of a request that has made all its tokens, or `no_place`.
  static constexpr std::uint32_t no_place = 0xffffffff;
  std::uint32_t next_finished();
  /// The request leaves, and gives its blocks back.
  void leave(std::uint32_t place);
  /// A request that has just left had all its answer, which stays in the cache behind its prompt
  /// until its space is needed (Request::kept_hashes).
  void keep_answer(std::uint32_t index);
  /// The request leaves, but its blocks stay until they are given back.
  KeptBlocks leave_keeping(std::uint32_t place);
  void give_back(const KeptBlocks& kept);

 private:
  const Sequence& first_waiting() const {
    return waiting_.empty() ? arriving_.front() : waiting_.front();
  }
  int priority_of(const Sequence& sequence) const {
    return list_.priority_of(list_.requests[sequence.request]);
  }
  std::int64_t context_of(const Sequence& sequence) const {
    return sequence.prompt + (step_ - sequence.joined);
  }
  std::int64_t own_blocks(const Sequence& sequence) const;
  std::int64_t prompt_blocks(std::int64_t prompt, std::size_t nodes, bool remote) const;
  void plan_fetch(const Sequence& sequence, Candidate& of) const;
  Seconds fetch_begin(std::size_t tier, Seconds from) const;
  std::int64_t growth(const Sequence& sequence, std::int64_t context) const;
  std::int64_t not_kept(const Sequence& sequence, std::int64_t context) const;
  PrefixPath path_of(std::uint32_t index, std::uint32_t most) const;  // Up to `most` tokens.
  PrefixPath path_over(const Request& request, std::uint32_t hashes, std::int64_t tokens) const;
  void leave_window(std::uint32_t place);
  void leave_decodes(std::uint32_t place);
  void free_place(std::uint32_t place);
  std::size_t phase_of(std::int64_t context) const;

  const RequestList& list_;
  BatchRules rules_;
  KvBlocks kv_;
  std::deque<Sequence> waiting_;   // By priority; those of equal ones as they came.
  std::deque<Sequence> arriving_;  // Those that the scheduler has not seen.
  Seconds clock_;
  bool holds_prompts_ = false;
  std::vector<Sequence> sequences_;
  std::vector<std::uint32_t> free_places_;
  std::vector<std::uint32_t> prefilling_;
  std::vector<std::uint32_t> placed_;
  std::vector<FinishQueue::Entry> rejoined_;
  std::vector<std::uint32_t> receiving_;   // Admitted, and their keys and values are to come.
  std::vector<FinishQueue::Entry> order_;  // Running ones as they came; some have left.
  FinishQueue finishes_;
  std::vector<Chunk> chunks_;
  struct Load {
    Seconds end;
    std::uint32_t place;
  };
  std::deque<Load> loads_;  // By their ends.
  Seconds loads_end_;       // End of the last use of the link.
  SharedStore* store_;
  std::array<Seconds, most_tiers> tier_free_{};  // From when on each can be read.
  std::array<std::int64_t, most_tiers> loaded_tokens_{};
  std::int64_t to_load_ = 0;
  // Blocks that decodes take, by the step, modulo a block, that takes them; and their sum.
  std::vector<std::int64_t> phases_;
  std::int64_t growth_ = 0;
  // The steps that take decodes' last blocks in windowed groups: from there on, each new one of
  // these takes the place of one that the window has left.
  FinishQueue windows_;
  std::int64_t most_windowed_prompt_, most_windowed_decode_;  // Blocks of a group.
  WindowPool windows_pool_;
  std::int64_t windows_held_ = 0;  // Its tokens that running requests hold.
  bool decodes_run_ = false;
  std::int64_t running_ = 0, decodes_ = 0, context_ = 0, step_ = 0;
};

/// Fills an iteration with prompts while its budget of tokens lasts, for all schedulers.
class PromptTurn {
 public:
  PromptTurn(ServingBatch& batch, std::int64_t budget, Seconds now)
      : batch_{batch}, budget_{budget}, now_{now} {}

  /// Prompts of which a part is computed continue, first come first served.
  void resume();
  /// Another may begin if a request waits, and the budget and the places of the batch last.
  bool may_begin() const;
  /// A prompt that may not be cut and is longer than the budget has an iteration to itself.
  bool takes(const ServingBatch::Candidate& next) const;
  /// The first request that waits gets its blocks and as many tokens as the budget allows. If
  /// another pool computes its prompt, or the host's memory holds a part of it, it gets blocks
  /// alone.
  void begin(const ServingBatch::Candidate& next, bool reserving);

 private:
  ServingBatch& batch_;
  std::int64_t budget_;
  Seconds now_;
};

/// Preempts the youngest requests until the next step of the decodes has its blocks.
void free_blocks_for_step(ServingBatch& batch, Seconds now);

}  // namespace orrery
