#pragma once

#include <httplib.h>
#include <poll.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace orrery {

/// A thread for each connection while there are few, begun when they are first needed; connections
/// beyond `most` wait.
class ConnectionThreads : public httplib::TaskQueue {
 public:
  explicit ConnectionThreads(std::size_t most) : most_{most} {}

  void enqueue(std::function<void()> serve) override;
  void shutdown() override;

 private:
  void work();

  const std::size_t most_;
  std::mutex mutex_;
  std::condition_variable wakes_;
  std::deque<std::function<void()>> waiting_;
  std::vector<std::thread> threads_;
  std::size_t idle_ = 0;
  bool over_ = false;
};

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

struct HttpRequest {
  std::string method, path, body;
  std::map<std::string, std::string> headers;     ///< Those of HttpSettings::headers_read.
  std::map<std::string, std::string> parameters;  ///< Of the query.
};

struct HttpResponse {
  int status = 200;
  std::string media_type;
  std::string body;
  /// Further parts of a body whose length nobody knows yet: false and what it is, true at its end.
  /// Throws where it breaks off, which whoever reads can tell. Empty: `body` is all.
  std::function<bool(std::string& part)> more;
};

/// All that the server needs to know: nothing of Orrery.
struct HttpSettings {
  int port = 0;  ///< Of 127.0.0.1; 0: any that is free.
  std::size_t most_body = 0;
  std::vector<std::string> headers_read;
  std::vector<std::pair<std::string, std::string>> headers_sent;
  /// Before a body is read: whether the request goes on. If not, the response is sent.
  std::function<bool(const HttpRequest&, HttpResponse&)> admits;
  std::function<HttpResponse(const HttpRequest&)> answer;
  std::function<HttpResponse(int status)> error;  ///< Where the server itself refuses.
};

/// HTTP to this machine alone, by cpp-httplib, in a library of its own (core/module.hpp): what
/// hangs on it, OpenSSL among others, takes longer to link than most commands take. A connection
/// ends if a request takes longer than ten seconds to arrive.
class HttpServer {
 public:
  virtual ~HttpServer() = default;
  virtual int port() const = 0;
  virtual void serve() = 0;  ///< Until stop().
  virtual void stop() = 0;   ///< From another thread, also before serve().
};

/// What the library offers under the name `orrery_http_server`; nullptr: the port cannot be had.
using HttpServerEntry = HttpServer*(const HttpSettings& settings);

}  // namespace orrery
