#pragma once

#include <optional>
#include <string>
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

}  // namespace orrery
