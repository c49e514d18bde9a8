#pragma once

#ifdef ORRERY_HAVE_NCCL

#include <nccl.h>

#include "calibration/gpu/lab.hpp"

namespace orrery::calibration {

void check_nccl(ncclResult_t result, const char* call, const char* file, int line);
#define NCCL_CHECK(call) ::orrery::calibration::check_nccl((call), #call, __FILE__, __LINE__)

/// One rank's part in measuring collectives, on the current GPU. All ranks make the same calls in
/// the same order: what decides how often to repeat is agreed by all of them, the slowest rank's
/// time of each sample.
class CollectiveRank {
 public:
  CollectiveRank(ncclComm_t communicator, int rank, int ranks)
      : communicator_{communicator}, rank_{rank}, ranks_{ranks} {}
  int ranks() const { return ranks_; }

  /// collective or collective_overlap. Bytes are nccl-tests' size: all that a rank holds of the
  /// larger side. Errors: Unsupported or DeviceError on all ranks alike; a failed NCCL call, which
  /// would leave the others waiting, ends the process.
  Measurement measure(const Case& what, const StoppingLimits& limits);

 private:
  struct Buffers;
  void enqueue(const std::string& name, Buffers& buffers, cudaStream_t stream);
  double wrong_share(const std::string& name, Buffers& buffers);
  double slowest(double value);
  double sample_us(const std::string& name, Buffers& buffers, int runs);
  void measure_overlap(const Case& what, Buffers& buffers, Measurement& one);

  ncclComm_t communicator_;
  int rank_, ranks_;
  Stream stream_;
  Event before_, after_;
  DeviceArray<double> agreed_{1};
};

}  // namespace orrery::calibration

#endif
