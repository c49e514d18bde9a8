#include "sim/layers/expert_meetings.hpp"

#include <algorithm>

namespace orrery {
namespace {

std::size_t at(int place) { return static_cast<std::size_t>(place); }
std::size_t at(GroupKind kind) { return static_cast<std::size_t>(kind); }

}  // namespace

ExpertMeetings::ExpertMeetings(const Placement& placement) {
  const std::vector<Rank> group = placement.group(GroupKind::expert, Rank{0});
  for (const GroupKind kind : {GroupKind::tensor, GroupKind::context, GroupKind::expert_tensor}) {
    std::vector<int>& first = first_[at(kind)];
    first.resize(group.size());
    for (std::size_t place = 0; place < group.size(); ++place) {
      first[place] = static_cast<int>(place);
      for (const Rank member : placement.group(kind, group[place]))
        first[place] = std::min(first[place], placement.expert_place(member));
      first[place] = first[at(first[place])];
    }
  }
}

std::vector<Seconds> ExpertMeetings::begin(GroupKind kind,
                                           const std::vector<Seconds>& ready) const {
  const std::vector<int>& first = first_[at(kind)];
  const auto meets_at = [&](std::size_t place) -> std::size_t {
    return place < first.size() ? at(first[place]) : 0;
  };
  std::vector<Seconds> last(ready.size());
  for (std::size_t place = 0; place < ready.size(); ++place) {
    Seconds& of_group = last[meets_at(place)];
    of_group = std::max(of_group, ready[place]);
  }
  for (std::size_t place = ready.size(); place-- > 0;) last[place] = last[meets_at(place)];
  return last;
}

}  // namespace orrery
