#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "sim/core/worker_pool.hpp"

namespace orrery {

/// One forked process and the socket to it, as its parent sees them. Tasks are answered in the
/// order in which they were sent.
class WorkerProcess {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t most_depth = 64;

  struct Reply {
    std::uint64_t ticket = 0;
    Answer answer;
    std::string failure;   ///< An exception that the task ended with.
    bool stopped = false;  ///< Of a failure: memory was at an end.
  };

  /// How a process ended, in words: "ended by signal 11 (Segmentation fault)".
  struct End {
    std::string text;
    bool killed = false;  ///< By somebody else, such as the kernel when memory is at an end.
  };

  /// Forks. `close_first`: sockets of the parent that are nothing to this worker.
  WorkerProcess(const std::function<Answer(std::int64_t)>& work, const WorkerLimits& limits,
                const std::vector<int>& close_first);
  ~WorkerProcess();  ///< Kills it if it still runs.
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  int socket() const { return socket_; }
  void send(std::uint64_t ticket, std::int64_t task);
  /// Tickets sent and not yet answered, the one that it is at first.
  const std::deque<std::uint64_t>& waiting() const { return waiting_; }
  /// How many tasks it should have, so that short ones do not wait for this process to wake up.
  std::size_t useful_depth() const;

  /// What has arrived, without waiting. `ended()` tells afterwards whether it will say more.
  std::vector<Reply> receive();
  bool ended() const { return ended_; }
  /// Whether its last answer said so: it ended of its own accord, and no task is to blame.
  bool spent() const { return spent_; }
  /// Since when it has been at its first waiting task.
  Clock::time_point busy_since() const { return busy_since_; }

  /// Kills it if it still runs.
  End end();

 private:
  int socket_ = -1;
  pid_t process_ = -1;
  std::deque<std::uint64_t> waiting_;
  std::string received_;
  bool ended_ = false;
  bool spent_ = false;
  Clock::time_point busy_since_;
  double task_s_ = 1.0;  ///< Smoothed time of a task.
};

}  // namespace orrery
