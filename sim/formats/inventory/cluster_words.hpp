#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/formats/inventory/system_draft.hpp"

namespace orrery {

/// An option of `orrery import cluster`: how its value is written, and what it says.
struct ClusterOption {
  std::string name, value, help;
};
const std::vector<ClusterOption>& cluster_options();

/// The cluster that a user describes in a few words: a GPU, how many are in a node, its NICs as
/// "2x200G", and how switches join them. Open details come from the catalog's systems with that
/// GPU, or from how such clusters are built; each such choice is a note.
///
/// Trees are built of switches of `switch-ports` ports of a NIC's speed. With s:1 oversubscription
/// floor(P / (1 + s)) ports of a leaf go up, one cable to each spine, and the rest down:
///   48 down and 16 up of 64 for 3:1, which is 24 nodes of two NICs a leaf, and 16 spines.
///
/// Errors (bad_input): an option is missing that cannot be assumed, or contradicts another.
ImportedSystem cluster_json(const SystemAnswers& words);

}  // namespace orrery
