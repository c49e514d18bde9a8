#include "sim/calibration/fit_curves.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "sim/calibration/degradation.hpp"

namespace orrery {
namespace {

std::string group_of(const Curve& curve) {
  return curve.collective + " of " + std::to_string(curve.ranks) + " ranks on " +
         std::to_string(curve.nodes) + (curve.nodes == 1 ? " node" : " nodes");
}

}  // namespace

std::vector<Curve> curves_of(const std::vector<calibration::Measurement>& measurements,
                             int gpus_per_node, int gpus, const std::string& file,
                             const std::string& gpu, const std::string& nccl) {
  std::map<std::pair<std::string, int>, std::map<double, double>> points;
  for (const calibration::Measurement& one : measurements)
    if (one.what.kind == "collective" && one.warm)
      points[{one.what.choice("collective"), static_cast<int>(one.what.size("ranks"))}]
            [static_cast<double>(one.what.size("bytes"))] = one.warm->median_us;
  std::vector<Curve> curves;
  for (const auto& [group, some] : points) {
    const auto& [collective, ranks] = group;
    const std::string remedy = "say how many GPUs a node has: --gpus-per-node N";
    if (gpus_per_node == 0 && ranks > gpus)
      fail_input({file, "/machine/gpus"},
                 "is " + std::to_string(gpus) + ", but there are collectives of " +
                     std::to_string(ranks) + " ranks",
                 remedy);
    if (gpus_per_node > 0 && ranks > gpus_per_node && ranks % gpus_per_node != 0)
      fail_input({file, ""},
                 std::to_string(ranks) + " ranks do not fill nodes of " +
                     std::to_string(gpus_per_node) + " GPUs",
                 remedy);
    Curve curve;
    curve.title = "orrery-gpu record";
    curve.file = std::filesystem::path{file}.filename().string();
    curve.gpu = gpu;
    curve.nccl = nccl;
    curve.collective = collective;
    curve.ranks = ranks;
    curve.nodes = gpus_per_node == 0 ? 1 : std::max(1, ranks / gpus_per_node);
    curve.points.assign(some.begin(), some.end());
    curve.id = std::filesystem::path{file}.stem().string() + "-" + collective + "-" +
               std::to_string(ranks) + "x" + std::to_string(curve.nodes);
    curves.push_back(std::move(curve));
  }
  return curves;
}

void require_healthy(const std::vector<Curve>& curves) {
  std::map<std::string, std::string> files;
  for (const Curve& curve : curves) {
    const std::string falling = degradation(curve);
    if (!falling.empty())
      fail_input({curve.file, ""}, group_of(curve) + ": " + falling,
                 "find what slowed it and measure again, or leave it out");
    const auto [first, fresh] = files.try_emplace(group_of(curve), curve.file);
    if (!fresh)
      fail_input({curve.file, ""}, group_of(curve) + " is in " + first->second + " as well",
                 "keep one of them");
  }
}

std::vector<double> curve_errors(const Curve& curve) {
  std::vector<double> errors;
  for (std::size_t i = 1; i + 1 < curve.points.size(); ++i) {
    const auto& [low, low_us] = curve.points[i - 1];
    const auto& [at, us] = curve.points[i];
    const auto& [high, high_us] = curve.points[i + 1];
    const double share = std::log(at / low) / std::log(high / low);
    errors.push_back(low_us * std::pow(high_us / low_us, share) / us - 1.0);
  }
  return errors;
}

}  // namespace orrery
