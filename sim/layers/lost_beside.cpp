#include "sim/layers/lost_beside.hpp"

#include <algorithm>

namespace orrery {
namespace {

double share_lost(Seconds kernels, Seconds streaming, const GroupCollective& collective) {
  if (kernels <= Seconds{}) return collective.taken;
  const double streams = streaming / kernels;
  const double stretched =
      (1.0 - streams) / (1.0 - collective.taken) + streams / (1.0 - collective.taken_memory);
  return 1.0 - 1.0 / stretched;
}

}  // namespace

Seconds lost_beside(const KernelTimes& kernels, const GroupCollective& collective) {
  const double lost = share_lost(kernels.busy, kernels.streaming, collective);
  const Seconds slowed = std::min(lost / (1.0 - lost) * kernels.busy, lost * collective.time());
  return std::max(Seconds{}, slowed - kernels.idle);
}

TimeByPrice lost_beside(const KernelTimes& kernels, const TimeByPrice& prices,
                        const GroupCollective& collective) {
  TimeByPrice lost;
  const Seconds sum = lost_beside(kernels, collective);
  if (sum <= Seconds{}) return lost;
  TimeByPrice busy = prices.kernels();
  for (const Tag tag : {Tag::measured, Tag::interpolated, Tag::default_value})
    busy.at(PriceKind::host, tag) = Seconds{};
  const double share = share_lost(kernels.busy, kernels.streaming, collective);
  const bool slowed_to_their_end = kernels.busy < (1.0 - share) * collective.time();
  if (slowed_to_their_end && busy.total() > Seconds{}) {
    lost.add(busy, sum / busy.total());
  } else {
    TimeByPrice whole;
    whole.add(collective);
    lost.add(whole, sum / collective.time());
  }
  return lost;
}

KernelTimes kernels_of(const std::vector<Segment>& segments) {
  KernelTimes sum;
  for (const Segment& segment : segments) {
    const KernelTimes inside = kernels_of(segment.chain);
    sum.busy += segment.compute - segment.idle + inside.busy;
    sum.streaming += segment.streaming + inside.streaming;
    sum.idle += segment.idle + inside.idle;
  }
  return sum;
}

namespace {

void stretch(Segment& segment, double factor) {
  segment.compute = factor * segment.compute;
  segment.streaming = factor * segment.streaming;
  segment.idle = factor * segment.idle;
  segment.weight_gradients = factor * segment.weight_gradients;
  for (Seconds& member : segment.members) member = factor * member;
  for (Segment& part : segment.chain) stretch(part, factor);
}

}  // namespace

Segment beside(const std::vector<Segment>& kernels, const GroupCollective& collective) {
  const bool plain = kernels.size() == 1 && !kernels.front().beside && !kernels.front().after &&
                     kernels.front().chain.empty();
  Segment both = plain ? kernels.front() : Segment{{}, {}, {}, {}, kernels};
  both.beside = collective;
  const KernelTimes times = kernels_of(kernels);
  if (const Seconds alone = times.busy + times.idle; alone > Seconds{})
    stretch(both, 1.0 + lost_beside(times, collective) / alone);
  return both;
}

}  // namespace orrery
