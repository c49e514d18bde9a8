#include "sim/explorer/question_frames.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <system_error>

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

bool read_whole(int from, void* into, std::size_t size) {
  for (std::size_t done = 0; done < size;) {
    const ssize_t count = ::read(from, static_cast<char*>(into) + done, size - done);
    if (count == 0 || (count < 0 && errno != EINTR)) return false;
    if (count > 0) done += static_cast<std::size_t>(count);
  }
  return true;
}

bool send_whole(int to, const char* data, std::size_t size) {
  for (std::size_t done = 0; done < size;) {
    const ssize_t count = ::send(to, data + done, size - done, MSG_NOSIGNAL);
    if (count < 0 && errno != EINTR) return false;
    if (count > 0) done += static_cast<std::size_t>(count);
  }
  return true;
}

// One descriptor beside a message (cmsg(3)).
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
  return send_whole(socket, reinterpret_cast<const char*>(&header), sizeof header) &&
         send_whole(socket, part.bytes.data(), part.bytes.size());
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
  if (!read_whole(socket_, &header, sizeof header)) return part;
  std::string bytes(header.size, '\0');
  if (!read_whole(socket_, bytes.data(), bytes.size())) return part;
  return {header.what, header.status, std::move(bytes)};
}

}  // namespace orrery
