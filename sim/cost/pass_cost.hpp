#pragma once

#include <array>
#include <optional>
#include <vector>

#include "sim/cost/collective_time.hpp"
#include "sim/cost/groups.hpp"
#include "sim/cost/kernel_model.hpp"
#include "sim/cost/op.hpp"
#include "sim/input/software.hpp"

namespace orrery {

/// A stretch of a pass: kernels one after another, with at most one collective beside them and one
/// after.
struct Segment {
  Seconds compute;
  std::optional<GroupCollective> beside;
  std::optional<GroupCollective> after;

  /// Its length where no other traffic is on the collectives' links, on a GPU of this speed.
  Seconds time(double speed = 1.0) const;
};

struct PricedOp {
  Op op;
  Seconds time;
  Tag tag = Tag::default_value;
};

/// What one pass through some layers costs a rank.
struct PassCost {
  std::vector<Segment> segments;
  Seconds compute;                  ///< Kernels, launch gaps and the host's floor.
  Seconds communication;            ///< Collectives, exposed or not.
  std::array<Seconds, 3> by_tag{};  ///< compute + communication, by Tag.
  std::array<Bytes, group_kinds>
      scale_up_bytes{};  ///< That a group's collectives send over NVLink.

  /// Length alone on the machine, all ranks of its groups being of this speed; over `compute` it is
  /// exposed communication.
  Seconds time(double speed = 1.0) const;
  /// How much of it a rank of this speed waits for collectives of one group.
  Seconds exposed(GroupKind group, double speed = 1.0) const;
  bool has_collectives() const;
  void append(const PassCost& more);
};

/// Prices ops on one system and plan.
class Pricer {
 public:
  Pricer(const KernelModel& kernels, const CollectiveTime& collectives, const GroupShapes& shapes,
         const Software& software, FlopPerSecond peak);

  PricedOp price(const Op& op) const;
  PassCost price(const Ops& ops) const;
  GroupCollective collective(const Op& op) const;

 private:
  const KernelModel& kernels_;
  const CollectiveTime& collectives_;
  GroupShapes shapes_;
  const Software& software_;
  FlopPerSecond peak_;
};

}  // namespace orrery
