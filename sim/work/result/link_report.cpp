#include "sim/work/result/link_report.hpp"

#include <algorithm>
#include <map>

#include "sim/engine/graph/group_flows.hpp"

namespace orrery {
namespace {

using Load = std::array<Bytes, link_users>;

Bytes total(const Load& load) {
  Bytes sum;
  for (Bytes bytes : load) sum += bytes;
  return sum;
}

LinkUser user_of(GroupKind group, bool combine) {
  switch (group) {
    case GroupKind::tensor:
      return LinkUser::tensor;
    case GroupKind::context:
      return LinkUser::context;
    case GroupKind::expert_tensor:
      return LinkUser::expert_tensor;
    case GroupKind::expert:
      return combine ? LinkUser::combine : LinkUser::dispatch;
    case GroupKind::data:
    case GroupKind::expert_data:
      break;
  }
  return LinkUser::data;
}

// Of the tasks only collectives and transfers have flows.
LinkUser user_of(const Label& label) {
  if (label.what == Label::What::transfer) return LinkUser::pipeline;
  return label.what == Label::What::collective ? user_of(label.group, label.combine)
                                               : LinkUser::data;
}

class Loads {
 public:
  void add(const Flows& flows, LinkUser user, double times) {
    for (const Flow& flow : flows)
      for (const LinkUse& use : flow.way) {
        const auto link = static_cast<std::size_t>(use.link.value);
        if (link >= loads_.size()) loads_.resize(link + 1);
        loads_[link][static_cast<std::size_t>(user)] += times * use.times * flow.bytes;
      }
  }
  const std::vector<Load>& by_link() const { return loads_; }

 private:
  std::vector<Load> loads_;
};

// What contracted passes send inside their one task: the flows that their groups would have. Each
// group is counted once, by its first role.
void add_contracted(const TrainingStep& step, const Topology& topology, Loads& loads) {
  struct Runs {
    int role;
    const PassCost* cost;
    int count;
  };
  std::vector<Runs> all;  // In the order of the tasks: no address may reach a sum.
  std::map<std::pair<int, const PassCost*>, std::size_t> index;
  for (int i = 0; i < step.graph.size(); ++i) {
    const PassCost* cost = step.label(TaskId{i}).cost;
    if (!cost) continue;
    const int role = step.graph.task(TaskId{i}).owner;
    const auto [found, is_new] = index.try_emplace({role, cost}, all.size());
    if (is_new) all.push_back({role, cost, 0});
    ++all[found->second].count;
  }
  for (const Runs& runs : all) {
    const Rank member = step.cast.roles()[static_cast<std::size_t>(runs.role)].rank;
    std::array<bool, group_kinds> leads{};
    for (GroupKind kind : all_group_kinds)
      leads[static_cast<std::size_t>(kind)] =
          roles_in(step.cast, step.cast.placement().group(kind, member)).front() == runs.role;
    for_each_collective(runs.cost->segments, [&](const GroupCollective& collective) {
      if (!leads[static_cast<std::size_t>(collective.group)]) return;
      loads.add(collective_flows(topology, step.cast, member, collective),
                user_of(collective.group, collective.combine), runs.count);
    });
  }
}

}  // namespace

const std::string& name(LinkUser user) {
  static const std::array<std::string, link_users> names{
      "tensor", "context", "dispatch", "combine", "expert tensor", "pipeline", "data"};
  return names[static_cast<std::size_t>(user)];
}

std::vector<LinkReport> link_reports(const TrainingStep& step, Seconds step_time,
                                     const Topology& topology) {
  Loads loads;
  for (int i = 0; i < step.graph.size(); ++i) {
    const TaskId id{i};
    loads.add(step.graph.task(id).flows, user_of(step.label(id)), 1.0);
  }
  add_contracted(step, topology, loads);

  std::map<std::string, LinkReport> busiest;
  for (std::size_t i = 0; i < loads.by_link().size(); ++i) {
    const Load& load = loads.by_link()[i];
    const Bytes bytes = total(load);
    if (bytes == Bytes{}) continue;
    const LinkId id{static_cast<std::int32_t>(i)};
    const Link& link = topology.link(id);
    const double busy = bytes / link.capacity / step_time;
    LinkReport& report = busiest[cable_name(link.kind)];
    if (report.kind.empty() || busy > report.busy_fraction)
      report = {topology.name(id), cable_name(link.kind), bytes, load, busy};
  }
  std::vector<LinkReport> reports;
  for (const auto& [kind, report] : busiest) reports.push_back(report);
  std::stable_sort(reports.begin(), reports.end(), [](const LinkReport& a, const LinkReport& b) {
    return a.busy_fraction > b.busy_fraction;
  });
  return reports;
}

}  // namespace orrery
