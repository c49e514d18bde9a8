#pragma once

#include <optional>
#include <string>

#include "calibration/host/gpu_state.hpp"

namespace orrery::calibration {

/// The driver's management library, loaded if there is one: it gives the driver's version and the
/// clocks, power and temperature during a measurement. Nothing depends on it.
class Nvml {
 public:
  Nvml();
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  /// Chooses the GPU by its PCI bus id, as cudaDeviceGetPCIBusId() writes it.
  void choose(const std::string& bus_id);
  std::optional<std::string> driver() const;
  GpuState state() const;
  std::optional<double> power_limit_w() const;
  std::optional<bool> ecc() const;
  std::optional<bool> mig() const;

 private:
  std::optional<double> clock_hz() const;
  std::optional<double> power_w() const;
  std::optional<double> temperature_c() const;
  std::optional<std::uint64_t> held_by() const;
  template <class Function>
  Function* find(const char* name) const;
  void* library_ = nullptr;
  void* device_ = nullptr;
};

}  // namespace orrery::calibration
