#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "sim/explorer/evaluator.hpp"

namespace orrery {

/// 128 random bits of the kernel as 32 hexadecimal digits. Errors: std::system_error.
std::string random_token();

/// Compares both in a time that does not depend on the number of equal characters.
bool same_secret(std::string_view one, std::string_view other);

/// Headers that state the origin of a request; "": absent.
struct RequestOrigin {
  std::string host;        ///< The header Host.
  std::string origin;      ///< Origin.
  std::string fetch_site;  ///< Sec-Fetch-Site (W3C, Fetch Metadata Request Headers).
};

/// The reason why a request must not be served, or "". A page elsewhere that sends requests here
/// has another Origin; one whose name was made to point here (DNS rebinding) another Host.
std::string why_foreign(const RequestOrigin& request, int port);

/// Serves the page and its questions over HTTP to this machine alone, at an address that holds a
/// secret.
///
///     GET  /TOKEN/               the page; /TOKEN/explorer.js and .css are its parts
///     GET  /TOKEN/api/catalog    names of models and systems
///     POST /TOKEN/api/KIND       reply() of the body; ?page=P names the page, ?repair=1 repairs
///
/// It refuses another Host or Origin, another token (403, so that no address is disclosed), bodies
/// over ExploredState's limit (413), questions that are no JSON (415), and requests that take
/// longer than ten seconds to arrive (the connection ends).
class LoopbackServer {
 public:
  /// `port` 0: any that is free. Errors (bad_input): the port cannot be had.
  LoopbackServer(Evaluator& evaluator, int port);
  ~LoopbackServer();
  LoopbackServer(const LoopbackServer&) = delete;
  LoopbackServer& operator=(const LoopbackServer&) = delete;

  std::string address() const;  ///< "http://127.0.0.1:PORT/TOKEN/"
  void serve();                 ///< Until stop().
  void stop();                  ///< May be called from another thread.

 private:
  class Http;
  std::unique_ptr<Http> http_;
};

}  // namespace orrery
