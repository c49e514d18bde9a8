#include "sim/calibration/driver_name.hpp"

#include <map>

namespace orrery {
namespace {

// "9.0" is Hopper (CUDA C++ Programming Guide, Compute Capabilities). "": none that is known.
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
  // As the driver's list of GPUs has them (NVIDIA/open-gpu-kernel-modules, README.md, Compatible
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
  const std::string told = generation(machine.compute_capability);
  if (!told.empty() && told != name(gpu.architecture))
    fail_input({file, "/machine/compute_capability"},
               "is " + machine.compute_capability + ", which is " + told + ", but '" + gpu.name +
                   "' is " + name(gpu.architecture),
               remedy);
  if (machine.multiprocessors != gpu.multiprocessors)
    fail_input({file, "/machine/multiprocessors"},
               "are " + std::to_string(machine.multiprocessors) + ", but '" + gpu.name + "' has " +
                   std::to_string(gpu.multiprocessors),
               remedy);
}

}  // namespace orrery
