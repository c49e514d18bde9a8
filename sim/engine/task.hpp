#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <vector>

#include "sim/core/units.hpp"
#include "sim/engine/link_use.hpp"

namespace orrery {

/// Work on one stream of one GPU runs in order; streams run beside each other.
enum class Stream : std::uint8_t { compute, tensor, pipeline, data };

/// Bytes that move over all links of a way at once, at `rate` if nobody else does.
struct Flow {
  std::vector<LinkUse> way;
  Bytes bytes;
  BytesPerSecond rate;
};

/// Flows that start together. Copies are the same flows: the tasks of all micro-batches share them.
class Flows {
 public:
  Flows() = default;
  Flows(std::vector<Flow> flows) {
    if (!flows.empty()) flows_ = std::make_shared<const std::vector<Flow>>(std::move(flows));
  }
  Flows(std::initializer_list<Flow> flows) : Flows{std::vector<Flow>(flows)} {}

  bool empty() const { return !flows_; }
  std::size_t size() const { return flows_ ? flows_->size() : 0; }
  const Flow* begin() const { return flows_ ? flows_->data() : nullptr; }
  const Flow* end() const { return begin() + size(); }
  const Flow& operator[](std::size_t i) const { return (*flows_)[i]; }
  const Flow& front() const { return flows_->front(); }
  /// Of the same origin, and therefore equal.
  bool same(const Flows& other) const { return flows_ == other.flows_; }

 private:
  std::shared_ptr<const std::vector<Flow>> flows_;
};

class Chain;

/// A vertex of the task graph: lasts `duration`, then moves its flows, at once. It starts when all
/// tasks before it have finished. It holds what the engine asks for, in less than a cache line,
/// because the engine comes by in no order.
struct Task {
  Seconds duration;
  Flows flows;
  std::shared_ptr<const Chain> chain = {};  ///< In place of `duration` and `flows`.
  std::int32_t owner = 0;                   ///< Who does it.
  std::int32_t note = -1;                   ///< Its owner's business: where more about it stands.
  Stream stream = Stream::compute;
};
static_assert(sizeof(Task) <= 64);

/// The shortest time that `task` can take: alone on its links.
Seconds least_time(const Task& task);

}  // namespace orrery
