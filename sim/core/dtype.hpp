#pragma once

#include <string>
#include <vector>

namespace orrery {

/// Number formats of matrix multiplications. Weights and activations are kept in 16 bits, or, where
/// products are wide, in 32: tf32 has fp32's operands, of which tensor cores read 19 bits (NVIDIA
/// A100 whitepaper, 2020).
enum class Dtype { fp16, bf16, fp8, mxfp8, nvfp4, tf32, fp32 };

/// Formats below 16 bits, whose operands are quantised: fp8 has a scale a tensor or row, mxfp8 one
/// for each 32 elements (OCP Microscaling, v1.0), nvfp4 one of 8 bits for each 16.
inline bool is_narrow(Dtype dtype) {
  return dtype == Dtype::fp8 || dtype == Dtype::mxfp8 || dtype == Dtype::nvfp4;
}

inline bool is_wide(Dtype dtype) { return dtype == Dtype::tf32 || dtype == Dtype::fp32; }

/// Bytes of an element of what no product of this format has quantised: an activation, a weight.
inline double unquantised_bytes(Dtype dtype) { return is_wide(dtype) ? 4.0 : 2.0; }

/// Bytes of an element with its share of the scales.
inline double element_bytes(Dtype dtype) {
  switch (dtype) {
    case Dtype::fp16:
    case Dtype::bf16:
      return 2.0;
    case Dtype::fp8:
      return 1.0;
    case Dtype::mxfp8:
      return 1.0 + 1.0 / 32.0;
    case Dtype::nvfp4:
      return 0.5 + 1.0 / 16.0;
    case Dtype::tf32:
    case Dtype::fp32:
      break;
  }
  return 4.0;
}

inline const std::vector<std::string>& dtype_names() {
  static const std::vector<std::string> names{"fp16",  "bf16", "fp8", "mxfp8",
                                              "nvfp4", "tf32", "fp32"};
  return names;
}
inline const std::string& name(Dtype dtype) {
  return dtype_names()[static_cast<std::size_t>(dtype)];
}

}  // namespace orrery
