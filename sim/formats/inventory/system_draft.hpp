#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/cluster/system.hpp"
#include "sim/core/error.hpp"

namespace orrery {

/// What a user says that a file does not: option name without dashes -> its words.
using SystemAnswers = std::map<std::string, std::string>;

/// The options that system_json understands, each with what it means, for --help.
const std::vector<std::pair<std::string, std::string>>& system_answer_options();

/// NVLinks between two GPUs of a node.
struct DraftPair {
  int first = 0;
  int second = 0;
  int links = 0;
};

/// What a topology file told, before a user's answers and the catalog's constants are added.
struct SystemDraft {
  std::string source;  ///< Of every number told: "NCCL topology dump topo.xml".
  std::string file;
  bool is_said = false;        ///< By the user in a few words, not by a file.
  std::string gpu;             ///< Catalog name; "": the file does not tell.
  int compute_capability = 0;  ///< 90 for 9.0; 0: the file does not tell.
  int gpus_per_node = 0;
  int nvlink_domain = 0;
  NodeWiring wiring = NodeWiring::pcie;
  int nvlinks = 0;                      ///< Of one GPU; 0 with PCIe wiring.
  BytesPerSecond pcie;                  ///< Of one GPU's slot; 0: the file does not tell.
  std::vector<DraftPair> nvlink_pairs;  ///< Empty: all alike, or the file does not tell.
  PcieTree pcie_tree;                   ///< Empty: says nothing new. Its socket_link: 0, not told.
  int nics_per_node = 0;                ///< 0: the file does not tell.
  double nic_gbit_per_s = 0.0;          ///< 0: the file does not tell.
  std::string fabric;                   ///< "infiniband", "ethernet" or "": the file does not tell.
  std::string fabric_shape;             ///< A JSON object; "": one switch that never blocks.
  int max_gpus = 0;                     ///< 0: as many as wanted.
  std::vector<std::string> notes;       ///< What was concluded or left out, a sentence each.
};

/// A text for people and the notes that go with it.
struct ImportedSystem {
  std::string json;  ///< Schema orrery.system/1, which parse_system has accepted.
  std::vector<std::string> notes;
};

/// The GPU that the user or the file names. Errors (bad_input): neither does, with the catalog's
/// GPUs of that compute capability; it is of another architecture than the file says.
Gpu gpu_of(const SystemDraft& draft, const SystemAnswers& answers);

/// What a GPU's NVLink carries in one direction. Errors (bad_input): not known for it.
BytesPerSecond nvlink_rate(const Gpu& gpu, const Place& at);

/// The system that `draft` and `answers` make together. Latencies and the network's efficiency,
/// which no such file tells, are those of the catalog's systems unless answered; a note says so.
/// Errors (bad_input): something is missing that cannot be assumed, or contradicts the rest.
ImportedSystem system_json(const SystemDraft& draft, const SystemAnswers& answers);

}  // namespace orrery
