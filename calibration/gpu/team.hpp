#pragma once

#include <memory>
#include <string>
#include <vector>

#include "calibration/host/record.hpp"

namespace orrery::calibration {

/// GPUs that do NCCL collectives together: all of one process, a thread each, or one GPU in each of
/// several processes, on one node or many. Built without NCCL, measuring throws Unsupported.
class Team {
 public:
  /// True if the program was built with NCCL.
  static bool possible();

  /// The first `ranks` of a case's GPUs in this process.
  Team();
  /// One process of `ranks`. They meet through `file`: rank 0 writes NCCL's id there, and the
  /// others wait for it, two minutes at most. Errors: bad_input where the file exists already (rank
  /// 0) or does not come.
  Team(int rank, int ranks, int device, const std::string& file);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  /// Rank 0. `cases` must be those that the other processes serve.
  Measurement measure(const Case& what, const StoppingLimits& limits);
  /// Other ranks of several processes: takes part in what rank 0 measures until it is done.
  void serve();
  /// Rank 0: lets the others go.
  void dismiss();

 private:
  struct Members;
  std::unique_ptr<Members> members_;
};

}  // namespace orrery::calibration
