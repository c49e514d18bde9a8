#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "sim/core/random.hpp"
#include "sim/serving/replica.hpp"

namespace orrery {

/// Which replica a request goes to.
enum class Routing {
  round_robin,
  random,
  session,       ///< One session to one replica.
  least_tokens,  ///< Whose requests have the fewest tokens.
  power_of_two,  ///< Of two drawn replicas that one.
  prefix  ///< Whose requests and the part of the prompt that it does not know are the fewest.
};

const std::vector<std::string>& routing_names();  ///< "round-robin", ..., by their enumerators.

/// Whether it looks at the replicas. Others split a stream before anything is simulated.
bool looks_at_replicas(Routing routing);

/// Chooses for one request after the other.
class RequestRouter {
 public:
  RequestRouter(Routing routing, std::uint32_t replicas, std::uint64_t seed);

  /// Of a routing that does not look at them.
  std::uint32_t choose(const Request& request);
  /// Of any. Replicas in the state of this moment.
  std::uint32_t choose(const Request& request, std::uint32_t index,
                       const std::deque<Replica>& replicas);

 private:
  Routing routing_;
  std::uint32_t replicas_;
  std::uint32_t turn_ = 0;
  Random random_;
};

}  // namespace orrery
