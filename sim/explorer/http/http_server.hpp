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

  /// Limits, from now on, of the time until all is read, and of each wait of a write.
  void allow(std::chrono::milliseconds read_timeout, std::chrono::milliseconds write_timeout);
  /// Waits up to `most`; true if there is something to read.
  bool wait_for_request(std::chrono::milliseconds most) const;

  bool is_readable() const override { return at_ < buffer_.size() || wait(POLLIN, read_until_); }
  bool is_writable() const override { return wait(POLLOUT, Clock::now() + write_timeout_); }
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
  std::chrono::milliseconds write_timeout_{};
};

struct HttpRequest {
  std::string method, path, body;
  std::map<std::string, std::string> headers;     ///< Those of HttpSettings::headers_read.
  std::map<std::string, std::string> parameters;  ///< Those of the query.
};

struct HttpResponse {
  int status = 200;
  std::string media_type;
  std::string body;
  /// Further parts of a body of unknown length: false and the next part, true at its end. Throws if
  /// it breaks off, which the client can detect. Empty: `body` is all.
  std::function<bool(std::string& part)> more;
};

/// Settings of the server, which does not depend on Orrery.
struct HttpSettings {
  int port = 0;  ///< Port on 127.0.0.1; 0: any that is free.
  std::size_t most_body = 0;
  std::vector<std::string> headers_read;
  std::vector<std::pair<std::string, std::string>> headers_sent;
  /// Called before a body is read; if it returns false, the response is sent.
  std::function<bool(const HttpRequest&, HttpResponse&)> admits;
  std::function<HttpResponse(const HttpRequest&)> answer;
  std::function<HttpResponse(int status)> error;  ///< Response to what the server itself refuses.
};

/// HTTP to this machine alone, by cpp-httplib, in a library of its own (core/module.hpp): its
/// dependencies, OpenSSL among others, take longer to load than most commands run. A connection
/// ends if a request takes longer than ten seconds to arrive.
class HttpServer {
 public:
  virtual ~HttpServer() = default;
  virtual int port() const = 0;
  virtual void serve() = 0;  ///< Until stop().
  virtual void stop() = 0;   ///< May be called from another thread, also before serve().
};

/// Entry of the library, `orrery_http_server`; nullptr: the port is not available.
using HttpServerEntry = HttpServer*(const HttpSettings& settings);

}  // namespace orrery
