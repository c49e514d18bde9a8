#pragma once

#include <string>

#include "sim/formats/inventory/system_draft.hpp"

namespace orrery {

/// The building plan in the XML that NCCL writes to NCCL_TOPO_DUMP_FILE: GPUs of a node and of
/// its NVLink domain, their NVLinks and slots, the NICs with their speed and kind.
///
/// NICs slower than the fastest are left out, with a note: they carry no GPU traffic. Elements and
/// attributes that are not known are skipped, as newer versions of NCCL add some.
/// Errors (bad_input), with the element: no XML, a version other than 1, elements that are missing,
/// named twice or point to themselves, nodes that differ.
/// Source: NVIDIA/nccl v2.28.9 and 2.30.7, src/graph/xml.cc and topo.cc.
SystemDraft read_nccl_topology(const std::string& text, const std::string& file);

}  // namespace orrery
