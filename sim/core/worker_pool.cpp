#include "sim/core/worker_pool.hpp"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <deque>
#include <memory>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "sim/core/error.hpp"
#include "sim/core/interruption.hpp"
#include "sim/core/worker_process.hpp"

namespace orrery {
namespace {

using Clock = WorkerProcess::Clock;

std::string seconds_text(Seconds time) {
  char text[32];
  std::snprintf(text, sizeof text, "%g s", time.si());
  return text;
}

// Tasks get tickets 0, 1, ... in the order of `next`; outcomes wait in a window until all before
// them are there.
class Pool {
 public:
  Pool(int workers, const WorkerLimits& limits,
       const std::function<std::optional<std::int64_t>()>& next,
       const std::function<Answer(std::int64_t)>& work,
       const std::function<bool(const Outcome&)>& deliver)
      : limits_{limits}, next_{next}, work_{work}, deliver_{deliver} {
    workers_.resize(static_cast<std::size_t>(std::max(1, workers)));
  }

  void run() {
    while (!Interruption::asked() && deliver_finished() && hand_out()) {
      wait();
      for (auto& worker : workers_)
        if (worker) listen(worker);
    }
  }

 private:
  struct Slot {
    Outcome outcome;
    bool finished = false;
    int kills = 0;  // Of workers that were at it.
  };

  Slot& slot(std::uint64_t ticket) { return window_[ticket - delivered_]; }

  bool deliver_finished() {
    for (; !window_.empty() && window_.front().finished; ++delivered_) {
      if (!deliver_(window_.front().outcome)) return false;
      window_.pop_front();
    }
    return true;
  }

  // The smallest ticket that nobody is at, fetching a new task if the window has room.
  std::optional<std::uint64_t> take_ticket() {
    if (!returned_.empty()) return returned_.extract(returned_.begin()).value();
    constexpr std::size_t ahead_of_a_worker = 256;
    if (exhausted_ || window_.size() >= ahead_of_a_worker * workers_.size()) return std::nullopt;
    const std::optional<std::int64_t> task = next_();
    exhausted_ = !task;
    if (!task) return std::nullopt;
    window_.push_back({{*task, "", ""}});
    return delivered_ + window_.size() - 1;
  }

  // False when nothing is left to wait for.
  bool hand_out() {
    bool busy = std::any_of(workers_.begin(), workers_.end(), [](const auto& worker) {
      return worker && !worker->waiting().empty();
    });
    // Round by round, so that no worker hoards what another could begin.
    for (std::size_t depth = 1; depth <= WorkerProcess::most_depth; ++depth)
      for (auto& worker : workers_) {
        const std::size_t has = worker ? worker->waiting().size() : 0;
        if (has >= depth || depth > (worker ? worker->useful_depth() : 1)) continue;
        const std::optional<std::uint64_t> ticket = take_ticket();
        if (!ticket) return busy;
        if (!worker && !(worker = another_worker())) {
          returned_.insert(*ticket);
          continue;
        }
        worker->send(*ticket, slot(*ticket).outcome.task);
        busy = true;
      }
    return busy;
  }

  // Null where the machine allows no more processes or sockets than others have.
  std::unique_ptr<WorkerProcess> another_worker() {
    const std::vector<int> others = sockets();
    if (crowded_ && !others.empty()) return nullptr;
    try {
      return std::make_unique<WorkerProcess>(work_, limits_, others);
    } catch (const std::system_error& error) {
      if (others.empty())
        fail_input({}, std::string{"no worker can be started: "} + error.what(),
                   "raise the limits on processes and open files (ulimit -u, ulimit -n)");
      crowded_ = true;
      return nullptr;
    }
  }

  std::vector<int> sockets() const {
    std::vector<int> open;
    for (const auto& worker : workers_)
      if (worker) open.push_back(worker->socket());
    return open;
  }

  void wait() {
    std::vector<pollfd> polled;
    // Ctrl-C between a look and the wait is seen at the next look.
    int timeout_ms = 200;
    for (const auto& worker : workers_) {
      if (!worker) continue;
      polled.push_back({worker->socket(), POLLIN, 0});
      if (limits_.time.si() <= 0.0 || worker->waiting().empty()) continue;
      const double left_s = limits_.time.si() - at_it_for(*worker).si();
      const int left_ms = static_cast<int>(std::clamp(std::ceil(1e3 * left_s), 0.0, 1e9));
      timeout_ms = std::min(timeout_ms, left_ms);
    }
    if (::poll(polled.data(), polled.size(), timeout_ms) < 0 && errno != EINTR)
      throw std::system_error{errno, std::generic_category(), "cannot wait for workers"};
  }

  static Seconds at_it_for(const WorkerProcess& worker) {
    const std::chrono::duration<double> time = Clock::now() - worker.busy_since();
    return Seconds{time.count()};
  }

  void listen(std::unique_ptr<WorkerProcess>& worker) {
    for (WorkerProcess::Reply& reply : worker->receive())
      finish(reply.ticket, std::move(reply.answer.bytes), std::move(reply.failure), reply.stopped);
    const bool too_long =
        limits_.time.si() > 0.0 && !worker->waiting().empty() && at_it_for(*worker) > limits_.time;
    if (worker->ended() || worker->spent()) {
      replace(worker, "");
    } else if (too_long) {
      replace(worker, "took longer than " + seconds_text(limits_.time));
    }
  }

  // Its place is empty until somebody has use for it. `too_long` "": it ended by itself.
  void replace(std::unique_ptr<WorkerProcess>& worker, const std::string& too_long) {
    constexpr int most_kills = 3;  // More is no accident: the task takes more than there is.
    const bool blameless = worker->spent();
    std::deque<std::uint64_t> left = worker->waiting();
    const WorkerProcess::End end = worker->end();
    worker.reset();
    crowded_ = false;
    if (!blameless && !left.empty()) {
      const bool again = too_long.empty() && end.killed && ++slot(left.front()).kills < most_kills;
      if (!again) {
        finish(left.front(), "", too_long.empty() ? end.text : too_long,
               !too_long.empty() || end.killed);
        left.pop_front();
      }
    }
    returned_.insert(left.begin(), left.end());
  }

  void finish(std::uint64_t ticket, std::string bytes, std::string failure, bool stopped) {
    Slot& at = slot(ticket);
    at.outcome.bytes = std::move(bytes);
    at.outcome.failure = std::move(failure);
    at.outcome.stopped = stopped;
    at.finished = true;
  }

  const WorkerLimits& limits_;
  const std::function<std::optional<std::int64_t>()>& next_;
  const std::function<Answer(std::int64_t)>& work_;
  const std::function<bool(const Outcome&)>& deliver_;
  std::vector<std::unique_ptr<WorkerProcess>> workers_;
  std::deque<Slot> window_;           // Tickets delivered_, delivered_ + 1, ...
  std::set<std::uint64_t> returned_;  // By workers that ended before they began them.
  std::uint64_t delivered_ = 0;
  bool exhausted_ = false;
  bool crowded_ = false;  // No worker could be started, and none has ended since.
};

}  // namespace

void run_tasks(int workers, const WorkerLimits& limits,
               const std::function<std::optional<std::int64_t>()>& next,
               const std::function<Answer(std::int64_t)>& work,
               const std::function<bool(const Outcome&)>& deliver) {
  Pool{workers, limits, next, work, deliver}.run();
}

}  // namespace orrery
