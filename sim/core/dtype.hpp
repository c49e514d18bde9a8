#pragma once

#include <string>
#include <vector>

namespace orrery {

/// Number formats of matrix multiplications. Weights and activations elsewhere are 2 bytes.
enum class Dtype { fp16, bf16, fp8, fp32 };

inline const std::vector<std::string>& dtype_names() {
  static const std::vector<std::string> names{"fp16", "bf16", "fp8", "fp32"};
  return names;
}
inline const std::string& name(Dtype dtype) {
  return dtype_names()[static_cast<std::size_t>(dtype)];
}

}  // namespace orrery
