#include "sim/training/link_loads.hpp"

#include <algorithm>
#include <map>

#include "sim/collectives/collective_flows.hpp"
#include "sim/core/units.hpp"

namespace orrery {

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

namespace {

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
    case GroupKind::shard_copies:
      break;
  }
  return LinkUser::data;
}

// Applies to collectives and transfers, the only tasks with flows.
LinkUser user_of(const Label& label) {
  if (label.what == Label::What::transfer) return LinkUser::pipeline;
  return label.what == Label::What::collective ? user_of(label.group, label.combine)
                                               : LinkUser::data;
}

class Loads {
 public:
  void add(const Flows& flows, LinkUser user, double times) {
    for (const Flow& flow : flows)
      for (const LinkUse& use : flow.route) {
        const auto link = at(use.link.value);
        if (link >= loads_.size()) loads_.resize(link + 1);
        loads_[link][static_cast<std::size_t>(user)] += times * use.times * flow.bytes;
      }
  }
  std::vector<LinkLoad> by_link() && { return std::move(loads_); }

 private:
  std::vector<LinkLoad> loads_;
};

// Contracted passes of one representative with the same cost.
struct ContractedPasses {
  int rep;
  const PassCost* cost;
  std::vector<TaskId> tasks;
};

// Ordered by task, so that sums do not depend on addresses.
std::vector<ContractedPasses> contracted_passes(const TrainingStep& step) {
  std::vector<ContractedPasses> all;
  std::map<std::pair<int, const PassCost*>, std::size_t> index;
  for (int i = 0; i < step.graph.size(); ++i) {
    const PassCost* cost = step.label(TaskId{i}).cost;
    if (!cost) continue;
    const int rep = step.graph.task(TaskId{i}).owner;
    const auto [found, is_new] = index.try_emplace({rep, cost}, all.size());
    if (is_new) all.push_back({rep, cost, {}});
    all[found->second].tasks.push_back(TaskId{i});
  }
  return all;
}

// Each group is counted once, by its first member.
std::array<bool, group_kinds> groups_led_by(const TrainingStep& step, int rep) {
  const Rank member = step.classes.reps()[at(rep)].rank;
  std::array<bool, group_kinds> leads{};
  for (GroupKind kind : all_group_kinds)
    leads[static_cast<std::size_t>(kind)] =
        reps_in(step.classes, step.classes.placement().group(kind, member)).front() == rep;
  return leads;
}

// Adds the flows that the collectives of contracted passes would have.
void add_contracted(const TrainingStep& step, const Topology& topology, Loads& loads) {
  for (const ContractedPasses& passes : contracted_passes(step)) {
    const Rank member = step.classes.reps()[at(passes.rep)].rank;
    const auto leads = groups_led_by(step, passes.rep);
    for_each_collective(passes.cost->segments, [&](const GroupCollective& collective) {
      if (!leads[static_cast<std::size_t>(collective.group)]) return;
      loads.add(collective_flows(topology, step.classes, member, collective),
                user_of(collective.group, collective.combine),
                static_cast<double>(passes.tasks.size()));
    });
  }
}

// Calls visit(collective, from, to), with times relative to the start of an isolated pass.
template <class Visit>
void for_each_collective_in_time(const std::vector<Segment>& segments, Seconds clock,
                                 const Visit& visit) {
  for (const Segment& segment : segments) {
    const Seconds end = clock + segment.time();
    if (segment.concurrent)
      visit(*segment.concurrent, clock, clock + segment.concurrent->cost.time());
    for_each_collective_in_time(segment.fused, clock, visit);
    if (segment.after) visit(*segment.after, end - segment.after->cost.time(), end);
    clock = end;
  }
}

class LoadsOverTime {
 public:
  LoadsOverTime(const Topology& topology, const std::vector<LinkId>& links, int slices,
                const TimeSlice& window, Seconds step)
      : place_(at(topology.link_count()), -1),
        loads_(links.size(), std::vector<LinkLoad>(at(slices))),
        window_{window},
        step_{step},
        slice_{1.0 / slices * (window.to - window.from)},
        last_{slices - 1} {
    for (std::size_t i = 0; i < links.size(); ++i) place_[at(links[i].value)] = static_cast<int>(i);
  }

  struct Share {
    std::size_t place;
    Bytes bytes;
  };
  // Bytes of the flows on the selected links.
  std::vector<Share> shares(const Flows& flows) const {
    std::vector<Share> found;
    for (const Flow& flow : flows)
      for (const LinkUse& use : flow.route)
        if (const auto link = at(use.link.value); link < place_.size() && place_[link] >= 0)
          found.push_back({at(place_[link]), static_cast<double>(use.times) * flow.bytes});
    return found;
  }

  void add(const std::vector<Share>& shares, LinkUser user, Seconds from, Seconds to) {
    // Rounding must not put bytes behind the step's end.
    from = std::min(from, step_);
    to = std::min(to, step_);
    if (shares.empty() || to < window_.from || from > window_.to) return;
    const Seconds whole = to - from;
    from = std::max(from, window_.from) - window_.from;
    to = std::min(to, window_.to) - window_.from;
    const int first = slice_of(from), final = slice_of(to);
    for (int slice = first; slice <= final; ++slice) {
      const Seconds begin = std::max(from, static_cast<double>(slice) * slice_);
      const Seconds end =
          slice == final ? to : std::min(to, static_cast<double>(slice + 1) * slice_);
      const double part = whole > Seconds{} ? (end - begin) / whole : 1.0;
      for (const Share& share : shares)
        loads_[share.place][at(slice)][static_cast<std::size_t>(user)] += part * share.bytes;
    }
  }

  std::vector<std::vector<LinkLoad>> by_link() && { return std::move(loads_); }

 private:
  int slice_of(Seconds time) const { return std::clamp(static_cast<int>(time / slice_), 0, last_); }

  std::vector<int> place_;  // Indexed by link; -1: not selected.
  std::vector<std::vector<LinkLoad>> loads_;
  TimeSlice window_;
  Seconds step_, slice_;
  int last_;
};

}  // namespace

Bytes total(const LinkLoad& load) {
  Bytes sum;
  for (Bytes bytes : load) sum += bytes;
  return sum;
}

std::vector<LinkLoad> link_loads(const TrainingStep& step, const Topology& topology) {
  Loads loads;
  for (int i = 0; i < step.graph.size(); ++i) {
    const TaskId id{i};
    loads.add(step.graph.task(id).flows, user_of(step.label(id)), 1.0);
  }
  add_contracted(step, topology, loads);
  return std::move(loads).by_link();
}

std::vector<std::vector<LinkLoad>> link_loads_over_time(const TrainingStep& step,
                                                        const Timeline& timeline,
                                                        const Topology& topology,
                                                        const std::vector<LinkId>& links,
                                                        int slices) {
  return link_loads_over_time(step, timeline, topology, links, slices,
                              {Seconds{}, timeline.makespan.seconds()});
}

std::vector<std::vector<LinkLoad>> link_loads_over_time(const TrainingStep& step,
                                                        const Timeline& timeline,
                                                        const Topology& topology,
                                                        const std::vector<LinkId>& links,
                                                        int slices, const TimeSlice& window) {
  LoadsOverTime loads{topology, links, slices, window, timeline.makespan.seconds()};
  for (int i = 0; i < step.graph.size(); ++i) {
    const Task& task = step.graph.task(TaskId{i});
    if (task.flows.empty()) continue;
    const Span& span = timeline.of(TaskId{i});
    const Seconds end = span.finish.seconds();
    const Seconds begin = std::min(end, span.start.seconds() + task.duration);
    loads.add(loads.shares(task.flows), user_of(step.label(TaskId{i})), begin, end);
  }
  for (const ContractedPasses& passes : contracted_passes(step)) {
    struct Sent {
      std::vector<LoadsOverTime::Share> shares;
      LinkUser user;
      Seconds from, to;
    };
    std::vector<Sent> all;
    const Rank member = step.classes.reps()[at(passes.rep)].rank;
    const auto leads = groups_led_by(step, passes.rep);
    for_each_collective_in_time(
        passes.cost->segments, Seconds{},
        [&](const GroupCollective& collective, Seconds from, Seconds to) {
          if (!leads[static_cast<std::size_t>(collective.group)]) return;
          auto shares = loads.shares(collective_flows(topology, step.classes, member, collective));
          if (!shares.empty())
            all.push_back(
                {std::move(shares), user_of(collective.group, collective.combine), from, to});
        });
    if (all.empty()) continue;
    const Seconds alone = passes.cost->time();
    for (const TaskId id : passes.tasks) {
      const Span& span = timeline.of(id);
      const double pace = span.length() / alone;
      for (const Sent& sent : all)
        loads.add(sent.shares, sent.user, span.start.seconds() + pace * sent.from,
                  span.start.seconds() + pace * sent.to);
    }
  }
  return std::move(loads).by_link();
}

}  // namespace orrery
