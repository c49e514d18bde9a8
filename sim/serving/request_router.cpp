#include "sim/serving/request_router.hpp"

#include <cassert>

namespace orrery {
namespace {

constexpr std::uint64_t router_stream = 5;

}  // namespace

const std::vector<std::string>& routing_names() {
  static const std::vector<std::string> names{"round-robin",  "random",       "session",
                                              "least-tokens", "power-of-two", "prefix"};
  return names;
}

bool looks_at_replicas(Routing routing) {
  return routing == Routing::least_tokens || routing == Routing::power_of_two ||
         routing == Routing::prefix;
}

RequestRouter::RequestRouter(Routing routing, std::uint32_t replicas, std::uint64_t seed)
    : routing_{routing}, replicas_{replicas}, random_{seed, router_stream} {}

std::uint32_t RequestRouter::choose(const Request& request) {
  assert(!looks_at_replicas(routing_));
  if (routing_ == Routing::random) return static_cast<std::uint32_t>(random_.below(replicas_));
  if (routing_ == Routing::session)
    return static_cast<std::uint32_t>(Random{request.session}.below(replicas_));
  const std::uint32_t chosen = turn_;
  turn_ = turn_ + 1 == replicas_ ? 0 : turn_ + 1;
  return chosen;
}

std::uint32_t RequestRouter::choose(const Request& request, std::uint32_t index,
                                    const std::deque<Replica>& replicas) {
  if (!looks_at_replicas(routing_)) return choose(request);
  if (routing_ == Routing::power_of_two) {
    const auto one = static_cast<std::uint32_t>(random_.below(replicas_));
    const auto other = static_cast<std::uint32_t>(random_.below(replicas_));
    return replicas[other].tokens_to_come() < replicas[one].tokens_to_come() ? other : one;
  }
  std::uint32_t best = 0;
  std::int64_t fewest = 0;
  for (std::uint32_t r = 0; r < replicas_; ++r) {
    std::int64_t tokens = replicas[r].tokens_to_come();
    if (routing_ == Routing::prefix) tokens -= replicas[r].known_tokens(index);
    if (r == 0 || tokens < fewest) {
      best = r;
      fewest = tokens;
    }
  }
  return best;
}

}  // namespace orrery
