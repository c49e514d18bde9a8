#include "sim/kernels/kernel_error.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "sim/kernels/attention_time.hpp"
#include "sim/kernels/gemm_time.hpp"
#include "sim/kernels/kernel_time.hpp"

namespace orrery {

std::vector<double> gemm_errors(const Gpu& gpu, const KernelTables& tables, Dtype dtype) {
  std::vector<double> errors;
  const GemmTable* table = find_gemm_table(&tables, dtype);
  if (!table) return errors;
  const GemmTime gemm{gpu, dtype, &tables};
  for (const GemmRow& row : table->rows)
    errors.push_back(gemm.without_row(row.m, row.n, row.k).time / row.time - 1.0);
  return errors;
}

std::vector<double> attention_errors(const Gpu& gpu, const KernelTables& tables,
                                     std::int64_t head_dim) {
  std::vector<double> errors;
  if (!tables.attention) return errors;
  const AttentionTime attention{gpu, &tables};
  for (const AttentionRow& row : tables.attention->rows)
    if (row.head_dim == head_dim)
      errors.push_back(attention.table_time_without_row(row).time / row.time - 1.0);
  return errors;
}

double middle(std::vector<double> values, double share) {
  if (values.empty()) return 0.0;
  const auto place = std::min(values.size() - 1,
                              static_cast<std::size_t>(share * static_cast<double>(values.size())));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(place),
                   values.end());
  return values[place];
}

std::optional<LeftOutError> summarize_errors(const std::vector<double>& errors) {
  if (errors.empty()) return std::nullopt;
  std::vector<double> sizes;
  for (const double error : errors) sizes.push_back(std::abs(error));
  return LeftOutError{static_cast<std::int64_t>(errors.size()), middle(sizes, 0.5),
                      middle(sizes, 0.9), middle(errors, 0.5)};
}

std::optional<LeftOutError> gemm_error(const KernelTables* tables, Dtype dtype) {
  const GemmTable* table = find_gemm_table(tables, dtype);
  return table ? table->left_out : std::nullopt;
}

std::optional<LeftOutError> attention_error(const KernelTables* tables, std::int64_t head_dim) {
  if (!tables || !tables->attention) return std::nullopt;
  const std::vector<AttentionBase>& bases = tables->attention->bases;  // Sorted by head dimension.
  const auto nearest = std::min_element(
      bases.begin(), bases.end(), [&](const AttentionBase& a, const AttentionBase& b) {
        return std::llabs(a.head_dim - head_dim) < std::llabs(b.head_dim - head_dim);
      });
  return nearest == bases.end() ? std::nullopt : nearest->left_out;
}

namespace {

constexpr double deviations = 1.645;  // Normal distribution: 90 % lie within.
// The smallest of the tables with known errors outside of their rows has 1,294 rows.
constexpr std::size_t large_table = 1000;

void set(PriceErrors& errors, PriceKind kind, double p90) {
  for (Tag tag : {Tag::measured, Tag::interpolated})
    errors.of[static_cast<std::size_t>(kind)][static_cast<std::size_t>(tag)] = p90 / deviations;
}

// A default with a table is far from its rows, unlike a roofline's price.
void set_outside(PriceErrors& errors, PriceKind kind) {
  const auto of = static_cast<std::size_t>(kind);
  auto& [measured, interpolated, assumed] = errors.of[of];
  if (errors.outside[of] > 0.0) assumed = std::hypot(interpolated, errors.outside[of]);
}

void set_from_own_tables(PriceErrors& errors, const KernelTables& tables, Dtype dtype) {
  if (const auto products = gemm_error(&tables, dtype)) set(errors, PriceKind::gemm, products->p90);
  if (tables.attention && tables.attention->measures == AttentionTable::Measures::kernel &&
      tables.attention->measured_on.name == tables.gpu) {
    double worst = 0.0;
    for (const AttentionBase& base : tables.attention->bases)
      if (base.left_out) worst = std::max(worst, base.left_out->p90);
    if (worst > 0.0) set(errors, PriceKind::attention, worst);
  }
}

}  // namespace

PriceErrors with_tables(PriceErrors errors, const KernelTables* tables, Dtype dtype) {
  if (!tables) return errors;
  if (tables->used_for == tables->gpu) set_from_own_tables(errors, *tables, dtype);
  const GemmTable* table = find_gemm_table(tables, dtype);
  if (table && table->rows.size() >= large_table)
    for (PriceKind kind : {PriceKind::gemm, PriceKind::grouped_gemm}) set_outside(errors, kind);
  return errors;
}

}  // namespace orrery
