#include "sim/explorer/evaluator.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <list>
#include <memory>
#include <new>
#include <system_error>
#include <vector>

#include "sim/core/error.hpp"
#include "sim/core/worker_pool.hpp"
#include "sim/explorer/explored_search.hpp"

namespace orrery {
namespace {

struct QuestionHeader {
  QuestionKind kind;
  bool repair;
  std::uint32_t page_size;
};

struct PartHeader {
  ReplyParts::What what;
  int status;
  std::uint64_t size;
};

// One descriptor sent with a message (cmsg(3)).
union ControlBuffer {
  char bytes[CMSG_SPACE(sizeof(int))];
  cmsghdr align;
};

}  // namespace

void send_question(int socket, const Question& question, int reply_to) {
  QuestionHeader header{question.kind, question.repair,
                        static_cast<std::uint32_t>(question.page.size())};
  iovec parts[3] = {{&header, sizeof header},
                    {const_cast<char*>(question.page.data()), question.page.size()},
                    {const_cast<char*>(question.body.data()), question.body.size()}};
  ControlBuffer control{};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 3;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  cmsghdr* with = CMSG_FIRSTHDR(&message);
  with->cmsg_level = SOL_SOCKET;
  with->cmsg_type = SCM_RIGHTS;
  with->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(with), &reply_to, sizeof reply_to);
  while (::sendmsg(socket, &message, MSG_NOSIGNAL) < 0)
    if (errno != EINTR)
      throw std::system_error{errno, std::generic_category(), "the reader cannot be asked"};
}

std::optional<ReceivedQuestion> receive_question(int socket) {
  static std::string buffer(2 * ExploredState::most_bytes + 4096, '\0');
  iovec part{buffer.data(), buffer.size()};
  ControlBuffer control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  ssize_t size = 0;
  while ((size = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC)) < 0)
    if (errno != EINTR) return std::nullopt;
  QuestionHeader header{};
  if (static_cast<std::size_t>(size) < sizeof header) return std::nullopt;
  std::memcpy(&header, buffer.data(), sizeof header);
  ReceivedQuestion received;
  received.question.kind = header.kind;
  received.question.repair = header.repair;
  received.question.page = buffer.substr(sizeof header, header.page_size);
  const std::size_t before = sizeof header + header.page_size;
  received.question.body = buffer.substr(before, static_cast<std::size_t>(size) - before);
  if (const cmsghdr* with = CMSG_FIRSTHDR(&message))
    std::memcpy(&received.reply_to, CMSG_DATA(with), sizeof received.reply_to);
  return received;
}

bool send_part(int socket, const ReplyParts::Part& part) {
  const PartHeader header{part.what, part.status, part.bytes.size()};
  return send_all(socket, reinterpret_cast<const char*>(&header), sizeof header) &&
         send_all(socket, part.bytes.data(), part.bytes.size());
}

ReplyParts::~ReplyParts() { ::close(socket_); }

bool ReplyParts::comes_within(Seconds time) const {
  pollfd polled{socket_, POLLIN, 0};
  return ::poll(&polled, 1, static_cast<int>(1e3 * time.si())) != 0;
}

ReplyParts::Part ReplyParts::next() {
  PartHeader header{};
  Part part;
  part.bytes = "the process that answered is gone";
  if (!read_all(socket_, &header, sizeof header)) return part;
  std::string bytes(header.size, '\0');
  if (!read_all(socket_, bytes.data(), bytes.size())) return part;
  return {header.what, header.status, std::move(bytes)};
}

namespace {

using Clock = std::chrono::steady_clock;
using What = ReplyParts::What;

constexpr int niceness = 10;  // Niceness of long work, nice(1).

// The life of a process that answers one question.
[[noreturn]] void answer_and_end(const Question& question, WarmInputs& inputs, int reply_to) {
  try {
    reply(question.kind, question.body, question.repair, inputs,
          [&](int status, std::string_view bytes) {
            if (!send_part(reply_to, {What::part, status, std::string{bytes}})) ::_exit(0);
          });
    send_part(reply_to, {What::end, 0, ""});
  } catch (const std::bad_alloc&) {
    send_part(reply_to, {What::failed, 0, "memory was at an end"});
  } catch (const std::exception& error) {
    send_part(reply_to, {What::failed, 0, std::string{"internal error: "} + error.what()});
  }
  ::_exit(0);
}

// The process with all inputs. It has one thread, and so may fork.
class Reader {
 public:
  Reader(int socket, WarmInputs& inputs, const Evaluator::Limits& limits)
      : socket_{socket}, inputs_{inputs}, limits_{limits} {}

  void run() {
    while (true) {
      std::vector<pollfd> polled{{socket_, POLLIN, 0}};
      for (const Job& job : jobs_) polled.push_back({job.reply_to, 0, 0});  // Hang-ups alone.
      const int look_again_ms = jobs_.empty() ? -1 : 20;
      if (::poll(polled.data(), polled.size(), look_again_ms) < 0 && errno != EINTR) return;
      std::size_t i = 1;
      for (Job& job : jobs_)
        if (polled[i++].revents & (POLLHUP | POLLERR)) job.wanted = false;
      if (polled[0].revents != 0) {
        const std::optional<ReceivedQuestion> incoming = receive_question(socket_);
        if (!incoming) break;  // The server is gone.
        take(*incoming);
      }
      settle();
      begin_what_waits();
    }
    for (Job& job : jobs_) drop(job);
  }

 private:
  struct Job {
    Question question;
    int reply_to = -1;
    pid_t process = -1;  // -1: waits for its turn, or has ended.
    pid_t leads = -1;    // Process group of it and its children.
    Clock::time_point begun{};
    bool wanted = true;
  };

  void take(const ReceivedQuestion& incoming) {
    for (Job& job : jobs_)
      if (job.question.page == incoming.question.page &&
          supersedes(incoming.question.kind, job.question.kind))
        job.wanted = false;
    jobs_.push_back({incoming.question, incoming.reply_to});
  }

  void settle() {
    for (auto job = jobs_.begin(); job != jobs_.end();) {
      bool over = false;
      if (!job->wanted) {
        end(*job);  // Ended first, so that the next message does not cut into its own.
        send_part(job->reply_to, {What::dropped, 0, ""});
        over = true;
      } else if (job->process >= 0) {
        int status = 0;
        const pid_t ended = ::waitpid(job->process, &status, WNOHANG);
        const std::chrono::duration<double> since = Clock::now() - job->begun;
        if (ended == job->process) {
          job->process = -1;
          if (WIFSIGNALED(status))
            send_part(job->reply_to, {What::failed, 0,
                                      "the process that answered ended by signal " +
                                          std::to_string(WTERMSIG(status)) + " (" +
                                          ::strsignal(WTERMSIG(status)) + ")"});
          over = true;
        } else if (!is_long(*job) && since.count() > limits_.time.si()) {
          end(*job);
          send_part(job->reply_to, {What::failed, 0, "the answer took too long"});
          over = true;
        }
      }
      if (over) drop(*job);
      job = over ? jobs_.erase(job) : std::next(job);
    }
  }

  // Long work waits for long work alone.
  void begin_what_waits() {
    for (const bool long_work : {false, true}) {
      auto running = std::count_if(jobs_.begin(), jobs_.end(), [&](const Job& job) {
        return job.process >= 0 && is_long(job) == long_work;
      });
      for (Job& job : jobs_) {
        if (job.process >= 0 || is_long(job) != long_work) continue;
        if (running >= (long_work ? limits_.long_at_once : limits_.at_once)) break;
        begin(job);
        ++running;
      }
    }
  }

  static bool is_long(const Job& job) { return manner_of(job.question.kind).long_work; }

  void begin(Job& job) {
    job.begun = Clock::now();
    read_ahead(job.question);
    const pid_t reader = ::getpid();
    job.process = ::fork();
    if (job.process == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != reader) ::_exit(0);
      ::setpgid(0, 0);
      // Questions about single parameters do not wait for long work.
      if (is_long(job)) ::setpriority(PRIO_PROCESS, 0, niceness);
      ::close(socket_);
      for (const Job& other : jobs_)
        if (&other != &job) ::close(other.reply_to);
      answer_and_end(job.question, inputs_, job.reply_to);
    }
    // Set in parent and child, as either may run first. The child leads all that it starts.
    if (job.process > 0) ::setpgid(job.process, job.process);
    job.leads = job.process;
    if (job.process < 0) {
      send_part(job.reply_to, {What::failed, 0, "no process can be started"});
      job.wanted = false;
    }
  }

  // Reads inputs that the next question will need as well.
  void read_ahead(const Question& question) {
    for (const QuestionKind other :
         {QuestionKind::catalog, QuestionKind::compare, QuestionKind::links, QuestionKind::sweep})
      if (question.kind == other) return;
    try {
      inputs_.warm_up(question.kind == QuestionKind::search
                          ? ExploredSearch::read(question.body, inputs_.names()).state
                          : ExploredState::read(question.body, inputs_.names()));
    } catch (const std::exception&) {
      // The process that answers reports the error.
    }
  }

  // Also ends the workers of a search, which this process inherits and so can wait for.
  static void end(Job& job) {
    if (job.leads <= 0) return;
    ::kill(-job.leads, SIGKILL);
    while (::waitpid(-job.leads, nullptr, 0) > 0 || errno == EINTR) {
    }
    job.process = job.leads = -1;
  }

  static void drop(Job& job) {
    end(job);
    ::close(job.reply_to);
  }

  const int socket_;
  WarmInputs& inputs_;
  const Evaluator::Limits limits_;
  std::list<Job> jobs_;
};

}  // namespace

Evaluator::Evaluator(const std::function<WarmInputs()>& inputs, const Limits& limits) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    throw std::system_error{errno, std::generic_category(), "no socket for the reader"};
  const pid_t parent = ::getpid();
  process_ = ::fork();
  if (process_ < 0)
    throw std::system_error{errno, std::generic_category(), "no process for the reader"};
  if (process_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(0);
    // A signal to the whole group ends the parent too, and this process ends with it.
    for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) ::signal(signal, SIG_IGN);
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // Workers of a search that was ended are left to it.
    ::close(ends[0]);
    try {
      WarmInputs warm = inputs();
      Reader{ends[1], warm, limits}.run();
    } catch (const std::exception&) {
      ::_exit(1);
    }
    ::_exit(0);
  }
  ::close(ends[1]);
  socket_ = ends[0];
}

Evaluator::~Evaluator() {
  stop();
  // It may be at the reading of a file.
  if (process_ < 0) return;
  ::kill(process_, SIGKILL);
  while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

bool Evaluator::has_ended() {
  if (process_ >= 0 && ::waitpid(process_, nullptr, WNOHANG) == process_) process_ = -1;
  return process_ < 0;
}

void Evaluator::stop() {
  const std::lock_guard lock{mutex_};
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
}

std::unique_ptr<ReplyParts> Evaluator::ask(const Question& question) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw std::system_error{errno, std::generic_category(), "no socket for a reply"};
  auto reply = std::make_unique<ReplyParts>(ends[0]);
  try {
    const std::lock_guard lock{mutex_};
    if (socket_ < 0) throw std::system_error{ECANCELED, std::generic_category(), "the end"};
    send_question(socket_, question, ends[1]);
  } catch (...) {
    ::close(ends[1]);
    throw;
  }
  ::close(ends[1]);
  return reply;
}

}  // namespace orrery
