#pragma once

#include <vector>

#include "sim/formats/inventory/nccl_dump.hpp"
#include "sim/formats/inventory/system_draft.hpp"

namespace orrery {

/// The NVLinks of each pair of GPUs. Errors (bad_input): one end tells another number than the
/// other.
void set_pairs(SystemDraft& draft, const NcclDump& dump);

/// Which PCIe switch and socket each GPU and each of `nics` hangs on, where that says more than the
/// wiring: between GPUs without an NVSwitch, or where a GPU has no NIC to itself on its switch.
void set_tree(SystemDraft& draft, const NcclDump& dump, const std::vector<NcclNic>& nics);

}  // namespace orrery
