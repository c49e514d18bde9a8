#pragma once

#include <cmath>

#include "calibration/host/expert_tokens.hpp"
#include "calibration/host/record.hpp"
#include "sim/kernels/attention_formula.hpp"
#include "sim/kernels/gemm_formula.hpp"

namespace orrery {

/// A record that no GPU has made: its times follow formulas that tests know. Figures are those of
/// `test-gpu` in the catalog: 100 TFLOP/s, 1 TB/s, 100 multiprocessors.
struct SyntheticTruth {
  static MeasuredGpu gpu() {
    return {{.peak_16bit = FlopPerSecond{100e12}, .peak_fp8 = FlopPerSecond{200e12}},
            "test-gpu",
            BytesPerSecond{1e12},
            100};
  }

  GemmBase gemm() const {
    GemmBase base;
    base.overhead = microseconds(2.4);
    base.tile_overhead = microseconds(0.9);
    base.compute_efficiency = 0.7;
    base.memory_efficiency = 0.65;
    base.hard = 0.25;
    base.throttle = 0.06;
    return base;
  }
  AttentionBase attention() const {
    AttentionBase base;
    base.head_dim = 128;
    base.overhead = microseconds(4.0);
    base.efficiency = 0.5;
    base.diagonal = 180.0;
    base.query_traffic = base.key_traffic = 0.5;
    base.hard = 0.3;
    base.isolated = 0.6;
    return base;
  }
  double wgrad_efficiency = 0.9;
  double attention_backward = 2.8;
  double copy_efficiency = 0.85;
  double launch_us = 2.0;
  double sustained = 0.93;
  double overlap_loss_share = 0.9;
  double noise = 0.0;  ///< A third of the cases each longer and shorter by this share.

  /// Microseconds of C[m,n] = A[m,k] B[k,n] in bf16.
  double gemm_us(std::int64_t m, std::int64_t n, std::int64_t k) const {
    const GemmProduct product{m, n, k};
    return gemm_formula_us(gemm(), gemm_machine(gpu(), Dtype::bf16), Dtype::bf16, {&product, 1},
                           false);
  }
  double attention_us(std::int64_t sequence, std::int64_t heads) const {
    const AttentionRow row{1, sequence, heads, heads / 4, 128, {}};
    return attention_formula_us(attention(), gemm_machine(gpu(), Dtype::bf16), causal_square(row),
                                AttentionScope::row);
  }
  /// Microseconds of an all_reduce: 20 us, and 8 GB/s of each GPU's 10 over the ring.
  double all_reduce_us(int ranks, double bytes) const {
    return 20.0 + 2.0 * (ranks - 1) / ranks * bytes / 8e3;
  }
};

inline calibration::TimingSummary synthetic_time(double us) {
  return {us, 0.995 * us, 1.01 * us, 0.004, 0.001, 30};
}

inline calibration::Measurement synthetic(const calibration::Case& what, double us) {
  calibration::Measurement one;
  one.what = what;
  one.implementation = "a formula";
  one.cold = one.warm = synthetic_time(us);
  one.stopped = calibration::Stopped::noise;
  return one;
}

/// Forward, dgrad and wgrad products, copies, a product without pause and concurrent with others,
/// attention both ways, and all_reduce among two and four: all that a fit takes.
inline calibration::Record synthetic_record(const SyntheticTruth& truth = {}) {
  using calibration::make_case;
  calibration::Record record;
  record.machine = {"synthetic-test-gpu", "0000",  "9.0", "none", "none", "none", "none", 4, 100,
                    80'000'000'000,       1 << 20, 1e9};
  record.command = "none: computed by tests/support/synthetic_record.hpp";
  record.program = "no program, no GPU";
  record.started = "never";
  const auto add = [&](const calibration::Case& what, double us) {
    // Knuth's multiplicative hash: the noise follows no size.
    const auto third = static_cast<double>((record.measurements.size() * 2654435761u >> 12) % 3);
    record.measurements.push_back(synthetic(what, us * (1.0 + truth.noise * (third - 1.0))));
    return &record.measurements.back();
  };
  for (const std::int64_t m : {1024, 2048, 4096, 8192})
    for (const auto& [n, k] : {std::pair{6144, 4096}, {4096, 4096}, {28672, 4096}, {4096, 14336}}) {
      add(make_case("gemm", {"forward", "bf16"}, {m, n, k}), truth.gemm_us(m, n, k));
      if (m == 4096)
        add(make_case("gemm", {"wgrad", "bf16"}, {n, k, m}),
            truth.gemm_us(n, k, m) / truth.wgrad_efficiency);
    }
  for (const std::int64_t rows : {512, 4096, 32768}) {
    const double bytes = 4.0 * 8192.0 * static_cast<double>(rows);
    calibration::Measurement* copy = add(make_case("memory", {"copy"}, {rows, 8192}),
                                         truth.launch_us + bytes / (truth.copy_efficiency * 1e6));
    copy->implementation = "orrery kernel";
    copy->figures = {{"moved_bytes", bytes}};
  }
  const double hot_us = truth.gemm_us(8192, 8192, 8192);
  // The table's clock falls by its `throttle` while it is measured; the steady one is `sustained`
  // of the clock that does not.
  const GemmProduct hot{8192, 8192, 8192};
  const double steady_us =
      hot_us / gemm_throttle(truth.gemm(), gemm_machine(truth.gpu(), Dtype::bf16), {&hot, 1}) /
      truth.sustained;
  calibration::Measurement* steady =
      add(make_case("sustained", {"bf16"}, {8192, 8192, 8192, 20}), steady_us);
  steady->cold.reset();
  steady->figures = {{"burst_us", hot_us},
                     {"sustained_us", steady->warm->median_us},
                     {"sustained_ratio", hot_us / steady->warm->median_us}};
  for (const std::int64_t sequence : {1024, 2048, 4096, 8192})
    for (const std::int64_t heads : {8, 16, 32}) {
      const auto sizes = std::vector<std::int64_t>{1, sequence, heads, heads / 4, 128};
      add(make_case("attention", {"forward", "bf16"}, sizes), truth.attention_us(sequence, heads));
      if (heads == 16)
        add(make_case("attention", {"backward", "bf16"}, sizes),
            truth.attention_backward * truth.attention_us(sequence, heads));
    }
  for (const int ranks : {2, 4})
    for (std::int64_t bytes = 1 << 16; bytes <= 1 << 30; bytes *= 4)
      add(make_case("collective", {"all_reduce"}, {ranks, bytes}),
          truth.all_reduce_us(ranks, static_cast<double>(bytes)))
          ->cold.reset();
  for (const std::int64_t busy : {4, 8, 16, 32}) {
    const double slowdown =
        1.0 / (1.0 - truth.overlap_loss_share * static_cast<double>(busy) / 100.0);
    calibration::Measurement* one =
        add(make_case("overlap", {"busy_multiprocessors"}, {8192, 8192, 8192, busy}),
            hot_us * slowdown);
    one->cold.reset();
    one->figures = {{"alone_us", hot_us}, {"slowdown_ratio", slowdown}};
  }
  return record;
}

}  // namespace orrery
