#pragma once

#include <initializer_list>
#include <memory>
#include <string_view>
#include <vector>

#include "sim/core/ids.hpp"
#include "sim/core/units.hpp"
#include "sim/cost/pass_cost.hpp"
#include "sim/graph/wiring.hpp"

namespace orrery {

/// Work on one stream of one GPU runs in order; streams run beside each other.
enum class Stream { compute, tensor, pipeline, data };

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

/// A vertex of the task graph. It starts when all tasks before it have finished.
struct Task {
  enum class Kind {
    compute,   ///< Lasts `duration`.
    transfer,  ///< `duration` of latency, then flows.
    join,      ///< Takes no time: where several ranks wait for each other.
  };
  enum class What {
    forward,
    backward,
    weight_gradient,  ///< What a backward pass of inputs_only left.
    optimizer,
    collective,  ///< Of `group`, inside a pass.
    transfer,
    gradients,
    weights,
    norm
  };

  // First what the engine reads: it comes by in no order, and a task is several cache lines long.
  Seconds duration;
  Flows flows;
  std::shared_ptr<const Chain> chain = {};  ///< compute: in place of `duration`.

  Kind kind = Kind::compute;
  What what = What::forward;
  Stream stream = Stream::compute;
  GroupKind group = GroupKind::tensor;  ///< Of a collective, gradients or weights.
  bool combine = false;                 ///< Of an expert group's collective: else dispatch.
  int role = 0;                         ///< Who does it (of a collective: its first member).
  int to_role = -1;  ///< Of a transfer between stages, or of a pair: the other end.
  int chunk = 0;
  int microbatch = -1;  ///< -1: belongs to the whole step.
  /// Of a pass that runs together with one of another micro-batch: the other's. Where both are one
  /// task, `what`, `chunk` and `microbatch` are the forward pass's.
  int with_chunk = 0, with_microbatch = -1;
  bool backward = false;           ///< Of a collective in a pass and of a transfer: its direction.
  bool inputs_only = false;        ///< Of a backward pass: without its weight gradients.
  Tag tag = Tag::default_value;    ///< Of a transfer or the optimizer: what its price rests on.
  const PassCost* cost = nullptr;  ///< compute: what it consists of, where it stands for a chain.
  const Segment* segment =
      nullptr;  ///< compute: the stretch of a pass that it is, where it is one.
};

/// The shortest time that `task` can take: alone on its links.
Seconds least_time(const Task& task);

}  // namespace orrery
