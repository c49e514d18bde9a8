#include <algorithm>
#include <chrono>
#include <thread>

#include "calibration/gpu/lab.hpp"

namespace orrery::calibration {
namespace {

// The library's favourite, which frameworks take without looking further, or the next where that
// does not run or computes the wrong thing; and its result's error. If none is left, the last
// one's complaint is the case's.
double choose_first(Matmul& matmul, MatmulOperands& operands, Lab& lab) {
  std::string complaint = "cublasLt has no algorithm that runs";
  for (int choice = 0; choice < matmul.choices(); ++choice) {
    matmul.choose(choice);
    try {
      const double error = matmul_error(matmul, operands, lab.stopwatch.stream());
      require_right(error, matmul_tolerance(matmul.shape()));
      return error;
    } catch (const DeviceError& failure) {
      require_alive();
      complaint = failure.what();
    }
  }
  throw DeviceError{complaint};
}

// The weights of a step's layers follow each other and have left the cache when their turn comes
// again, however small each is: so many copies that together they are twice the cache. Of wgrad it
// is the main gradient. What goes in and comes out stays: the kernel before has just written it.
class LayersInTurn {
 public:
  LayersInTurn(const Matmul& matmul, const MatmulOperands& operands, std::int64_t l2_bytes)
      : matmul_{matmul}, operands_{operands} {
    const DeviceArray<char>& weights = matmul.shape().adds() ? operands.c : operands.b;
    constexpr std::int64_t most = 128;  // Copies of a weight under 1 MiB are of no layer.
    const auto bytes = static_cast<std::int64_t>(weights.bytes());
    const std::int64_t copies = std::clamp<std::int64_t>((2 * l2_bytes) / bytes, 0, most);
    turn_.push_back(weights.data());
    for (std::int64_t i = 0; i < copies; ++i) {
      copies_.emplace_back(bytes);
      CUDA_CHECK(cudaMemcpy(copies_.back().data(), weights.data(), weights.bytes(),
                            cudaMemcpyDeviceToDevice));
      turn_.push_back(copies_.back().data());
    }
    CUDA_CHECK(cudaDeviceSynchronize());
  }
  void run(cudaStream_t stream) {
    char* const weights = turn_[next_++ % turn_.size()];
    if (matmul_.shape().adds())
      matmul_.run(operands_.a.data(), operands_.b.data(), weights, stream);
    else
      matmul_.run(operands_.a.data(), weights, operands_.c.data(), stream);
  }
  std::size_t size() const { return turn_.size(); }

 private:
  const Matmul& matmul_;
  const MatmulOperands& operands_;
  std::vector<DeviceArray<char>> copies_;
  std::vector<char*> turn_;
  std::size_t next_ = 0;
};

// The time of the best of the library's proposals, wrong ones left out; 0: none runs.
double best_us(Matmul& matmul, LayersInTurn& layers, MatmulOperands& operands, Lab& lab) {
  const int chosen = matmul.choice();
  double best = 0.0;
  const auto run = [&](cudaStream_t stream) { layers.run(stream); };
  for (int choice = 0; choice < matmul.choices(); ++choice) {
    matmul.choose(choice);
    try {
      lab.stopwatch.quick_us(run, 1);  // Loads its code.
      const double us = lab.stopwatch.quick_us(run, 7);
      if (best > 0.0 && us >= best) continue;
      require_right(matmul_error(matmul, operands, lab.stopwatch.stream()),
                    matmul_tolerance(matmul.shape()));
      best = us;
    } catch (const DeviceError&) {
      require_alive();
    }
  }
  matmul.choose(chosen);
  return best;
}

// The time at the clock that benchmarks of a few runs have. The power limit acts after some 30 ms
// without pause; times then depend on the state that it has reached (docs/notes/h200-measured.md).
double first_clock_us(LayersInTurn& layers, double about_us, Lab& lab) {
  constexpr std::chrono::milliseconds pause{200};
  constexpr double most_us = 15'000.0;
  std::this_thread::sleep_for(pause);
  return lab.stopwatch.quick_us([&](cudaStream_t stream) { layers.run(stream); },
                                std::max(1, static_cast<int>(most_us / about_us)));
}

}  // namespace

Measurement measure_gemm(const Case& what, const StoppingLimits& limits, Lab& lab) {
  MatmulShape shape{pass_named(what.choice("pass")), what.size("m"), what.size("n"), what.size("k"),
                    what.choice("dtype")};
  Matmul matmul{lab.cublas, shape};
  MatmulOperands operands{shape};
  Measurement one;
  one.what = what;
  one.relative_error = choose_first(matmul, operands, lab);
  LayersInTurn layers{matmul, operands, lab.machine.l2_bytes};
  lab.states.clear();
  const Stopwatch::Times times =
      lab.stopwatch.time([&](cudaStream_t stream) { layers.run(stream); }, limits);
  one.figures = lab.state_figures();
  one.cold = times.cold;
  one.warm = times.warm;
  one.stopped = times.stopped;
  one.implementation = "cublasLt, choice " + std::to_string(matmul.choice() + 1) + " of " +
                       std::to_string(matmul.choices()) + ", weights of " +
                       std::to_string(layers.size()) + " layers in turn";
  const double flop = 2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) *
                      static_cast<double>(shape.k);
  one.figures["work_flop"] = flop;
  one.figures["warm_flop_per_s"] = flop / (1e-6 * times.warm.median_us);
  constexpr double long_us = 100.0;  // Shorter ones draw less than the limit.
  if (times.warm.median_us >= long_us)
    one.figures["first_clock_us"] = first_clock_us(layers, times.warm.median_us, lab);
  const double best = best_us(matmul, layers, operands, lab);
  if (best > 0.0) one.figures["best_choice_us"] = best;
  return one;
}

}  // namespace orrery::calibration
