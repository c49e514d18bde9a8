#pragma once

#include <sys/types.h>

#include <cassert>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "sim/core/units.hpp"

namespace orrery {

/// All bytes of a message, from a pipe or socket and to a socket. False: the other side is gone.
bool read_all(int from, void* into, std::size_t size);
bool send_all(int to, const void* data, std::size_t size);

/// A sequence of values that a worker sends to its parent, which is the same program.
class AnswerWriter {
 public:
  template <class Value>
  void put(const Value& value) {
    static_assert(std::is_trivially_copyable_v<Value>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void put_text(const std::string& text) {
    put(text.size());
    bytes_ += text;
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Takes them in the order in which they were put.
class AnswerReader {
 public:
  explicit AnswerReader(const std::string& bytes) : bytes_{bytes} {}
  template <class Value>
  Value get() {
    Value value;
    assert(at_ + sizeof value <= bytes_.size());
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  std::string get_text() {
    const auto size = get<std::size_t>();
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }

 private:
  const std::string& bytes_;
  std::size_t at_ = 0;
};

/// A worker's answer to one task.
struct Answer {
  std::string bytes;
  /// This process must not work on: its simulation engine has run, so that the next result would
  /// depend on the last. A fresh one takes its place.
  bool spent = false;
};

/// A task's outcome. The end of a worker is the outcome of the task that it was at.
struct Outcome {
  std::int64_t task = 0;
  std::string bytes;
  std::string failure;  ///< Why there is no answer: a signal, a limit, an exception. Empty: none.
  /// Of a failure: the machine's, such as a kill or a limit. The task may have an answer elsewhere,
  /// or later.
  bool stopped = false;
};

struct WorkerLimits {
  Seconds time;  ///< Wall clock a task may take; 0: any.
  Bytes memory;  ///< Address space of a worker; 0: any.
};

enum class Delivery {
  /// In the order in which tasks were given, whatever the number of workers: what is written cannot
  /// depend on it.
  in_order,
  /// Each outcome as soon as it is there: none that is there is lost when the run ends early.
  as_finished
};

/// Works on tasks in `workers` processes, forked from this one when they are needed: what it has
/// read and built before is theirs as well, and what they do to it stays with them.
///
/// next     The next task, or nothing when there is none left. Called as far ahead of `deliver` as
///          keeps the workers busy: a few hundred tasks, whatever their number.
/// work     Runs in a worker.
/// deliver  Gets the outcomes. False ends the run early, and so does Ctrl-C where an Interruption
///          lives: tasks that are not delivered by then never are.
///
/// A worker that crashes, runs out of memory or time fails its task and is replaced; the tasks that
/// waited for it go to others. A task whose worker was killed gets another one twice. Workers end
/// with this process, also when it is killed, and leave signals that ask them to end to it.
void run_tasks(int workers, const WorkerLimits& limits,
               const std::function<std::optional<std::int64_t>()>& next,
               const std::function<Answer(std::int64_t)>& work,
               const std::function<bool(const Outcome&)>& deliver,
               Delivery order = Delivery::in_order);

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
    bool stopped = false;  ///< The failure is a lack of memory.
  };

  /// The end of a process in words: "ended by signal 11 (Segmentation fault)".
  struct End {
    std::string text;
    bool killed = false;  ///< Another process did it, such as the kernel when memory is at an end.
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
  /// The number of tasks that it should have, so that short ones do not wait for it to wake up.
  std::size_t useful_depth() const;

  /// Replies that have arrived, without waiting; then `ended()` is true if no more will follow.
  std::vector<Reply> receive();
  bool ended() const { return ended_; }
  /// True if its last answer said so: it ended of its own accord, and no task is to blame.
  bool spent() const { return spent_; }
  /// The time at which it began its first waiting task.
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
