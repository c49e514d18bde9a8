#include "sim/explore/server/loopback_server.hpp"

#include <httplib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <system_error>

#include "sim/base/core/error.hpp"
#include "sim/base/text/json_value.hpp"
#include "sim/explore/page/page_files.hpp"
#include "sim/explore/server/access.hpp"
#include "sim/explore/server/connection_threads.hpp"
#include "sim/explore/server/deadline_stream.hpp"

namespace orrery {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t connections_at_once = 256;
constexpr int connections_that_wait = 512;
constexpr milliseconds to_begin{10'000};  // Of a connection, and of the next request on it.
constexpr milliseconds to_read{10'000};
constexpr milliseconds a_write{10'000};
constexpr int requests_of_a_connection = 1000;

std::string error_json(const std::string& why) { return "{\"error\":" + json_quoted(why) + "}\n"; }

void refuse(httplib::Response& response, int status, const std::string& why) {
  response.status = status;
  response.set_content(error_json(why), "application/json");
}

}  // namespace

class LoopbackServer::Http : public httplib::Server {
 public:
  Http(Evaluator& evaluator, int port) : evaluator_{evaluator}, token_{random_token()} {
    new_task_queue = [] { return new ConnectionThreads{connections_at_once}; };
    set_payload_max_length(ExploredState::most_bytes);
    set_tcp_nodelay(true);
    // Without SO_REUSEPORT, which httplib sets: another program must not take a share of requests.
    set_socket_options([](socket_t socket) {
      const int yes = 1;
      ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    // What the page may load and whom it may ask: nobody but this server (W3C, Content Security
    // Policy Level 3).
    set_default_headers(
        {{"Content-Security-Policy",
          "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
          "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
         {"X-Content-Type-Options", "nosniff"},
         {"Referrer-Policy", "no-referrer"},
         {"Cross-Origin-Resource-Policy", "same-origin"},
         {"Cross-Origin-Opener-Policy", "same-origin"},
         {"Cache-Control", "no-store"}});
    set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      return admits(request, response) ? HandlerResponse::Unhandled : HandlerResponse::Handled;
    });
    set_error_handler([](const httplib::Request&, httplib::Response& response) {
      if (response.body.empty())
        response.set_content(error_json("HTTP " + std::to_string(response.status)),
                             "application/json");
    });
    set_exception_handler(
        [](const httplib::Request&, httplib::Response& response, std::exception_ptr) {
          refuse(response, 500, "the server could not answer");
        });
    for (const PageFile& file : page_files())
      Get("/[0-9a-f]+/" + file.name, [&file](const httplib::Request&, httplib::Response& response) {
        response.set_content(file.bytes.data(), file.bytes.size(), file.media_type);
      });
    Get("/[0-9a-f]+/api/catalog", [this](const httplib::Request&, httplib::Response& response) {
      answer({QuestionKind::catalog, false, "", ""}, response);
    });
    Post("/[0-9a-f]+/api/(\\w+)", [this](const httplib::Request& request,
                                         httplib::Response& response) { ask(request, response); });
    port_ = port == 0 ? bind_to_any_port("127.0.0.1") : bind_to_port("127.0.0.1", port) ? port : -1;
    if (port_ <= 0)
      fail_input({"--port", ""}, "127.0.0.1:" + std::to_string(port) + " cannot be had",
                 "another program may have it: choose another, or leave --port out");
    // httplib lets five connections wait; a page that is restored opens more at once.
    ::listen(svr_sock_, connections_that_wait);
  }

  std::string address() const {
    return "http://127.0.0.1:" + std::to_string(port_) + "/" + token_ + "/";
  }

 private:
  // Nothing travels far, and httplib packs tight whatever time it takes.
  static void uncompressed(httplib::Request& request) { request.headers.erase("Accept-Encoding"); }

  // A connection from its first byte to its last.
  bool process_and_close_socket(socket_t socket) override {
    DeadlineStream stream{socket};
    for (int left = requests_of_a_connection; left > 0; --left) {
      if (!next_request(stream)) break;
      stream.allow(to_read, a_write);
      bool closed = false;
      if (!process_request(stream, left == 1, closed, uncompressed) || closed) break;
    }
    ::shutdown(socket, SHUT_RDWR);
    ::close(socket);
    return true;
  }

  // Looks up now and then, as the server may be stopped meanwhile.
  bool next_request(const DeadlineStream& stream) const {
    constexpr milliseconds a_look{100};
    for (milliseconds waited{}; waited < to_begin; waited += a_look) {
      if (svr_sock_ == INVALID_SOCKET) return false;
      if (stream.wait_for_request(a_look)) return true;
    }
    return false;
  }

  bool admits(const httplib::Request& request, httplib::Response& response) const {
    const std::string foreign =
        why_foreign({request.get_header_value("Host"), request.get_header_value("Origin"),
                     request.get_header_value("Sec-Fetch-Site")},
                    port_);
    const std::string& path = request.path;
    const std::size_t end = path.size() > 1 ? path.find('/', 1) : path.npos;
    const std::string_view token =
        end == path.npos ? std::string_view{} : std::string_view{path}.substr(1, end - 1);
    const bool known = same_secret(token, token_);
    const bool usual = request.method == "GET" || request.method == "POST";
    if (foreign.empty() && known && usual) return true;
    refuse(response, usual ? 403 : 405,
           !foreign.empty() ? foreign
           : !known         ? "open the address that orrery explore printed"
                            : "only GET and POST are served");
    return false;
  }

  void ask(const httplib::Request& request, httplib::Response& response) {
    const auto kind = question_kind(request.matches[1].str());
    if (!kind) return refuse(response, 404, "there is no such question");
    if (request.get_header_value("Content-Type") != "application/json")
      return refuse(response, 415, "a question is application/json");
    const std::string page = request.get_param_value("page").substr(0, 64);
    answer({*kind, request.get_param_value("repair") == "1", page, request.body}, response);
  }

  void answer(const Question& question, httplib::Response& response) {
    const std::shared_ptr<ReplyParts> parts = evaluator_.ask(question);
    const ReplyParts::Part first = parts->next();
    using What = ReplyParts::What;
    if (first.what == What::dropped)
      return refuse(response, 409, "dropped: the page asked something newer");
    if (first.what != What::part) return refuse(response, 500, first.bytes);
    response.status = first.status;
    if (question.kind != QuestionKind::answer || first.status != 200) {
      const std::string type = first.status == 200 ? media_type(question.kind) : "application/json";
      response.set_content(first.bytes, type.c_str());
      return;
    }
    auto held = std::make_shared<std::string>(first.bytes);
    response.set_chunked_content_provider(
        media_type(question.kind), [parts, held](std::size_t, httplib::DataSink& sink) {
          if (!held->empty()) {
            const std::string bytes = std::move(*held);
            held->clear();
            return sink.write(bytes.data(), bytes.size());
          }
          const ReplyParts::Part part = parts->next();
          if (part.what == What::part) return sink.write(part.bytes.data(), part.bytes.size());
          // An end that is not said is one that a page can tell: the reply is not whole.
          if (part.what != What::end) return false;
          sink.done();
          return true;
        });
  }

  Evaluator& evaluator_;
  const std::string token_;
  int port_ = -1;
};

LoopbackServer::LoopbackServer(Evaluator& evaluator, int port)
    : http_{std::make_unique<Http>(evaluator, port)} {}
LoopbackServer::~LoopbackServer() = default;

std::string LoopbackServer::address() const { return http_->address(); }
void LoopbackServer::serve() { http_->listen_after_bind(); }
void LoopbackServer::stop() { http_->stop(); }

}  // namespace orrery
