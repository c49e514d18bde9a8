#pragma once

#include <httplib.h>
#include <poll.h>

#include <chrono>
#include <string>

namespace orrery {

/// A connection whose requests must arrive within a time: httplib's own streams wait for each byte
/// anew, so that a client who sends one a second has a thread for ever.
class DeadlineStream : public httplib::Stream {
 public:
  using Clock = std::chrono::steady_clock;

  explicit DeadlineStream(socket_t socket) : socket_{socket} {}

  /// From now on: what is to be read by then, and the longest that a write may stand still.
  void allow(std::chrono::milliseconds to_read, std::chrono::milliseconds a_write);
  /// Whether something is there to be read, waiting for it up to `most`.
  bool wait_for_request(std::chrono::milliseconds most) const;

  bool is_readable() const override { return at_ < buffer_.size() || wait(POLLIN, read_until_); }
  bool is_writable() const override { return wait(POLLOUT, Clock::now() + a_write_); }
  ssize_t read(char* into, size_t size) override;
  ssize_t write(const char* from, size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  socket_t socket() const override { return socket_; }

 private:
  bool wait(short events, Clock::time_point until) const;

  socket_t socket_;
  std::string buffer_;
  std::size_t at_ = 0;
  Clock::time_point read_until_{};
  std::chrono::milliseconds a_write_{};
};

}  // namespace orrery
