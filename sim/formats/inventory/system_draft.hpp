#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/cluster/system.hpp"
#include "sim/core/error.hpp"

namespace orrery {

/// The user's additions to a file: option name without dashes -> its words.
using SystemAnswers = std::map<std::string, std::string>;

/// The number of NICs and the rate of each in a text such as "8x400G" or "8 x 400 Gb/s"; "8" alone
/// has no rate.
struct NicWords {
  std::string count, rate;
};
NicWords nic_words(const std::string& text);
/// The same answers, where a rate in --nics becomes --nic-bandwidth. Errors (bad_input): the rate
/// is given twice.
SystemAnswers with_rate_of_nics(SystemAnswers answers);

/// The options that system_json understands, each with its meaning, for --help.
const std::vector<std::pair<std::string, std::string>>& system_answer_options();

/// NVLinks between two GPUs of a node.
struct DraftPair {
  int first = 0;
  int second = 0;
  int links = 0;
};

/// The contents of a topology file, before a user's answers and the catalog's constants are added.
struct SystemDraft {
  std::string source;  ///< Provenance of all its numbers: "NCCL topology dump topo.xml".
  std::string file;
  bool is_from_words = false;  ///< The user gave it in a few words, not as a file.
  std::string gpu;             ///< Catalog name; "": not in the file.
  int compute_capability = 0;  ///< 90 means 9.0; 0: not in the file.
  int gpus_per_node = 0;
  int nvlink_domain = 0;
  NodeWiring wiring = NodeWiring::pcie;
  int nvlinks = 0;                      ///< Links of one GPU; 0 with PCIe wiring.
  BytesPerSecond pcie;                  ///< Rate of one GPU's slot; 0: not in the file.
  std::vector<DraftPair> nvlink_pairs;  ///< Empty: all alike, or not in the file.
  PcieTree pcie_tree;                   ///< Empty: adds nothing. Its socket_link: 0, unknown.
  int nics_per_node = 0;                ///< 0: not in the file.
  double nic_gbit_per_s = 0.0;          ///< 0: not in the file.
  std::string fabric;                   ///< A name in topologies/networks; "": not in the file.
  std::string fabric_shape;             ///< A JSON object; "": one switch that never blocks.
  int max_gpus = 0;                     ///< 0: no limit.
  std::vector<std::string> notes;       ///< Conclusions and omissions, a sentence each.
};

/// A text for people and the notes that go with it.
struct ImportedSystem {
  std::string json;  ///< Schema orrery.system/1, which parse_system has accepted.
  std::vector<std::string> notes;
};

/// The GPU that the user or the file names. Errors (bad_input): neither does, with the catalog's
/// GPUs of that compute capability; it is of another architecture than the file says.
Gpu gpu_of(const SystemDraft& draft, const SystemAnswers& answers);

/// Rate of a GPU's NVLink in one direction. Errors (bad_input): it is unknown.
BytesPerSecond nvlink_rate(const Gpu& gpu, const Place& at);

/// The system that `draft` and `answers` make together. Latencies and the network's efficiency,
/// absent from all such files, are those of the catalog's systems unless answered; a note says so.
/// Errors (bad_input): something is missing that cannot be assumed, or contradicts the rest.
ImportedSystem system_json(const SystemDraft& draft, const SystemAnswers& answers);

}  // namespace orrery
