#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace orrery {

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
