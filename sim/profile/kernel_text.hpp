#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/core/table.hpp"
#include "sim/profile/kernel_pricer.hpp"
#include "sim/profile/step_operations.hpp"

namespace orrery {

/// "gemm 8192 x 4096 x 4096, bf16, forward, on h100-sxm"
std::string kernel_title(const KernelAnswer& answer, const std::string& gpu);

/// One operation: its work, bottleneck and time, and the nearest measurements.
std::string kernel_text(const KernelAnswer& answer, const KernelPricer& pricer,
                        TextWidth width = TextWidth::terminal);

/// One operation over the values of a size.
struct KernelSweep {
  std::string key;  ///< "m"
  std::vector<KernelAnswer> answers;
  bool has_knee = false;             ///< More of that size is more work for the same operand.
  std::optional<std::int64_t> knee;  ///< Result of knee().
};
std::string sweep_text(const KernelSweep& sweep, const KernelPricer& pricer,
                       TextWidth width = TextWidth::terminal);
/// "ops:byte reaches the GPU's 295.2 at m = 345", and the value up to which time hardly grows.
std::string knee_text(const KernelSweep& sweep);

/// One operation at several sizes: `key` first, then the figures in isolation and in training.
std::string kernel_csv(const std::vector<KernelAnswer>& answers, const std::string& key);

/// The operations that take 99 % of the time together, a line each, with their marks on the
/// roofline; the rest in one line.
Table operations_table(const OperationList& list);
/// The same as text, with shares by bottleneck.
std::string operations_text(const OperationList& list, TextWidth width = TextWidth::terminal);
/// "compute 71.2 %, memory 20.1 %, ..." of the operations' time.
std::string bounds_text(const OperationList& list);

/// All of them, a line each.
std::string operations_csv(const OperationList& list);

}  // namespace orrery
