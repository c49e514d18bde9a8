#include "calibration/gpu/nvml.hpp"

#include <dlfcn.h>

#include <cstdint>

namespace orrery::calibration {
namespace {

// Signatures of NVML's API; toolkits often come without its header. All return 0 on success.
using Init = int();
using DeviceByBusId = int(const char*, void**);
using DriverVersion = int(char*, unsigned);
using ClockInfo = int(void*, int, unsigned*);
using Reading = int(void*, unsigned*);
using Temperature = int(void*, int, unsigned*);
using Bits = int(void*, unsigned long long*);
using Modes = int(void*, unsigned*, unsigned*);  // Current, pending.
constexpr int multiprocessor_clock = 1;
constexpr int gpu_sensor = 0;

// nvmlFieldValue_t and the field that has the power of the moment, in mW; nvmlDeviceGetPowerUsage
// is an average over a second since Ampere.
struct FieldValue {
  unsigned field, scope;
  long long timestamp_us, latency_us;
  int type, result;
  union {
    double real;
    unsigned number;
    unsigned long long large;
  } value;
};
static_assert(sizeof(FieldValue) == 40);
using FieldValues = int(void*, int, FieldValue*);
constexpr unsigned power_of_the_moment = 186;
constexpr int type_unsigned = 1;

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
  FieldValue field{};
  field.field = power_of_the_moment;
  const auto fields = find<FieldValues>("nvmlDeviceGetFieldValues");
  if (device_ && fields && fields(device_, 1, &field) == 0 && field.result == 0 &&
      field.type == type_unsigned)
    return 1e-3 * field.value.number;
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

std::optional<std::uint64_t> Nvml::held_by() const {
  unsigned long long bits = 0;
  // The second is the name that drivers before CUDA 12.2 know.
  for (const char* name :
       {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"})
    if (const auto reasons = find<Bits>(name); device_ && reasons && reasons(device_, &bits) == 0)
      return bits;
  return std::nullopt;
}

GpuState Nvml::state() const { return {clock_hz(), power_w(), temperature_c(), held_by()}; }

std::optional<double> Nvml::power_limit_w() const {
  unsigned milliwatt = 0;
  const auto limit = find<Reading>("nvmlDeviceGetEnforcedPowerLimit");
  if (!device_ || !limit || limit(device_, &milliwatt) != 0) return std::nullopt;
  return 1e-3 * milliwatt;
}

std::optional<bool> Nvml::ecc() const {
  unsigned current = 0, pending = 0;
  const auto mode = find<Modes>("nvmlDeviceGetEccMode");
  if (!device_ || !mode || mode(device_, &current, &pending) != 0) return std::nullopt;
  return current != 0;
}

std::optional<bool> Nvml::mig() const {
  unsigned current = 0, pending = 0;
  const auto mode = find<Modes>("nvmlDeviceGetMigMode");
  if (!device_ || !mode || mode(device_, &current, &pending) != 0) return std::nullopt;
  return current != 0;
}

}  // namespace orrery::calibration
