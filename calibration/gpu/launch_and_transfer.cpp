#include <algorithm>
#include <chrono>
#include <cstring>

#include "calibration/gpu/graph.hpp"
#include "calibration/gpu/lab.hpp"

namespace orrery::calibration {
namespace {

constexpr int chain = 100;        // Kernels, in what is measured as one.
constexpr int host_samples = 21;  // Each of a chain; a tenth of them on either side of the p10.

TimingSummary each_of(TimingSummary summary, int count) {
  summary.median_us /= count;
  summary.p10_us /= count;
  summary.p90_us /= count;
  return summary;
}

// Host time to hand over one empty kernel, while the GPU is kept busy elsewhere.
double handing_over_us(cudaStream_t stream) {
  CUDA_CHECK(launch_delay(5'000'000, stream));
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < chain; ++i) CUDA_CHECK(launch_empty(stream));
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - began;
  CUDA_CHECK(cudaStreamSynchronize(stream));
  return took.count() / chain;
}

class PinnedBytes {
 public:
  explicit PinnedBytes(std::int64_t count) : count_{count} {
    CUDA_CHECK(cudaMallocHost(reinterpret_cast<void**>(&data_), static_cast<std::size_t>(count)));
  }
  ~PinnedBytes() { cudaFreeHost(data_); }
  PinnedBytes(const PinnedBytes&) = delete;
  PinnedBytes& operator=(const PinnedBytes&) = delete;
  char* data() const { return data_; }
  std::int64_t count() const { return count_; }

 private:
  char* data_ = nullptr;
  std::int64_t count_;
};

}  // namespace

Measurement measure_launch(const Case& what, const StoppingLimits& limits, Lab& lab) {
  const std::string& op = what.choice("op");
  Measurement one;
  one.what = what;
  if (op == "kernel") {
    const Stopwatch::Times times =
        lab.stopwatch.time([](cudaStream_t s) { CUDA_CHECK(launch_empty(s)); }, limits);
    one.cold = times.cold;
    one.warm = times.warm;
    one.stopped = times.stopped;
    one.implementation = "one empty kernel between two events";
    std::vector<double> host_us;
    handing_over_us(lab.stopwatch.stream());  // The first has caches to fill.
    for (int i = 0; i < host_samples; ++i)
      host_us.push_back(handing_over_us(lab.stopwatch.stream()));
    std::sort(host_us.begin(), host_us.end());
    one.figures = {{"host_us", quantile(host_us, 0.5)},
                   {"host_p10_us", quantile(host_us, 0.1)},
                   {"host_p90_us", quantile(host_us, 0.9)}};
    return one;
  }
  Stream other;
  Event here, there;
  const auto kernels = [](cudaStream_t s) {
    for (int i = 0; i < chain; ++i) CUDA_CHECK(launch_empty(s));
  };
  std::function<void(cudaStream_t)> run = kernels;
  int launches = chain;
  std::unique_ptr<Graph> graph;
  one.implementation = "one of 100 empty kernels in a row";
  if (op == "graph") {
    CUDA_CHECK(launch_empty(lab.stopwatch.stream()));  // Loads it, which capturing must not meet.
    CUDA_CHECK(cudaStreamSynchronize(lab.stopwatch.stream()));
    graph = std::make_unique<Graph>(kernels, lab.stopwatch.stream());
    run = [&](cudaStream_t s) { graph->launch(s); };
    launches = 1;
    one.implementation = "one of 100 empty kernels in a CUDA graph";
  } else if (op == "event_wait") {
    constexpr int hops = chain / 2;
    run = [&](cudaStream_t s) {
      for (int i = 0; i < hops; ++i) {
        CUDA_CHECK(launch_empty(s));
        here.record(s);
        CUDA_CHECK(cudaStreamWaitEvent(other, here, 0));
        CUDA_CHECK(launch_empty(other));
        there.record(other);
        CUDA_CHECK(cudaStreamWaitEvent(s, there, 0));
      }
    };
    launches = 6 * hops;
    one.implementation = "one of 100 empty kernels that hop between two streams, with its wait";
  }
  const TimingSummary all = lab.stopwatch.time_warm(run, limits, &one.stopped, launches);
  one.warm = each_of(all, chain);
  return one;
}

Measurement measure_transfer(const Case& what, const StoppingLimits& limits, Lab& lab) {
  const std::string& direction = what.choice("direction");
  const std::int64_t bytes = what.size("bytes");
  const bool from_host = direction == "host_to_device", to_host = direction == "device_to_host";
  std::unique_ptr<PinnedBytes> host;
  std::unique_ptr<DeviceArray<char>> from, to;
  if (from_host || to_host) host = std::make_unique<PinnedBytes>(bytes);
  if (!from_host) from = std::make_unique<DeviceArray<char>>(bytes);
  if (!to_host) to = std::make_unique<DeviceArray<char>>(bytes);
  // A pattern that no shift or cut leaves as it was.
  std::vector<char> pattern(static_cast<std::size_t>(bytes));
  for (std::size_t i = 0; i < pattern.size(); ++i)
    pattern[i] = static_cast<char>((i * 2654435761u) >> 11);
  if (from_host)
    std::memcpy(host->data(), pattern.data(), pattern.size());
  else
    CUDA_CHECK(cudaMemcpy(from->data(), pattern.data(), pattern.size(), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaDeviceSynchronize());
  const void* const source = from_host ? host->data() : from->data();
  void* const target = to_host ? host->data() : to->data();
  const auto run = [&](cudaStream_t s) {
    CUDA_CHECK(
        cudaMemcpyAsync(target, source, static_cast<std::size_t>(bytes), cudaMemcpyDefault, s));
  };
  run(lab.stopwatch.stream());
  CUDA_CHECK(cudaStreamSynchronize(lab.stopwatch.stream()));
  const bool same = to_host ? std::memcmp(host->data(), pattern.data(), pattern.size()) == 0
                            : to->to_host() == pattern;
  if (!same) throw DeviceError{"wrong result: the copy differs from what was copied"};

  Measurement one;
  one.what = what;
  one.relative_error = 0.0;
  one.warm = lab.stopwatch.time_warm(run, limits, &one.stopped);
  one.implementation = "cudaMemcpyAsync";
  one.figures = {{"warm_bytes_per_s", static_cast<double>(bytes) / (1e-6 * one.warm->median_us)}};
  return one;
}

}  // namespace orrery::calibration
