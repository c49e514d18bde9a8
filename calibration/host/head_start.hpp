#pragma once

#include <cstdint>

namespace orrery::calibration {

/// The delay of the GPU that lets the host enqueue a batch of work before it begins, and the size
/// of such a batch.
///
/// A host that was too slow gets twice the time. One that stays too slow however long it gets does
/// not lack time: the GPU's queue is full (some thousand launches), and enqueuing only goes on once
/// the GPU does. Then the batch has to shrink.
class HeadStart {
 public:
  struct Batch {
    int samples = 1;
    int runs = 1;  ///< Runs of each sample.
  };
  enum class Verdict { counts, again, hopeless };

  std::int64_t delay_ns() const { return delay_ns_; }
  /// After handing over `batch` took `host_ns`, and the GPU was still held up at the end of it or
  /// not (`in_time`). Changes the delay and, if it has to, the batch.
  Verdict judge(bool in_time, std::int64_t host_ns, Batch& batch);

 private:
  static constexpr std::int64_t shortest_ns = 200'000, longest_ns = 200'000'000;
  std::int64_t delay_ns_ = shortest_ns;
  int misses_ = 0;  ///< Successive misses of batches of this size.
};

}  // namespace orrery::calibration
