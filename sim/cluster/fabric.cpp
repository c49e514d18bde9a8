#include "sim/cluster/fabric.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "sim/cluster/system.hpp"
#include "sim/core/field.hpp"
#include "sim/core/nearest.hpp"

namespace orrery {
namespace {

// Far above real clusters (64 to 1024 ports a switch, a few thousand switches), to catch slips.
constexpr int most_of_a_kind = 65'536;

Field<FabricShape> count_of(const std::string& key, int FabricShape::*member) {
  return figure(key, member, whole(1, most_of_a_kind));
}

Seconds hop_latency(const JsonValue& json) {
  const JsonValue value = json.sourced();
  const Seconds seconds = value.duration();
  if (seconds > Seconds{0.001})
    value.fail("'" + value.text() + "' is not a latency of a switch", "write it like \"0.2 us\"");
  return seconds;
}

// The bandwidth of one of `links` that together carry the input from below, less the
// oversubscription; or an explicit bandwidth.
BytesPerSecond uplink(const JsonValue& json, const std::string& prefix, BytesPerSecond below,
                      int links) {
  const std::string ratio_key = prefix + "oversubscription";
  const std::string bandwidth_key = prefix + "uplink_bandwidth";
  const auto ratio = json.find(ratio_key);
  const auto bandwidth = json.find(bandwidth_key);
  if (ratio && bandwidth)
    bandwidth->fail("contradicts " + ratio_key + ", which says the same in another way",
                    "leave one of the two out");
  if (bandwidth) return bandwidth->sourced().bandwidth();
  if (!ratio)
    json.fail("the speed of the uplinks is missing",
              "add \"" + ratio_key + "\" (2 for 2:1) or \"" + bandwidth_key + "\"");
  return below / (ratio->sourced().number(0.01, 1000.0) * links);
}

// Input of a full leaf from its NICs.
BytesPerSecond leaf_input(const FabricShape& shape, const System& system) {
  const int per_node =
      shape.rails ? system.nics_per_node / nics_in_routes(system) : system.nics_per_node;
  return static_cast<double>(shape.nodes_per_leaf * per_node) * system.nic;
}

// Reads these fields; all shapes have three more, and `others` are read by themselves.
ObjectReader reader_of(const JsonValue& json, const std::vector<Field<FabricShape>>& fields,
                       FabricShape& shape, std::vector<std::string> others = {}) {
  others.insert(others.end(), {"kind", "ecmp_seed", "switch_latency"});
  return read_fields_of(json, fields, shape, others);
}

void read_leaf_spine(const JsonValue& json, const System& system, FabricShape& shape) {
  shape.rails = shape.layout == FabricLayout::rail_optimized;
  const std::string nodes = shape.rails ? "nodes_per_pod" : "nodes_per_leaf";
  using S = FabricShape;
  ObjectReader reader =
      reader_of(json, {count_of(nodes, &S::nodes_per_leaf), count_of("spines", &S::spines)}, shape,
                {"oversubscription", "uplink_bandwidth"});
  reader.check([&] { shape.uplink = uplink(json, "", leaf_input(shape, system), shape.spines); });
  reader.raise();
}

void read_fat_tree(const JsonValue& json, const System& system, FabricShape& shape) {
  using S = FabricShape;
  reader_of(
      json,
      {optional(field("rails", &S::rails, truth())), count_of("nodes_per_leaf", &S::nodes_per_leaf),
       count_of("leaves_per_pod", &S::leaves_per_pod), count_of("spines_per_pod", &S::spines),
       count_of("cores", &S::cores)},
      shape,
      {"oversubscription", "uplink_bandwidth", "core_oversubscription", "core_uplink_bandwidth"})
      .raise();
  shape.uplink = uplink(json, "", leaf_input(shape, system), shape.spines);
  const int cores_of_a_spine = shape.cores / core_groups(shape);
  const BytesPerSecond into_spine = static_cast<double>(shape.leaves_per_pod) * shape.uplink;
  shape.core_uplink = uplink(json, "core_", into_spine, cores_of_a_spine);
}

void read_dragonfly(const JsonValue& json, FabricShape& shape) {
  using S = FabricShape;
  const auto bandwidth = quantity(&JsonValue::bandwidth);
  const auto joins_groups = [](const JsonValue&, const S& so_far) { return so_far.groups != 1; };
  reader_of(json,
            {count_of("nodes_per_router", &S::nodes_per_leaf),
             count_of("routers_per_group", &S::routers_per_group), count_of("groups", &S::groups),
             figure("local_bandwidth", &S::local_link, bandwidth),
             where(joins_groups, count_of("global_links_per_router", &S::global_links)),
             where(joins_groups, figure("global_bandwidth", &S::global_link, bandwidth))},
            shape)
      .raise();
  if (shape.groups == 1) return;
  const std::int64_t ports = std::int64_t{shape.routers_per_group} * shape.global_links;
  if (ports > most_of_a_kind)
    json.fail("a group has " + std::to_string(ports) + " global links",
              "let routers_per_group x global_links_per_router be at most " +
                  std::to_string(most_of_a_kind));
  if (ports % (shape.groups - 1) != 0)
    json.at("global_links_per_router")
        .at("value")
        .fail(std::to_string(ports) + " global links of a group do not go evenly to " +
                  std::to_string(shape.groups - 1) + " other groups",
              "let routers_per_group x global_links_per_router be a multiple of groups - 1");
}

void limit_size(const JsonValue& json, System& system) {
  const FabricShape& shape = system.shape;
  std::int64_t nodes = 0;
  if (shape.layout == FabricLayout::dragonfly)
    nodes = std::int64_t{shape.nodes_per_leaf} * shape.routers_per_group * shape.groups;
  else if (shape.layout == FabricLayout::explicit_links)
    nodes = static_cast<std::int64_t>(shape.ports.size()) / nics_in_routes(system);
  else
    return;
  const std::int64_t gpus = nodes * system.gpus_per_node;
  if (gpus > 10'000'000)
    json.fail("this fabric holds " + std::to_string(gpus) + " GPUs",
              "write one of at most 10,000,000");
  if (system.max_gpus > gpus)
    json.fail("this fabric holds " + std::to_string(gpus) + " GPUs, but max_gpus says " +
                  std::to_string(system.max_gpus),
              "let max_gpus be at most " + std::to_string(gpus));
  if (system.max_gpus == 0) system.max_gpus = static_cast<int>(gpus);
}

}  // namespace

int nics_in_routes(const System& system) {
  return std::min(system.nics_per_node, system.gpus_per_node);
}

std::string nic_name(const System& system, int nic) {
  const int together = system.nics_per_node / nics_in_routes(system);
  return "nic" + std::to_string(nic) + (together > 1 ? "x" + std::to_string(together) : "");
}

int core_groups(const FabricShape& shape) { return std::gcd(shape.spines, shape.cores); }

void read_fabric(const JsonValue& system_json, System& system) {
  const auto found = system_json.find("fabric_shape");
  if (!found) return;
  const JsonValue& json = *found;
  FabricShape& shape = system.shape;
  shape.layout = choice<FabricLayout>(json.at("kind"));
  if (shape.layout == FabricLayout::single_switch) {
    json.allow_only({"kind"});
    return;
  }
  if (const auto seed = json.find("ecmp_seed"))
    shape.ecmp_seed =
        static_cast<std::uint64_t>(seed->integer(0, std::numeric_limits<std::int32_t>::max()));
  switch (shape.layout) {
    case FabricLayout::single_switch:
      break;
    case FabricLayout::leaf_spine:
    case FabricLayout::rail_optimized:
      read_leaf_spine(json, system, shape);
      break;
    case FabricLayout::fat_tree:
      read_fat_tree(json, system, shape);
      break;
    case FabricLayout::dragonfly:
      read_dragonfly(json, shape);
      break;
    case FabricLayout::explicit_links:
      read_explicit_fabric(json, system);
      break;
  }
  if (shape.layout != FabricLayout::explicit_links)
    shape.switch_latency = json.has("switch_latency") ? hop_latency(json.at("switch_latency"))
                                                      : system.network.switch_latency;
  limit_size(json, system);
}

namespace {

// A whole number without sign or leading zeros, or -1.
int whole_number(const std::string& digits) {
  int value = -1;
  const char* end = digits.data() + digits.size();
  const auto [rest, error] = std::from_chars(digits.data(), end, value);
  const bool whole = error == std::errc{} && rest == end && value >= 0;
  return whole && std::to_string(value) == digits ? value : -1;
}

int nic_of(const System& system, const std::string& member) {
  for (int nic = 0; nic < nics_in_routes(system); ++nic)
    if (member == nic_name(system, nic)) return nic;
  return -1;
}

class ExplicitReader {
 public:
  ExplicitReader(const JsonValue& json, System& system) : json_{json}, system_{system} {}

  void read() {
    json_.allow_only({"kind", "ecmp_seed", "switches", "links"});
    read_switches();
    for (const JsonValue& link : json_.at("links").elements()) read_link(link);
    collect_ports();
  }

 private:
  void read_switches() {
    for (const JsonValue& name : json_.at("switches").elements()) {
      if (name.text().empty() || name.text().find_first_of(".- ") != std::string::npos)
        name.fail("'" + shown_text(name.text()) + "' is not the name of a switch",
                  "use letters, digits and _, as in \"leaf_0\"");
      if (!switch_ids_.try_emplace(name.text(), static_cast<int>(switch_ids_.size())).second)
        name.fail("'" + name.text() + "' is a switch already", "give each its own name");
      system_.shape.switches.push_back(name.text());
    }
    if (switch_ids_.empty()) json_.at("switches").fail("there is no switch", "name at least one");
  }

  int switch_of(const JsonValue& end) const {
    const auto found = switch_ids_.find(end.text());
    if (found == switch_ids_.end())
      end.fail("'" + shown_text(end.text()) + "' is neither a switch nor a NIC",
               suggestion(end.text(), system_.shape.switches) + " (NICs are written like node0." +
                   nic_name(system_, 0) + ")");
    return found->second;
  }

  void read_link(const JsonValue& link) {
    link.allow_only({"from", "to", "bandwidth", "latency"});
    const JsonValue from = link.at("from");
    const JsonValue to = link.at("to");
    const bool from_nic = parse_node_member(from.text()).has_value();
    const bool to_nic = parse_node_member(to.text()).has_value();
    if (from_nic && to_nic)
      link.fail("joins two NICs, which has no switch", "plug each NIC into a switch");
    if (from_nic || to_nic)
      plug_in(link, from_nic ? from : to, from_nic ? to : from);
    else
      join(link, from, to);
  }

  void plug_in(const JsonValue& link, const JsonValue& nic_end, const JsonValue& switch_end) {
    const NodeMember at = *parse_node_member(nic_end.text());
    const int nic = nic_of(system_, at.member);
    if (nic < 0)
      nic_end.fail("'" + nic_end.text() + "' is not a NIC: a node has " + nic_name(system_, 0) +
                       " to " + nic_name(system_, nics_in_routes(system_) - 1),
                   "write one of them");
    if (!ports_.try_emplace({at.node, nic}, switch_of(switch_end)).second)
      nic_end.fail("'" + nic_end.text() + "' is plugged in already", "name each NIC once");
    LinkOverride change{.place = nic_end.place(), .link = nic_end.text()};
    if (const auto bandwidth = link.find("bandwidth")) {
      change.bandwidth = bandwidth->sourced().bandwidth();
      if (change.bandwidth > nic_rate())
        bandwidth->at("value").fail(
            "'" + bandwidth->at("value").text() + "' is more than nic_bandwidth",
            "correct one of the two");
    }
    if (const auto latency = link.find("latency"))
      change.extra_latency = latency->sourced().duration();
    const bool changes = (change.bandwidth != BytesPerSecond{} && change.bandwidth < nic_rate()) ||
                         change.extra_latency > Seconds{};
    if (changes) system_.link_overrides.push_back(change);
  }

  void join(const JsonValue& link, const JsonValue& from, const JsonValue& to) {
    const int first = switch_of(from);
    const int second = switch_of(to);
    if (first == second) to.fail("a link joins two switches", "name another one");
    if (!joined_.insert(std::minmax(first, second)).second)
      link.fail("'" + from.text() + "' and '" + to.text() + "' are joined already",
                "give all their cables in one entry");
    system_.shape.links.push_back({from.text(), to.text(),
                                   link.at("bandwidth").sourced().bandwidth(),
                                   link.at("latency").sourced().duration()});
  }

  // The map is ordered by node and NIC.
  void collect_ports() {
    const int per_node = nics_in_routes(system_);
    int next = 0;
    for (const auto& [at, switch_id] : ports_) {
      const std::pair<int, int> wanted{next / per_node, next % per_node};
      if (at != wanted) missing(wanted);
      system_.shape.ports.push_back({at.first, at.second, switch_id});
      ++next;
    }
    if (next == 0 || next % per_node != 0) missing({next / per_node, next % per_node});
  }

  [[noreturn]] void missing(std::pair<int, int> at) const {
    json_.at("links").fail(
        "'node" + std::to_string(at.first) + "." + nic_name(system_, at.second) +
            "' is plugged in nowhere",
        "add its link: nodes count from 0, and all their NICs are part of the fabric");
  }

  BytesPerSecond nic_rate() const {
    return static_cast<double>(system_.nics_per_node / nics_in_routes(system_)) * system_.nic;
  }

  const JsonValue& json_;
  System& system_;
  std::map<std::string, int> switch_ids_;
  std::map<std::pair<int, int>, int> ports_;  // (node, NIC) to switch.
  std::set<std::pair<int, int>> joined_;
};

void read_link_override(const JsonValue& json, System& system) {
  json.allow_only({"link", "bandwidth", "down"});
  LinkOverride change{.place = json.at("link").place(), .link = required_text(json, "link")};
  const auto bandwidth = json.find("bandwidth");
  const auto down = json.find("down");
  change.down = down && down->boolean();
  if (change.down == bandwidth.has_value())
    json.fail(change.down ? "a link that is down has no bandwidth" : "nothing is overridden",
              "write either \"bandwidth\" or \"down\": true");
  if (bandwidth) change.bandwidth = bandwidth->sourced().bandwidth();
  system.link_overrides.push_back(change);
}

void read_gpu_override(const JsonValue& json, System& system) {
  json.allow_only({"gpu", "speed"});
  const JsonValue gpu = json.at("gpu");
  const auto at = parse_node_member(gpu.text());
  const int index = at && at->member.starts_with("gpu") ? whole_number(at->member.substr(3)) : -1;
  if (index < 0 || index >= system.gpus_per_node)
    gpu.fail("'" + shown_text(gpu.text()) + "' is not a GPU: a node has gpu0 to gpu" +
                 std::to_string(system.gpus_per_node - 1),
             "write it like \"node3.gpu1\"");
  for (const GpuOverride& other : system.gpu_overrides)
    if (other.node == at->node && other.gpu == index)
      gpu.fail("'" + gpu.text() + "' is overridden already", "give each GPU one speed");
  system.gpu_overrides.push_back(
      {at->node, index, json.at("speed").sourced().number(0.001, 1000.0)});
}

}  // namespace

std::optional<NodeMember> parse_node_member(const std::string& word) {
  const std::size_t dot = word.find('.');
  if (!word.starts_with("node") || dot == word.npos) return std::nullopt;
  const int node = whole_number(word.substr(4, dot - 4));
  if (node < 0) return std::nullopt;
  return NodeMember{node, word.substr(dot + 1)};
}

void read_explicit_fabric(const JsonValue& json, System& system) {
  ExplicitReader{json, system}.read();
}

void read_overrides(const JsonValue& system_json, System& system) {
  const auto found = system_json.find("overrides");
  if (!found) return;
  for (const JsonValue& json : found->elements()) {
    if (json.has("gpu"))
      read_gpu_override(json, system);
    else
      read_link_override(json, system);
  }
}

}  // namespace orrery
