#pragma once

#include <optional>
#include <string>

namespace orrery::calibration {

/// The driver's management library, loaded where there is one: for the driver's version and for
/// clocks, power and temperature beside a measurement. Nothing depends on it.
class Nvml {
 public:
  Nvml();
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  /// Chooses the GPU by its PCI bus id, as cudaDeviceGetPCIBusId() writes it.
  void choose(const std::string& bus_id);
  std::optional<std::string> driver() const;
  std::optional<double> clock_hz() const;
  std::optional<double> power_w() const;
  std::optional<double> temperature_c() const;

 private:
  template <class Function>
  Function* find(const char* name) const;
  void* library_ = nullptr;
  void* device_ = nullptr;
};

}  // namespace orrery::calibration
