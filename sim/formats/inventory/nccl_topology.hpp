#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/formats/inventory/system_draft.hpp"

namespace orrery {

// A CPU socket (without parent) or a PCIe switch.
struct NcclBranch {
  int parent = -1;
  double gb_s = 0.0;  ///< Bandwidth to the parent; 0: unknown.
};

struct NcclGpu {
  std::string bus;
  int node = 0;
  int dev = 0;
  int branch = 0;
  int sm = 0;
  std::string device;  ///< PCI device id; "": unknown.
  double pcie_gb_s = 0.0;
  int switch_links = 0;
  std::vector<std::pair<std::string, int>> peers;  ///< Bus id of another GPU, links to it.
};

struct NcclNic {
  std::string name;
  int node = 0;
  int branch = 0;
  double mbit_per_s = 0.0;
  std::string pci_class;
};

/// A topology dump of NCCL, with GPUs in the order in which CUDA counts them.
struct NcclDump {
  std::vector<NcclGpu> gpus;
  std::vector<NcclNic> nics;
  std::vector<NcclBranch> branches;  ///< A parent before its children.
  std::string cpu_model;             ///< "x86_64 GenuineIntel 6 143 ", "?" for unknown parts.
  int nodes = 0;
};

/// Reads the XML that NCCL writes to NCCL_TOPO_DUMP_FILE. Errors (bad_input): no XML or cut off,
/// another version, elements without required attributes, duplicate devices.
NcclDump read_nccl_dump(const std::string& text, const std::string& file);

/// The NVLinks of each pair of GPUs. Errors (bad_input): the ends report different numbers.
void set_pairs(SystemDraft& draft, const NcclDump& dump);

/// The PCIe switch and socket of each GPU and of each of `nics`, if that adds to the wiring: GPUs
/// without an NVSwitch between them, or a GPU that has no NIC to itself on its switch.
void set_tree(SystemDraft& draft, const NcclDump& dump, const std::vector<NcclNic>& nics);

/// The node inventory in the XML that NCCL writes to NCCL_TOPO_DUMP_FILE: GPUs of a node and of
/// its NVLink domain, their NVLinks and slots, the NICs with their speed and kind.
///
/// NICs slower than the fastest are left out, with a note: they carry no GPU traffic. Elements and
/// attributes that are not known are skipped, as newer versions of NCCL add some.
/// Errors (bad_input), with the element: no XML, a version other than 1, elements that are missing,
/// named twice or point to themselves, nodes that differ.
/// Source: NVIDIA/nccl v2.28.9 and 2.30.7, src/graph/xml.cc and topo.cc.
SystemDraft read_nccl_topology(const std::string& text, const std::string& file);

}  // namespace orrery
