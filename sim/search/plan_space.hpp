#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/error.hpp"
#include "sim/core/shard.hpp"
#include "sim/plan/scenario.hpp"
#include "sim/search/dimension.hpp"
#include "sim/training/estimate.hpp"

namespace orrery {

/// Why a plan is none, and how many of its dimensions had been set when that was found.
struct PlanRefusal {
  std::string reason;
  std::size_t depth = 0;

  /// Keeps the one that came further; of equals the first.
  void take(const PlanRefusal& other) {
    if (!other.reason.empty() && came_further(other.depth)) *this = other;
  }
  void take(const Refused& other, std::size_t at_depth) {
    if (came_further(at_depth)) *this = {other.error({}).what(), at_depth};
  }
  bool came_further(std::size_t other_depth) const { return reason.empty() || other_depth > depth; }
};

/// Every legal plan of one model, system, number of GPUs and global batch.
class PlanSpace {
 public:
  static constexpr std::size_t most_dimensions = 32;
  static constexpr std::uint8_t left_open = 255;
  /// A plan: the place of its value in each dimension, or left_open.
  using Choice = std::array<std::uint8_t, most_dimensions>;

  PlanSpace(const Model& model, const System& system, int gpus, std::int64_t gbs,
            const std::vector<Fixed>& fixed_by_user);

  /// All combinations of values, also of those that are no plan.
  double configurations() const;
  /// The space falls into so many parts, by the values of the first two dimensions.
  int parts() const;
  /// Returns true to go on to the next plan.
  using Visitor = std::function<bool(const Choice&, const Scenario&)>;
  /// Visits every legal plan of a part once, always in the order of choices, until the visitor has
  /// enough (then false). `refusal` takes the reasons of those that are none. Of a shard: the plans
  /// of its shapes, which are dealt out one after another, those of the next part from the next on.
  bool visit(int part, const Visitor& visitor, PlanRefusal& refusal, Shard shard = {}) const;

  /// Plans in groups: all that differ in `zero` and `dp_overlap` alone, whose passes cost the same.
  /// Visits the first legal plan of each group of a part, with a choice that leaves both open.
  bool visit_groups(int part, const Visitor& visitor, PlanRefusal& refusal) const;
  /// Visits the legal plans of a group, which between them are those that visit() finds.
  bool visit_group(const Choice& group, const Visitor& visitor, PlanRefusal& refusal) const;

  /// True if all its values are the space's, and the plan divides.
  bool has(const Choice& choice) const;
  Scenario scenario(const Choice& choice) const;
  /// The choice as flags, left_open ones left out: "--tp 8 --pp 8".
  std::string flags(const Choice& choice) const;
  /// The choice with all left open that is no part of its layout.
  Choice layout(const Choice& choice) const;

  const Model& model() const { return model_; }
  const System& system() const { return system_; }
  int gpus() const { return gpus_; }
  std::int64_t gbs() const { return gbs_; }

 private:
  struct Visit;
  bool visit_part(int part, Visit& state) const;
  bool visit_shapes(Visit& state, const PlanRequest& so_far, std::size_t dimension) const;
  bool visit_switches(Visit& state, const PlanRequest& so_far, const Plan& shape,
                      std::size_t dimension) const;
  bool visit_first_of_group(Visit& state, const PlanRequest& so_far, const Plan& shape) const;
  bool visit_late(Visit& state, const PlanRequest& so_far, const Plan& shape,
                  std::size_t late) const;
  bool visit_plan(Visit& state, const PlanRequest& so_far) const;
  template <class Go>
  bool for_each_value(Visit& state, const PlanRequest& so_far, const Plan& shape,
                      std::size_t dimension, const Go& go) const;
  void set(PlanRequest& request, std::size_t dimension, std::size_t value) const;
  PlanRequest request(const Choice& choice) const;
  Choice shape_of(const Choice& choice) const;
  const Software& software_of(const PlanRequest& request) const;
  OrRefused<SettledPlan> settle(const PlanRequest& request) const;
  /// A plan with the shape of `request`. Where the software's default of a setting is refused, the
  /// first value that is not; `given` has the bits of dimensions that stay.
  OrRefused<SettledPlan> settle_shape(PlanRequest request, std::uint32_t given = 0) const;
  /// False if no values of the shapes from `dimension` on make a plan, as the first do not.
  bool may_be_mended(const Refused& no, std::size_t dimension) const;

  Model model_;
  System system_;
  int gpus_ = 0;
  std::int64_t gbs_ = 0;
  std::vector<PlanDimension> dimensions_;  ///< Shapes first.
  std::size_t shapes_ = 0;                 ///< The number of shapes among them.
  std::vector<std::size_t> late_;          ///< Those that visit_groups() leaves open.
  /// Each dimension's values, read once: each sets itself in a request.
  std::vector<std::vector<std::function<void(PlanRequest&)>>> setters_;
  std::map<std::string, Software> software_;
  std::string why_software_;  ///< The same as Scenario's.
};

/// A plan between two others.
struct PlanStep {
  std::vector<std::string> keys;  ///< Keys that differ from the plan before it, in order of --help.
  Scenario scenario;
  std::optional<Seconds> step;  ///< Nothing: it does not fit.
};

/// The steps from the plan of `before` to that of `after`, which train one model on one system, key
/// by key; `before` is the first, `after` the last. Keys whose plan cannot run without the next one
/// are one step with it.
std::vector<PlanStep> plan_steps(const Scenario& before, const Scenario& after,
                                 EstimateContext& context);

}  // namespace orrery
