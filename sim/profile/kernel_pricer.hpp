#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/kernels/attention_time.hpp"
#include "sim/kernels/gemm_time.hpp"
#include "sim/layers/layer_parts.hpp"
#include "sim/layers/pass_cost.hpp"
#include "sim/measurements/serving_table.hpp"
#include "sim/plan/scenario.hpp"
#include "sim/profile/kernel_question.hpp"
#include "sim/profile/operation_price.hpp"
#include "sim/serving/serving_kernels.hpp"

namespace orrery {

/// A measured row near an operation.
struct NearRow {
  std::string sizes;
  Seconds time;
  double distance = 0.0;  ///< The predictions' measure: about an octave of work is 1.5.
  bool same = false;      ///< Identical sizes.
};

/// Part of what an operation moves: "A", 67.1 MB.
struct TrafficPart {
  std::string name;
  Bytes bytes;
};

/// The costs of one operation.
struct KernelAnswer {
  KernelQuestion question;
  /// The kernel in isolation, as a benchmark measures it; nothing for attention backward, which no
  /// benchmark measures so.
  std::optional<OperationPrice> alone;
  /// Cost in a training step, as `orrery estimate` has it; nothing for kernels that no step has.
  std::optional<OperationPrice> training;
  /// Cost of a forward product in a serving engine, whose tables go down to one token.
  std::optional<OperationPrice> served;
  std::vector<TrafficPart> parts;
  std::string table;  ///< Table of `nearest`: "gemm bf16 of h100-sxm"; "": there is none.
  std::vector<NearRow> nearest;

  const OperationPrice& main() const { return alone ? *alone : *training; }
};

/// Prices single operations on one GPU with the models of estimates and deployments: it has no
/// formula of its own for a time.
class KernelPricer {
 public:
  /// `software`: runs the kernels of a training step. `engine`: runs decode attention.
  KernelPricer(const System& system, const Software& software, const ServingEngine& engine);
  ~KernelPricer();
  KernelPricer(const KernelPricer&) = delete;
  KernelPricer& operator=(const KernelPricer&) = delete;

  /// Errors (infeasible): the GPU has no units for the format; GPUs that the system does not have.
  KernelAnswer answer(const KernelQuestion& question) const;

  /// Operations and bytes of the question, and the roofs above it.
  KernelRoofs roofs(const KernelQuestion& question) const;

  const System& system() const;
  const Software& software() const;
  const ServingEngine& engine() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// The smallest value of `key` from which on the operation's compute roof is the higher one, with
/// all other sizes fixed: the transition from memory-bound to compute-bound. Nothing: there is none
/// up to most_size. Derivation for a product in bf16, ridge R:
///
///     2 m n k / (2 (m k + k n + m n)) >= R    from    m = R n k / (n k - R (n + k))    on
std::optional<std::int64_t> knee(const KernelPricer& pricer, const KernelQuestion& question,
                                 const std::string& key);

/// The `most` nearest measured rows by rising distance in the prediction's measure; ties are in the
/// table's order.
std::vector<NearRow> near_rows(const GemmTime& gemm, const GemmTable& table,
                               const std::array<std::int64_t, 3>& mnk, std::size_t most);
std::vector<NearRow> near_rows(const AttentionTime& attention, const AttentionTable& table,
                               const AttentionShape& shape, std::size_t most);
/// Distances in serving tables are octaves of all sizes together.
std::vector<NearRow> near_rows(const ServingTable& table, std::span<const std::int64_t> sizes,
                               std::size_t most);

// Translation of questions into the terms of cost/operations.

/// True for dispatch and combine, which are no kernel of a single GPU.
bool is_exchange(const KernelQuestion& question);

/// A layer on a GPU of its own, as the functions of cost/operations want it: RMS norm, SwiGLU.
Scenario bare_scenario(const System& system, const Software& software, Dtype dtype);

/// The op in a training step of `sizes.software`; decode, dispatch and combine have none.
Op op_of(const KernelQuestion& question, const LayerSizes& sizes);
Flop flop_of(const KernelQuestion& question, const Op& op, const LayerSizes& sizes);
/// The tensors that its traffic belongs to; empty if that adds nothing.
std::vector<TrafficPart> parts_of(const Op& op, Dtype dtype);

/// Sizes in the order of serving_table_columns("decode_attention").
std::array<std::int64_t, 6> decode_sizes(const KernelQuestion& question);

std::string sizes_text(const KernelQuestion& question);  ///< "8192 x 4096 x 4096"
std::string family_of(const KernelQuestion& question);   ///< OperationPrice::kind

}  // namespace orrery
