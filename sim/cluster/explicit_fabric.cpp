#include "sim/cluster/explicit_fabric.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "sim/core/choice.hpp"
#include "sim/core/nearest.hpp"

namespace orrery {
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

  // In the map's order the NICs stand node by node.
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
