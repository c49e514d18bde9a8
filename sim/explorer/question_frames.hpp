#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/explorer/evaluator.hpp"

namespace orrery {

// What the server, the reader and the processes that answer say to each other over sockets.

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
