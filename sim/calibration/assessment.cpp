#include "sim/calibration/assessment.hpp"

#include "calibration/host/work_list.hpp"
#include "sim/kernels/attention_time.hpp"
#include "sim/kernels/gemm_time.hpp"

namespace orrery {
namespace {

// What the tables know of their GPU; all that kernels are priced with.
Gpu gpu_of(const KernelTables& tables, const MeasuredGpu& measured) {
  Gpu gpu;
  gpu.name = tables.gpu;
  gpu.peak_16bit = measured.peak_16bit;
  gpu.peak_fp8 = measured.peak_fp8;
  gpu.peak_fp4 = measured.peak_fp4;
  gpu.memory_bandwidth = measured.memory_bandwidth;
  gpu.multiprocessors = measured.multiprocessors;
  return gpu;
}

std::string by(const std::vector<std::int64_t>& sizes) {
  std::string text;
  for (const std::int64_t size : sizes) text += (text.empty() ? "" : " x ") + std::to_string(size);
  return text;
}

AssessedTable assess_gemm(const KernelTables& tables, const GemmTable& table) {
  const GemmTime time{gpu_of(tables, table.measured_on), table.dtype, &tables};
  AssessedTable assessed{"gemm " + name(table.dtype), {}, {}, 0};
  for (const auto& [m, n, k, measured] : table.rows) {
    const GemmProduct product{m, n, k};
    assessed.rows.push_back({by({m, n, k}), measured, time.base(m, n, k),
                             time.without_row(m, n, k).time, gemm_flop({&product, 1})});
  }
  // An octave of m n counts 1.5: beyond 1, neighbours say less than half of what is missing.
  constexpr double near = 1.0;
  for (const calibration::Case& one : calibration::default_work_list(1)) {
    if (one.kind != "gemm" || one.choice("dtype") != name(table.dtype) ||
        one.choice("pass") != "forward")
      continue;
    ++assessed.common;
    if (time.distance(one.size("m"), one.size("n"), one.size("k")) > near)
      assessed.thin.push_back(by({one.size("m"), one.size("n"), one.size("k")}));
  }
  return assessed;
}

AssessedTable assess_attention(const KernelTables& tables, const AttentionBase& base) {
  const AttentionTable& table = *tables.attention;
  const Gpu gpu = gpu_of(tables, table.measured_on);
  const AttentionTime time{gpu, &tables};
  AssessedTable assessed{"attention " + std::to_string(base.head_dim), {}, {}, 0};
  for (const AttentionRow& row : table.rows) {
    if (row.head_dim != base.head_dim) continue;
    const double formula_us =
        attention_formula_us(base, gemm_machine(table.measured_on, Dtype::bf16), causal_square(row),
                             AttentionScope::row);
    const auto factor = [](std::int64_t value) { return static_cast<double>(value); };
    assessed.rows.push_back({by({row.batch, row.sequence, row.heads, row.kv_heads}), row.time,
                             microseconds(formula_us), time.table_time_without_row(row).time,
                             2.0 * factor(row.batch) * factor(row.heads) * factor(row.sequence) *
                                 factor(row.sequence) * factor(row.head_dim)});
  }
  return assessed;
}

}  // namespace

std::vector<AssessedTable> assess(const Calibration& calibration) {
  std::vector<AssessedTable> all;
  if (!calibration.kernels) return all;
  const KernelTables& tables = *calibration.kernels;
  for (const GemmTable& table : tables.gemm)
    if (!table.rows.empty()) all.push_back(assess_gemm(tables, table));
  if (tables.attention)
    for (const AttentionBase& base : tables.attention->bases)
      all.push_back(assess_attention(tables, base));
  return all;
}

}  // namespace orrery
