#include "sim/kernels/table_errors.hpp"

#include <algorithm>
#include <cmath>

#include "sim/kernels/gemm_time.hpp"
#include "sim/kernels/kernel_error.hpp"
#include "sim/kernels/tag.hpp"

namespace orrery {
namespace {

constexpr double deviations = 1.645;  // Of a normal distribution: nine in ten lie within.
// Of the tables from which it is known what is outside of them, the smallest has 1,294 rows.
constexpr std::size_t large_table = 1000;

void set(PriceErrors& errors, PriceKind kind, double p90) {
  for (Tag tag : {Tag::measured, Tag::interpolated})
    errors.of[static_cast<std::size_t>(kind)][static_cast<std::size_t>(tag)] = p90 / deviations;
}

// With a table, what is tagged default is not near it, which is no roofline's price.
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
