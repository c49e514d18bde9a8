#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include "sim/core/units.hpp"
#include "sim/serving/kv_cache.hpp"
#include "sim/serving/request.hpp"
#include "sim/serving/serving_engine.hpp"

namespace orrery {

/// The limits of a batch. The defaults of engines are in their files.
struct BatchRules {
  const SchedulerKind* scheduler = schedulers().front();
  std::int64_t budget = 8192;         ///< Tokens of an iteration at most.
  std::int64_t most_requests = 1024;  ///< In a batch.
  bool chunked = true;                ///< A prompt may be computed in parts.
  bool mixed = false;                 ///< Decodes go on in iterations with prompts.
  /// An iteration is planned while the one before it runs, so that who comes meanwhile is in the
  /// one after it: vLLM's asynchronous scheduling, the overlapped schedulers of SGLang and
  /// TensorRT-LLM.
  bool plans_ahead = false;
  /// Tokens of a request that a decode step works on, for which it needs blocks, and how many it
  /// brings on average: more than one with speculative decoding (StepProgress).
  int step_tokens = 1;
  double progress = 1.0;
  /// When tokens come back from the host's memory, and how long the link to it takes for one.
  HostKvLoading loading = HostKvLoading::before;
  Seconds load_token;
  int load_layers = 1;  ///< Of HostKvLoading::layers.
};

/// Who has made its last token after which decode step: a heap by the number of the step, so that
/// nothing is touched while the batch runs. Who leaves before stays in it, told by its stamp.
class FinishQueue {
 public:
  struct Entry {
    std::int64_t step = 0;
    std::uint32_t place = 0;
    std::uint32_t stamp = 0;

    // Of one step the lower place first: an order that does not depend on how the heap grew.
    bool operator>(const Entry& other) const {
      return step != other.step ? step > other.step : place > other.place;
    }
  };

  bool empty() const { return heap_.empty(); }
  const Entry& first() const { return heap_.front(); }
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
  std::uint32_t prompt = 0;     ///< Tokens to prefill; after a preemption with those made so far.
  std::uint32_t computed = 0;   ///< Of them, those in the cache.
  std::uint32_t made = 0;       ///< Tokens of the answer so far.
  std::uint32_t outputs = 1;    ///< Of the whole answer.
  std::uint32_t hits = 0;       ///< Tokens of the prompt that were found in the cache,
  std::uint32_t host_hits = 0;  ///< and of them those in the host's memory.
  std::uint32_t preemptions = 0;
  Seconds arrival;      ///< At the replica.
  Seconds started{-1};  ///< When it was first in an iteration; below 0: not yet.
  Seconds first_token{-1}, last_token{-1};
  // In a batch:
  std::int64_t joined = 0;    ///< The decode step at which it joins the decodes.
  std::int64_t reserved = 0;  ///< Blocks taken at admission for all of it; 0: as tokens come.
  std::uint32_t nodes = 0;    ///< Of the prefix tree that it uses, and the last of them.
  PrefixTree::Index deepest = PrefixTree::none;
  std::uint32_t stamp = 0;  ///< Changes each time that its place is given to another.
  bool decodes = false;
  bool remote = false;  ///< Another pool computes its prompt: keys and values come from there.
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

/// What a replica holds: those that wait, those whose prompt is being computed, and those that
/// decode, with their blocks. Decodes are never touched one by one: what changes with every step is
/// kept in sums, and their ends in a heap by the number of the step.
class ServingBatch {
 public:
  ServingBatch(const RequestList& list, const BatchRules& rules, const KvShape& kv);

  const BatchRules& rules() const { return rules_; }
  const KvBlocks& kv() const { return kv_; }

  // Those that wait, first come first served; who is preempted is first again.
  void wait(const Sequence& sequence) { waiting_.push_back(sequence); }
  bool anybody_waits() const { return !waiting_.empty(); }
  /// Whom the scheduler can know of: those that came until then.
  void see_until(Seconds time) { seen_until_ = time; }
  bool anybody_seen_waits() const {
    return !waiting_.empty() && waiting_.front().arrival <= seen_until_;
  }
  std::int64_t waiting() const { return static_cast<std::int64_t>(waiting_.size()); }
  /// Tokens of the first one's prompt, those in the cache taken off; and its blocks.
  struct Candidate {
    std::int64_t tokens = 0;
    std::int64_t prompt = 0;
    std::int64_t outputs_left = 0;
    std::int64_t prompt_blocks = 0;  ///< That admission takes from those available.
    std::int64_t all_blocks = 0;     ///< The same with those of its whole answer.
    std::int64_t host_tokens = 0;    ///< Of its prompt, those that come from the host.
    bool remote = false;             ///< There is nothing to compute.
    PrefixWay way;                   ///< Of its prompt, and how much of it is there.
    KvBlocks::Match match;
  };
  Candidate candidate() const;
  /// Tokens of a request's prompt that are in the cache.
  std::int64_t known_tokens(std::uint32_t index) const;
  /// The candidate's prompt gets its blocks, with `reserving` those of its answer, too. Whoever is
  /// remote then waits for its keys and values: it is among called(). So does who needs tokens
  /// from the host, where BatchRules::loading is `apart`. False: there is nothing to compute yet.
  bool admit(const Candidate& candidate, bool reserving, Seconds now);

  /// Places of those remote ones that were admitted since the last clear_called().
  const std::vector<std::uint32_t>& called() const { return called_; }
  void clear_called() { called_.clear(); }
  /// Keys and values of a called one have come: it may decode.
  void receive(std::uint32_t place);

  /// What came from the host until `time` is there: its prompts go on.
  void end_loads(Seconds time);
  /// When the next of those loads ends; far away: there is none.
  Seconds next_load() const { return loads_.empty() ? Seconds{1e300} : loads_.front().end; }
  /// How long the link to the host was in use for all loads so far, and their tokens.
  Seconds load_time() const { return static_cast<double>(loaded_tokens_) * rules_.load_token; }
  std::int64_t loaded_tokens() const { return loaded_tokens_; }
  /// Of them, those of prompts that begin in the next iteration, which brings them.
  std::int64_t tokens_to_load() const { return to_load_; }

  // The next iteration.
  void clear_iteration() { chunks_.clear(), decodes_run_ = false, to_load_ = 0; }
  /// Places of those whose prompt is not complete, in the order in which they came.
  const std::vector<std::uint32_t>& prefilling() const { return prefilling_; }
  const Sequence& sequence(std::uint32_t place) const { return sequences_[place]; }
  void compute(std::uint32_t place, std::int64_t tokens);
  void run_decodes() { decodes_run_ = decodes_ > 0; }
  const std::vector<Chunk>& chunks() const { return chunks_; }
  bool decodes_run() const { return decodes_run_; }

  std::int64_t running() const { return running_; }
  std::int64_t decodes() const { return decodes_; }
  std::int64_t context() const { return context_; }
  std::int64_t step() const { return step_; }  ///< Tokens that decodes have made so far.
  /// Tokens that are still to come of all that run, of each at most `most`.
  double answers_left(std::int64_t most) const;

  /// Blocks that the next step of the decodes may take. The tokens of each that they last for, if
  /// nobody comes, and those until the next one is at its end: as many as steps where a step brings
  /// one.
  std::int64_t growth_of_step() const;
  std::int64_t tokens_until_full() const;
  std::int64_t tokens_until_finish();
  /// The one that came last goes back to those that wait. There must be two.
  void preempt_youngest(Seconds now);

  // What an iteration brings about.
  void advance(std::int64_t tokens);  ///< Of each that decodes.
  /// A chunk is computed; true if this was the prompt's last.
  bool computed(const Chunk& chunk);
  Sequence& at(std::uint32_t place) { return sequences_[place]; }
  void join_decodes(std::uint32_t place);
  /// The place of one that has made all its tokens by now, or `nobody`.
  static constexpr std::uint32_t nobody = 0xffffffff;
  std::uint32_t next_finished();
  /// It leaves, and gives its blocks back.
  void leave(std::uint32_t place);
  /// It leaves, but its blocks stay until they are given back.
  KeptBlocks leave_keeping(std::uint32_t place);
  void give_back(const KeptBlocks& kept);

 private:
  std::int64_t context_of(const Sequence& sequence) const {
    return sequence.prompt + (step_ - sequence.joined);
  }
  std::int64_t own_blocks(const Sequence& sequence) const;
  PrefixWay way_of(std::uint32_t index, std::uint32_t most) const;  // Of so many tokens at most.
  void leave_decodes(std::uint32_t place);
  void free_place(std::uint32_t place);
  std::size_t phase_of(std::int64_t context) const;

  const RequestList& list_;
  BatchRules rules_;
  KvBlocks kv_;
  std::deque<Sequence> waiting_;
  Seconds seen_until_{1e300};
  std::vector<Sequence> sequences_;
  std::vector<std::uint32_t> free_places_;
  std::vector<std::uint32_t> prefilling_;
  std::vector<std::uint32_t> called_;
  std::vector<std::uint32_t> receiving_;   // Admitted, and their keys and values are to come.
  std::vector<FinishQueue::Entry> order_;  // Those that run as they came; some have left.
  FinishQueue finishes_;
  std::vector<Chunk> chunks_;
  struct Load {
    Seconds end;
    std::uint32_t place;
  };
  std::deque<Load> loads_;  // One after another.
  Seconds loads_end_;       // Of the last one.
  std::int64_t loaded_tokens_ = 0, to_load_ = 0;
  std::vector<std::int64_t> phases_;  // Decodes by the step, modulo a block, that takes a block.
  bool decodes_run_ = false;
  std::int64_t running_ = 0, decodes_ = 0, context_ = 0, step_ = 0;
  std::int64_t reserved_decodes_ = 0;
};

}  // namespace orrery
