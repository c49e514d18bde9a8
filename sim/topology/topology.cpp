#include "sim/topology/topology.hpp"

#include <cassert>
#include <cstdint>
#include <deque>
#include <unordered_map>

#include "sim/topology/domain_graph.hpp"

namespace orrery {

struct Topology::State {
  int gpus = 0;
  int gpus_per_node = 1;
  int domain_size = 1;
  DomainGraph domain;
  std::deque<Link> links;  // Not a vector: references to its links must survive new ones.
  std::unordered_map<std::int64_t, LinkId> ids;

  struct Position {
    int domain, gpu;
  };
  Position position(Rank rank) const {
    assert(0 <= rank.value && rank.value < gpus);
    return {rank.value / domain_size, rank.value % domain_size};
  }

  LinkId link_of(int in_domain, int index) {
    const auto of_domain = static_cast<std::int64_t>(domain.links().size());
    const LinkId next{static_cast<std::int32_t>(links.size())};
    const auto [found, is_new] = ids.try_emplace(in_domain * of_domain + index, next);
    if (is_new) {
      Link link = domain.links()[static_cast<std::size_t>(index)];
      link.node += in_domain * (domain_size / gpus_per_node);
      // The domain's own names count nodes from 0: "node2.gpu1.nvlink.up".
      link.name = "node" + std::to_string(link.node) + link.name.substr(link.name.find('.'));
      links.push_back(std::move(link));
    }
    return found->second;
  }

  void append(std::vector<LinkId>& route, int in_domain, const std::vector<int>& indices) {
    for (const int index : indices) route.push_back(link_of(in_domain, index));
  }
};

Topology::Topology(std::unique_ptr<State> state) : state_{std::move(state)} {}
Topology::Topology(Topology&&) noexcept = default;
Topology& Topology::operator=(Topology&&) noexcept = default;
Topology::~Topology() = default;

Topology Topology::build(const System& system, int gpus) {
  assert(gpus >= 1);
  return Topology{std::make_unique<State>(State{.gpus = gpus,
                                                .gpus_per_node = system.gpus_per_node,
                                                .domain_size = system.nvlink_domain,
                                                .domain = DomainGraph{system},
                                                .links = {},
                                                .ids = {}})};
}

int Topology::gpus() const { return state_->gpus; }
int Topology::node(Rank rank) const { return rank.value / state_->gpus_per_node; }
bool Topology::same_domain(Rank a, Rank b) const {
  return state_->position(a).domain == state_->position(b).domain;
}

std::vector<LinkId> Topology::route(Rank from, Rank to) const {
  const State::Position source = state_->position(from);
  const State::Position target = state_->position(to);
  std::vector<LinkId> route;
  route.reserve(4);  // PCIe and NIC, on both sides: no route is longer.
  if (source.domain == target.domain) {
    state_->append(route, source.domain, state_->domain.inside(source.gpu, target.gpu));
  } else {
    state_->append(route, source.domain, state_->domain.to_fabric(source.gpu));
    state_->append(route, target.domain, state_->domain.from_fabric(target.gpu));
  }
  return route;
}

Seconds Topology::latency(Rank from, Rank to) const {
  Seconds sum;
  for (const LinkId id : route(from, to)) sum += link(id).latency;
  return sum;
}

int Topology::link_count() const { return static_cast<int>(state_->links.size()); }

const Link& Topology::link(LinkId id) const {
  assert(0 <= id.value && id.value < link_count());
  return state_->links[static_cast<std::size_t>(id.value)];
}

}  // namespace orrery
