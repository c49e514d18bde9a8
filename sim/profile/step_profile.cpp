#include "sim/profile/step_profile.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "sim/core/error.hpp"
#include "sim/core/value_list.hpp"

namespace orrery {
namespace {

constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

// The first call with that correlation; null where none was traced.
const Launch* launch_of(const KinetoTrace& trace, const GpuActivity& activity) {
  if (activity.correlation < 0) return nullptr;
  const auto found = std::lower_bound(
      trace.launches.begin(), trace.launches.end(), activity.correlation,
      [](const Launch& one, std::int64_t wanted) { return one.correlation < wanted; });
  return found != trace.launches.end() && found->correlation == activity.correlation ? &*found
                                                                                     : nullptr;
}

struct Window {
  std::int64_t number, begin_ns, end_ns;
};

// Steps with a step behind them: the last one's end is not in the trace.
std::vector<Window> whole_steps(const KinetoTrace& trace) {
  std::vector<std::size_t> by_begin(trace.steps.size());
  for (std::size_t i = 0; i < by_begin.size(); ++i) by_begin[i] = i;
  std::stable_sort(by_begin.begin(), by_begin.end(), [&](std::size_t a, std::size_t b) {
    return trace.steps[a].begin_ns < trace.steps[b].begin_ns;
  });
  std::vector<std::int64_t> first(trace.steps.size(), never);
  for (const GpuActivity& activity : trace.activities) {
    const Launch* const launch = launch_of(trace, activity);
    if (!launch) continue;
    // Steps follow each other: of those that began before the call, the last one has it.
    const auto after = std::upper_bound(
        by_begin.begin(), by_begin.end(), launch->begin_ns,
        [&](std::int64_t at, std::size_t i) { return at < trace.steps[i].begin_ns; });
    if (after == by_begin.begin()) continue;
    const std::size_t i = *std::prev(after);
    if (launch->begin_ns < trace.steps[i].end_ns) first[i] = std::min(first[i], activity.begin_ns);
  }
  std::vector<Window> windows;
  for (std::size_t i = 0; i + 1 < trace.steps.size(); ++i)
    if (trace.steps[i + 1].number == trace.steps[i].number + 1 && first[i] < first[i + 1] &&
        first[i + 1] != never)
      windows.push_back({trace.steps[i].number, first[i], first[i + 1]});
  return windows;
}

Window chosen(const std::vector<Window>& windows, std::optional<std::int64_t> number,
              const std::string& file) {
  if (number) {
    for (const Window& window : windows)
      if (window.number == *number) return window;
    std::vector<std::int64_t> there;
    for (const Window& window : windows) there.push_back(window.number);
    fail_input(
        {file, ""}, "has no whole step " + std::to_string(*number),
        there.empty() ? "leave out --profile-step: it is taken whole" : "it has: " + joined(there));
  }
  std::vector<Window> sorted = windows;
  std::sort(sorted.begin(), sorted.end(), [](const Window& a, const Window& b) {
    return std::pair{a.end_ns - a.begin_ns, a.number} < std::pair{b.end_ns - b.begin_ns, b.number};
  });
  return sorted[(sorted.size() - 1) / 2];
}

// Time runs from border to border of what the GPU does; between two, one class has it.
class Sweep {
 public:
  Sweep(const KinetoTrace& trace, const KernelNames& names, StepProfile& profile)
      : trace_{trace}, names_{names}, profile_{profile} {
    std::unordered_map<std::uint64_t, GpuWork> known;  // Cache by kernel and collective.
    for (std::size_t i = 0; i < trace.activities.size(); ++i) {
      const GpuActivity& one = trace.activities[i];
      if (one.end_ns <= profile.begin_ns || one.begin_ns >= profile.end_ns) continue;
      const std::uint64_t key = (std::uint64_t{one.name} << 34) |
                                (std::uint64_t{one.collective} << 2) |
                                static_cast<std::uint64_t>(one.kind);
      const auto [place, fresh] = known.try_emplace(key);
      if (fresh) place->second = names.of(trace, one);
      work_.push_back({i, place->second, std::max(one.begin_ns, profile.begin_ns),
                       std::min(one.end_ns, profile.end_ns)});
    }
  }

  void run() {
    std::vector<std::size_t> by_end(work_.size());
    for (std::size_t i = 0; i < by_end.size(); ++i) by_end[i] = i;
    std::stable_sort(by_end.begin(), by_end.end(), [&](std::size_t a, std::size_t b) {
      return work_[a].end_ns < work_[b].end_ns;
    });
    std::int64_t now = profile_.begin_ns;
    std::size_t begins = 0, ends = 0;
    while (now < profile_.end_ns) {
      for (; ends < by_end.size() && work_[by_end[ends]].end_ns <= now; ++ends)
        if (work_[by_end[ends]].end_ns > work_[by_end[ends]].begin_ns) leave(by_end[ends]);
      for (; begins < work_.size() && work_[begins].begin_ns <= now; ++begins)
        if (work_[begins].end_ns > now) enter(begins);
      const std::int64_t next =
          std::min({profile_.end_ns, begins < work_.size() ? work_[begins].begin_ns : never,
                    ends < by_end.size() ? work_[by_end[ends]].end_ns : never});
      give(now, next);
      now = next;
    }
    count();
  }

 private:
  struct Piece {
    std::size_t index;
    GpuWork work;
    std::int64_t begin_ns, end_ns;
  };

  std::size_t& running(std::size_t piece) {
    return running_[static_cast<std::size_t>(work_[piece].work)];
  }
  static std::size_t rank(GpuWork work) { return computes(work) ? 0 : communicates(work) ? 1 : 2; }
  void enter(std::size_t piece) {
    ++running(piece);
    active_.emplace(rank(work_[piece].work), piece);
  }
  void leave(std::size_t piece) {
    // Work that began and ended between two looks was never entered.
    if (active_.erase({rank(work_[piece].work), piece}) == 1) --running(piece);
  }
  void give(std::int64_t from_ns, std::int64_t to_ns) {
    const std::int64_t ns = to_ns - from_ns;
    for (std::size_t i = 0; i < kinds_of_gpu_work; ++i)
      if (running_[i] > 0) profile_.parts[i].busy_ns += ns;
    if (!active_.empty()) {
      const Piece& piece = work_[active_.begin()->second];
      profile_.parts[static_cast<std::size_t>(piece.work)].own_ns += ns;
      if (communicates(piece.work))
        exposed_[{trace_.activities[piece.index].group, piece.work}] += ns;
      return;
    }
    // The earliest call among those of what begins next, be it the next step's first: with any of
    // it the GPU had been at work.
    std::int64_t launched = never;
    for (auto next = std::lower_bound(
             trace_.activities.begin(), trace_.activities.end(), to_ns,
             [](const GpuActivity&one, std::int64_t at) { return one.begin_ns < at; });
         next != trace_.activities.end() && next->begin_ns == to_ns; ++next)
      if (const Launch* const launch = launch_of(trace_, *next))
        launched = std::min(launched, launch->end_ns);
    const std::int64_t host =
        launched == never ? 0 : std::clamp<std::int64_t>(launched - from_ns, 0, ns);
    profile_.host_ns += host;
    profile_.idle_ns += ns - host;
  }
  void count() {
    for (const auto& [what, ns] : exposed_) {
      const auto& [group, work] = what;
      profile_.exposed.push_back(
          {trace_.names[group], work, use_of(trace_.names[group], work), ns});
    }
    std::sort(profile_.exposed.begin(), profile_.exposed.end(),
              [](const StepProfile::Exposed& a, const StepProfile::Exposed& b) {
                return std::tie(a.group, a.work) < std::tie(b.group, b.work);
              });
    std::map<std::string, StepProfile::Named> unknown;
    for (const Piece& piece : work_) {
      const GpuActivity& one = trace_.activities[piece.index];
      if (one.begin_ns < profile_.begin_ns) continue;
      ++profile_.parts[static_cast<std::size_t>(piece.work)].count;
      if (piece.work != GpuWork::unknown) continue;
      StepProfile::Named& named = unknown[trace_.names[one.name]];
      named.name = trace_.names[one.name];
      ++named.count;
      named.ns += piece.end_ns - piece.begin_ns;
    }
    for (auto& [name, named] : unknown) profile_.unknown.push_back(std::move(named));
    std::stable_sort(
        profile_.unknown.begin(), profile_.unknown.end(),
        [](const StepProfile::Named& a, const StepProfile::Named& b) { return a.ns > b.ns; });
  }

  GroupUse use_of(const std::string& group, GpuWork work) const {
    const GroupUse use = names_.use_of(group);
    if (use != GroupUse::other) return use;
    return work == GpuWork::all_to_all  ? GroupUse::expert
           : work == GpuWork::send_recv ? GroupUse::pipeline
                                        : GroupUse::other;
  }

  const KinetoTrace& trace_;
  const KernelNames& names_;
  StepProfile& profile_;
  std::vector<Piece> work_;  // Sorted by begin, like the trace.
  std::array<std::size_t, kinds_of_gpu_work> running_{};
  std::set<std::pair<std::size_t, std::size_t>> active_;
  std::map<std::pair<std::uint32_t, GpuWork>, std::int64_t> exposed_;
};

}  // namespace

StepProfile profile_step(const KinetoTrace& trace, const KernelNames& names,
                         std::optional<std::int64_t> number) {
  StepProfile profile;
  const std::vector<Window> windows = whole_steps(trace);
  for (const Window& window : windows) profile.steps.push_back(window.number);
  if (!windows.empty() || number) {
    const Window window = chosen(windows, number, trace.file);
    profile.step = window.number;
    profile.begin_ns = window.begin_ns;
    profile.end_ns = window.end_ns;
  } else {
    profile.begin_ns = trace.activities.front().begin_ns;
    for (const GpuActivity& one : trace.activities)
      profile.end_ns = std::max(profile.end_ns, one.end_ns);
  }
  Sweep{trace, names, profile}.run();
  return profile;
}

namespace {

std::int64_t whole_ns(Seconds time) { return std::llround(time.si() * 1e9); }

// Tensor, context and data ranks share one row if no collective states its group.
void add_communication(std::vector<ProfiledRank::Row>& rows, const Breakdown& predicted,
                       const StepProfile& profile) {
  std::array<std::int64_t, 6> measured{};
  for (const StepProfile::Exposed& one : profile.exposed)
    measured[static_cast<std::size_t>(one.use)] += one.ns;
  const auto of = [&](GroupUse use) { return measured[static_cast<std::size_t>(use)]; };
  const bool is_known = of(GroupUse::tensor) + of(GroupUse::context) + of(GroupUse::data) > 0;
  if (is_known) {
    rows.push_back({"tensor parallel", whole_ns(predicted.tp_exposed), of(GroupUse::tensor)});
    rows.push_back({"context parallel", whole_ns(predicted.cp_exposed), of(GroupUse::context)});
    rows.push_back({"data parallel", whole_ns(predicted.dp_exposed), of(GroupUse::data)});
    rows.push_back({"other collectives", 0, of(GroupUse::other)});
  } else {
    rows.push_back({"tensor, context, data parallel",
                    whole_ns(predicted.tp_exposed + predicted.cp_exposed + predicted.dp_exposed),
                    of(GroupUse::other)});
  }
  rows.push_back({"expert parallel", whole_ns(predicted.ep_exposed), of(GroupUse::expert)});
  rows.push_back(
      {"pipeline", whole_ns(predicted.pp_exposed + predicted.pp_bubble), of(GroupUse::pipeline)});
}

}  // namespace

std::int64_t ProfiledRank::predicted_ns() const {
  std::int64_t sum = 0;
  for (const Row& row : rows) sum += row.predicted_ns;
  return sum;
}

ProfiledRank profile_against_plan(const KinetoTrace& trace, StepProfile profile,
                                  const Result& result, int stage) {
  const Breakdown& predicted = result.stages.at(static_cast<std::size_t>(stage));
  ProfiledRank rank;
  rank.file = trace.file;
  rank.gpu = trace.device.name;
  rank.rank = trace.rank;
  rank.ranks = trace.ranks;
  rank.stage = stage;
  const auto add = [&](const std::string& what, Seconds predicts, std::int64_t measures) {
    rank.rows.push_back({what, whole_ns(predicts), measures});
  };
  const auto measured = [&](GpuWork work) { return profile.at(work).own_ns; };
  const TimeByWork& work = predicted.work;
  add("matrix products", work.at(Work::products) + work.at(Work::expert_products),
      measured(GpuWork::products));
  add("attention", work.at(Work::attention), measured(GpuWork::attention));
  add("memory bound", work.at(Work::streaming), measured(GpuWork::streaming));
  add("collective contention", work.at(Work::slowed), 0);
  add("optimizer and gradient norm", predicted.optimizer + predicted.other,
      measured(GpuWork::optimizer));
  add("kernels of unknown names", Seconds{}, measured(GpuWork::unknown));
  add_communication(rank.rows, predicted, profile);
  add("waiting for other ranks", predicted.imbalance, 0);
  add("copies to and from the host", Seconds{}, measured(GpuWork::copies));
  add("waiting for the host", work.at(Work::host), profile.host_ns);
  add("idle", Seconds{}, profile.idle_ns);
  // Rounding each row leaves a few nanoseconds over; they belong to no work.
  rank.rows.back().predicted_ns += whole_ns(predicted.sum()) - rank.predicted_ns();
  rank.profile = std::move(profile);
  return rank;
}

}  // namespace orrery
