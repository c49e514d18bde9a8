#pragma once

#include <string>
#include <vector>

namespace orrery {

/// Something that was measured and is not fitted, held against what the fit says of it.
struct FitCheck {
  std::string what;            ///< "dgrad bf16"
  std::vector<double> errors;  ///< predicted / measured - 1
};

}  // namespace orrery
