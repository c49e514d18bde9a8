#include "sim/core/worker_pool.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>
#include <new>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "sim/core/error.hpp"
#include "sim/core/progress.hpp"

namespace orrery {

bool read_all(int from, void* into, std::size_t size) {
  for (std::size_t done = 0; done < size;) {
    const ssize_t count = ::read(from, static_cast<char*>(into) + done, size - done);
    if (count == 0 || (count < 0 && errno != EINTR)) return false;
    if (count > 0) done += static_cast<std::size_t>(count);
  }
  return true;
}

bool send_all(int to, const void* data, std::size_t size) {
  for (std::size_t done = 0; done < size;) {
    const ssize_t count =
        ::send(to, static_cast<const char*>(data) + done, size - done, MSG_NOSIGNAL);
    if (count < 0 && errno != EINTR) return false;
    if (count > 0) done += static_cast<std::size_t>(count);
  }
  return true;
}

namespace {

struct Order {
  std::uint64_t ticket = 0;
  std::int64_t task = 0;
};

enum class Verdict : std::uint8_t { answered, answered_and_spent, no_memory, exception };

struct Header {
  std::uint64_t ticket = 0;
  std::uint64_t size = 0;
  Verdict verdict = Verdict::answered;
};

void limit_memory(Bytes most) {
  if (most.si() <= 0.0) return;
  const auto bytes = static_cast<rlim_t>(most.si());
  const rlimit limit{bytes, bytes};
  ::setrlimit(RLIMIT_AS, &limit);
}

// The worker's life: one task after the other until the parent has no more.
void serve(int socket, const std::function<Answer(std::int64_t)>& work) {
  for (Order order; read_all(socket, &order, sizeof order);) {
    Header header{order.ticket, 0, Verdict::answered};
    std::string bytes;
    try {
      Answer answer = work(order.task);
      bytes = std::move(answer.bytes);
      if (answer.spent) header.verdict = Verdict::answered_and_spent;
    } catch (const std::bad_alloc&) {
      header.verdict = Verdict::no_memory;
    } catch (const std::exception& error) {
      header.verdict = Verdict::exception;
      bytes = error.what();
    }
    header.size = bytes.size();
    std::string frame(reinterpret_cast<const char*>(&header), sizeof header);
    frame += bytes;
    if (!send_all(socket, frame.data(), frame.size())) return;
    if (header.verdict != Verdict::answered) return;
  }
}

}  // namespace

WorkerProcess::WorkerProcess(const std::function<Answer(std::int64_t)>& work,
                             const WorkerLimits& limits, const std::vector<int>& close_first) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw std::system_error{errno, std::generic_category(), "no socket for a worker"};
  const pid_t parent = ::getpid();
  process_ = ::fork();
  if (process_ < 0) {
    const int error = errno;
    ::close(ends[0]);
    ::close(ends[1]);
    throw std::system_error{error, std::generic_category(), "no process for a worker"};
  }
  if (process_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::signal(SIGINT, SIG_IGN);              // Ctrl-C is for the parent, whose end ends this one.
    if (::getppid() != parent) ::_exit(0);  // It died before the line above.
    // A signal to the whole group ends the parent too, and this process with it: if it went first,
    // its task would look as if it had failed.
    for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) ::signal(signal, SIG_IGN);
    ::close(ends[0]);
    for (int other : close_first) ::close(other);
    limit_memory(limits.memory);
    serve(ends[1], work);
    ::_exit(0);
  }
  ::close(ends[1]);
  socket_ = ends[0];
  ::fcntl(socket_, F_SETFL, O_NONBLOCK);
}

WorkerProcess::~WorkerProcess() { end(); }

std::size_t WorkerProcess::useful_depth() const {
  // Enough for the time in which a busy parent comes back, and one where tasks take long: what
  // waits for one worker cannot be taken by another.
  constexpr double ahead_s = 2e-3;
  return static_cast<std::size_t>(
      std::clamp(ahead_s / task_s_, 1.0, static_cast<double>(most_depth)));
}

void WorkerProcess::send(std::uint64_t ticket, std::int64_t task) {
  if (waiting_.empty()) busy_since_ = Clock::now();
  waiting_.push_back(ticket);
  const Order order{ticket, task};
  // The few orders of useful_depth() always fit. A worker's end is noticed when reading.
  send_all(socket_, &order, sizeof order);
}

std::vector<WorkerProcess::Reply> WorkerProcess::receive() {
  char buffer[1 << 16];
  for (;;) {
    const ssize_t count = ::read(socket_, buffer, sizeof buffer);
    if (count > 0) {
      received_.append(buffer, static_cast<std::size_t>(count));
    } else if (count == 0 || errno == ECONNRESET) {
      ended_ = true;
      break;
    } else if (errno != EINTR) {
      break;
    }
  }

  std::vector<Reply> replies;
  std::size_t at = 0;
  for (Header header; received_.size() - at >= sizeof header;) {
    std::memcpy(&header, received_.data() + at, sizeof header);
    if (received_.size() - at - sizeof header < header.size) break;
    Reply reply{header.ticket, {}, "", header.verdict == Verdict::no_memory};
    std::string bytes = received_.substr(at + sizeof header, header.size);
    at += sizeof header + header.size;
    if (header.verdict == Verdict::no_memory)
      reply.failure = "ran out of memory";
    else if (header.verdict == Verdict::exception)
      reply.failure = "internal error: " + bytes;
    else
      reply.answer = {std::move(bytes), header.verdict == Verdict::answered_and_spent};
    spent_ = header.verdict != Verdict::answered;
    waiting_.pop_front();
    replies.push_back(std::move(reply));
  }
  received_.erase(0, at);
  if (!replies.empty()) {
    const Clock::time_point now = Clock::now();
    const double each_s = std::chrono::duration<double>(now - busy_since_).count() /
                          static_cast<double>(replies.size());
    task_s_ = 0.5 * (task_s_ + each_s);
    busy_since_ = now;
  }
  return replies;
}

WorkerProcess::End WorkerProcess::end() {
  if (process_ < 0) return {};
  if (!ended_) ::kill(process_, SIGKILL);
  ::close(socket_);
  int status = 0;
  while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  process_ = -1;
  if (!WIFSIGNALED(status)) return {"ended with exit code " + std::to_string(WEXITSTATUS(status))};
  const int signal = WTERMSIG(status);
  constexpr int of_the_program[] = {SIGSEGV, SIGABRT, SIGFPE, SIGILL, SIGSYS, SIGTRAP};
  const bool killed = std::find(std::begin(of_the_program), std::end(of_the_program), signal) ==
                      std::end(of_the_program);
  return {"ended by signal " + std::to_string(signal) + " (" + ::strsignal(signal) + ")", killed};
}

namespace {

using Clock = WorkerProcess::Clock;

std::string seconds_text(Seconds time) {
  char text[32];
  std::snprintf(text, sizeof text, "%g s", time.si());
  return text;
}

// Tasks get tickets 0, 1, ... in the order of `next`. Outcomes stay in a window until all before
// them are delivered.
class Pool {
 public:
  Pool(int workers, const WorkerLimits& limits,
       const std::function<std::optional<std::int64_t>()>& next,
       const std::function<Answer(std::int64_t)>& work,
       const std::function<bool(const Outcome&)>& deliver, Delivery order)
      : limits_{limits}, next_{next}, work_{work}, deliver_{deliver}, order_{order} {
    workers_.resize(static_cast<std::size_t>(std::max(1, workers)));
  }

  void run() {
    while (deliver_finished() && !Interruption::requested() && hand_out()) {
      wait();
      for (auto& worker : workers_)
        if (worker) listen(worker);
    }
  }

 private:
  struct Slot {
    Outcome outcome;
    bool finished = false, delivered = false;
    int kills = 0;  // Workers killed at it.
  };

  Slot& slot(std::uint64_t ticket) { return window_[ticket - delivered_]; }

  bool deliver_finished() {
    for (Slot& at : window_) {
      if (!at.finished && order_ == Delivery::in_order) break;
      if (!at.finished || at.delivered) continue;
      at.delivered = true;
      if (!deliver_(at.outcome)) return false;
    }
    for (; !window_.empty() && window_.front().delivered; ++delivered_) window_.pop_front();
    return true;
  }

  // The smallest ticket without a worker; fetches a new task if the window has space.
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

  // Its place is empty until a task needs a worker. `too_long` "": it ended by itself.
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
  const Delivery order_;
  std::vector<std::unique_ptr<WorkerProcess>> workers_;
  std::deque<Slot> window_;           // Tickets delivered_, delivered_ + 1, ...
  std::set<std::uint64_t> returned_;  // Their workers ended before they began them.
  std::uint64_t delivered_ = 0;
  bool exhausted_ = false;
  bool crowded_ = false;  // No worker could be started, and none has ended since.
};

}  // namespace

void run_tasks(int workers, const WorkerLimits& limits,
               const std::function<std::optional<std::int64_t>()>& next,
               const std::function<Answer(std::int64_t)>& work,
               const std::function<bool(const Outcome&)>& deliver, Delivery order) {
  Pool{workers, limits, next, work, deliver, order}.run();
}

}  // namespace orrery
