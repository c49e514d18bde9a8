#pragma once

#include <string>
#include <vector>

#include "calibration/host/record.hpp"
#include "sim/profile/kernel_names.hpp"

namespace orrery {

/// Prefix of the `implementation` of kernels that were read from a trace: they ran within a step,
/// with its clock, so that a fit learns the clock from them.
inline constexpr const char* in_a_step = "in a step";

struct TracedKernels {
  calibration::Record record;
  std::vector<std::string> notes;  ///< Omissions, with their reasons.
};

/// Products and fused causal attention of traces of one kind of GPU, by shape: the times of their
/// kernels, in a step, without concurrent work. Shapes are those of the PyTorch operation that
/// launched a kernel (record_shapes=True): the innermost one around the call, on its thread. A
/// product's backward passes are products of their own shapes. The record's machine is that of the
/// traces; unknown fields are "" or 0.
///
/// Errors (bad_input): a trace that does not say its GPU, or of another; no kernel with a shape.
TracedKernels kernels_of_traces(const std::vector<KinetoTrace>& traces, const KernelNames& names);

}  // namespace orrery
