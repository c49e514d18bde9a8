#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/core/enum_words.hpp"
#include "sim/core/error.hpp"
#include "sim/core/random.hpp"
#include "sim/serving/request.hpp"

namespace orrery {

/// A distribution of lengths of prompts or answers, in tokens.
struct LengthDistribution {
  enum class Kind {
    fixed,     ///< low
    uniform,   ///< low .. high, each as likely
    lognormal  ///< e^N(log low, sigma^2): low is the median
  };

  Kind kind = Kind::fixed;
  double low = 1.0;
  double high = 1.0;
  double sigma = 0.0;

  bool operator==(const LengthDistribution&) const = default;
  /// Samples a length, at least 1 and at most most_request_tokens.
  std::uint32_t sample(Random& random) const;
  double mean() const;  ///< Mean before samples are rounded to whole tokens.
};

/// Reads "1024", "819..1024", "lognormal:1024,0.8" (median and sigma). Errors (bad_input): a length
/// below 1 or beyond most_request_tokens, a range that falls, a sigma outside [0, 4].
LengthDistribution parse_length_distribution(const std::string& text, const Place& at);
/// The text that parse_length_distribution() reads.
std::string length_distribution_text(const LengthDistribution& lengths);

/// The arrival process of requests.
enum class Arrivals {
  closed,    ///< A number of clients; each sends its next request when the last is answered.
  poisson,   ///< Independent of each other, at a rate.
  constant,  ///< Equally spaced, at a rate.
  gamma,     ///< Gamma-distributed distances, of a rate and a coefficient of variation.
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

  bool operator==(const SharedPrefix&) const = default;
};

/// A class of requests in a stream.
struct TrafficClass {
  RequestClass of;
  double share = 1.0;  ///< Of the requests, over the sum of all classes'.
  std::optional<LengthDistribution> prompt, output;  ///< None: those of the stream.
};

/// A stream of requests by its distributions.
struct RequestTraffic {
  Arrivals arrivals = Arrivals::closed;
  int concurrency = 1;   ///< Clients of a closed loop.
  double rate = 0.0;     ///< Requests a second, of all but closed and burst.
  double variation = 1;  ///< Standard deviation over mean of the distances of gamma.
  LengthDistribution prompt, output;
  std::int64_t requests = 1;
  SharedPrefix prefix;
  std::vector<TrafficClass> classes{};  ///< Empty: all requests are alike.
  std::uint64_t seed = 1;
  /// The stream as it is after a long time. The mean rate is exactly `rate`. Clients of a closed
  /// loop do not begin in step: the answer of the first request of each has only the part that is
  /// left at a random moment.
  bool stationary = false;
};

/// Tokens of one hash of a shared prefix, a block of vLLM.
inline constexpr std::uint32_t prefix_hash_tokens = 16;

/// Samples all requests; `traffic` is not that of a trace. Each distribution has its own stream of
/// random numbers, so that a change of the rate leaves the lengths as they were.
RequestList sample_requests(const RequestTraffic& traffic);

/// Replaces the prompts and answers of a sample by those of a file, in an order of the seed, again
/// and again.
void take_lengths(const RequestList& file, bool stationary, RequestList& list);

/// Reads "poisson", "constant", "gamma:2.5", "burst" into `arrivals` and `variation`. Errors
/// (bad_input): another word, a variation outside [0.01, 100].
void parse_arrivals(const std::string& text, const Place& at, RequestTraffic& traffic);
/// Reads "interactive:share=0.7,priority=10,ttft=2000,tpot=40,isl=1024,osl=819..1024": limits in
/// ms. Errors (bad_input): no name, a key that is none, a value outside its range.
TrafficClass parse_traffic_class(const std::string& text, const Place& at);
/// Reads "groups=10,tokens=150[,users=5,user-tokens=600]".
SharedPrefix parse_shared_prefix(const std::string& text, const Place& at);

}  // namespace orrery
