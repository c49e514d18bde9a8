#include "sim/training/slice.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace orrery {
namespace {

void drop_loose_arrows(std::vector<Slice>& slices) {
  std::map<int, int> ends;
  for (const Slice& slice : slices) {
    if (slice.sends >= 0) ++ends[slice.sends];
    for (const int arrow : slice.receives) ++ends[arrow];
  }
  const auto loose = [&](int arrow) { return ends[arrow] != 2; };
  for (Slice& slice : slices) {
    if (slice.sends >= 0 && loose(slice.sends)) slice.sends = -1;
    std::erase_if(slice.receives, loose);
  }
}

}  // namespace

std::string name(Track track) {
  static constexpr const char* names[tracks] = {
      "compute",         "tensor parallel",       "context parallel",
      "expert parallel", "pipeline send forward", "pipeline send backward",
      "data parallel",   "expert data parallel",  "experts of rank "};
  return names[static_cast<std::size_t>(track)];
}

void arrange(std::vector<Slice>& slices, const std::vector<int>& roles) {
  drop_loose_arrows(slices);
  std::map<int, int> order;
  for (std::size_t i = 0; i < roles.size(); ++i) order[roles[i]] = static_cast<int>(i);
  const auto place = [&](const Slice& slice) {
    return std::tuple{order.at(slice.role), slice.track, slice.of_rank, slice.start_ns,
                      -slice.finish_ns};
  };
  std::stable_sort(slices.begin(), slices.end(),
                   [&](const Slice& a, const Slice& b) { return place(a) < place(b); });
}

}  // namespace orrery
