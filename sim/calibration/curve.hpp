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

/// Our name for the one collective in a file's name ("job17-allreduce.txt"); "" if it has none, or
/// several.
std::string collective_of_file_name(const std::string& file);

/// Bus bandwidth over algorithm bandwidth among `ranks` (nccl-tests, doc/PERFORMANCE.md); nullopt
/// if nccl-tests defines none.
std::optional<double> bus_factor(const std::string& collective, int ranks);

/// Times of one collective over one group of ranks, by size: a curve of
/// docs/guides/import-measurements.md.
struct Curve {
  std::string id;
  std::string title;       ///< Title of the source: "nccl-tests log".
  std::string file;        ///< Its name, without folders.
  std::string system;      ///< The user's name; "": unset.
  std::string gpu;         ///< The driver's name without "NVIDIA "; "": not in the log.
  std::string nccl;        ///< "2.28.3"; "": not in the log.
  std::string collective;  ///< "all_reduce"
  int ranks = 0;
  int nodes = 0;
  std::vector<std::pair<double, double>> points;  ///< Bytes as nccl-tests counts them, us.
  std::vector<std::string> warnings;              ///< Warnings for a user of the curve.
};

/// The document of schema orrery.curves/1, a line per curve. Equal ids get "-2", "-3".
std::string curves_json(std::vector<Curve> curves);

/// Describes a degraded run: bus bandwidth that falls as large sizes grow, which no healthy fabric
/// shows. "" for a healthy one.
std::string degradation(const Curve& curve);

}  // namespace orrery
