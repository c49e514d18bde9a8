#pragma once

#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "sim/core/enum_words.hpp"
#include "sim/core/field.hpp"
#include "sim/core/value_list.hpp"
#include "sim/plan/plan.hpp"

namespace orrery {

/// The operations on a key of generic code, made of its notation and the members that hold it.
struct KeyAccess {
  Form form = Form::word;
  std::string values;
  std::vector<std::string> words;
  std::function<FieldValue(const JsonValue&)> read;  ///< Errors as Notation::read.
  /// The same; the result sets the value in any request.
  std::function<std::function<void(PlanRequest&)>(const JsonValue&)> setter;
  std::function<FieldValue(const Plan&)> value;               ///< The plan's.
  std::function<void(PlanRequest&, const Plan&)> copy_value;  ///< It, into a request.
  bool may_be_open = false;                                   ///< A request need not say it.

  /// `asked`: a member of PlanRequest, a T or an optional one. `settled`: a member of Plan or a
  /// function of it.
  template <class T, class Requested, class Settled>
  KeyAccess(const Notation<T>& notation, Requested requested, Settled settled)
      : form{notation.form},
        values{notation.values},
        words{notation.words},
        read{[=](const JsonValue& json) { return notation.write(notation.read(json)); }},
        setter{[=](const JsonValue& json) {
          return [=, value = notation.read(json)](PlanRequest& request) {
            std::invoke(requested, request) = value;
          };
        }},
        value{[=](const Plan& plan) { return notation.write(std::invoke(settled, plan)); }},
        copy_value{[=](PlanRequest& request, const Plan& plan) {
          std::invoke(requested, request) = std::invoke(settled, plan);
        }},
        may_be_open{
            std::is_same_v<std::remove_cvref_t<std::invoke_result_t<Requested, PlanRequest&>>,
                           std::optional<T>>} {}
  template <class T>
  KeyAccess(const Notation<T>& notation, T PlanChoices::*member)
      : KeyAccess{notation, member, member} {}
};

/// The groups of a plan's keys.
enum class PlanPart {
  degrees,
  batch,
  schedule,
  sharding,
  precision,
  finetuning,
  attention,
  experts,
  overlap,
  software
};
template <>
inline const std::vector<std::string> enum_words<PlanPart>{
    "degrees",    "batch",     "schedule", "sharding", "precision",
    "finetuning", "attention", "experts",  "overlap",  "software"};

/// Description of one key of a plan, without its meaning. Flags, --help, plan files, results,
/// headings, sweeps, searches and Megatron-LM's arguments are derived from it.
struct PlanKey {
  using Test = bool (*)(const Plan&);

  std::string name;  ///< Name in files and results and, with two dashes, of the flag.
  PlanPart part;
  std::string help;
  KeyAccess access;

  /// True if another value could change anything in a plan of these degrees. If not, a request may
  /// leave it open and a search does not vary it. Null: always.
  Test matters = nullptr;
  /// True if a plan has this value without a request for it. Null: never.
  Test follows = nullptr;
  /// True if plans have a value of it; results have null if not. Null: always.
  Test exists = nullptr;

  /// Text in a heading, with "{}" for the value. Empty: "name value".
  std::string heading = {};
  std::string usual = {};     ///< The value that a heading leaves out.
  Test headed = nullptr;      ///< A heading names it where this holds. Null: where it matters.
  bool searched = false;      ///< A search tries its values by default.
  std::string megatron = {};  ///< Equivalent argument of Megatron-LM, without dashes.
  std::vector<std::string> other_names = {};  ///< Names in other tools, likewise.
  OpenRange range = OpenRange::counts;        ///< Progression of ranges such as "2..8".

  std::string text(const Plan& plan) const;  ///< The plan's value in the flag's notation.
  bool can_change(const Plan& plan) const { return !matters || matters(plan); }
  bool has_value(const Plan& plan) const { return !exists || exists(plan); }
  /// True if a heading needs it to distinguish the plan from others.
  bool needs_listing(const Plan& plan) const;
};

/// All of them, in the order of --help.
const std::vector<PlanKey>& plan_keys();
const PlanKey& plan_key(const std::string& name);  ///< `name` must be a key.
const PlanKey* find_plan_key(const std::string& name);

/// Progression of ranges of a plan's key or "gpus".
OpenRange open_range_of(const std::string& key);

/// Sets one key from a JSON value. Errors: unknown key (with the nearest), wrong type, range.
void set_plan_key(PlanRequest& plan, const std::string& key, const JsonValue& value);
/// Sets one key from a flag's text.
void set_plan_flag(PlanRequest& plan, const std::string& key, const std::string& text);
/// Reads an object of plan keys on top of `plan`.
void read_plan(PlanRequest& plan, const JsonValue& json);

/// A plan as a request, for changing a key of it. `dp` is left open, so that it follows from the
/// other degrees, and so are keys without effect on this plan.
PlanRequest plan_again(const Plan& plan);

}  // namespace orrery
