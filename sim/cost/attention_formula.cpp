#include "sim/cost/attention_formula.hpp"

#include <cmath>

namespace orrery {
namespace {

// Query rows that one thread block works through: twice FlashAttention's 128, since the fits to the
// tables prefer 256 (docs/CALIBRATION.md).
constexpr double query_block = 256;

// A training kernel, without the serving step around it: a launch gap, and each of Q, O, K and V
// moved once, which is half of the 4 bytes that the formula counts per element of a pair.
constexpr double training_overhead_us = 4.0;
constexpr double training_traffic = 0.5;

}  // namespace

AttentionShape causal_square(const AttentionRow& row) {
  return {row.batch, row.sequence, row.sequence, row.heads, row.kv_heads, row.head_dim, true};
}

double attention_keys(const AttentionShape& shape) {
  const double all = 2.0 * static_cast<double>(shape.seq_kv);
  return shape.causal ? all - static_cast<double>(shape.seq_q) : all;
}

double attention_bytes(const AttentionShape& shape, double query_traffic, double key_traffic) {
  const double batch_and_dim =
      static_cast<double>(shape.batch) * static_cast<double>(shape.head_dim);
  return 4.0 * batch_and_dim *
         (static_cast<double>(shape.seq_q) * static_cast<double>(shape.heads) * query_traffic +
          static_cast<double>(shape.seq_kv) * static_cast<double>(shape.kv_heads) * key_traffic);
}

double attention_formula_us(const AttentionBase& base, const GemmMachine& machine,
                            const AttentionShape& shape, AttentionScope scope) {
  const bool whole_row = scope == AttentionScope::row;
  const double batch_heads = static_cast<double>(shape.batch) * static_cast<double>(shape.heads);
  const double seq_q = static_cast<double>(shape.seq_q);
  const double dim = static_cast<double>(shape.head_dim);
  const double waves = batch_heads * std::ceil(seq_q / query_block) / machine.multiprocessors;
  const double pair = 2.0 * batch_heads * seq_q * (attention_keys(shape) + base.diagonal) * dim /
                      (base.efficiency * machine.peak);
  // However many multiprocessors are idle, the last query block has to walk over all keys.
  const double lone = base.lone * 4.0 * query_block *
                      (static_cast<double>(shape.seq_kv) + base.diagonal) * dim /
                      (base.efficiency * machine.peak / machine.multiprocessors);
  const double full = pair * (base.hard * std::ceil(waves) / waves + 1.0 - base.hard);
  const double compute = std::cbrt(std::pow(full, 3) + std::pow(lone, 3));
  const double moved = whole_row ? attention_bytes(shape, base.query_traffic, base.key_traffic)
                                 : attention_bytes(shape, training_traffic, training_traffic);
  return (whole_row ? base.overhead.si() * 1e6 : training_overhead_us) + compute +
         moved / machine.bandwidth;
}

}  // namespace orrery
