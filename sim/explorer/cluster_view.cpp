#include "sim/explorer/cluster_view.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "sim/cluster/fabric_plan.hpp"
#include "sim/core/units.hpp"
#include "sim/explorer/views.hpp"
#include "sim/training/link_loads.hpp"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

// Users as a result names them.
constexpr std::array<const char*, 5> users{"tensor", "context", "expert", "pipeline", "data"};
double of_user(const LinkLoad& load, std::size_t user) {
  const auto of = [&](LinkUser one) { return load[static_cast<std::size_t>(one)].si(); };
  constexpr std::array<LinkUser, 5> alone{LinkUser::tensor, LinkUser::context, LinkUser::dispatch,
                                          LinkUser::pipeline, LinkUser::data};
  return alone[user] == LinkUser::dispatch
             ? of(LinkUser::dispatch) + of(LinkUser::combine) + of(LinkUser::expert_tensor)
             : of(alone[user]);
}

const char* direction(LinkKind kind) {
  switch (kind) {
    case LinkKind::nvlink_up:
    case LinkKind::pcie_up:
    case LinkKind::nic_up:
    case LinkKind::leaf_up:
    case LinkKind::spine_up:
      return "up";
    case LinkKind::nvlink_down:
    case LinkKind::pcie_down:
    case LinkKind::nic_down:
    case LinkKind::leaf_down:
    case LinkKind::spine_down:
      return "down";
    case LinkKind::socket_link:
    case LinkKind::local_link:
    case LinkKind::global_link:
    case LinkKind::switch_link:
    case LinkKind::port:
      break;
  }
  return "";
}

// Links of one class and direction in one place.
struct Bundle {
  LinkId busiest{-1};
  int links = 0;
  double most = 0.0, least = 1e300;
};
using Bundles = std::map<std::pair<std::string, std::string>, Bundle>;

void add(Bundles& bundles, LinkId id, const Link& link, double busy) {
  Bundle& bundle = bundles[{cable_name(link.kind), direction(link.kind)}];
  ++bundle.links;
  bundle.least = std::min(bundle.least, busy);
  if (bundle.busiest.value >= 0 && busy <= bundle.most) return;
  bundle.most = busy;
  bundle.busiest = id;
}

// NVLink domains in which ranks of the same stages are.
struct DomainKind {
  std::vector<int> stages;
  int gpus = 0, domains = 0;
  Bundles bundles;

  double busiest() const {
    double most = 0.0;
    for (const auto& [key, bundle] : bundles) most = std::max(most, bundle.most);
    return most;
  }
};

class ClusterView {
 public:
  ClusterView(const Estimate& answer, const TimeSlice& window)
      : answer_{answer},
        window_{window},
        system_{answer.result.scenario.system},
        loads_{link_loads(answer.step, answer.topology)} {
    find_kinds();
    for (std::size_t i = 0; i < loads_.size(); ++i) {
      const double bytes = total(loads_[i]).si();
      if (bytes == 0.0) continue;
      const LinkId id{static_cast<std::int32_t>(i)};
      const Link& link = answer_.topology.link(id);
      const double busy = Bytes{bytes} / link.capacity / answer_.result.step_time;
      add(link.node < 0 ? fabric_ : kinds_[kind_of_domain_[at(domain_of(link.node))]].bundles, id,
          link, busy);
    }
    keep_the_busiest();
    find_loads_over_time();
  }

  Json json() const {
    Json kinds = Json::array();
    for (const DomainKind& kind : kinds_)
      kinds.push_back({{"stages", kind.stages},
                       {"gpus", kind.gpus},
                       {"domains", kind.domains},
                       {"links", links_json(kind.bundles)}});
    Json cables = Json::object();
    for (const auto& [name, count] : cable_counts(system_, answer_.topology)) cables[name] = count;
    return {{"step_ns", std::llround(answer_.timeline.makespan.seconds().si() * 1e9)},
            {"step_s", answer_.result.step_time.si()},
            {"from_ns", std::llround(window_.from.si() * 1e9)},
            {"to_ns", std::llround(window_.to.si() * 1e9)},
            {"slices", slices_of_loads},
            {"domain", domain_json()},
            {"cables", std::move(cables)},
            {"kinds", std::move(kinds)},
            {"kinds_in_all", kinds_in_all_},
            {"tiers", tiers_json()},
            {"fabric", links_json(fabric_)}};
  }

 private:
  int domain_of(int node) const { return node * system_.gpus_per_node / system_.nvlink_domain; }

  void find_kinds() {
    const Placement& placement = answer_.step.classes.placement();
    std::map<std::pair<std::vector<int>, int>, std::size_t> known;
    for (int first = 0; first < placement.ranks();) {
      std::set<int> stages;
      int rank = first;
      for (; rank < placement.ranks() && rank < first + system_.nvlink_domain; ++rank)
        stages.insert(placement.coordinates(Rank{rank}).stage);
      const std::vector<int> list(stages.begin(), stages.end());
      const auto [found, fresh] = known.try_emplace({list, rank - first}, kinds_.size());
      if (fresh) kinds_.push_back({list, rank - first, 0, {}});
      ++kinds_[found->second].domains;
      kind_of_domain_.push_back(found->second);
      first = rank;
    }
    kinds_in_all_ = kinds_.size();
  }

  void keep_the_busiest() {
    if (kinds_.size() <= most_domain_kinds) return;
    std::stable_sort(kinds_.begin(), kinds_.end(), [](const DomainKind& a, const DomainKind& b) {
      return a.busiest() > b.busiest();
    });
    kinds_.resize(most_domain_kinds);
    std::sort(kinds_.begin(), kinds_.end(), [](const DomainKind& a, const DomainKind& b) {
      return a.stages < b.stages || (a.stages == b.stages && a.gpus > b.gpus);
    });
  }

  void find_loads_over_time() {
    std::vector<LinkId> links;
    const auto take = [&](const Bundles& bundles) {
      for (const auto& [key, bundle] : bundles) {
        place_[bundle.busiest.value] = links.size();
        links.push_back(bundle.busiest);
      }
    };
    take(fabric_);
    for (const DomainKind& kind : kinds_) take(kind.bundles);
    over_time_ = link_loads_over_time(answer_.step, answer_.timeline, answer_.topology, links,
                                      slices_of_loads, window_);
  }

  Json links_json(const Bundles& bundles) const {
    Json list = Json::array();
    for (const auto& [key, bundle] : bundles) {
      const LinkLoad& load = loads_[at(bundle.busiest.value)];
      const std::vector<LinkLoad>& slices = over_time_[place_.at(bundle.busiest.value)];
      Json by_user = Json::object(), over_time = Json::object();
      for (std::size_t user = 0; user < users.size(); ++user) {
        by_user[users[user]] = std::llround(of_user(load, user));
        if (of_user(load, user) == 0.0) continue;
        Json bytes = Json::array();
        for (const LinkLoad& slice : slices) bytes.push_back(std::llround(of_user(slice, user)));
        over_time[users[user]] = std::move(bytes);
      }
      list.push_back({{"class", key.first},
                      {"direction", key.second},
                      {"name", answer_.topology.name(bundle.busiest)},
                      {"links", bundle.links},
                      {"least_fraction", bundle.least},
                      {"busy_fraction", bundle.most},
                      {"bytes", std::llround(total(load).si())},
                      {"capacity_bytes_per_s", answer_.topology.link(bundle.busiest).capacity.si()},
                      {"by_user", std::move(by_user)},
                      {"over_time", std::move(over_time)}});
    }
    return list;
  }

  Json domain_json() const {
    bool mesh = false, nvlink = false, pcie = false, socket = false;
    for (const NamedLink& named : answer_.topology.domain_links()) {
      const std::string& of = cable_name(named.link.kind);
      nvlink = nvlink || of == "nvlink";
      pcie = pcie || of == "pcie";
      socket = socket || of == "socket";
      mesh = mesh || (of == "nvlink" && named.name.find("-gpu") != named.name.npos);
    }
    const int nodes = system_.nvlink_domain / system_.gpus_per_node;
    return {{"gpus", system_.nvlink_domain},
            {"nodes", nodes},
            {"nics", nodes * system_.nics_per_node},
            {"nvlink", mesh     ? "mesh"
                       : nvlink ? "switch"
                                : ""},
            {"pcie", pcie},
            {"socket", socket}};
  }

  // Leaves, spines and cores are named with a number.
  Json tiers_json() const {
    const FabricPlan& fabric = answer_.topology.fabric();
    std::map<int, std::pair<std::string, int>, std::greater<>> tiers;
    for (int i = 0; i < fabric.switches(); ++i) {
      auto& [name, count] = tiers[fabric.level(i)];
      if (++count == 1) name = fabric.name(i);
    }
    Json list = Json::array();
    for (auto& [level, tier] : tiers) {
      std::string name = tier.first.substr(0, tier.first.find_last_not_of("0123456789") + 1);
      const bool known = name == "leaf" || name == "spine" || name == "core" || name == "router";
      list.push_back({{"name", known ? name : "switch"}, {"count", tier.second}});
    }
    return list;
  }

  const Estimate& answer_;
  const TimeSlice window_;
  const System& system_;
  const std::vector<LinkLoad> loads_;
  std::vector<DomainKind> kinds_;
  std::vector<std::size_t> kind_of_domain_;
  std::size_t kinds_in_all_ = 0;
  Bundles fabric_;
  std::map<std::int32_t, std::size_t> place_;  // Index of a link in over_time_.
  std::vector<std::vector<LinkLoad>> over_time_;
};

}  // namespace

std::string cluster_view(const Estimate& answer, const std::optional<TimeSlice>& window) {
  const TimeSlice whole{Seconds{}, answer.timeline.makespan.seconds()};
  return line_of(ClusterView{answer, window.value_or(whole)}.json());
}

}  // namespace orrery
