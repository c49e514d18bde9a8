#include "calibration/gpu/stopwatch.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "calibration/kernels/launch.hpp"

namespace orrery::calibration {
namespace {

constexpr int most_a_batch = 16;
constexpr int most_launches = 512;     // Half of what a stream's queue holds before launches block.
constexpr double batch_us = 20'000.0;  // Runs of one batch should not take much longer.
constexpr double look_every_s = 0.2;
constexpr double warm_sample_us = 500.0;  // A thousand times the resolution of events.

std::int64_t l2_bytes() {
  int device = 0, bytes = 0;
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(cudaDeviceGetAttribute(&bytes, cudaDevAttrL2CacheSize, device));
  return bytes;
}

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

// Twice the cache: it may be in two halves that mirror each other.
Stopwatch::Stopwatch() : flush_{std::max<std::int64_t>(2 * l2_bytes(), 1 << 20)} {
  for (int i = 0; i < 2 * most_a_batch; ++i) events_.push_back(std::make_unique<Event>());
}

std::vector<double> Stopwatch::batch(const std::function<void(cudaStream_t)>& run, Cache cache,
                                     HeadStart::Batch size) {
  while (true) {
    const int samples = size.samples, runs = size.runs;
    const double began_s = now_s();
    CUDA_CHECK(launch_delay(head_start_.delay_ns(), stream_));
    for (int i = 0; i < samples; ++i) {
      if (cache == Cache::cold)
        CUDA_CHECK(cudaMemsetAsync(flush_.data(), i, flush_.bytes(), stream_));
      events_[2 * i]->record(stream_);
      for (int r = 0; r < runs; ++r) run(stream_);
      events_[2 * i + 1]->record(stream_);
    }
    // Not yet at the first event: everything was handed over in time.
    const cudaError_t waited = cudaEventQuery(*events_[0]);
    cudaGetLastError();  // "Not ready" would stay and be reported by the next launch.
    if (waited != cudaSuccess && waited != cudaErrorNotReady) CUDA_CHECK(waited);
    const auto host_ns = static_cast<std::int64_t>(1e9 * (now_s() - began_s));
    if (look_ && now_s() - looked_s_ > look_every_s) {
      // Not before: the GPU would still be waiting, and its clock that of no work.
      CUDA_CHECK(cudaEventSynchronize(*events_[2 * (samples / 2)]));
      look_();
      looked_s_ = now_s();
    }
    CUDA_CHECK(cudaStreamSynchronize(stream_));
    const auto verdict = head_start_.judge(waited == cudaErrorNotReady, host_ns, size);
    if (verdict == HeadStart::Verdict::hopeless)
      throw DeviceError{"a single run cannot be handed over while the GPU waits"};
    if (verdict == HeadStart::Verdict::again) continue;
    std::vector<double> times_us;
    for (int i = 0; i < samples; ++i)
      times_us.push_back(std::max(elapsed_us(*events_[2 * i], *events_[2 * i + 1]) / runs, 1e-3));
    return times_us;
  }
}

double Stopwatch::quick_us(const std::function<void(cudaStream_t)>& run, int runs) {
  return summarize(batch(run, Cache::warm, {std::min(runs, most_a_batch), 1})).median_us;
}

TimingSummary Stopwatch::time_warm(const std::function<void(cudaStream_t)>& run,
                                   const StoppingLimits& limits, Stopped* stopped, int launches) {
  const double began_s = now_s();
  const double run_us = quick_us(run, std::clamp(most_launches / launches, 1, 3));
  const double most_runs = std::max(most_launches / launches, 1);
  const int runs = static_cast<int>(
      std::clamp(std::ceil(warm_sample_us / run_us), 1.0, std::min(most_runs, 50.0)));
  int samples = static_cast<int>(
      std::clamp(std::floor(batch_us / (run_us * runs)), 1.0, std::max(most_runs / runs, 1.0)));
  samples = std::clamp(samples, 1, most_a_batch);
  StoppingRule rule{limits};
  Stopped why = Stopped::not_yet;
  while (why == Stopped::not_yet) {
    const std::vector<double> times_us = batch(run, Cache::warm, {samples, runs});
    for (const double us : times_us) rule.add(us);
    samples = static_cast<int>(times_us.size());
    why = rule.look(now_s() - began_s);
  }
  if (stopped) *stopped = why;
  return rule.summary();
}

Stopwatch::Times Stopwatch::time(const std::function<void(cudaStream_t)>& run,
                                 const StoppingLimits& limits, int launches) {
  StoppingLimits half = limits;  // Each kind gets half of the time.
  half.time_s = limits.time_s / 2.0;
  Times times;
  const double began_s = now_s();
  const int most = std::clamp(most_launches / (launches + 1), 1, most_a_batch);
  // Also the warm-up: code is loaded, memory mapped.
  const double run_us = quick_us(run, std::min(most, 3));
  int samples = std::clamp(static_cast<int>(batch_us / run_us), 1, most);
  StoppingRule rule{half};
  while (times.stopped == Stopped::not_yet) {
    const std::vector<double> times_us = batch(run, Cache::cold, {samples, 1});
    for (const double us : times_us) rule.add(us);
    samples = static_cast<int>(times_us.size());
    times.stopped = rule.look(now_s() - began_s);
  }
  times.cold = rule.summary();
  times.warm = time_warm(run, half, nullptr, launches);
  return times;
}

}  // namespace orrery::calibration
