#pragma once

#include <string>
#include <vector>

namespace orrery {

/// What the optimizer updates where products read weights of 16 bits or less.
enum class MainParams {
  fp32,        ///< A copy of each weight.
  remainders,  ///< The lower 16 bits of it: the upper ones are the bf16 weight itself.
  bf16,        ///< A copy in 16 bits.
  fp16,        ///< Likewise.
  none         ///< The weights themselves.
};
inline const std::vector<std::string>& main_params_names() {
  static const std::vector<std::string> names{"fp32", "remainders", "bf16", "fp16", "none"};
  return names;
}

/// Format of a moment of Adam. fp8 has one scale a tensor (Transformer Engine, optimizers/
/// fused_adam.py); int8 a float for each 256 elements (bitsandbytes, optim/optimizer.py, blockwise;
/// torchao, optim/adam.py).
enum class MomentFormat { fp32, bf16, fp16, fp8, int8 };
inline const std::vector<std::string>& moment_format_names() {
  static const std::vector<std::string> names{"fp32", "bf16", "fp16", "fp8", "int8"};
  return names;
}
inline double moment_bytes(MomentFormat format) {
  switch (format) {
    case MomentFormat::fp32:
      break;
    case MomentFormat::bf16:
    case MomentFormat::fp16:
      return 2.0;
    case MomentFormat::fp8:
      return 1.0;
    case MomentFormat::int8:
      return 1.0 + 4.0 / 256.0;
  }
  return 4.0;
}

/// What is kept of a parameter beside its gradient: as the user says it and as a plan has it.
struct OptimizerState {
  MainParams main_params = MainParams::fp32;
  MomentFormat exp_avg = MomentFormat::fp32, exp_avg_sq = MomentFormat::fp32;
  /// In fp8 and mxfp8: linear layers' weights are kept and gathered in 8 bits, not in 16.
  bool fp8_params = false;

  bool operator==(const OptimizerState&) const = default;
};

}  // namespace orrery
