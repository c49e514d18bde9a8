#include "sim/explorer/http/deadline_stream.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace orrery {

void DeadlineStream::allow(std::chrono::milliseconds to_read, std::chrono::milliseconds a_write) {
  read_until_ = Clock::now() + to_read;
  a_write_ = a_write;
}

bool DeadlineStream::wait_for_request(std::chrono::milliseconds most) const {
  return at_ < buffer_.size() || wait(POLLIN, Clock::now() + most);
}

bool DeadlineStream::wait(short events, Clock::time_point until) const {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left < 0) return false;
    pollfd polled{socket_, events, 0};
    const int ready = ::poll(&polled, 1, static_cast<int>(std::min<long long>(left, 60'000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
    if (ready == 0 && Clock::now() >= until) return false;
  }
}

ssize_t DeadlineStream::read(char* into, size_t size) {
  if (at_ == buffer_.size()) {
    if (!wait(POLLIN, read_until_)) return -1;
    constexpr std::size_t most = 1 << 14;
    buffer_.resize(most);
    at_ = 0;
    ssize_t count = 0;
    while ((count = ::recv(socket_, buffer_.data(), most, 0)) < 0 && errno == EINTR) {
    }
    buffer_.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
    if (count <= 0) return count;
  }
  const std::size_t count = std::min(size, buffer_.size() - at_);
  std::memcpy(into, buffer_.data() + at_, count);
  at_ += count;
  return static_cast<ssize_t>(count);
}

ssize_t DeadlineStream::write(const char* from, size_t size) {
  if (!is_writable()) return -1;
  ssize_t count = 0;
  // Never blocked: a client that takes no more than half of it must not hold the thread.
  while ((count = ::send(socket_, from, size, MSG_NOSIGNAL | MSG_DONTWAIT)) < 0 && errno == EINTR) {
  }
  return count;
}

// Who is connected is told by the address that is listened on: this machine.
void DeadlineStream::get_remote_ip_and_port(std::string& ip, int& port) const {
  ip = "127.0.0.1";
  port = 0;
}

void DeadlineStream::get_local_ip_and_port(std::string& ip, int& port) const {
  get_remote_ip_and_port(ip, port);
}

}  // namespace orrery
