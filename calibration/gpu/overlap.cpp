#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <thread>

#include "calibration/gpu/lab.hpp"

namespace orrery::calibration {
namespace {

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// A word that the GPU sees change.
class Flag {
 public:
  Flag() {
    CUDA_CHECK(cudaHostAlloc(reinterpret_cast<void**>(&word_), sizeof(int), cudaHostAllocMapped));
    *word_ = 0;
    CUDA_CHECK(cudaHostGetDevicePointer(reinterpret_cast<void**>(&seen_), word_, 0));
  }
  ~Flag() { cudaFreeHost(word_); }
  Flag(const Flag&) = delete;
  Flag& operator=(const Flag&) = delete;
  void set(int value) { *static_cast<volatile int*>(word_) = value; }
  const volatile int* on_device() const { return seen_; }

 private:
  int* word_ = nullptr;
  int* seen_ = nullptr;
};

struct Product {
  Product(const Case& what, Lab& lab)
      : shape{MatmulShape::Pass::forward, what.size("m"), what.size("n"), what.size("k"),
              what.choices.contains("dtype") ? what.choice("dtype") : "bf16"},
        matmul{lab.cublas, shape},
        operands{shape},
        error{matmul_error(matmul, operands, lab.stopwatch.stream())} {
    require_right(error, matmul_tolerance(shape));
  }
  void run(cudaStream_t stream) const {
    matmul.run(operands.a.data(), operands.b.data(), operands.c.data(), stream);
  }
  MatmulShape shape;
  Matmul matmul;
  MatmulOperands operands;
  double error;
};

// Times one product alone, or overlapped with a companion that must begin before and end after it,
// or the sample is thrown away. Both are timed in turn, so that clock and heat are the same.
class OverlapTiming {
 public:
  explicit OverlapTiming(const Product& product) : product_{product} {}
  virtual ~OverlapTiming() = default;

  double alone_us() {
    run_behind_delay();
    CUDA_CHECK(cudaDeviceSynchronize());
    return elapsed_us(before_, after_);
  }

  double overlapped_us() {
    for (int attempt = 0; attempt < 6; ++attempt) {
      begin(other_, lasting_us_);
      run_behind_delay();
      // The event behind the companion's end shows that it outlasted the product.
      CUDA_CHECK(cudaStreamSynchronize(own_));
      const bool outlasted = end(other_, ended_);
      CUDA_CHECK(cudaDeviceSynchronize());
      if (outlasted) return elapsed_us(before_, after_);
      lasting_us_ *= 2.0;
    }
    throw DeviceError{"the companion of an overlapped product could not be made to outlast it"};
  }

 protected:
  /// Enqueues work that takes at least `us`.
  virtual void begin(cudaStream_t stream, double us) = 0;
  /// Returns true if it was still running; ends it.
  virtual bool end(cudaStream_t stream, Event& ended) = 0;

 private:
  void run_behind_delay() {
    CUDA_CHECK(launch_delay(300'000, own_));  // Lasts until the companion is under way.
    before_.record(own_);
    product_.run(own_);
    after_.record(own_);
  }

  const Product& product_;
  Stream own_, other_;
  Event before_, after_, ended_;
  double lasting_us_ = 3000.0;
};

class CopyOverlap : public OverlapTiming {
 public:
  explicit CopyOverlap(const Product& product)
      : OverlapTiming{product}, from_{std::int64_t{1} << 28}, to_{std::int64_t{1} << 28} {}

 protected:
  void begin(cudaStream_t stream, double us) override {
    // 512 MiB of traffic, at 10 TB/s still 54 us.
    for (int i = 0; i < static_cast<int>(us / 50.0) + 1; ++i)
      CUDA_CHECK(
          cudaMemcpyAsync(to_.data(), from_.data(), to_.bytes(), cudaMemcpyDeviceToDevice, stream));
  }
  bool end(cudaStream_t stream, Event& ended) override {
    ended.record(stream);
    const cudaError_t state = cudaEventQuery(ended);
    cudaGetLastError();
    if (state != cudaSuccess && state != cudaErrorNotReady) CUDA_CHECK(state);
    return state == cudaErrorNotReady;
  }

 private:
  DeviceArray<char> from_, to_;
};

class BusyOverlap : public OverlapTiming {
 public:
  BusyOverlap(const Product& product, int multiprocessors, int shared_bytes)
      : OverlapTiming{product}, multiprocessors_{multiprocessors}, shared_bytes_{shared_bytes} {}

 protected:
  void begin(cudaStream_t stream, double us) override {
    flag_.set(0);
    const auto longest_ns = static_cast<std::int64_t>(1e3 * (us + 1e6));
    CUDA_CHECK(launch_busy(multiprocessors_, shared_bytes_, flag_.on_device(), longest_ns, stream));
  }
  bool end(cudaStream_t stream, Event& ended) override {
    ended.record(stream);
    const cudaError_t state = cudaEventQuery(ended);
    cudaGetLastError();
    flag_.set(1);
    if (state != cudaSuccess && state != cudaErrorNotReady) CUDA_CHECK(state);
    return state == cudaErrorNotReady;
  }

 private:
  Flag flag_;
  int multiprocessors_, shared_bytes_;
};

}  // namespace

Measurement measure_overlap(const Case& what, const StoppingLimits& limits, Lab& lab) {
  const bool copy = what.choice("beside") == "copy";
  const int busy = static_cast<int>(what.size("busy"));
  if (!copy && busy >= lab.machine.multiprocessors)
    throw Unsupported{"this GPU has only " + std::to_string(lab.machine.multiprocessors) +
                      " multiprocessors"};
  const Product product{what, lab};
  std::unique_ptr<OverlapTiming> timing;
  if (copy)
    timing = std::make_unique<CopyOverlap>(product);
  else
    timing = std::make_unique<BusyOverlap>(product, busy, lab.shared_bytes_a_block);
  timing->alone_us();
  timing->overlapped_us();
  StoppingRule rule{limits}, alone_rule{limits};
  Measurement one;
  one.what = what;
  for (const double began_s = now_s(); one.stopped == Stopped::not_yet;) {
    alone_rule.add(timing->alone_us());
    rule.add(timing->overlapped_us());
    one.stopped = rule.look(now_s() - began_s);
  }
  const TimingSummary alone = alone_rule.summary();
  one.relative_error = product.error;
  one.warm = rule.summary();
  one.implementation =
      copy ? "cublasLt, first choice; copies of 256 MiB within the GPU by cudaMemcpyAsync"
           : "cublasLt, first choice; blocks that take all shared memory of a multiprocessor";
  one.figures = {{"alone_us", alone.median_us},
                 {"slowdown_ratio", one.warm->median_us / alone.median_us}};
  return one;
}

// Windows of about a millisecond; some 30 ms of them are handed over ahead, so that the GPU never
// pauses. It begins cool, as kernels that are timed by themselves do.
Measurement measure_sustained(const Case& what, const StoppingLimits&, Lab& lab) {
  const Product product{what, lab};
  constexpr std::chrono::seconds pause{3};
  constexpr double window_us = 1000.0, chunk_us = 30'000.0, state_every_s = 0.01;
  const double seconds = static_cast<double>(what.size("seconds"));
  const auto run = [&](cudaStream_t s) { product.run(s); };
  const double product_us = lab.stopwatch.quick_us(run, 3);
  const int runs = std::max(1, static_cast<int>(std::lround(window_us / product_us)));
  const int windows = std::max(2, static_cast<int>(chunk_us / (product_us * runs)));
  Stream stream;
  std::vector<Event> borders(static_cast<std::size_t>(3 * windows + 1));
  const auto border = [&](int window) -> Event& {
    return borders[static_cast<std::size_t>(window % (3 * windows + 1))];
  };
  const auto hand_over = [&](int chunk) {
    for (int w = chunk * windows; w < (chunk + 1) * windows; ++w) {
      for (int r = 0; r < runs; ++r) product.run(stream);
      border(w + 1).record(stream);
    }
  };
  CUDA_CHECK(cudaDeviceSynchronize());
  std::this_thread::sleep_for(pause);
  lab.states.clear();
  ClockSeries series;
  border(0).record(stream);
  hand_over(0);
  double noted_s = -1.0;
  for (int chunk = 0; series.length_s() < seconds; ++chunk) {
    hand_over(chunk + 1);
    for (int w = chunk * windows; w < (chunk + 1) * windows; ++w) {
      CUDA_CHECK(cudaEventSynchronize(border(w + 1)));
      series.add(elapsed_us(border(w), border(w + 1)), runs);
      if (series.length_s() - noted_s < state_every_s) continue;
      series.note(lab.nvml.state());
      noted_s = series.length_s();
    }
  }
  CUDA_CHECK(cudaStreamSynchronize(stream));
  Measurement one;
  one.what = what;
  one.relative_error = product.error;
  one.warm = series.sustained();
  one.stopped = Stopped::time;
  one.implementation = "cublasLt, first choice, without pause";
  one.figures = {{"burst_us", series.burst_us()},
                 {"sustained_us", one.warm->median_us},
                 {"sustained_ratio", series.burst_us() / one.warm->median_us}};
  one.series = series.points();
  return one;
}

}  // namespace orrery::calibration
