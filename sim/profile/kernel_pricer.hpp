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
  double distance = 0.0;  ///< As predictions weigh it: about an octave of work is 1.5.
  bool same = false;      ///< The very sizes.
};

/// Part of what an operation moves: "A", 67.1 MB.
struct TrafficPart {
  std::string name;
  Bytes bytes;
};

/// What is known of one operation.
struct KernelAnswer {
  KernelQuestion question;
  /// By itself, as a benchmark of the kernel measures it. Nothing of a kernel that nobody measures
  /// so: attention backward.
  std::optional<OperationPrice> alone;
  /// In a training step: as `orrery estimate` prices it. Nothing of what no step has.
  std::optional<OperationPrice> training;
  /// Of a forward product: as an engine runs it, whose tables go down to one token.
  std::optional<OperationPrice> served;
  std::vector<TrafficPart> parts;
  std::string table;  ///< Whose rows `nearest` are: "gemm bf16 of h100-sxm"; "": there are none.
  std::vector<NearRow> nearest;

  const OperationPrice& main() const { return alone ? *alone : *training; }
};

/// Prices single operations on one GPU by what estimates and deployments are priced by: nothing
/// here has a formula for a time of its own.
class KernelPricer {
 public:
  /// `software`: whose kernels a training step runs. `engine`: whose decode attention.
  KernelPricer(const System& system, const Software& software, const ServingEngine& engine);
  ~KernelPricer();
  KernelPricer(const KernelPricer&) = delete;
  KernelPricer& operator=(const KernelPricer&) = delete;

  /// Errors (infeasible): the GPU has no units for the format; GPUs that the system does not have.
  KernelAnswer answer(const KernelQuestion& question) const;

  /// What it must do, and the roofs above it.
  KernelRoofs roofs(const KernelQuestion& question) const;

  const System& system() const;
  const Software& software() const;
  const ServingEngine& engine() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// The smallest value of `key` from which on the operation's compute roof is the higher one, all
/// other sizes as they are: where it leaves memory-bound for compute-bound. Nothing where it never
/// does, up to most_size. Derivation for a product in bf16, ridge R:
///
///     2 m n k / (2 (m k + k n + m n)) >= R    from    m = R n k / (n k - R (n + k))    on
std::optional<std::int64_t> knee(const KernelPricer& pricer, const KernelQuestion& question,
                                 const std::string& key);

/// The `most` nearest measured rows by rising distance, as the prediction sees distances; of the
/// same distance in the table's order.
std::vector<NearRow> near_rows(const GemmTime& gemm, const GemmTable& table,
                               const std::array<std::int64_t, 3>& mnk, std::size_t most);
std::vector<NearRow> near_rows(const AttentionTime& attention, const AttentionTable& table,
                               const AttentionShape& shape, std::size_t most);
/// Of serving tables: octaves of all sizes together.
std::vector<NearRow> near_rows(const ServingTable& table, std::span<const std::int64_t> sizes,
                               std::size_t most);

// What a question means in the terms of cost/operations.

/// dispatch or combine: no kernel of the GPU by itself.
bool is_exchange(const KernelQuestion& question);

/// A layer on a GPU of its own, as the functions of cost/operations want it: RMS norm, SwiGLU.
Scenario bare_scenario(const System& system, const Software& software, Dtype dtype);

/// The op that a training step of `sizes.software` has. Not of decode, dispatch or combine.
Op op_of(const KernelQuestion& question, const LayerSizes& sizes);
Flop flop_of(const KernelQuestion& question, const Op& op, const LayerSizes& sizes);
/// Which tensors its traffic is of; empty where that says nothing more.
std::vector<TrafficPart> parts_of(const Op& op, Dtype dtype);

/// As serving_table_columns("decode_attention") names them.
std::array<std::int64_t, 6> decode_sizes(const KernelQuestion& question);

std::string sizes_text(const KernelQuestion& question);  ///< "8192 x 4096 x 4096"
std::string family_of(const KernelQuestion& question);   ///< OperationPrice::kind

}  // namespace orrery
