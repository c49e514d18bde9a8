#include "sim/cost/kernels/table_errors.hpp"

#include <algorithm>

#include "sim/cost/kernels/kernel_error.hpp"
#include "sim/cost/kernels/tag.hpp"

namespace orrery {
namespace {

constexpr double deviations = 1.645;  // Of a normal distribution: nine in ten lie within.

void set(PriceErrors& errors, PriceKind kind, double p90) {
  for (Tag tag : {Tag::measured, Tag::interpolated})
    errors.of[static_cast<std::size_t>(kind)][static_cast<std::size_t>(tag)] = p90 / deviations;
}

}  // namespace

PriceErrors with_tables(PriceErrors errors, const KernelTables* tables, Dtype dtype) {
  if (!tables || tables->used_for != tables->gpu) return errors;
  if (const auto products = gemm_error(tables, dtype)) set(errors, PriceKind::gemm, products->p90);
  if (tables->attention && tables->attention->measures == AttentionTable::Measures::kernel &&
      tables->attention->measured_on.name == tables->gpu) {
    double worst = 0.0;
    for (const AttentionBase& base : tables->attention->bases)
      if (base.left_out) worst = std::max(worst, base.left_out->p90);
    if (worst > 0.0) set(errors, PriceKind::attention, worst);
  }
  return errors;
}

}  // namespace orrery
