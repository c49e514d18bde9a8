#include "sim/collectives/collective_sweeps.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "sim/core/catalog.hpp"
#include "sim/measurements/calibration.hpp"
#include "sim/nccl/collective_formula.hpp"

namespace orrery {

std::vector<double> never_falling(const std::vector<double>& values) {
  std::vector<std::vector<double>> blocks;  // Each sorted.
  const auto median = [](const std::vector<double>& block) {
    return block[(block.size() - 1) / 2];
  };
  for (const double value : values) {
    std::vector<double> block{value};
    while (!blocks.empty() && median(blocks.back()) > median(block)) {
      std::vector<double> both;
      std::merge(block.begin(), block.end(), blocks.back().begin(), blocks.back().end(),
                 std::back_inserter(both));
      block = std::move(both);
      blocks.pop_back();
    }
    blocks.push_back(std::move(block));
  }
  std::vector<double> rising;
  for (const std::vector<double>& block : blocks)
    rising.insert(rising.end(), block.size(), median(block));
  return rising;
}

namespace {

// The line through the points next to `x`, which lies between the first and the last.
double interpolate(const std::vector<double>& xs, const std::vector<double>& ys, double x) {
  const auto above =
      static_cast<std::size_t>(std::lower_bound(xs.begin(), xs.end(), x) - xs.begin());
  if (above == xs.size()) return ys.back();
  if (above == 0 || xs[above] == x) return ys[above];
  const double share = (x - xs[above - 1]) / (xs[above] - xs[above - 1]);
  return ys[above - 1] + share * (ys[above] - ys[above - 1]);
}

struct Sweep {
  CollectiveShape shape;
  std::vector<double> log_bytes, log_time;

  bool covers(double x) const { return log_bytes.front() <= x && x <= log_bytes.back(); }
};

// Fills in the curve of a shape between those of two sweeps, of which one may be missing: at the
// sizes of both, the formula's time and what the sweeps miss it by. `shift` is the logarithm of a
// side's bytes over the shape's, `residual` that of its time over the formula's there, and `share`
// the weight of the side above.
template <class Curve, class Shift, class Residual, class Formula>
void interpolate_between(Curve& result, const Curve* below, const Curve* above, double share,
                         const Shift& shift, const Residual& residual, const Formula& formula) {
  for (const Curve* side : {below, above})
    if (side)
      for (const double x : side->log_bytes) result.log_bytes.push_back(x - shift(*side));
  std::sort(result.log_bytes.begin(), result.log_bytes.end());
  for (const double x : result.log_bytes)
    result.log_time.push_back(
        std::log(formula(Bytes{std::exp(x)}, result.shape.group).time().si()) +
        (below ? (1.0 - share) * residual(*below, x) : 0.0) +
        (above ? share * residual(*above, x) : 0.0));
  result.log_time = never_falling(result.log_time);
}

}  // namespace

GroupShape group_on(const System& system, int ranks, int nodes) {
  const std::string many = std::to_string(ranks) + " ranks";
  if (ranks % nodes != 0)
    fail_infeasible({}, many + " do not spread evenly over " + std::to_string(nodes) + " nodes",
                    "choose a multiple of the nodes");
  if (ranks / nodes > system.gpus_per_node)
    fail_infeasible({},
                    many + " do not fit on " + std::to_string(nodes) + " nodes of " +
                        std::to_string(system.gpus_per_node) + " GPUs",
                    "use more nodes");
  const int nodes_per_domain = system.nvlink_domain / system.gpus_per_node;
  const int domains = (nodes + nodes_per_domain - 1) / nodes_per_domain;
  const int last = nodes - (domains - 1) * nodes_per_domain;
  GroupShape group{ranks, domains, ranks / nodes * std::min(nodes_per_domain, last)};
  if (ranks == 2 && nodes == 1) group.bridge = system.bridge(0, 1);
  return group;
}

CollectiveMeasurements::CollectiveMeasurements(const System& system,
                                               const CollectiveConstants& constants,
                                               const std::optional<CollectiveShape>& left_out,
                                               bool alone)
    : constants_{constants}, mesh_{system.wiring == NodeWiring::nvlink_mesh} {
  const std::string& gpu = constants_.gpu;
  if (system.calibration) add(system, system.calibration->curves, false, true, left_out);
  const bool own = gpu == system.gpu.name;
  if (const auto& curves = read_collective_curves(gpu); !curves.empty()) {
    // They do not apply to ports that are slower than those of the measured GPUs.
    const Gpu measured = own ? system.gpu : read_gpu(gpu, {});
    if (system.scale_up == (system.wiring == NodeWiring::pcie ? measured.pcie : measured.nvlink))
      add(system, curves, true, own, left_out);
  }
  add_of_system(system, own, alone, left_out);
}

// A user's system file may have the name of a measured system. Its sweeps apply only if the nodes
// are the same. If the network differs, sweeps between domains are scaled by the ratio of the
// formula's times on both networks, so that a slightly slower network is slightly slower.
void CollectiveMeasurements::add_of_system(const System& system, bool own, bool alone,
                                           const std::optional<CollectiveShape>& left_out) {
  const std::vector<MeasuredCurve> curves = read_collective_curves(system.name);
  const std::vector<std::string> names = list_catalog("topologies/systems");
  if (curves.empty() || std::find(names.begin(), names.end(), system.name) == names.end()) return;
  const System measured = read_system(system.name, {});
  if (!system.same_domain(measured)) return;
  if (system.same_network(measured)) return add(system, curves, false, own, left_out);
  const CollectiveModel here{system, alone};
  const CollectiveModel there{measured, alone};
  std::vector<MeasuredCurve> inside, between;
  for (MeasuredCurve curve : curves) {
    const GroupShape group = group_on(system, curve.ranks, curve.nodes);
    for (MeasuredCurve::Point& point : curve.points)
      if (group.domains > 1)
        point.time = here(curve.collective, point.bytes, group).time() /
                     there(curve.collective, point.bytes, group).time() * point.time;
    (group.domains > 1 ? between : inside).push_back(std::move(curve));
  }
  add(system, inside, false, own, left_out);
  add(system, between, false, false, left_out);
}

void CollectiveMeasurements::add(const System& system, const std::vector<MeasuredCurve>& measured,
                                 bool one_domain, bool own,
                                 const std::optional<CollectiveShape>& left_out) {
  const std::size_t before = curves_.size();
  std::vector<Sweep> sweeps;
  for (const MeasuredCurve& curve : measured) {
    if (curve.ranks % curve.nodes != 0 || curve.ranks / curve.nodes > system.gpus_per_node)
      continue;
    Sweep sweep{{curve.collective, group_on(system, curve.ranks, curve.nodes)}, {}, {}};
    if (one_domain && sweep.shape.group.domains > 1) continue;
    sweep.shape.group.bridge = {};  // Others than bridged GPUs were measured.
    if (sweep.shape == left_out) continue;
    const auto known = curves_.begin() + static_cast<std::ptrdiff_t>(before);
    if (std::any_of(curves_.begin(), known,
                    [&](const Curve& one) { return one.shape == sweep.shape; }))
      continue;
    for (const auto& [bytes, time] : curve.points) {
      sweep.log_bytes.push_back(std::log(bytes.si()));
      sweep.log_time.push_back(std::log(time.si()));
    }
    sweeps.push_back(std::move(sweep));
  }
  while (!sweeps.empty()) {
    const CollectiveShape shape = sweeps.back().shape;
    const auto others = std::stable_partition(
        sweeps.begin(), sweeps.end(), [&](const Sweep& sweep) { return sweep.shape != shape; });
    Curve curve{shape, {}, {}, {}, own};
    for (auto sweep = others; sweep != sweeps.end(); ++sweep)
      curve.log_bytes.insert(curve.log_bytes.end(), sweep->log_bytes.begin(),
                             sweep->log_bytes.end());
    std::sort(curve.log_bytes.begin(), curve.log_bytes.end());
    curve.log_bytes.erase(std::unique(curve.log_bytes.begin(), curve.log_bytes.end()),
                          curve.log_bytes.end());
    for (double x : curve.log_bytes) {
      double sum = 0.0;
      int count = 0;
      for (auto sweep = others; sweep != sweeps.end(); ++sweep)
        if (sweep->covers(x)) sum += interpolate(sweep->log_bytes, sweep->log_time, x), ++count;
      curve.log_time.push_back(sum / count);
    }
    const std::vector<double> raw = std::exchange(curve.log_time, never_falling(curve.log_time));
    for (std::size_t i = 0; i < raw.size(); ++i)
      curve.as_measured.push_back(curve.log_time[i] == raw[i]);
    curves_.push_back(std::move(curve));
    sweeps.erase(others, sweeps.end());
  }
}

bool CollectiveMeasurements::Curve::is_measured(double x) const {
  const auto at = std::lower_bound(log_bytes.begin(), log_bytes.end(), x);
  return at != log_bytes.end() && *at == x &&
         as_measured[static_cast<std::size_t>(at - log_bytes.begin())];
}

// Interpolates between sweeps of the same collective over two or more numbers of domains, with at
// least as many ranks in each: the cost of crossing domains depends on their number and on the
// bytes of a NIC, which are S/p of a tensor S over p ranks in each domain. The result has the sizes
// of both sweeps, and none where the numbers of domains are not enough.
const CollectiveMeasurements::Curve& CollectiveMeasurements::between_domains(
    const CollectiveShape& shape, const Formula& formula) const {
  const Curve* below = nullptr;
  const Curve* above = nullptr;
  int least = 0, most = 0;
  for (const Curve& curve : curves_) {
    const GroupShape& group = curve.shape.group;
    if (curve.shape.kind != shape.kind || group.domains < 2 ||
        group.per_domain < shape.group.per_domain)
      continue;
    least = least == 0 ? group.domains : std::min(least, group.domains);
    most = std::max(most, group.domains);
    const bool is_below = group.domains <= shape.group.domains;
    const Curve*& side = is_below ? below : above;
    if (!side || (is_below ? group.domains > side->shape.group.domains
                           : group.domains < side->shape.group.domains))
      side = &curve;
  }
  Curve& result = between_.emplace_back(Curve{shape, {}, {}, {}, false});
  if (least == most || !below) return result;
  const auto shift = [&](const Curve& side) {  // From its bytes to those with the same on a NIC.
    return std::log(1.0 * side.shape.group.per_domain / shape.group.per_domain);
  };
  const auto residual = [&](const Curve& side, double log_bytes) {
    const double theirs =
        std::clamp(log_bytes + shift(side), side.log_bytes.front(), side.log_bytes.back());
    return interpolate(side.log_bytes, side.log_time, theirs) -
           std::log(formula(Bytes{std::exp(theirs)}, side.shape.group).time().si());
  };
  const double share =
      above ? std::log(1.0 * shape.group.domains / below->shape.group.domains) /
                  std::log(1.0 * above->shape.group.domains / below->shape.group.domains)
            : 0.0;
  interpolate_between(result, below, above, share, shift, residual, formula);
  return result;
}

// The factor on the formula for messages larger than all measured ones. The deviation of the last
// size, up to the formula's time without a rate (latency, ramp, copy), is a constant time of larger
// messages as well. Only the rest scales with the rate: messages that are still ramping up say
// little of the rate that large ones reach. The factor does not exceed the last one's, and time
// never falls.
double CollectiveMeasurements::beyond(const Curve& curve, Bytes tensor, const Formula& formula) {
  const CollectiveCost last = formula(Bytes{std::exp(curve.log_bytes.back())}, curve.shape.group);
  const Seconds by_formula = formula(tensor, curve.shape.group).time();
  const Seconds measured{std::exp(curve.log_time.back())};
  const Seconds off = measured - last.time();
  const Seconds kept = std::clamp(off, Seconds{} - last.latency, last.latency);
  const double slower = (off - kept) / (last.time() - last.latency);
  // The last size's latency is used so that time rises with size wherever the formula's does.
  const Seconds time = by_formula + kept + slower * (by_formula - last.latency);
  const double missed = measured / last.time();
  const double factor = std::clamp(time / by_formula, std::min(1.0, missed), std::max(1.0, missed));
  return std::max(factor, measured / by_formula);
}

// A curve's time for any size. Messages smaller than all measured ones take the formula's time,
// times the factor that it misses the first size by.
Seconds CollectiveMeasurements::time_on(const Curve& curve, Bytes tensor, const Formula& formula) {
  const double log_bytes = std::log(tensor.si());
  const auto by_formula = [&](Bytes bytes) { return formula(bytes, curve.shape.group).time(); };
  if (log_bytes > curve.log_bytes.back())
    return beyond(curve, tensor, formula) * by_formula(tensor);
  if (log_bytes >= curve.log_bytes.front())
    return Seconds{std::exp(interpolate(curve.log_bytes, curve.log_time, log_bytes))};
  const Seconds first{std::exp(curve.log_time.front())};
  return first / by_formula(Bytes{std::exp(curve.log_bytes.front())}) * by_formula(tensor);
}

// Interpolates between sweeps of the same collective in one domain on fewer and on more ranks, by
// the logarithm of their number: what both miss the formula by at the same bytes a rank. The
// formula has what does not change evenly with the ranks: rounds that NVLS saves, and the GPUs of a
// PCIe node from which on a ring crosses host bridges and sockets. Sweeps on the other side of such
// a step say nothing of this one, and beyond a step one neighbour is better than none. In a mesh
// every number of ranks has other rings.
const CollectiveMeasurements::Curve& CollectiveMeasurements::between_ranks(
    const CollectiveShape& shape, const Formula& formula) const {
  const int ranks = shape.group.ranks;
  const int step = constants_.crossing(ranks).more_than;
  const Curve* below = nullptr;
  const Curve* above = nullptr;
  for (const Curve& curve : curves_) {
    const int n = curve.shape.group.ranks;
    if (curve.shape.kind != shape.kind || curve.shape.group.domains > 1 ||
        constants_.crossing(n).more_than != step)
      continue;
    if (n < ranks && (!below || n > below->shape.group.ranks)) below = &curve;
    if (n > ranks && (!above || n < above->shape.group.ranks)) above = &curve;
  }
  Curve& result = between_.emplace_back(Curve{shape, {}, {}, {}, false});
  if (mesh_ || (!below && !above) || ((!below || !above) && step == 0)) return result;
  const auto shift = [&](const Curve& side) {  // From its bytes to those with the same a rank.
    return std::log(1.0 * side.shape.group.ranks / ranks);
  };
  const auto residual = [&](const Curve& side, double log_bytes) {
    const Bytes theirs{std::exp(log_bytes + shift(side))};
    return std::log(time_on(side, theirs, formula) / formula(theirs, side.shape.group).time());
  };
  double share = below ? 0.0 : 1.0;
  if (below && above)
    share = std::log(1.0 * ranks / below->shape.group.ranks) /
            std::log(1.0 * above->shape.group.ranks / below->shape.group.ranks);
  interpolate_between(result, below, above, share, shift, residual, formula);
  return result;
}

std::optional<CollectiveMeasurements::Correction> CollectiveMeasurements::correction(
    const CollectiveShape& shape, Bytes tensor, const Formula& formula) const {
  const auto own = std::find_if(curves_.begin(), curves_.end(),
                                [&](const Curve& c) { return c.shape == shape; });
  const auto known = std::find_if(between_.begin(), between_.end(),
                                  [&](const Curve& c) { return c.shape == shape; });
  const Curve& curve = own != curves_.end()      ? *own
                       : known != between_.end() ? *known
                       : shape.group.domains > 1 ? between_domains(shape, formula)
                                                 : between_ranks(shape, formula);
  if (curve.log_bytes.empty()) return {};
  const bool measured = own != curves_.end() && own->own && own->is_measured(std::log(tensor.si()));
  return Correction{time_on(curve, tensor, formula) / formula(tensor, shape.group).time(),
                    measured ? Tag::measured : Tag::interpolated};
}

}  // namespace orrery
