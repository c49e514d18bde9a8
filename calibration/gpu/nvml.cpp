#include "calibration/gpu/nvml.hpp"

#include <dlfcn.h>

namespace orrery::calibration {
namespace {

// From NVML's API reference; toolkits often come without its header. All return 0 on success.
using Init = int();
using DeviceByBusId = int(const char*, void**);
using DriverVersion = int(char*, unsigned);
using ClockInfo = int(void*, int, unsigned*);
using Reading = int(void*, unsigned*);
using Temperature = int(void*, int, unsigned*);
constexpr int multiprocessor_clock = 1;
constexpr int gpu_sensor = 0;

}  // namespace

template <class Function>
Function* Nvml::find(const char* name) const {
  return library_ ? reinterpret_cast<Function*>(dlsym(library_, name)) : nullptr;
}

Nvml::Nvml() : library_{dlopen("libnvidia-ml.so.1", RTLD_NOW)} {
  Init* const init = find<Init>("nvmlInit_v2");
  if (library_ && (!init || init() != 0)) {
    dlclose(library_);
    library_ = nullptr;
  }
}

Nvml::~Nvml() {
  if (Init* const shutdown = find<Init>("nvmlShutdown")) shutdown();
  if (library_) dlclose(library_);
}

void Nvml::choose(const std::string& bus_id) {
  const auto by_bus_id = find<DeviceByBusId>("nvmlDeviceGetHandleByPciBusId_v2");
  if (!by_bus_id || by_bus_id(bus_id.c_str(), &device_) != 0) device_ = nullptr;
}

std::optional<std::string> Nvml::driver() const {
  char text[96] = "";
  const auto version = find<DriverVersion>("nvmlSystemGetDriverVersion");
  if (!version || version(text, sizeof text) != 0) return std::nullopt;
  return text;
}

std::optional<double> Nvml::clock_hz() const {
  unsigned mhz = 0;
  const auto clock = find<ClockInfo>("nvmlDeviceGetClockInfo");
  if (!device_ || !clock || clock(device_, multiprocessor_clock, &mhz) != 0) return std::nullopt;
  return 1e6 * mhz;
}

std::optional<double> Nvml::power_w() const {
  unsigned milliwatt = 0;
  const auto power = find<Reading>("nvmlDeviceGetPowerUsage");
  if (!device_ || !power || power(device_, &milliwatt) != 0) return std::nullopt;
  return 1e-3 * milliwatt;
}

std::optional<double> Nvml::temperature_c() const {
  unsigned celsius = 0;
  const auto temperature = find<Temperature>("nvmlDeviceGetTemperature");
  if (!device_ || !temperature || temperature(device_, gpu_sensor, &celsius) != 0)
    return std::nullopt;
  return celsius;
}

}  // namespace orrery::calibration
