#include "sim/serving/request_traffic.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <set>

#include "sim/core/json_value.hpp"
#include "sim/core/nearest.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/random.hpp"
#include "sim/core/text_file.hpp"
#include "sim/core/value_list.hpp"
#include "sim/serving/request.hpp"

namespace orrery {
namespace {

constexpr const char* length_remedy = "write like 1024, 819..1024 or lognormal:1024,0.8";
constexpr double most_sigma = 4.0;

double length_of(std::string_view word, const std::string& text, const Place& at) {
  constexpr double thousand = 1024.0;
  const auto length = whole_number(word, thousand);
  if (!length || *length < 1 || *length > most_request_tokens)
    fail_input(at, "'" + shown_text(text) + "' is not a length in tokens from 1 to 16777216",
               length_remedy);
  return static_cast<double>(*length);
}

}  // namespace

std::uint32_t LengthDistribution::sample(Random& random) const {
  double length = low;
  if (kind == Kind::uniform)
    length = low + static_cast<double>(random.below(static_cast<std::uint64_t>(high - low) + 1));
  if (kind == Kind::lognormal)
    length = std::floor(low * portable_exp(sigma * random.normal()) + 0.5);
  return static_cast<std::uint32_t>(
      std::clamp(length, 1.0, static_cast<double>(most_request_tokens)));
}

double LengthDistribution::mean() const {
  if (kind == Kind::uniform) return 0.5 * (low + high);
  return kind == Kind::lognormal ? low * portable_exp(0.5 * sigma * sigma) : low;
}

LengthDistribution parse_length_distribution(const std::string& text, const Place& at) {
  const std::string name = "lognormal:";
  LengthDistribution lengths;
  if (text.starts_with(name)) {
    const std::size_t comma = text.find(',');
    const auto sigma = comma == text.npos ? std::nullopt : plain_number(text.substr(comma + 1));
    if (!sigma || *sigma > most_sigma)
      fail_input(at, "'" + shown_text(text) + "' has no sigma from 0 to 4", length_remedy);
    lengths.kind = LengthDistribution::Kind::lognormal;
    lengths.low = lengths.high =
        length_of(std::string_view{text}.substr(name.size(), comma - name.size()), text, at);
    lengths.sigma = *sigma;
    return lengths;
  }
  const std::size_t dots = text.find("..");
  lengths.low = length_of(std::string_view{text}.substr(0, dots), text, at);
  lengths.high = lengths.low;
  if (dots == text.npos) return lengths;
  lengths.kind = LengthDistribution::Kind::uniform;
  lengths.high = length_of(std::string_view{text}.substr(dots + 2), text, at);
  if (lengths.high < lengths.low)
    fail_input(at, "'" + shown_text(text) + "' falls", "write the shorter length first");
  return lengths;
}

std::string length_distribution_text(const LengthDistribution& lengths) {
  char text[64];
  if (lengths.kind == LengthDistribution::Kind::lognormal) {
    // The shortest digits give the same number when read again.
    char sigma[400];
    const auto end =
        std::to_chars(sigma, sigma + sizeof sigma, lengths.sigma, std::chars_format::fixed);
    std::snprintf(text, sizeof text, "lognormal:%.0f,", lengths.low);
    return text + std::string{sigma, end.ptr};
  }
  if (lengths.kind == LengthDistribution::Kind::uniform)
    std::snprintf(text, sizeof text, "%.0f..%.0f", lengths.low, lengths.high);
  else
    std::snprintf(text, sizeof text, "%.0f", lengths.low);
  return text;
}

namespace {

// Independent streams of random numbers, one for each distribution.
enum RandomStream : std::uint64_t {
  arrival_stream = 1,
  prompt_stream,
  output_stream,
  prefix_stream,
  lengths_stream = 6,  // The order of a file's lengths; routers have 5.
  progress_stream,
  class_stream = 8
};

double exponential(Random& random) { return -portable_log(1.0 - random.unit()); }

// A gamma distribution of mean 1 and variance 1 / shape. Marsaglia and Tsang (ACM TOMS 26, 2000)
// need a shape of at least 1; a smaller one is that of shape + 1 times u^(1 / shape).
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

// A block's hash covers all before it: users of a group have the same hashes of its blocks.
void add_hashes(const SharedPrefix& prefix, Random& random, Request& request, RequestList& list) {
  const std::uint64_t group = random.below(prefix.groups);
  const std::uint64_t user = random.below(prefix.users);
  const std::uint32_t shared =
      std::min(request.prompt_tokens, prefix.group_tokens + prefix.user_tokens);
  request.first_hash = static_cast<std::uint32_t>(list.hashes.size());
  request.hashes = shared / prefix_hash_tokens;
  request.session = static_cast<std::uint32_t>(group * prefix.users + user);
  for (std::uint64_t block = 0; block < request.hashes; ++block) {
    const bool of_group = (block + 1) * prefix_hash_tokens <= prefix.group_tokens;
    const std::uint64_t owner = of_group ? group : prefix.groups + group * prefix.users + user;
    list.hashes.push_back(owner * static_cast<std::uint64_t>(most_request_tokens) + block);
  }
}

// Cuts the answer of each client's first request to a random part.
void cut_first_answers(RequestList& list) {
  Random progress{list.seed, progress_stream};
  const std::size_t first = std::min<std::size_t>(list.clients, list.requests.size());
  for (std::size_t i = 0; i < first; ++i) {
    std::uint32_t& tokens = list.requests[i].output_tokens;
    // An answer of a single token would have no TPOT.
    if (tokens > 2) tokens = static_cast<std::uint32_t>(progress.below(tokens - 1)) + 2;
  }
}

}  // namespace

RequestList sample_requests(const RequestTraffic& traffic) {
  Random arrival{traffic.seed, arrival_stream}, prompt{traffic.seed, prompt_stream};
  Random output{traffic.seed, output_stream}, prefix{traffic.seed, prefix_stream};
  const bool has_rate = traffic.arrivals != Arrivals::closed && traffic.arrivals != Arrivals::burst;
  RequestList list;
  list.hash_tokens = traffic.prefix.groups > 0 ? prefix_hash_tokens : 0;
  list.seed = traffic.seed;
  if (traffic.arrivals == Arrivals::closed)
    list.clients = static_cast<std::uint32_t>(traffic.concurrency);
  list.requests.reserve(static_cast<std::size_t>(traffic.requests));
  Random kind{traffic.seed, class_stream};
  double shares = 0.0;
  for (const TrafficClass& one : traffic.classes) {
    list.classes.push_back(one.of);
    shares += one.share;
  }
  const auto drawn_class = [&] {
    double left = kind.unit() * shares;
    std::size_t one = 0;
    while (one + 1 < traffic.classes.size() && (left -= traffic.classes[one].share) >= 0.0) ++one;
    return static_cast<std::uint8_t>(one);
  };
  double distances = 0.0;
  for (std::int64_t i = 0; i < traffic.requests; ++i) {
    Request request;
    if (has_rate && i > 0) distances += distance(traffic, arrival);
    if (has_rate) request.arrival = Seconds{distances / traffic.rate};
    if (!traffic.classes.empty()) request.of_class = drawn_class();
    const TrafficClass* own =
        traffic.classes.empty() ? nullptr : &traffic.classes[request.of_class];
    request.prompt_tokens = (own && own->prompt ? *own->prompt : traffic.prompt).sample(prompt);
    request.output_tokens = (own && own->output ? *own->output : traffic.output).sample(output);
    if (traffic.prefix.groups > 0) add_hashes(traffic.prefix, prefix, request, list);
    list.requests.push_back(request);
  }
  if (!traffic.stationary) return list;
  if (has_rate && distances > 0.0)
    for (Request& request : list.requests)
      request.arrival = static_cast<double>(traffic.requests - 1) / distances * request.arrival;
  cut_first_answers(list);
  return list;
}

void take_lengths(const RequestList& file, bool stationary, RequestList& list) {
  std::vector<Request> lengths = file.requests;
  list.failed = file.failed;
  Random random{list.seed, lengths_stream};
  for (std::size_t i = lengths.size(); i > 1; --i)
    std::swap(lengths[i - 1], lengths[static_cast<std::size_t>(random.below(i))]);
  for (std::size_t i = 0; i < list.requests.size(); ++i) {
    const Request& from = lengths[i % lengths.size()];
    list.requests[i].prompt_tokens = from.prompt_tokens;
    list.requests[i].output_tokens = from.output_tokens;
  }
  if (stationary) cut_first_answers(list);
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
    if (text == name(word)) {
      traffic.arrivals = word;
      return;
    }
  fail_input(at, "'" + shown_text(text) + "' is no law of arrivals",
             suggestion(text, {"poisson", "constant", "gamma:2.5", "burst"}));
}

TrafficClass parse_traffic_class(const std::string& text, const Place& at) {
  const std::string remedy =
      "write like interactive:share=0.7,priority=10,ttft=2000,tpot=40 (limits in ms)";
  const std::size_t colon = text.find(':');
  TrafficClass one;
  one.of.name = text.substr(0, colon);
  if (one.of.name.empty() || colon == text.npos)
    fail_input(at, "'" + shown_text(text) + "' is no name and its keys", remedy);
  std::string limits;
  std::set<std::string> given;
  for (const std::string& item : split_list(text.substr(colon + 1), at)) {
    const std::size_t equals = item.find('=');
    const std::string key = item.substr(0, equals);
    if (!given.insert(key).second)
      fail_input(at, "'" + shown_text(key) + "' is given twice", "keep one of them");
    const std::string value = equals == item.npos ? "" : item.substr(equals + 1);
    const auto number = [&](double low, double high) {
      const auto read = plain_number(value);
      if (!read || !(*read >= low && *read <= high))
        fail_input(at, key + " is '" + shown_text(value) + "'",
                   "write a number from " + nine_digits(low) + " to " + nine_digits(high));
      return *read;
    };
    if (key == "share")
      one.share = number(1e-9, 1e9);
    else if (key == "priority")
      one.of.priority = static_cast<int>(std::floor(number(0.0, 1e6)));
    else if (key == "isl")
      one.prompt = parse_length_distribution(value, at);
    else if (key == "osl")
      one.output = parse_length_distribution(value, at);
    else if (key == "ttft" || key == "tpot" || key == "e2e")
      limits += (limits.empty() ? "" : ",") + item;
    else
      fail_input(at, "'" + shown_text(key) + "' is no key of a class",
                 suggestion(key, {"share", "priority", "ttft", "tpot", "e2e", "isl", "osl"}));
  }
  if (!limits.empty()) one.of.slo = parse_slo(limits, at);
  return one;
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
