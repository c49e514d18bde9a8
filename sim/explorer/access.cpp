#include "sim/explorer/access.hpp"

#include <sys/random.h>

#include <array>
#include <cerrno>
#include <system_error>

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
  // How long the secret is, everybody may know.
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

}  // namespace orrery
