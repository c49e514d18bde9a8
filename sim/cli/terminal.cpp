#include "sim/cli/terminal.hpp"

#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "sim/core/error.hpp"

namespace orrery {
namespace {

bool set(const char* variable) {
  const char* value = std::getenv(variable);
  return value && *value;
}

int parse_rank(std::string_view text, const std::string& whole) {
  int rank = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
  if (error != std::errc{} || end != text.data() + text.size() || rank < 0)
    fail_input({"", "--trace-ranks"}, "'" + whole + "' is not a list of ranks",
               "write it like 0,8,16-23");
  return rank;
}

}  // namespace

bool wants_colour() {
  if (set("FORCE_COLOR") || set("CLICOLOR_FORCE")) return true;
  const char* terminal = std::getenv("TERM");
  if (set("NO_COLOR") || (terminal && std::string_view{terminal} == "dumb")) return false;
  return isatty(STDOUT_FILENO) == 1;
}

std::vector<int> parse_ranks(const std::string& text) {
  std::vector<int> ranks;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = std::string_view{text}.substr(begin, end - begin);
    const std::size_t dash = part.find('-');
    const int first = parse_rank(part.substr(0, dash), text);
    const int last = dash == part.npos ? first : parse_rank(part.substr(dash + 1), text);
    constexpr int most = 1 << 20;
    if (last < first || last - first > most)
      fail_input({"", "--trace-ranks"}, "'" + std::string{part} + "' is not a range",
                 "write the smaller rank first");
    for (int rank = first; rank <= last; ++rank) ranks.push_back(rank);
    begin = end + 1;
  }
  return ranks;
}

}  // namespace orrery
