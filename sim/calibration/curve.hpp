#pragma once

#include <string>
#include <utility>
#include <vector>

namespace orrery {

/// Times of one collective over one group of ranks, by size: what docs/IMPORT.md calls a curve.
struct Curve {
  std::string id;
  std::string title;       ///< Of the source: "nccl-tests log".
  std::string file;        ///< Its name, without folders.
  std::string system;      ///< As the user calls it; "": not said.
  std::string gpu;         ///< As the driver calls it, without "NVIDIA "; "": the log does not say.
  std::string nccl;        ///< "2.28.3"; "": the log does not say.
  std::string collective;  ///< "all_reduce"
  int ranks = 0;
  int nodes = 0;
  std::vector<std::pair<double, double>> points;  ///< Bytes as nccl-tests counts them, us.
  std::vector<std::string> warnings;              ///< What a reader should know before using it.
};

/// The document of schema orrery.curves/1, a curve a line. Ids that meet get "-2", "-3".
std::string curves_json(std::vector<Curve> curves);

}  // namespace orrery
