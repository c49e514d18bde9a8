#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/core/enum_words.hpp"
#include "sim/core/error.hpp"
#include "sim/core/random.hpp"
#include "sim/serving/request.hpp"

namespace orrery {

/// How long prompts or answers are, in tokens.
struct LengthLaw {
  enum class Kind {
    fixed,     ///< low
    uniform,   ///< low .. high, each as likely
    lognormal  ///< e^N(log low, sigma^2): low is the median
  };

  Kind kind = Kind::fixed;
  double low = 1.0;
  double high = 1.0;
  double sigma = 0.0;

  bool operator==(const LengthLaw&) const = default;
  /// At least 1, at most most_request_tokens.
  std::uint32_t draw(Random& random) const;
  double mean() const;  ///< Of the law, before what is drawn is rounded to whole tokens.
};

/// "1024", "819..1024", "lognormal:1024,0.8" (median and sigma). Errors (bad_input): a length below
/// 1 or beyond most_request_tokens, a range that falls, a sigma outside [0, 4].
LengthLaw parse_length_law(const std::string& text, const Place& at);
/// The other way round.
std::string length_law_text(const LengthLaw& law);

/// When requests are sent.
enum class Arrivals {
  closed,    ///< A number of clients; each sends its next request when the last is answered.
  poisson,   ///< At a rate, independent of each other.
  constant,  ///< At a rate, at equal distances.
  gamma,     ///< At a rate; distances are drawn from a gamma law of a coefficient of variation.
  burst,     ///< All at once.
  trace      ///< The times of a file.
};
template <>
inline const std::vector<std::string> enum_words<Arrivals>{"closed", "poisson", "constant",
                                                           "gamma",  "burst",   "trace"};

/// Prompts that begin alike: each belongs to one of `groups`, whose first `group_tokens` are the
/// same, and to one of `users` of the group, whose next `user_tokens` are.
struct SharedPrefix {
  std::uint32_t groups = 0;  ///< 0: prompts have nothing in common.
  std::uint32_t group_tokens = 0;
  std::uint32_t users = 1;
  std::uint32_t user_tokens = 0;
};

/// A stream of requests as its law says it.
struct RequestTraffic {
  Arrivals arrivals = Arrivals::closed;
  int concurrency = 1;   ///< Clients of a closed loop.
  double rate = 0.0;     ///< Requests a second, of all but closed and burst.
  double variation = 1;  ///< Standard deviation over mean of the distances of gamma.
  LengthLaw prompt, output;
  std::int64_t requests = 1;
  SharedPrefix prefix;
  std::uint64_t seed = 1;
};

/// Hashes of a shared prefix stand for so many tokens, a block of vLLM.
inline constexpr std::uint32_t drawn_hash_tokens = 16;

/// All requests; `traffic` is not that of a trace. Each distribution has its own stream of random
/// numbers, so that a change of the rate leaves the lengths as they were.
RequestList draw_requests(const RequestTraffic& traffic);

/// "poisson", "constant", "gamma:2.5", "burst" into `arrivals` and `variation`. Errors (bad_input):
/// another word, a variation outside [0.01, 100].
void parse_arrivals(const std::string& text, const Place& at, RequestTraffic& traffic);
/// "groups=10,tokens=150[,users=5,user-tokens=600]".
SharedPrefix parse_shared_prefix(const std::string& text, const Place& at);

}  // namespace orrery
