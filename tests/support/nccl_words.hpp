#pragma once

#include <gtest/gtest.h>

#include "sim/nccl/nccl_algorithm.hpp"

namespace orrery {

/// By its word in NCCL_ALGO.
inline const NcclAlgorithm& algorithm(std::string_view word) {
  for (const NcclAlgorithm* one : nccl_algorithms())
    if (one->word() == word) return *one;
  ADD_FAILURE() << word;
  return *nccl_algorithms().front();
}

}  // namespace orrery
