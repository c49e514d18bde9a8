#pragma once

#include <string>
#include <vector>

#include "sim/calibration/curve.hpp"

namespace orrery {

/// What a user adds to a log that does not say it. Empty and 0: not said.
struct NcclTestsAnswers {
  std::string collective;  ///< One of measured_collectives().
  std::string system;
  int ranks = 0;
  int nodes = 0;
};

/// The curves of one log of nccl-tests: its text output of any version since 1.0, as it is or with
/// the prefixes of mpirun --tag-output and srun --label, or the JSON that -J writes.
///
/// A file may hold several runs of the same ranks: those of one collective become one curve. Times
/// are those of one operation, out of place (in place where there is no other, which a warning
/// says); a size that was measured several times has the median.
///
/// Errors (bad_input), with the line: a log that was cut, no nccl-tests table, wrong results,
/// figures that contradict each other, ranks that cannot be counted, runs of different ranks.
/// Source: NVIDIA/nccl-tests, tags v1.0.0 to v2.19, src/common.cu.
std::vector<Curve> read_nccl_tests(const std::string& text, const std::string& file,
                                   const NcclTestsAnswers& answers);

}  // namespace orrery
