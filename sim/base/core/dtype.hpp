#pragma once

#include <string>
#include <vector>

namespace orrery {

/// Number formats of matrix multiplications. Weights and activations elsewhere are 2 bytes.
enum class Dtype { fp16, bf16, fp8, mxfp8, fp32 };

/// fp8 has a scale a tensor or row, mxfp8 one for each 32 elements (OCP Microscaling, v1.0).
inline bool is_8_bit(Dtype dtype) { return dtype == Dtype::fp8 || dtype == Dtype::mxfp8; }

inline const std::vector<std::string>& dtype_names() {
  static const std::vector<std::string> names{"fp16", "bf16", "fp8", "mxfp8", "fp32"};
  return names;
}
inline const std::string& name(Dtype dtype) {
  return dtype_names()[static_cast<std::size_t>(dtype)];
}

}  // namespace orrery
