#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "calibration/gpu/matmul.hpp"
#include "calibration/gpu/nvml.hpp"
#include "calibration/gpu/stopwatch.hpp"
#include "calibration/host/campaign.hpp"

namespace orrery::calibration {

/// The GPU that is measured, and what measuring needs.
struct Lab {
  explicit Lab(int device);

  int device;
  Machine machine;
  int shared_bytes_a_block = 0;  ///< The most that a kernel may use.
  Stopwatch stopwatch;
  Cublas cublas;
  Nvml nvml;
  std::vector<GpuState> states;  ///< Read while the stopwatch's work ran, since they were taken.
  /// Their medians as figures of a measurement, and all that held the clock; takes them.
  std::map<std::string, double> state_figures();
};

/// The number of usable GPUs; if there is none, the reason in CUDA's words.
struct UsableGpus {
  int count = 0;
  std::string why_none;
};
UsableGpus usable_gpus();
/// Describes device `device`. Errors: DeviceError.
Machine describe_machine(int device, const Nvml& nvml);

/// One file each. Errors: Unsupported and DeviceError, which are this case's alone as long as the
/// GPU still answers.
Measurement measure_gemm(const Case& what, const StoppingLimits& limits, Lab& lab);
Measurement measure_grouped_gemm(const Case& what, const StoppingLimits& limits, Lab& lab);
Measurement measure_attention(const Case& what, const StoppingLimits& limits, Lab& lab);
Measurement measure_memory(const Case& what, const StoppingLimits& limits, Lab& lab);
Measurement measure_launch(const Case& what, const StoppingLimits& limits, Lab& lab);
Measurement measure_transfer(const Case& what, const StoppingLimits& limits, Lab& lab);
Measurement measure_overlap(const Case& what, const StoppingLimits& limits, Lab& lab);
Measurement measure_sustained(const Case& what, const StoppingLimits& limits, Lab& lab);
Measurement measure_training_step(const Case& what, const StoppingLimits& limits, Lab& lab);

/// Errors: DeviceError where `error` is over `tolerance`, or no number.
void require_right(double error, double tolerance);

}  // namespace orrery::calibration
