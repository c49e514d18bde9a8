#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "sim/core/choice.hpp"
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

}  // namespace orrery
