#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "calibration/gpu/cuda.hpp"
#include "calibration/host/head_start.hpp"
#include "calibration/host/stopping.hpp"

namespace orrery::calibration {

/// Times work on a GPU, by events on one stream.
///
/// Cold: before each run the L2 cache is filled with other data, as it is when a kernel's operands
/// were last touched long ago. Warm: runs follow each other, as kernels of a training step do; the
/// time is that of many runs over their number, so that gaps between launches are in it once each.
///
/// A batch of runs is handed to the GPU behind a kernel that does nothing for a while, and only
/// counts if that kernel was still at it when the last run had been handed over: the GPU then never
/// waited for the host. If it was not, the batch is repeated behind a longer one (HeadStart).
class Stopwatch {
 public:
  /// Measures on the current GPU.
  Stopwatch();

  struct Times {
    TimingSummary cold, warm;
    Stopped stopped = Stopped::not_yet;  ///< The cold one.
  };
  /// `run` enqueues the work on `stream` and must not wait for it. Errors: DeviceError.
  /// `launches`: how many pieces of work it enqueues; the GPU's queue holds about a thousand.
  Times time(const std::function<void(cudaStream_t)>& run, const StoppingLimits& limits,
             int launches = 1);
  /// A quick median of warm single runs, to choose between ways: `runs` of them.
  double quick_us(const std::function<void(cudaStream_t)>& run, int runs);
  /// One kind of run only.
  TimingSummary time_warm(const std::function<void(cudaStream_t)>& run,
                          const StoppingLimits& limits, Stopped* stopped = nullptr,
                          int launches = 1);

  cudaStream_t stream() const { return stream_; }
  /// Called a few times a second in the middle of timed work, while the GPU is at it.
  void while_busy(std::function<void()> look) { look_ = std::move(look); }

 private:
  enum class Cache { cold, warm };
  /// Takes fewer samples if so many do not fit into the GPU's queue.
  std::vector<double> batch(const std::function<void(cudaStream_t)>& run, Cache cache,
                            HeadStart::Batch size);

  Stream stream_;
  DeviceArray<char> flush_;
  std::vector<std::unique_ptr<Event>> events_;
  HeadStart head_start_;
  std::function<void()> look_;
  double looked_s_ = 0.0;
};

}  // namespace orrery::calibration
