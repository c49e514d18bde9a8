#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/profile/kernel_pricer.hpp"

namespace orrery {

/// "gemm 8192 x 4096 x 4096, bf16, forward, on h100-sxm"
std::string kernel_title(const KernelAnswer& answer, const std::string& gpu);

/// One operation: what it must do, what bounds it, how long it takes, and what was measured near.
std::string kernel_text(const KernelAnswer& answer, const KernelPricer& pricer);

/// One operation over the values of a size.
struct KernelSweep {
  std::string key;  ///< "m"
  std::vector<KernelAnswer> answers;
  bool has_knee = false;             ///< More of that size is more work for the same operand.
  std::optional<std::int64_t> knee;  ///< As knee() says.
};
std::string sweep_text(const KernelSweep& sweep, const KernelPricer& pricer);
/// "ops:byte reaches the GPU's 295.2 at m = 345", and up to which value time hardly grows.
std::string knee_text(const KernelSweep& sweep);

}  // namespace orrery
