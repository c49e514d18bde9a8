#include "sim/explorer/http/http_server.hpp"

#include <httplib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace orrery {

void ConnectionThreads::enqueue(std::function<void()> serve) {
  {
    const std::lock_guard lock{mutex_};
    waiting_.push_back(std::move(serve));
    if (idle_ < waiting_.size() && threads_.size() < most_) {
      try {
        threads_.emplace_back([this] { work(); });
      } catch (const std::system_error&) {
        // The machine allows no more threads: the existing ones take turns.
        if (threads_.empty()) throw;
      }
    }
  }
  wakes_.notify_one();
}

void ConnectionThreads::work() {
  std::unique_lock lock{mutex_};
  while (true) {
    ++idle_;
    wakes_.wait(lock, [this] { return over_ || !waiting_.empty(); });
    --idle_;
    if (waiting_.empty()) return;  // All is over.
    const std::function<void()> serve = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    serve();
    lock.lock();
  }
}

void ConnectionThreads::shutdown() {
  {
    const std::lock_guard lock{mutex_};
    over_ = true;
  }
  wakes_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void DeadlineStream::allow(std::chrono::milliseconds read_timeout,
                           std::chrono::milliseconds write_timeout) {
  read_until_ = Clock::now() + read_timeout;
  write_timeout_ = write_timeout;
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
  // It never blocks: a client that reads only half of it must not hold the thread.
  while ((count = ::send(socket_, from, size, MSG_NOSIGNAL | MSG_DONTWAIT)) < 0 && errno == EINTR) {
  }
  return count;
}

// The server listens on loopback alone, so that every peer is this machine.
void DeadlineStream::get_remote_ip_and_port(std::string& ip, int& port) const {
  ip = "127.0.0.1";
  port = 0;
}

void DeadlineStream::get_local_ip_and_port(std::string& ip, int& port) const {
  get_remote_ip_and_port(ip, port);
}

namespace {

using std::chrono::milliseconds;

constexpr std::size_t connections_at_once = 256;
constexpr int connections_that_wait = 512;
constexpr milliseconds begin_timeout{10'000};  // Until the first request, and between requests.
constexpr milliseconds read_timeout{10'000};
constexpr milliseconds write_timeout{10'000};
constexpr int requests_of_a_connection = 1000;

void send(HttpResponse from, httplib::Response& response) {
  response.status = from.status;
  if (!from.more) return response.set_content(from.body, from.media_type.c_str());
  auto held = std::make_shared<std::string>(std::move(from.body));
  response.set_chunked_content_provider(
      from.media_type, [held, more = std::move(from.more)](std::size_t, httplib::DataSink& sink) {
        if (!held->empty()) {
          const std::string bytes = std::move(*held);
          held->clear();
          return sink.write(bytes.data(), bytes.size());
        }
        std::string part;
        try {
          if (!more(part)) return sink.write(part.data(), part.size());
        } catch (const std::exception&) {
          return false;
        }
        sink.done();
        return true;
      });
}

class LocalHttp final : public HttpServer, private httplib::Server {
 public:
  explicit LocalHttp(const HttpSettings& settings) : settings_{settings} {
    new_task_queue = [] { return new ConnectionThreads{connections_at_once}; };
    set_payload_max_length(settings.most_body);
    set_tcp_nodelay(true);
    // Without SO_REUSEPORT, which httplib sets: another program must not take a share of requests.
    set_socket_options([](socket_t socket) {
      const int yes = 1;
      ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    set_default_headers({settings.headers_sent.begin(), settings.headers_sent.end()});
    set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      HttpResponse refusal;
      if (settings_.admits(plain(request), refusal)) return HandlerResponse::Unhandled;
      send(std::move(refusal), response);
      return HandlerResponse::Handled;
    });
    set_error_handler([this](const httplib::Request&, httplib::Response& response) {
      if (response.body.empty()) send(settings_.error(response.status), response);
    });
    set_exception_handler([this](const httplib::Request&, httplib::Response& response,
                                 std::exception_ptr) { send(settings_.error(500), response); });
    const auto handle = [this](const httplib::Request& request, httplib::Response& response) {
      send(settings_.answer(plain(request)), response);
    };
    Get(".*", handle);
    Post(".*", handle);
    port_ = settings.port == 0                         ? bind_to_any_port("127.0.0.1")
            : bind_to_port("127.0.0.1", settings.port) ? settings.port
                                                       : -1;
    // httplib lets five connections wait; a page that is restored opens more at once.
    if (port_ > 0) ::listen(svr_sock_, connections_that_wait);
  }

  int port() const override { return port_; }
  void serve() override { listen_after_bind(); }
  // httplib's stop() does nothing before the serving thread listens, which would then never end.
  void stop() override {
    const socket_t socket = svr_sock_.exchange(INVALID_SOCKET);
    if (socket == INVALID_SOCKET) return;
    ::shutdown(socket, SHUT_RDWR);
    ::close(socket);
  }

 private:
  HttpRequest plain(const httplib::Request& request) const {
    HttpRequest plain{request.method, request.path, request.body, {}, {}};
    for (const std::string& name : settings_.headers_read)
      plain.headers[name] = request.get_header_value(name.c_str());
    for (const auto& [name, value] : request.params) plain.parameters.emplace(name, value);
    return plain;
  }

  // Data stays on this machine, and httplib compresses at its slowest level.
  static void uncompressed(httplib::Request& request) { request.headers.erase("Accept-Encoding"); }

  // A connection from its first byte to its last.
  bool process_and_close_socket(socket_t socket) override {
    DeadlineStream stream{socket};
    for (int left = requests_of_a_connection; left > 0; --left) {
      if (!next_request(stream)) break;
      stream.allow(read_timeout, write_timeout);
      bool closed = false;
      if (!process_request(stream, left == 1, closed, uncompressed) || closed) break;
    }
    ::shutdown(socket, SHUT_RDWR);
    ::close(socket);
    return true;
  }

  // Checks now and then, as the server may be stopped meanwhile.
  bool next_request(const DeadlineStream& stream) const {
    constexpr milliseconds poll_interval{100};
    for (milliseconds waited{}; waited < begin_timeout; waited += poll_interval) {
      if (svr_sock_ == INVALID_SOCKET) return false;
      if (stream.wait_for_request(poll_interval)) return true;
    }
    return false;
  }

  const HttpSettings settings_;
  int port_ = -1;
};

}  // namespace

}  // namespace orrery

extern "C" orrery::HttpServer* orrery_http_server(const orrery::HttpSettings& settings) {
  auto server = std::make_unique<orrery::LocalHttp>(settings);
  return server->port() > 0 ? server.release() : nullptr;
}
