#include <algorithm>

#include "calibration/gpu/lab.hpp"

namespace orrery::calibration {
namespace {

// The fastest of the library's proposals that computes the right thing, and its result's error.
// How fast its favourite was, which frameworks take without looking further, goes into `first_us`;
// 0 where that does not run. Proposals that the library then refuses, and wrong ones, are passed
// over; if that leaves none, the last one's complaint is the case's.
double choose_best(Matmul& matmul, MatmulOperands& operands, Lab& lab, double& first_us) {
  struct Candidate {
    double us;
    int choice;
  };
  std::vector<Candidate> candidates;
  std::string complaint = "cublasLt has no algorithm that runs";
  const auto run = [&](cudaStream_t stream) {
    matmul.run(operands.a.data(), operands.b.data(), operands.c.data(), stream);
  };
  first_us = 0.0;
  for (int choice = 0; choice < matmul.choices(); ++choice) {
    matmul.choose(choice);
    try {
      lab.stopwatch.quick_us(run, 1);  // Loads its code.
      candidates.push_back({lab.stopwatch.quick_us(run, 7), choice});
    } catch (const DeviceError& error) {
      require_alive();
      complaint = error.what();
      continue;
    }
    if (choice == 0) first_us = candidates.back().us;
  }
  std::sort(candidates.begin(), candidates.end(),
            [](const Candidate& a, const Candidate& b) { return a.us < b.us; });
  for (const Candidate& candidate : candidates) {
    matmul.choose(candidate.choice);
    try {
      const double error = matmul_error(matmul, operands, lab.stopwatch.stream());
      require_right(error, matmul_tolerance(matmul.shape()));
      return error;
    } catch (const DeviceError& error) {
      require_alive();
      complaint = error.what();
    }
  }
  throw DeviceError{complaint};
}

}  // namespace

Measurement measure_gemm(const Case& what, const StoppingLimits& limits, Lab& lab) {
  MatmulShape shape{pass_named(what.choice("pass")), what.size("m"), what.size("n"), what.size("k"),
                    what.choice("dtype")};
  Matmul matmul{lab.cublas, shape};
  MatmulOperands operands{shape};
  Measurement one;
  one.what = what;
  double first_us = 0.0;
  one.relative_error = choose_best(matmul, operands, lab, first_us);
  const Stopwatch::Times times = lab.stopwatch.time(
      [&](cudaStream_t stream) {
        matmul.run(operands.a.data(), operands.b.data(), operands.c.data(), stream);
      },
      limits);
  one.cold = times.cold;
  one.warm = times.warm;
  one.stopped = times.stopped;
  one.implementation = "cublasLt, choice " + std::to_string(matmul.choice() + 1) + " of " +
                       std::to_string(matmul.choices());
  const double flop = 2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) *
                      static_cast<double>(shape.k);
  one.figures = {{"work_flop", flop}, {"warm_flop_per_s", flop / (1e-6 * times.warm.median_us)}};
  if (first_us > 0.0) one.figures["first_choice_us"] = first_us;
  if (const auto clock = lab.nvml.clock_hz()) one.figures["clock_hz"] = *clock;
  return one;
}

}  // namespace orrery::calibration
