#include "sim/serving/request_traffic.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/core/json_value.hpp"
#include "sim/core/nearest.hpp"
#include "sim/core/portable_math.hpp"
#include "sim/core/text_file.hpp"
#include "sim/core/value_list.hpp"

namespace orrery {
namespace {

// Of independent streams of random numbers, one a law.
enum RandomStream : std::uint64_t {
  arrival_stream = 1,
  prompt_stream,
  output_stream,
  prefix_stream
};

double exponential(Random& random) { return -portable_log(1.0 - random.unit()); }

// Mean 1, variance 1 / shape. Marsaglia and Tsang (ACM TOMS 26, 2000), which needs a shape of at
// least 1; a smaller one is that of shape + 1 times u^(1 / shape).
double gamma_of_mean_1(Random& random, double shape) {
  const double boost = shape < 1.0 ? portable_exp(portable_log(1.0 - random.unit()) / shape) : 1.0;
  const double d = (shape < 1.0 ? shape + 1.0 : shape) - 1.0 / 3.0;
  const double c = 1.0 / std::sqrt(9.0 * d);
  while (true) {
    const double normal = random.normal();
    const double root = 1.0 + c * normal;
    if (root <= 0.0) continue;
    const double cube = root * root * root;
    if (portable_log(1.0 - random.unit()) <
        0.5 * normal * normal + d - d * cube + d * portable_log(cube))
      return boost * d * cube / shape;
  }
}

double distance(const RequestTraffic& traffic, Random& random) {
  switch (traffic.arrivals) {
    case Arrivals::poisson:
      return exponential(random);
    case Arrivals::gamma:
      return gamma_of_mean_1(random, 1.0 / (traffic.variation * traffic.variation));
    default:
      return 1.0;
  }
}

// A hash of a block stands for all before it: that of a group's blocks is the same for its users.
void add_hashes(const SharedPrefix& prefix, Random& random, Request& request, RequestList& list) {
  const std::uint64_t group = random.below(prefix.groups);
  const std::uint64_t user = random.below(prefix.users);
  const std::uint32_t shared =
      std::min(request.prompt_tokens, prefix.group_tokens + prefix.user_tokens);
  request.first_hash = static_cast<std::uint32_t>(list.hashes.size());
  request.hashes = shared / drawn_hash_tokens;
  request.session = static_cast<std::uint32_t>(group * prefix.users + user);
  for (std::uint64_t block = 0; block < request.hashes; ++block) {
    const bool of_group = (block + 1) * drawn_hash_tokens <= prefix.group_tokens;
    const std::uint64_t owner = of_group ? group : prefix.groups + group * prefix.users + user;
    list.hashes.push_back(owner * static_cast<std::uint64_t>(most_request_tokens) + block);
  }
}

}  // namespace

RequestList draw_requests(const RequestTraffic& traffic) {
  Random arrival{traffic.seed, arrival_stream}, prompt{traffic.seed, prompt_stream};
  Random output{traffic.seed, output_stream}, prefix{traffic.seed, prefix_stream};
  const bool has_rate = traffic.arrivals != Arrivals::closed && traffic.arrivals != Arrivals::burst;
  RequestList list;
  list.hash_tokens = traffic.prefix.groups > 0 ? drawn_hash_tokens : 0;
  list.requests.reserve(static_cast<std::size_t>(traffic.requests));
  double distances = 0.0;
  for (std::int64_t i = 0; i < traffic.requests; ++i) {
    Request request;
    if (has_rate && i > 0) distances += distance(traffic, arrival);
    if (has_rate) request.arrival = Seconds{distances / traffic.rate};
    request.prompt_tokens = traffic.prompt.draw(prompt);
    request.output_tokens = traffic.output.draw(output);
    if (traffic.prefix.groups > 0) add_hashes(traffic.prefix, prefix, request, list);
    list.requests.push_back(request);
  }
  return list;
}

const char* arrivals_name(Arrivals arrivals) {
  constexpr std::array<const char*, 5> names{"closed", "poisson", "constant", "gamma", "burst"};
  return names[static_cast<std::size_t>(arrivals)];
}

void parse_arrivals(const std::string& text, const Place& at, RequestTraffic& traffic) {
  const std::string gamma = "gamma:";
  if (text.starts_with(gamma)) {
    const auto variation = plain_number(text.substr(gamma.size()));
    if (!variation || *variation < 0.01 || *variation > 100.0)
      fail_input(at, "'" + shown_text(text) + "' has no coefficient of variation from 0.01 to 100",
                 "write like gamma:2.5");
    traffic.arrivals = Arrivals::gamma;
    traffic.variation = *variation;
    return;
  }
  for (const Arrivals word : {Arrivals::poisson, Arrivals::constant, Arrivals::burst})
    if (text == arrivals_name(word)) {
      traffic.arrivals = word;
      return;
    }
  fail_input(at, "'" + shown_text(text) + "' is no law of arrivals",
             suggestion(text, {"poisson", "constant", "gamma:2.5", "burst"}));
}

SharedPrefix parse_shared_prefix(const std::string& text, const Place& at) {
  const std::string remedy = "write like groups=10,tokens=150 or with ,users=5,user-tokens=600";
  SharedPrefix prefix;
  for (const std::string& item : split_list(text, at)) {
    const std::size_t equals = item.find('=');
    const std::string key = item.substr(0, equals);
    const auto value =
        equals == item.npos ? std::nullopt : plain_integer(item.substr(equals + 1), 1 << 20);
    if (!value || *value < 1)
      fail_input(at, "'" + shown_text(item) + "' is not a key and a count from 1 to 1048576",
                 remedy);
    const auto count = static_cast<std::uint32_t>(*value);
    if (key == "groups")
      prefix.groups = count;
    else if (key == "tokens")
      prefix.group_tokens = count;
    else if (key == "users")
      prefix.users = count;
    else if (key == "user-tokens")
      prefix.user_tokens = count;
    else
      fail_input(at, "'" + shown_text(key) + "' is not a key of a shared prefix", remedy);
  }
  if (prefix.groups == 0 || prefix.group_tokens == 0)
    fail_input(at, "'" + shown_text(text) + "' lacks groups or tokens", remedy);
  return prefix;
}

}  // namespace orrery
