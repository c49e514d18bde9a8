#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "sim/core/object_reader.hpp"
#include "sim/core/value_list.hpp"
#include "sim/plan/plan.hpp"
#include "sim/plan/software.hpp"

namespace orrery {

/// What a plan says of a key, whatever its type is inside.
using PlanValue = std::variant<std::int64_t, bool, std::string>;

enum class KeyForm { number, truth, word };  ///< The alternatives of PlanValue.

/// How a type of a key is written.
template <class T>
struct Notation {
  KeyForm form = KeyForm::word;
  std::string values;              ///< For --help: "N", "0|1|2|3", "true|false".
  std::vector<std::string> words;  ///< All that may be said, as flags, where that is a short list.
  std::function<T(const JsonValue&)> read;  ///< Errors (bad_input): what is no legal value.
  std::function<PlanValue(const T&)> write;
};

/// What generic code can do with a key, made of its notation and the members that hold it.
struct KeyAccess {
  KeyForm form = KeyForm::word;
  std::string values;
  std::vector<std::string> words;
  std::function<PlanValue(const JsonValue&)> read;  ///< What a file says. Errors as Notation::read.
  std::function<void(PlanRequest&, const JsonValue&)> ask;   ///< The same, into a request.
  std::function<PlanValue(const Plan&)> value;               ///< What a plan has.
  std::function<void(PlanRequest&, const Plan&)> ask_again;  ///< The same, into a request.
  bool may_be_open = false;                                  ///< A request need not say it.
  /// What the request says, or the software's default. Does nothing where make_scenario() alone
  /// knows what becomes of a request.
  std::function<void(Plan&, const PlanRequest&, const Software&)> settle;
};

/// Whole numbers from `low` to `high`.
template <class Whole>
Notation<Whole> whole_number(std::int64_t low, std::int64_t high) {
  Notation<Whole> notation{
      KeyForm::number,
      "N",
      {},
      [=](const JsonValue& v) { return static_cast<Whole>(v.integer(low, high)); },
      [](const Whole& n) { return PlanValue{std::int64_t{n}}; }};
  if (high - low >= 10) return notation;
  notation.values.clear();
  for (std::int64_t n = low; n <= high; ++n) {
    notation.words.push_back(std::to_string(n));
    notation.values += (n == low ? "" : "|") + notation.words.back();
  }
  return notation;
}

inline Notation<bool> true_or_false() {
  return {KeyForm::truth,
          "true|false",
          {"true", "false"},
          [](const JsonValue& v) { return v.boolean(); },
          [](const bool& b) { return PlanValue{b}; }};
}

/// `names` are in the order of the enumerators; of a bool that of false is first.
template <class Enum>
Notation<Enum> one_of(const std::vector<std::string>& names) {
  std::string values;
  for (const std::string& name : names) values += (values.empty() ? "" : "|") + name;
  return {KeyForm::word, values, names, [=](const JsonValue& v) { return choice<Enum>(v, names); },
          [=](const Enum& e) { return PlanValue{names[static_cast<std::size_t>(e)]}; }};
}

inline Notation<std::string> any_text() {
  return {KeyForm::word,
          "NAME",
          {},
          [](const JsonValue& v) { return v.text(); },
          [](const std::string& s) { return PlanValue{s}; }};
}

/// A key of which make_scenario() derives what a plan has from more than the request. `asked`: a
/// member of PlanRequest, a T or an optional one. `settled`: a member of Plan or a function of it.
template <class T, class Asked, class Settled>
KeyAccess derived(const Notation<T>& notation, Asked asked, Settled settled) {
  constexpr bool optional =
      std::is_same_v<std::remove_cvref_t<std::invoke_result_t<Asked, PlanRequest&>>,
                     std::optional<T>>;
  KeyAccess access;
  access.form = notation.form;
  access.values = notation.values;
  access.words = notation.words;
  access.read = [=](const JsonValue& json) { return notation.write(notation.read(json)); };
  access.ask = [=](PlanRequest& request, const JsonValue& json) {
    std::invoke(asked, request) = notation.read(json);
  };
  access.value = [=](const Plan& plan) { return notation.write(std::invoke(settled, plan)); };
  access.ask_again = [=](PlanRequest& request, const Plan& plan) {
    std::invoke(asked, request) = std::invoke(settled, plan);
  };
  access.may_be_open = optional;
  access.settle = [](Plan&, const PlanRequest&, const Software&) {};
  return access;
}

/// A key that a plan has as the request says it, else as the member of Software has it, if one is
/// named, else as a new Plan has it.
template <class T, class Asked, class Settled>
KeyAccess taken(const Notation<T>& notation, Asked asked, Settled settled,
                std::type_identity_t<T> Software::*otherwise = nullptr) {
  KeyAccess access = derived(notation, asked, settled);
  access.settle = [=](Plan& plan, const PlanRequest& request, const Software& software) {
    const auto& said = std::invoke(asked, request);
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(said)>, std::optional<T>>) {
      if (said)
        std::invoke(settled, plan) = *said;
      else if (otherwise)
        std::invoke(settled, plan) = software.*otherwise;
    } else {
      std::invoke(settled, plan) = said;
    }
  };
  return access;
}

/// Which part of a plan a key belongs to (plan_parts.hpp).
enum class PlanPart {
  degrees,
  batch,
  schedule,
  sharding,
  precision,
  attention,
  experts,
  overlap,
  software
};

/// One key of a plan: all that is said of it outside the code that gives it meaning. From here
/// come flags, --help, plan files, results, headings, sweeps, searches and Megatron-LM's arguments.
struct PlanKey {
  using Test = bool (*)(const Plan&);

  std::string name;  ///< In files and results and, with two dashes, as a flag.
  PlanPart part;
  std::string help;
  KeyAccess access;

  /// Whether another value could change anything in a plan of these degrees. Where not, a request
  /// may leave it open and a search does not vary it. Null: always.
  Test matters = nullptr;
  /// Whether a plan has this value without being asked to. Null: never.
  Test follows = nullptr;
  /// Whether plans have a value of it; results say null where not. Null: always.
  Test exists = nullptr;

  /// How a heading says it; "{}" stands for the value. Empty: "name value".
  std::string heading = {};
  std::string unsaid = {};    ///< The value that a heading leaves out.
  Test told = nullptr;        ///< Where a heading names it. Null: where it matters.
  bool searched = false;      ///< A search tries its values though nobody asks it to.
  std::string megatron = {};  ///< The argument of Megatron-LM that says the same, without dashes.
  std::vector<std::string> elsewhere = {};  ///< What else other tools call it, likewise.
  OpenRange range = OpenRange::counts;      ///< How "2..8" goes on.

  std::string text(const Plan& plan) const;  ///< What the plan says of it, as a flag would.
  bool can_change(const Plan& plan) const { return !matters || matters(plan); }
  bool has_value(const Plan& plan) const { return !exists || exists(plan); }
  /// Whether a heading must name it, lest it be that of another plan.
  bool needs_saying(const Plan& plan) const;
};

/// All of them, in the order of --help.
const std::vector<PlanKey>& plan_keys();
const PlanKey& plan_key(const std::string& name);  ///< Which is one.
const PlanKey* find_plan_key(const std::string& name);

/// How a range of a key goes on, that of a plan or "gpus".
OpenRange open_range_of(const std::string& key);

/// "8", "true", "zb-h1": as a flag would say it.
std::string text_of(const PlanValue& value);

/// Sets one key from a JSON value. Errors: unknown key (with the nearest), wrong type, range.
void set_plan_key(PlanRequest& plan, const std::string& key, const JsonValue& value);
/// Sets one key from a flag's text.
void set_plan_flag(PlanRequest& plan, const std::string& key, const std::string& text);
/// Reads an object of plan keys on top of `plan`.
void read_plan(PlanRequest& plan, const JsonValue& json);

/// What the request says and else the software does, of all keys for which that is enough.
void settle(Plan& plan, const PlanRequest& request, const Software& software);

/// A plan as a request, for changing a key of it. `dp` is left open, so that it follows from the
/// other degrees, and so is what makes no difference to the plan as it is.
PlanRequest plan_again(const Plan& plan);

}  // namespace orrery
