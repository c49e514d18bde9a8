#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/core/value_list.hpp"
#include "sim/plan/scenario.hpp"

namespace orrery {

/// One key of a plan that a search varies.
struct PlanDimension {
  std::string key;                  ///< A name of plan_keys().
  std::vector<std::string> values;  ///< Values as flags take them.
  enum class Kind {
    degree,   ///< Decides where ranks lie: part of a plan's shape and of its layout.
    shape,    ///< Decides what the ranks are, and no more.
    setting,  ///< Another way to do the same work: tried on every shape.
    variant,  ///< Likewise, but the user compares its values: part of the layout.
  };
  Kind kind = Kind::setting;
  /// False if the key can change nothing in a plan of this shape; it is then left open, or has the
  /// first of its values if it is fixed. Null: always true.
  bool (*matters)(const Plan&) = nullptr;
  /// Of a shape: keys that may refuse a plan with the first value and not with a larger one.
  std::vector<std::string> mends = {};
  bool fixed = false;  ///< By the user: no plan has other values.

  bool varies(const Plan& shape) const { return !matters || matters(shape); }
  /// A shape's values rise.
  bool is_shape() const { return kind == Kind::degree || kind == Kind::shape; }
  /// True if what the first value does not divide, the others do not divide either.
  bool first_divides() const;
  /// Plans that differ in nothing of this kind have the same layout.
  bool of_layout() const { return kind == Kind::degree || kind == Kind::variant; }
};

/// Everything that a plan leaves open, for `model` on `gpus` GPUs: all keys that plan_keys() says
/// are searched, in the order of enumeration. What does not divide is left to make_scenario.
std::vector<PlanDimension> plan_dimensions(const Model& model, int gpus, std::int64_t gbs);

/// Leaves out the values that none of `software` has.
void keep_supported(std::vector<PlanDimension>& dimensions, const std::vector<Software>& software);

/// A key that the user fixes, to one value or to a few.
struct Fixed {
  std::string key;
  std::vector<std::string> values;
};
/// "tp=8", "mbs=1,2", "pp=1..8". `gpus`: what degrees of a range divide; `most` values of it.
/// Errors: no '=', an unknown key (with the nearest), a value that is none, a range as
/// values_of_item().
Fixed parse_fixed(const std::string& text, const std::vector<int>& gpus = {},
                  std::int64_t most = RangeRule{}.most);
/// --gpus and --gbs of a search: "1024", "256,512", "256..4096": doubling, as clusters grow; `most`
/// values of a range. Errors: what is no such list, a value twice.
std::vector<std::int64_t> parse_numbers(const std::string& text, const std::string& option,
                                        std::int64_t most = RangeRule{}.most);

/// Fixed keys have their values and no others; what is not searched by itself becomes a dimension.
void fix(std::vector<PlanDimension>& dimensions, const std::vector<Fixed>& fixed);

/// Ways to cut a plan's layers that give the first and the last virtual stage, which also hold the
/// embedding and the head, up to two more or four fewer than all others, which have equally many.
/// Empty where there is one stage.
std::vector<StageLayers> neighbour_splits(const Scenario& scenario);

}  // namespace orrery
