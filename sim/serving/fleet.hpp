#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/core/enum_words.hpp"
#include "sim/core/random.hpp"
#include "sim/engine/event_queue.hpp"
#include "sim/serving/replica.hpp"

namespace orrery {

/// Whether it looks at the replicas. Others split a stream before anything is simulated.
bool looks_at_replicas(Routing routing);

/// Chooses a replica for one request after the other.
class RequestRouter {
 public:
  /// `server`: number from 1 on of a router behind another one, which draws apart from it.
  RequestRouter(Routing routing, std::uint32_t replicas, std::uint64_t seed,
                std::uint32_t server = 0, RouterWeights weights = {});

  /// Requires a routing that does not look at replicas.
  std::uint32_t choose(const Request& request);
  /// Works for any routing; `replicas` are in their present state.
  std::uint32_t choose(const Request& request, std::uint32_t index,
                       const std::deque<Replica>& replicas, Seconds now);
  /// The same router, of requests in this list; for choices that look at their prompts.
  RequestRouter& of(const RequestList& list) {
    list_ = &list;
    return *this;
  }
  /// From here on only these take requests, in this order; at least one. A session whose replica
  /// does not is placed again.
  void open(std::vector<std::uint32_t> replicas);

 private:
  Routing routing_;
  std::vector<std::uint32_t> open_;
  std::vector<bool> is_open_;  // By number.
  std::uint32_t fewest_tokens(const std::deque<Replica>& replicas) const;
  std::uint32_t of_session(std::uint32_t session, const std::deque<Replica>& replicas);
  std::span<const std::uint64_t> noted_hashes(const Request& request) const;
  std::uint64_t hash_of(const Request& request, std::uint64_t hash) const {
    return hash + list_->hash_offset(request);
  }
  double noted_share(const Request& request, std::uint32_t replica) const;
  void note(const Request& request, std::uint32_t replica, const std::deque<Replica>& replicas);
  std::uint32_t best_score(const Request& request, std::uint32_t index,
                           const std::deque<Replica>& replicas, Seconds now);
  std::uint32_t least_work(const Request& request, std::uint32_t index,
                           const std::deque<Replica>& replicas);

  RouterWeights weights_;
  std::size_t turn_ = 0;
  std::uint32_t server_;
  Random random_;
  std::unordered_map<std::uint32_t, std::uint32_t> homes_;  // The replica of each session.
  std::vector<std::uint32_t> sessions_;                     // Their number at each replica.
  const RequestList* list_ = nullptr;
  std::vector<TierBlocks> noted_;  // Beginnings of prompts that each replica was sent.
  // Metrics of all replicas at the last look.
  struct Metrics {
    std::int64_t waiting = 0;
    double free = 1.0;  // Share of the cache.
  };
  std::vector<Metrics> metrics_;
  Seconds looked_{-1.0};
};

/// Replicas on one clock, for a router that looks at them when a request arrives: a heap of their
/// next changes. Replicas of a pipeline take turns; copies of attention go in step.
class Fleet {
 public:
  /// Keeps references to `list`, `shape` and `times`. The replicas of a pipeline (one a stage), or
  /// the copies of one attention, have consecutive numbers.
  Fleet(const RequestList& list, const ReplicaShape& shape, std::uint32_t replicas,
        StepTimes& times, RequestRouter router);

  /// Runs until all requests of `source` are answered. Calls `ended` with a replica after each of
  /// its completions, and `delivered` with a request and the number of its replica.
  template <class Source, class Ended>
  void run(Source& source, const Ended& ended) {
    run(source, ended, [](std::uint32_t, std::uint32_t) {});
  }
  template <class Source, class Ended, class Delivered>
  void run(Source& source, const Ended& ended, const Delivered& delivered) {
    while (true) {
      const Seconds change = next_change();
      const Seconds now = std::min(change, source.next());
      if (now == Replica::never) return;
      // All completions of this moment precede the routing of its arrivals.
      complete_all(now, [&](const Replica& replica, std::uint32_t) {
        source.ended(replica.ended(), now);
        ended(replica);
      });
      while (source.next() <= now) {
        const std::uint32_t request = source.take();
        delivered(request, deliver(request, now));
      }
      start_all(now);
    }
  }

  const std::deque<Replica>& replicas() const { return replicas_; }

  /// Adds `count` idle replicas with empty caches, whole pipelines and groups of copies; returns
  /// the number of the first. The router does not know them before it is told (router()).
  std::uint32_t add(std::uint32_t count);
  RequestRouter& router() { return router_; }

  // Single steps of run(), for driving several fleets on one clock. Each moment first has all
  // completions, then all deliveries, then start_all().

  /// Time of the next completion; Replica::never if there is none.
  Seconds next_change();
  /// Completes all work that ends at `now`, and calls `completed(replica, number)` for each.
  template <class Completed>
  void complete_all(Seconds now, const Completed& completed) {
    while (next_change() == now) {
      const std::uint32_t group = changes_.next().event.group;
      changes_.pop();
      for (std::uint32_t copy = 0; copy < copies_; ++copy) {
        const std::uint32_t number = group * copies_ + copy;
        if (replicas_[number].is_idle()) continue;
        replicas_[number].complete();
        completed(replicas_[number], number);
      }
      will_start(group);
    }
  }
  /// Sends request `index` to the replica that the router chooses, and returns its number.
  std::uint32_t deliver(std::uint32_t index, Seconds now);
  std::uint32_t deliver_remote(std::uint32_t index, Seconds now);
  /// Calls Replica::receive() or release(), after which the replica may have something to do.
  void receive(std::uint32_t replica, const PlacedRequest& placed,
               const PrefilledRequest& prefilled, Seconds now);
  void release(std::uint32_t replica, const PrefilledRequest& request);
  /// Starts groups with something new to do, and calls `started(replica, number)` for each replica.
  template <class Started>
  void start_all(Seconds now, const Started& started) {
    started_.swap(to_start_);
    to_start_.clear();
    for (const std::uint32_t group : started_) {
      start_group(group, now);
      for (std::uint32_t copy = 0; copy < copies_; ++copy) {
        const std::uint32_t number = group * copies_ + copy;
        started(replicas_[number], number);
      }
    }
    started_.clear();
  }
  void start_all(Seconds now) {
    start_all(now, [](Replica&, std::uint32_t) {});
  }

 private:
  // A group is one replica, or the copies of attention that go in step.
  struct Change {
    std::uint32_t group = 0;
    std::uint64_t version = 0;
  };

  // Prompts that wait for room or for other copies (BatchRules::prefill_delay).
  struct Delay {
    std::int64_t passes = -1;       // Iterations for which they have waited; below 0: none waits.
    std::int64_t most_prompts = 0;  // That a copy has begun or continued in one iteration.
    bool for_room = false, was_for_room = false;
  };

  const std::vector<Replica*>& running(std::uint32_t group);
  void expect(std::uint32_t group);
  void will_start(std::uint32_t group);
  void start_group(std::uint32_t group, Seconds now);
  void go_in_step(std::uint32_t group);
  bool delays_prompts(std::uint32_t group);
  void cut_others(std::uint32_t group, std::int64_t were_busy, Seconds now);
  std::int64_t busy(std::uint32_t group) const { return busy_[group / stages_]; }
  template <class Action>
  void update_replica(std::uint32_t number, Seconds now, const Action& action);

  const RequestList& list_;
  const ReplicaShape& shape_;
  StepTimes& times_;
  std::unique_ptr<SharedStore> store_;  // Of all replicas; null: there is none.
  RequestRouter router_;
  std::uint32_t copies_, stages_;
  std::int64_t delay_;  // BatchRules::prefill_delay.
  std::int64_t most_requests_;
  std::deque<Replica> replicas_;
  EventQueue<Seconds, Change> changes_;  // Simultaneous changes come by their group.
  std::vector<std::uint64_t> versions_;  // The valid change of each group.
  std::vector<std::uint32_t> to_start_;  // Groups that may start at this moment.
  std::vector<std::uint32_t> started_;
  std::vector<bool> starts_;       // True for groups in to_start_.
  std::vector<Delay> delays_;      // Of each group.
  std::deque<std::int64_t> busy_;  // Replicas with work, by pipeline.
  std::vector<Replica*> running_;
};

}  // namespace orrery
