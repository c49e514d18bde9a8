#pragma once

#include <compare>
#include <cstdint>
#include <optional>

#include "sim/kernels/gemm_formula.hpp"
#include "sim/measurements/kernel_tables.hpp"

namespace orrery {

/// Implementation of fused attention: the tables' (a serving library's), cuDNN's for training, or
/// FlashAttention 2, with its usual backward pass or the deterministic one.
enum class AttentionKernel { of_tables, cudnn, flash_attention_2, deterministic_flash_attention_2 };

/// The kernels that training takes: before Hopper FlashAttention 2 wherever a software takes cuDNN
/// or says nothing, as Transformer Engine and PyTorch prefer it there (Transformer Engine,
/// dot_product_attention/utils.py, get_attention_backend; PyTorch, sdp_utils.cpp).
AttentionKernel attention_kernel_of(std::optional<AttentionLibrary> library,
                                    Architecture architecture);

/// One fused attention kernel on one rank.
struct AttentionShape {
  std::int64_t batch = 1;
  std::int64_t seq_q = 0;
  std::int64_t seq_kv = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;  ///< The mean of keys and values if they differ, which keeps the flop.
  bool causal = true;         ///< The last query sees all keys; needs seq_q <= seq_kv.
  double key_share = 0.5;     ///< Share of the forward flop in the product of queries and keys.
  std::int64_t window = 0;    ///< Causal: the last keys before a query that it sees; 0: all.
  AttentionKernel kernel = AttentionKernel::of_tables;
  Dtype format = Dtype::bf16;  ///< Narrow for both products, else both have 16 or 32 bits.

  auto operator<=>(const AttentionShape&) const = default;
};

AttentionShape causal_square(const AttentionRow& row);

/// Keys of an average query, twice: AttentionTime's flop convention. Its own key counts half.
double attention_keys(const AttentionShape& shape);
/// Edges of the mask at an average query's keys: one, and another if a window excludes keys.
double attention_edges(const AttentionShape& shape);
/// Bytes of HBM traffic if Q and O move `query_traffic` and K and V `key_traffic` times twice.
double attention_bytes(const AttentionShape& shape, double query_traffic, double key_traffic);

enum class AttentionScope {
  row,              ///< The whole row of a table, with the base's overhead and traffic.
  training_kernel,  ///< The kernel alone: a launch gap, and Q, O, K and V moved once each.
};

/// Microseconds by the formula of docs/explanation/kernels.md.
double attention_formula_us(const AttentionBase& base, const GemmMachine& machine,
                            const AttentionShape& shape, AttentionScope scope);

}  // namespace orrery
