#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "sim/core/units.hpp"
#include "sim/explorer/reply.hpp"

namespace orrery {

/// A question as the server hands it on.
struct Question {
  QuestionKind kind = QuestionKind::answer;
  bool repair = false;
  /// The page that asks. Its newer questions replace older ones that they supersede (supersedes()).
  std::string page;
  std::string body;
};

/// One end of a reply: parts as they come.
class ReplyParts {
 public:
  explicit ReplyParts(int socket) : socket_{socket} {}
  ~ReplyParts();
  ReplyParts(const ReplyParts&) = delete;
  ReplyParts& operator=(const ReplyParts&) = delete;

  enum class What { part, end, dropped, failed };
  struct Part {
    What what = What::failed;
    int status = 0;
    std::string bytes;  ///< The reason, if `failed`.
  };
  Part next();  ///< Waits for it.
  /// A part or the end arrives before so much time has passed.
  bool comes_within(Seconds time) const;

 private:
  int socket_;
};

/// Answers questions each in a process of its own, forked from one with all inputs: a
/// question that crashes, hangs or takes too much memory fails alone, and a needless one is killed.
///
/// The reader is forked when the evaluator is made, which must be before the program has threads.
/// It ends with this process, and so do its children.
class Evaluator {
 public:
  struct Limits {
    Seconds time{120.0};   ///< Wall clock of a question, unless it is long work.
    int at_once = 4;       ///< More wait for their turn.
    int long_at_once = 2;  ///< Limit of concurrent long work.
  };
  /// `inputs` is made in the reader.
  Evaluator(const std::function<WarmInputs()>& inputs, const Limits& limits);
  ~Evaluator();  ///< Ends the reader and its children.
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  /// May be called by many threads. Throws std::system_error where no question can be handed on.
  std::unique_ptr<ReplyParts> ask(const Question& question);
  bool has_ended();  ///< The reader has ended, which it should not before this process.
  void stop();       ///< Questions in work fail at once.

 private:
  std::mutex mutex_;
  int socket_ = -1;
  pid_t process_ = -1;
};

// Messages between the server, the reader and the processes that answer, over sockets.

/// A question and the socket for its reply, as one message.
void send_question(int socket, const Question& question, int reply_to);
struct ReceivedQuestion {
  Question question;
  int reply_to = -1;
};
/// Waits. Nothing: the other end is closed.
std::optional<ReceivedQuestion> receive_question(int socket);

/// False: the other end is gone.
bool send_part(int socket, const ReplyParts::Part& part);

}  // namespace orrery
