#pragma once

#include <string>
#include <string_view>

namespace orrery {

/// 128 random bits of the kernel as 32 hexadecimal digits. Errors: std::system_error.
std::string random_token();

/// Whether both are the same, in a time that does not tell how many characters are.
bool same_secret(std::string_view one, std::string_view other);

/// What a request says of where it comes from; "": it does not say.
struct RequestOrigin {
  std::string host;        ///< The header Host.
  std::string origin;      ///< Origin.
  std::string fetch_site;  ///< Sec-Fetch-Site (W3C, Fetch Metadata Request Headers).
};

/// Why a request must not be served, "" where it may. A page elsewhere that sends requests here
/// has another Origin; one whose name was made to point here (DNS rebinding) another Host.
std::string why_foreign(const RequestOrigin& request, int port);

}  // namespace orrery
