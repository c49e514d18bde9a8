#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/layers/pass_cost.hpp"
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

}  // namespace orrery
