#include "sim/calibration/fit.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "sim/calibration/curve.hpp"
#include "sim/kernels/kernel_error.hpp"

namespace orrery {
namespace {

// "9.0" is Hopper (CUDA C++ Programming Guide, Compute Capabilities). "": unknown.
std::string generation(const std::string& compute_capability) {
  if (compute_capability == "8.9") return name(Architecture::ada);
  const std::string major = compute_capability.substr(0, compute_capability.find('.'));
  if (major == "7") return name(Architecture::volta);
  if (major == "8") return name(Architecture::ampere);
  if (major == "9") return name(Architecture::hopper);
  if (major == "10" || major == "12") return name(Architecture::blackwell);
  return "";
}

}  // namespace

std::string catalog_gpu(const std::string& driver_name) {
  // Names of the driver's list of GPUs (NVIDIA/open-gpu-kernel-modules, README.md, Compatible
  // GPUs), without "NVIDIA ".
  static const std::map<std::string, std::string> known{
      {"A100 80GB PCIe", "a100-pcie-80gb"},
      {"A100-SXM4-40GB", "a100-sxm-40gb"},
      {"A100-SXM4-80GB", "a100-sxm-80gb"},
      {"B200", "b200-sxm"},
      {"B300 SXM6 AC", "b300-sxm"},
      {"GB200", "gb200"},
      {"GB300", "gb300"},
      {"H100 80GB HBM3", "h100-sxm"},
      {"H200", "h200-sxm"},
      {"H800", "h800-sxm"},
      {"L40S", "l40s"},
      {"RTX PRO 6000 Blackwell Server Edition", "rtx-pro-6000-blackwell"},
      {"Tesla V100-SXM2-32GB", "v100-sxm-32gb"},
  };
  const std::string maker = "NVIDIA ";
  const auto found =
      known.find(driver_name.starts_with(maker) ? driver_name.substr(maker.size()) : driver_name);
  return found == known.end() ? "" : found->second;
}

void require_same_gpu(const calibration::Machine& machine, const Gpu& gpu, const std::string& file,
                      const std::string& remedy) {
  const std::string recorded = generation(machine.compute_capability);
  if (!recorded.empty() && recorded != name(gpu.architecture))
    fail_input({file, "/machine/compute_capability"},
               "is " + machine.compute_capability + ", which is " + recorded + ", but '" +
                   gpu.name + "' is " + name(gpu.architecture),
               remedy);
  if (machine.multiprocessors != gpu.multiprocessors)
    fail_input({file, "/machine/multiprocessors"},
               "are " + std::to_string(machine.multiprocessors) + ", but '" + gpu.name + "' has " +
                   std::to_string(gpu.multiprocessors),
               remedy);
}

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

namespace {

using calibration::Machine;
using calibration::Measurement;
using calibration::Outcome;

std::string without_maker(const std::string& gpu) {
  return gpu.starts_with("NVIDIA ") ? gpu.substr(7) : gpu;
}

// The driver's name of the GPU that all sources share; "": no source has one.
std::string common_gpu(const std::vector<NamedRecord>& records, const std::vector<Curve>& curves) {
  std::string gpu, first;
  const auto add = [&](const std::string& file, const std::string& named) {
    if (named.empty()) return;
    if (gpu.empty()) {
      gpu = named;
      first = file;
    } else if (named != gpu) {
      fail_input({file, ""},
                 "is of the GPU '" + shown_text(named) + "', but " + first + " of '" +
                     shown_text(gpu) + "'",
                 "fit each kind of GPU by itself");
    }
  };
  for (const NamedRecord& one : records) add(one.file, without_maker(one.record.machine.gpu));
  for (const Curve& curve : curves) add(curve.file, curve.gpu);
  return gpu;
}

Gpu gpu_of(const std::vector<NamedRecord>& records, const std::vector<Curve>& curves,
           const std::string& word) {
  const std::string driver_name = common_gpu(records, curves);
  const std::string named = word.empty() ? catalog_gpu(driver_name) : word;
  if (named.empty())
    fail_input({},
               driver_name.empty() ? "no log says which GPU it is of"
                                   : "the catalog has no GPU that the driver calls '" +
                                         shown_text(driver_name) + "'",
               "give --gpu NAME: orrery list gpus");
  const Gpu gpu = read_gpu(named, {"", "--gpu"});
  if (!word.empty() && !catalog_gpu(driver_name).empty() && catalog_gpu(driver_name) != gpu.name)
    fail_input(
        {"", "--gpu"},
        "is '" + gpu.name + "', but the measurements are of '" + catalog_gpu(driver_name) + "'",
        "leave it out");
  for (const NamedRecord& one : records)
    require_same_gpu(one.record.machine, gpu, one.file, "give --gpu NAME: orrery list gpus");
  return gpu;
}

std::string machine_text(const Machine& machine) {
  return machine.gpu + ", driver " + machine.driver + ", CUDA " + machine.cuda_runtime +
         ", cuBLAS " + machine.cublas + (machine.nccl.empty() ? "" : ", NCCL " + machine.nccl);
}

// The first of several, and their number.
std::string and_more(const std::vector<std::string>& some) {
  return some.front() +
         (some.size() > 1 ? " and " + std::to_string(some.size() - 1) + " more" : "");
}

// Each case once: of several, the one with the median time.
class Pool {
 public:
  void add(const NamedRecord& from) {
    const double usual = usual_slowdown(from.record.reference);
    for (const Measurement& one : from.record.measurements) {
      if (one.outcome != Outcome::measured) {
        unmeasured_[calibration::outcome_names()[static_cast<std::size_t>(one.outcome)] + ": " +
                    one.reason]
            .push_back(one.what.id());
        continue;
      }
      const std::string why = unsound(one, usual);
      if (why.empty())
        cases_[one.what.id()].push_back(one);
      else
        unsound_.push_back(one.what.id() + " (" + why + ")");
    }
  }

  std::vector<Measurement> measurements() const {
    std::vector<Measurement> all;
    for (const auto& [id, some] : cases_) {
      std::vector<Measurement> sorted = some;
      std::stable_sort(
          sorted.begin(), sorted.end(),
          [](const Measurement& a, const Measurement& b) { return time_us(a) < time_us(b); });
      all.push_back(sorted[(sorted.size() - 1) / 2]);
    }
    return all;
  }

  std::vector<std::string> notes() const {
    std::vector<std::string> notes;
    if (!unsound_.empty()) notes.push_back("unsound, left out: " + and_more(unsound_));
    for (const auto& [why, ids] : unmeasured_) notes.push_back(why + ": " + and_more(ids));
    return notes;
  }

 private:
  // A GPU is at its fastest only for moments, such as while it is cold: the median speed counts.
  static double usual_slowdown(const std::vector<calibration::ReferenceTrack::Check>& checks) {
    if (checks.empty()) return 1.0;
    std::vector<double> times_us;
    for (const auto& check : checks) times_us.push_back(check.median_us);
    return middle(times_us, 0.5) / *std::min_element(times_us.begin(), times_us.end());
  }
  static double time_us(const Measurement& one) {
    return one.warm ? one.warm->median_us : one.cold->median_us;
  }

  std::map<std::string, std::vector<Measurement>> cases_;
  std::map<std::string, std::vector<std::string>> unmeasured_;
  std::vector<std::string> unsound_;
};

void note_versions(const std::vector<NamedRecord>& records, std::vector<std::string>& notes) {
  for (const NamedRecord& one : records)
    if (machine_text(one.record.machine) != machine_text(records.front().record.machine))
      notes.push_back(one.file + " is of " + machine_text(one.record.machine) + ", " +
                      records.front().file + " of " + machine_text(records.front().record.machine));
}

}  // namespace

CalibrationFit fit_calibration(const std::vector<NamedRecord>& records, std::vector<Curve> curves,
                               const FitOptions& options) {
  CalibrationFit fit;
  fit.gpu = gpu_of(records, curves, options.gpu);
  Pool pool;
  std::int64_t l2_bytes = 0;
  std::vector<Curve> own;
  for (const NamedRecord& one : records) {
    const Machine& machine = one.record.machine;
    fit.sources.push_back({std::filesystem::path{one.file}.filename().string(),
                           machine_text(machine), one.record.started});
    pool.add(one);
    l2_bytes = std::max(l2_bytes, machine.l2_bytes);
  }
  const std::vector<Measurement> measurements = pool.measurements();
  fit.notes = pool.notes();
  note_versions(records, fit.notes);
  if (!records.empty()) {
    const Machine& machine = records.front().record.machine;
    own = curves_of(measurements, options.gpus_per_node, machine.gpus, records.front().file,
                    without_maker(machine.gpu), machine.nccl);
    fit.kernels = fit_kernels(
        measurements, fit.gpu, l2_bytes, options.own_attention,
        "orrery-gpu record: " + machine_text(machine) + ", " + records.front().record.started,
        fit.checks, fit.findings, fit.notes);
  }
  std::vector<std::string> logs;
  for (const Curve& curve : curves)
    if (std::find(logs.begin(), logs.end(), curve.file) == logs.end()) logs.push_back(curve.file);
  for (const std::string& log : logs) fit.sources.push_back({log, "", ""});
  fit.curves = std::move(own);
  std::erase_if(curves, [&](const Curve& curve) {
    const bool alone = curve.ranks < 2;
    const bool priced = collective_named(curve.collective).has_value();
    if (alone || !priced)
      fit.notes.push_back(curve.file + ": " + curve.collective +
                          (alone ? " of one rank" : ", which no plan does"));
    return alone || !priced;
  });
  fit.curves.insert(fit.curves.end(), std::make_move_iterator(curves.begin()),
                    std::make_move_iterator(curves.end()));
  require_healthy(fit.curves);
  for (const Curve& curve : fit.curves)
    fit.checks.push_back({"NCCL " + curve.collective + " " + std::to_string(curve.ranks) + " ranks",
                          curve_errors(curve)});
  if (!fit.kernels && fit.curves.empty()) {
    std::string why;
    for (const std::string& note : fit.notes) why += "; " + note;
    fail_input({}, "nothing can be fitted" + why, "measure more: orrery calibrate gpu");
  }
  return fit;
}

}  // namespace orrery
