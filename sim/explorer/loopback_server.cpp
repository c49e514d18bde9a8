#include "sim/explorer/loopback_server.hpp"

#include <sys/random.h>

#include <array>
#include <cerrno>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include "sim/core/error.hpp"
#include "sim/core/json_value.hpp"
#include "sim/core/process.hpp"
#include "sim/explorer/http/http_server.hpp"
#include "sim/explorer/page/page_files.hpp"

namespace orrery {

std::string random_token() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw std::system_error{errno, std::generic_category(), "no random numbers"};
  constexpr char digits[] = "0123456789abcdef";
  std::string token;
  for (const unsigned char byte : bytes) {
    token += digits[byte / 16];
    token += digits[byte % 16];
  }
  return token;
}

bool same_secret(std::string_view one, std::string_view other) {
  // The length of the secret is public.
  if (one.size() != other.size()) return false;
  unsigned char difference = 0;
  for (std::size_t i = 0; i < one.size(); ++i)
    difference = static_cast<unsigned char>(difference | (one[i] ^ other[i]));
  return difference == 0;
}

std::string why_foreign(const RequestOrigin& request, int port) {
  const std::string by_number = "127.0.0.1:" + std::to_string(port);
  const std::string by_name = "localhost:" + std::to_string(port);
  if (request.host != by_number && request.host != by_name)
    return "this server is asked as " + by_number + " alone";
  if (!request.origin.empty() && request.origin != "http://" + by_number &&
      request.origin != "http://" + by_name)
    return "pages from elsewhere are not served";
  if (!request.fetch_site.empty() && request.fetch_site != "same-origin" &&
      request.fetch_site != "none")
    return "pages from elsewhere are not served";
  return "";
}

namespace {

std::string error_json(const std::string& why) { return "{\"error\":" + json_quoted(why) + "}\n"; }

HttpResponse refused(int status, const std::string& why) {
  return {status, "application/json", error_json(why), {}};
}

}  // namespace

class LoopbackServer::Http {
 public:
  Http(Evaluator& evaluator, int port) : evaluator_{evaluator}, token_{random_token()} {
    HttpSettings settings;
    settings.port = port;
    settings.most_body = ExploredState::most_bytes;
    settings.headers_read = {"Host", "Origin", "Sec-Fetch-Site", "Content-Type"};
    // The page may load from and talk to this server alone (W3C, Content Security Policy Level 3).
    settings.headers_sent = {
        {"Content-Security-Policy",
         "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
         "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
        {"X-Content-Type-Options", "nosniff"},
        {"Referrer-Policy", "no-referrer"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
        {"Cross-Origin-Opener-Policy", "same-origin"},
        {"Cache-Control", "no-store"}};
    settings.admits = [this](const HttpRequest& request, HttpResponse& refusal) {
      return admits(request, refusal);
    };
    settings.answer = [this](const HttpRequest& request) { return answer(request); };
    settings.error = [](int status) {
      return refused(
          status, status == 500 ? "the server could not answer" : "HTTP " + std::to_string(status));
    };
    void* const entry = module_entry("liborrery_http.so", "orrery_http_server");
    server_.reset(reinterpret_cast<HttpServerEntry*>(entry)(settings));
    if (!server_)
      fail_input({"--port", ""}, "127.0.0.1:" + std::to_string(port) + " cannot be had",
                 "another program may have it: choose another, or leave --port out");
  }

  std::string address() const {
    return "http://127.0.0.1:" + std::to_string(server_->port()) + "/" + token_ + "/";
  }
  HttpServer& server() { return *server_; }

 private:
  // Splits a path, "/TOKEN/rest", after its first part.
  static std::pair<std::string_view, std::string_view> parts(std::string_view path) {
    const std::size_t end = path.size() > 1 ? path.find('/', 1) : path.npos;
    if (end == path.npos) return {};
    return {path.substr(1, end - 1), path.substr(end + 1)};
  }

  bool admits(const HttpRequest& request, HttpResponse& refusal) const {
    const auto& headers = request.headers;
    const std::string foreign = why_foreign(
        {headers.at("Host"), headers.at("Origin"), headers.at("Sec-Fetch-Site")}, server_->port());
    const bool known = same_secret(parts(request.path).first, token_);
    const bool usual = request.method == "GET" || request.method == "POST";
    if (foreign.empty() && known && usual) return true;
    refusal = refused(usual ? 403 : 405, !foreign.empty() ? foreign
                                         : !known ? "open the address that orrery explore printed"
                                                  : "only GET and POST are served");
    return false;
  }

  HttpResponse answer(const HttpRequest& request) {
    const std::string_view name = parts(request.path).second;
    const std::string_view api = "api/";
    if (request.method == "GET") {
      for (const PageFile& file : page_files())
        if (file.name == name) return {200, file.media_type, std::string{file.bytes}, {}};
      if (name == "api/catalog") return ask({QuestionKind::catalog, false, "", ""});
    } else if (name.starts_with(api)) {
      return ask(request, std::string{name.substr(api.size())});
    }
    return refused(404, "HTTP 404");
  }

  HttpResponse ask(const HttpRequest& request, const std::string& word) {
    const auto kind = question_kind(word);
    if (!kind) return refused(404, "there is no such question");
    if (request.headers.at("Content-Type") != "application/json")
      return refused(415, "a question is application/json");
    const auto parameter = [&](const char* key) {
      const auto found = request.parameters.find(key);
      return found == request.parameters.end() ? "" : found->second;
    };
    return ask({*kind, parameter("repair") == "1", parameter("page").substr(0, 64), request.body});
  }

  HttpResponse ask(const Question& question) {
    const std::shared_ptr<ReplyParts> reply = evaluator_.ask(question);
    const ReplyParts::Part first = reply->next();
    using What = ReplyParts::What;
    if (first.what == What::dropped) return refused(409, "dropped: the page asked something newer");
    if (first.what != What::part) return refused(500, first.bytes);
    const std::string type = first.status == 200 ? media_type(question.kind) : "application/json";
    HttpResponse response{first.status, type, first.bytes, {}};
    using Parts = ReplyManner::Parts;
    const Parts parts = manner_of(question.kind).parts;
    if (first.status != 200 || parts == Parts::one) return response;
    const bool lines = parts == Parts::lines;
    response.more = [reply, lines, broken = false](std::string& part) mutable {
      if (broken) return true;
      // An empty line now and then reveals a closed connection.
      if (lines && !reply->comes_within(Seconds{0.5})) {
        part = "\n";
        return false;
      }
      ReplyParts::Part next = reply->next();
      broken = next.what != What::part && next.what != What::end;
      if (broken && !lines) throw std::runtime_error{"the reply is not whole"};
      part = broken ? error_json(next.bytes) : std::move(next.bytes);
      return next.what == What::end;
    };
    return response;
  }

  Evaluator& evaluator_;
  const std::string token_;
  std::unique_ptr<HttpServer> server_;
};

LoopbackServer::LoopbackServer(Evaluator& evaluator, int port)
    : http_{std::make_unique<Http>(evaluator, port)} {}
LoopbackServer::~LoopbackServer() = default;

std::string LoopbackServer::address() const { return http_->address(); }
void LoopbackServer::serve() { http_->server().serve(); }
void LoopbackServer::stop() { http_->server().stop(); }

}  // namespace orrery
