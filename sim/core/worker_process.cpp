#include "sim/core/worker_process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>

namespace orrery {
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
    // Whoever asks the whole group to end asks the parent too, and this process ends with it: if it
    // went first, its task would look as if it had failed.
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
  // The few orders of useful_depth() always find room. A worker that is gone is noticed when read.
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

}  // namespace orrery
