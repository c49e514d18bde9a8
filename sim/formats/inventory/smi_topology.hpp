#pragma once

#include <string>

#include "sim/formats/inventory/system_draft.hpp"

namespace orrery {

/// The node inventory in the matrix that `nvidia-smi topo -m` prints, with tabs or, as after
/// pasting, with blanks: GPUs of a node, how many NVLinks join them, how many NICs there are. The
/// matrix has no speeds and no GPU's name, so that `answers` must name the GPU.
/// Errors (bad_input), with the line: no such matrix, a matrix that is cut, not symmetric, or with
/// a cell that is none, NICs of one name; more NVLinks than the GPU has.
SystemDraft read_smi_topology(const std::string& text, const std::string& file,
                              const SystemAnswers& answers);

}  // namespace orrery
