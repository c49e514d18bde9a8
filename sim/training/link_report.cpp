#include "sim/training/link_report.hpp"

#include <algorithm>
#include <map>

#include "sim/training/link_loads.hpp"

namespace orrery {
const std::string& name(LinkUser user) {
  static const std::array<std::string, link_users> names{
      "tensor", "context", "dispatch", "combine", "expert tensor", "pipeline", "data"};
  return names[static_cast<std::size_t>(user)];
}

std::vector<LinkReport> link_reports(const TrainingStep& step, Seconds step_time,
                                     const Topology& topology) {
  const std::vector<LinkLoad> loads = link_loads(step, topology);
  std::map<std::string, LinkReport> busiest;
  for (std::size_t i = 0; i < loads.size(); ++i) {
    const LinkLoad& load = loads[i];
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
