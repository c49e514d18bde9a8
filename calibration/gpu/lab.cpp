#include "calibration/gpu/lab.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>

#ifdef ORRERY_HAVE_NCCL
#include <nccl.h>
#endif

namespace orrery::calibration {
namespace {

int attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  CUDA_CHECK(cudaDeviceGetAttribute(&value, which, device));
  return value;
}

// 13010 is 13.1; a patch is not in it.
std::string cuda_version(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string hashed(const cudaUUID_t& uuid) {
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a.
  for (const char byte : uuid.bytes)
    hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3u;
  static const char* const digits = "0123456789abcdef";
  std::string out;
  for (int shift = 60; shift >= 0; shift -= 4) out += digits[(hash >> shift) & 15];
  return out;
}

std::string on_off(std::optional<bool> what) { return what ? *what ? "on" : "off" : ""; }

// Launches are the host's work. Linux on Arm names no model here.
std::string cpu_name() {
  std::ifstream in{"/proc/cpuinfo"};
  for (std::string line; std::getline(in, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != line.npos) return line.substr(colon + 2);
  }
  return "";
}

std::string nccl_version() {
#ifdef ORRERY_HAVE_NCCL
  int version = 0;
  if (ncclGetVersion(&version) == ncclSuccess)
    return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
           std::to_string(version % 100);
#endif
  return "";
}

}  // namespace

// No driver, one that is older than this toolkit, a library that only stands in for one, a switch
// that is not ready: there are many reasons, and to the user all are the same as no GPU.
UsableGpus usable_gpus() {
  UsableGpus gpus;
  const cudaError_t error = cudaGetDeviceCount(&gpus.count);
  if (error == cudaSuccess && gpus.count > 0) return gpus;
  cudaGetLastError();
  gpus.count = 0;
  gpus.why_none = cudaGetErrorString(error == cudaSuccess ? cudaErrorNoDevice : error);
  return gpus;
}

Machine describe_machine(int device, const Nvml& nvml) {
  cudaDeviceProp properties;
  CUDA_CHECK(cudaGetDeviceProperties(&properties, device));
  Machine machine;
  machine.gpu = properties.name;
  machine.gpu_id = hashed(properties.uuid);
  machine.compute_capability =
      std::to_string(properties.major) + "." + std::to_string(properties.minor);
  int driver = 0, runtime = 0;
  CUDA_CHECK(cudaDriverGetVersion(&driver));
  CUDA_CHECK(cudaRuntimeGetVersion(&runtime));
  machine.driver = nvml.driver().value_or("CUDA " + cuda_version(driver));
  machine.cuda_runtime = cuda_version(runtime);
  const std::size_t cublas = cublasLtGetVersion();  // 130100 is 13.1.0.
  machine.cublas = std::to_string(cublas / 10000) + "." + std::to_string(cublas / 100 % 100) + "." +
                   std::to_string(cublas % 100);
  machine.nccl = nccl_version();
  machine.gpus = usable_gpus().count;
  machine.multiprocessors = properties.multiProcessorCount;
  machine.memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem);
  machine.l2_bytes = properties.l2CacheSize;
  machine.boost_clock_hz = 1e3 * attribute(cudaDevAttrClockRate, device);
  machine.power_limit_w = nvml.power_limit_w().value_or(0.0);
  machine.ecc = on_off(nvml.ecc());
  machine.mig = on_off(nvml.mig());
  machine.cpu = cpu_name();
  return machine;
}

namespace {

int chosen(int device) {
  const int count = usable_gpus().count;
  if (device >= count)
    throw Unsupported{"there is no GPU " + std::to_string(device) + "; the first of " +
                      std::to_string(count) + " is 0"};
  CUDA_CHECK(cudaSetDevice(device));
  return device;
}

}  // namespace

Lab::Lab(int device_index) : device{chosen(device_index)} {
  char bus_id[32] = "";
  CUDA_CHECK(cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, device));
  nvml.choose(bus_id);
  machine = describe_machine(device, nvml);
  stopwatch.while_busy([this] { states.push_back(nvml.state()); });
  shared_bytes_a_block = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
}

std::map<std::string, double> Lab::state_figures() {
  std::map<std::string, double> figures;
  const auto middle = [&](const char* name, auto member) {
    std::vector<double> values;
    for (const GpuState& state : states)
      if (state.*member) values.push_back(static_cast<double>(*(state.*member)));
    if (values.empty()) return;
    std::sort(values.begin(), values.end());
    figures[name] = quantile(values, 0.5);
  };
  middle("busy_clock_hz", &GpuState::clock_hz);
  middle("busy_power_w", &GpuState::power_w);
  middle("busy_temperature_c", &GpuState::temperature_c);
  std::uint64_t bits = 0;
  bool known = false;
  for (const GpuState& state : states)
    if (state.held_by) bits |= *state.held_by, known = true;
  if (known) figures["held_by_bits"] = static_cast<double>(bits);
  states.clear();
  return figures;
}

void require_right(double error, double tolerance) {
  if (std::isfinite(error) && error <= tolerance) return;
  char text[128];
  std::snprintf(text, sizeof text, "wrong result: relative error %.2g where rounding explains %.2g",
                error, tolerance);
  throw DeviceError{text};
}

}  // namespace orrery::calibration
