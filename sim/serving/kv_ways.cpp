#include "sim/serving/kv_ways.hpp"

#include <algorithm>

#include "sim/engine/link_transfers.hpp"

namespace orrery {

KvWay KvWays::way(const Sends& sends) const {
  KvWay way;
  std::vector<Flow> flows;
  for (const KvSend& send : sends) {
    const bool inside = topology_.same_domain(send.from, send.to);
    Way links;
    for (const LinkId link : topology_.route(send.from, send.to)) links.push_back({link, 1});
    way.latency =
        std::max(way.latency,
                 inside ? rates_.latency_inside
                        : rates_.latency_outside + topology_.further_switches(send.from, send.to));
    way.sent += send.share;
    flows.push_back({std::move(links), Bytes{send.share}, inside ? rates_.inside : rates_.outside});
  }
  way.flows = flows;
  // So many bytes that a tick of the clock is nothing of their time.
  constexpr double many = 1e12;
  LinkTransfers links{topology_};
  links.start(way.flows, many, Seconds{});
  Seconds last;
  while (links.next() < LinkTransfers::never) links.advance(last = links.next());
  way.alone = last / many;
  return way;
}

const KvWay& KvWays::between(std::uint32_t from, std::uint32_t to) {
  const auto key = std::pair{from, to};
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  return known_.emplace(key, way(sends_(from, to))).first->second;
}

}  // namespace orrery
