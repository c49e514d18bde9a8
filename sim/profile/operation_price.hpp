#pragma once

#include <string>
#include <vector>

#include "sim/cluster/system.hpp"
#include "sim/kernels/kernel_time.hpp"
#include "sim/nccl/collective_cost.hpp"
#include "sim/training/step_range.hpp"

namespace orrery {

/// One operation: its work, time and bottleneck.
struct OperationPrice {
  std::string name;    ///< "fc1", "norm", "decode_attention"
  std::string kind;    ///< "gemm", "experts", "attention", "scan", "vector", "network"
  std::string sizes;   ///< "8192 x 28672 x 8192"
  std::string when;    ///< "forward", "backward", "recomputed", "once a step"; "": isolated
  std::string format;  ///< Format of its arithmetic: "bf16"; "": it computes nothing.
  KernelRoofs roofs;   ///< Roofs of one run.
  /// Its bytes leave the GPU, over ports of `roofs.bandwidth`: memory's roof is not its own.
  bool on_network = false;
  double count = 1.0;  ///< Number of runs.
  /// Runs in layers of one kind (LayerPattern::short_name_of()).
  struct OfKind {
    std::string kind;
    double count = 0.0;
  };
  /// Kinds of layers that run the operation, in a model with several kinds; empty: none does.
  std::vector<OfKind> kinds;
  Seconds time;       ///< Time of one run.
  Seconds low, high;  ///< The 90 % interval; both 0: unknown.
  Tag tag = Tag::default_value;

  Bound bound() const { return on_network ? Bound::network : bound_of(roofs, time); }
  Seconds all_time() const { return count * time; }
  FlopPerSecond reached() const { return roofs.flop / time; }
  double share_of_roof() const { return roofs.least_time() / time; }
};

/// The most that a GPU computes and moves a second.
struct MachineRoofs {
  struct Format {
    std::string name;
    FlopPerSecond peak;
  };
  std::string gpu;
  std::vector<Format> formats;  ///< Sorted by falling peak; units of one rate are one: "bf16".
  BytesPerSecond memory;
};
MachineRoofs roofs_of(const Gpu& gpu);

/// Sorts the operations with the longest total time first.
void sort_by_time(std::vector<OperationPrice>& operations);

/// It has a place on a roofline: it computes, and its bytes are the memory's.
bool is_plotted(const OperationPrice& operation);

/// Bytes of a collective over the port, NVLink's or the NIC's, that they fill the longest at line
/// rate.
KernelRoofs wire_roofs(const CollectiveCost& cost, const System& system);

/// Sets the range of a price that rests on one kind of error, by the model of steps (StepRange).
/// `errors`: with the part of training runs, or, for an isolated kernel, without (training = 0).
void set_range(OperationPrice& operation, PriceKind kind, const PriceErrors& errors);

}  // namespace orrery
