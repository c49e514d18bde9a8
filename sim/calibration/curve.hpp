#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace orrery {

/// The collectives that nccl-tests measures, by our names: "all_reduce", "all_to_all", "send_recv".
const std::vector<std::string>& measured_collectives();

/// Our name for a program of nccl-tests ("./build/alltoall_perf", "all_reduce_perf_mpi"); "" if it
/// is none of them.
std::string collective_of_program(const std::string& program);

/// Our name for the one collective that a file's name speaks of ("job17-allreduce.txt"); "" if it
/// speaks of none, or of several.
std::string collective_of_file_name(const std::string& file);

/// Bus bandwidth over algorithm bandwidth among `ranks` (nccl-tests, doc/PERFORMANCE.md); nothing
/// where nccl-tests defines none.
std::optional<double> bus_factor(const std::string& collective, int ranks);

/// Times of one collective over one group of ranks, by size: what
/// docs/guides/import-measurements.md calls a curve.
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

/// What makes a run look degraded: among large sizes, bus bandwidth that falls as they grow, which
/// no healthy fabric shows. "" where it does not.
std::string degradation(const Curve& curve);

}  // namespace orrery
