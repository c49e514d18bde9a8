#include "sim/kernels/attention_formula.hpp"

#include <algorithm>
#include <cmath>

namespace orrery {
namespace {

// Query rows of one thread block: twice FlashAttention's 128, since the fits to the tables prefer
// 256 (docs/explanation/kernels.md).
constexpr double query_block = 256;

// A training kernel without the serving step around it has a launch gap and moves each of Q, O, K
// and V once, half of the 4 bytes that the formula counts per element of a pair.
constexpr double training_overhead_us = 4.0;
constexpr double training_traffic = 0.5;

// FlashAttention computes tiles of queries by keys, skips those that the mask hides entirely, and
// computes all of a tile that an edge of the mask cuts. On average that adds half a tile of keys
// per query and edge, so that twice it is a tile: the fitted `diagonal`, 82 to 136 keys, is a
// tile's width. A window's lower edge is cut likewise, within the tiles without one.
double computed_keys(const AttentionBase& base, const AttentionShape& shape) {
  AttentionShape whole = shape;
  whole.window = 0;
  return std::min(attention_keys(shape) + attention_edges(shape) * base.diagonal,
                  attention_keys(whole) + base.diagonal);
}

// Keys of the whole last block, from its first query's window to its last query.
double last_block_keys(const AttentionShape& shape) {
  const double all = static_cast<double>(shape.seq_kv);
  return shape.window > 0 ? std::min(all, static_cast<double>(shape.window) + query_block) : all;
}

}  // namespace

AttentionKernel attention_kernel_of(std::optional<AttentionLibrary> library,
                                    Architecture architecture) {
  if (library == AttentionLibrary::tables) return AttentionKernel::of_tables;
  if (library == AttentionLibrary::flash_attention_2 || architecture == Architecture::ampere)
    return AttentionKernel::flash_attention_2;
  return library ? AttentionKernel::cudnn : AttentionKernel::of_tables;
}

AttentionShape causal_square(const AttentionRow& row) {
  return {row.batch, row.sequence, row.sequence, row.heads, row.kv_heads, row.head_dim, true};
}

namespace {

bool is_windowed(const AttentionShape& shape) {
  return shape.window > 0 && shape.window < shape.seq_kv;
}

// Number of queries that see all keys before them, as the window is longer.
double whole_rows(const AttentionShape& shape) {
  return static_cast<double>(
      std::clamp<std::int64_t>(shape.window - (shape.seq_kv - shape.seq_q), 0, shape.seq_q));
}

}  // namespace

// The queries are the last q of kv tokens; the i-th token sees min(i, w) keys. The first n queries,
// those with i <= w, see kv - q + 1, ..., w keys, the others w each:
//
//     sum of min(i, w) = n (kv - q + 1 + w) / 2 + (q - n) w,   less q / 2 for their own key.
//
// A window of kv tokens has n = q and w = kv, which leaves q (2 kv - q) / 2, as without a window.
double attention_keys(const AttentionShape& shape) {
  const double q = static_cast<double>(shape.seq_q);
  const double kv = static_cast<double>(shape.seq_kv);
  if (!is_windowed(shape)) return shape.causal ? 2.0 * kv - q : 2.0 * kv;
  const double w = static_cast<double>(shape.window);
  const double n = whole_rows(shape);
  return (n * (kv - q + 1.0 + w) + 2.0 * (q - n) * w - q) / q;
}

double attention_edges(const AttentionShape& shape) {
  return is_windowed(shape) ? 2.0 - whole_rows(shape) / static_cast<double>(shape.seq_q) : 1.0;
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
  const double pair = 2.0 * batch_heads * seq_q * computed_keys(base, shape) * dim /
                      (base.efficiency * machine.peak);
  // The last query block has to pass over all its keys even if other multiprocessors are idle.
  const double isolated = base.isolated * 4.0 * query_block *
                          (last_block_keys(shape) + base.diagonal) * dim /
                          (base.efficiency * machine.peak / machine.multiprocessors);
  const double full = pair * (base.hard * std::ceil(waves) / waves + 1.0 - base.hard);
  const double compute = std::cbrt(std::pow(full, 3) + std::pow(isolated, 3));
  const double moved = whole_row ? attention_bytes(shape, base.query_traffic, base.key_traffic)
                                 : attention_bytes(shape, training_traffic, training_traffic);
  return (whole_row ? base.overhead.si() * 1e6 : training_overhead_us) + compute +
         moved / machine.bandwidth;
}

}  // namespace orrery
