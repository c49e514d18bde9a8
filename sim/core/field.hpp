#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "sim/core/object_reader.hpp"
#include "sim/core/value_list.hpp"

namespace orrery {

/// A value of a field, whatever its type is inside.
using FieldValue = std::variant<std::int64_t, bool, std::string>;
/// "8", "true", "zb-h1": as a flag says it.
inline std::string text_of(const FieldValue& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  if (const auto* truth = std::get_if<bool>(&value)) return *truth ? "true" : "false";
  return std::get<std::string>(value);
}

enum class Form { number, truth, word };  ///< The alternatives of FieldValue.

/// The written form of a type's values, in files and as flags.
template <class T>
struct Notation {
  Form form = Form::word;
  std::string values;                       ///< Values in --help: "N", "0|1|2|3", "true|false".
  std::vector<std::string> words;           ///< All legal flags, if the list is short.
  std::function<T(const JsonValue&)> read;  ///< Errors (bad_input): no legal value.
  std::function<FieldValue(const T&)> write = nullptr;  ///< Null: no answer repeats it.
};

/// Whole numbers from `low` to `high`; at most ten of them are listed as words.
template <class Whole = std::int64_t>
Notation<Whole> whole(std::int64_t low, std::int64_t high) {
  Notation<Whole> notation{
      Form::number,
      "N",
      {},
      [=](const JsonValue& v) { return static_cast<Whole>(v.integer(low, high)); },
      [](const Whole& n) { return FieldValue{std::int64_t{n}}; }};
  if (high - low >= 10) return notation;
  for (std::int64_t n = low; n <= high; ++n) notation.words.push_back(std::to_string(n));
  notation.values = joined(notation.words, "|");
  return notation;
}

inline Notation<double> real(double low, double high) {
  return {Form::number, "X", {}, [=](const JsonValue& v) { return v.number(low, high); }};
}

inline Notation<bool> truth() {
  return {Form::truth,
          "true|false",
          {"true", "false"},
          [](const JsonValue& v) { return v.boolean(); },
          [](const bool& b) { return FieldValue{b}; }};
}

/// `names` are in the order of the enumerators; of a bool that of false is first.
template <class Enum>
Notation<Enum> one_of(const std::vector<std::string>& names = enum_words<Enum>) {
  return {Form::word, joined(names, "|"), names,
          [=](const JsonValue& v) { return choice<Enum>(v, names); },
          [=](const Enum& e) { return FieldValue{names[static_cast<std::size_t>(e)]}; }};
}

/// Values that one function reads and another writes, without a short list of words.
template <class T, class Read, class Write>
Notation<T> written(std::string values, Read read, Write write) {
  return {Form::word, std::move(values), {}, read, [write](const T& value) {
            return FieldValue{write(value)};
          }};
}
inline Notation<std::string> any_text() {
  return written<std::string>(
      "NAME", [](const JsonValue& v) { return v.text(); }, std::identity{});
}

/// A text that must not be empty; `what` it is.
inline Notation<std::string> some_text(const std::string& what) {
  return {Form::word, "TEXT", {}, [=](const JsonValue& v) {
            if (v.text().empty()) v.fail("is empty", "write the " + what);
            return v.text();
          }};
}
/// Lists of them: a file's array.
template <class T>
Notation<std::vector<T>> list_of(const Notation<T>& entry) {
  return {Form::word, "LIST", {}, [read = entry.read](const JsonValue& v) {
            std::vector<T> all;
            for (const JsonValue& one : v.elements()) all.push_back(read(one));
            return all;
          }};
}
/// A list of words that is not empty, of `known`, or of any where that is empty.
inline Notation<std::vector<std::string>> some_of(const std::vector<std::string>& known) {
  return {Form::word, "LIST", {}, [=](const JsonValue& v) {
            std::vector<std::string> all;
            for (const JsonValue& one : v.elements()) {
              if (!known.empty()) choice<std::size_t>(one, known);
              all.push_back(one.text());
            }
            if (all.empty()) v.fail("is empty", "name one");
            return all;
          }};
}
/// Values that a function makes of others: made_of(real(0, 1), microseconds).
template <class Written, class Make>
auto made_of(const Notation<Written>& notation, Make make) {
  using T = std::invoke_result_t<Make, Written>;
  return Notation<T>{notation.form, notation.values, notation.words,
                     [read = notation.read, make](const JsonValue& v) { return make(read(v)); }};
}
/// An amount with its unit, or anything else that `read` makes of a value of a file:
/// quantity(&JsonValue::bytes).
template <class Read>
auto quantity(Read read) {
  using T = std::invoke_result_t<Read, const JsonValue&>;
  return Notation<T>{Form::word, "AMOUNT", {}, read};
}

/// One field of a struct: its name, what may be written, and the member that it fills. Files are
/// read by tables of fields, and so are options of the command line that say the same.
template <class Struct>
struct Field {
  std::string name;
  std::function<void(Struct&, const JsonValue&)> fill;
  std::string values = {}, help = {};  ///< Texts of --help.
  bool required = true;                ///< A file must have it.
  bool sourced = false;                ///< Files write {"value": ..., "source": "..."}.
  /// Of the file, with what has been read of it so far; null: always. Else the field is required
  /// where this holds, and passed over where not.
  std::function<bool(const JsonValue& file, const Struct& so_far)> applies = nullptr;

  /// Errors (bad_input): no source, another type or unit, out of range.
  void read(Struct& into, const JsonValue& value) const {
    fill(into, sourced ? value.sourced() : value);
  }
};

/// A field that fills a member, a T or an optional one.
template <class Struct, class Member, class T>
Field<Struct> field(std::string name, Member Struct::*member, const Notation<T>& notation,
                    std::string help = {}) {
  return {std::move(name),
          [member, read = notation.read](Struct& into, const JsonValue& value) {
            into.*member = static_cast<Member>(read(value));
          },
          notation.values, std::move(help)};
}
/// The same of a figure: files name its source.
template <class Struct, class Member, class T>
Field<Struct> figure(std::string name, Member Struct::*member, const Notation<T>& notation) {
  Field<Struct> made = field(std::move(name), member, notation);
  made.sourced = true;
  return made;
}

/// A text that gives the source of the values next to it, and fills nothing.
template <class Struct>
Field<Struct> source_of() {
  return {"source", [](Struct&, const JsonValue& value) { some_text("source").read(value); }};
}

/// The same field, which a file may leave out.
template <class Struct>
Field<Struct> optional(Field<Struct> field) {
  field.required = false;
  return field;
}
/// The same field, which a file has where `condition` holds.
template <class Struct, class Condition>
Field<Struct> where(Condition condition, Field<Struct> field) {
  field.applies = condition;
  return field;
}
/// A field of a part as a field of the whole.
template <class Whole, class Part>
Field<Whole> within(Part Whole::*part, const Field<Part>& of) {
  return {of.name,
          [part, fill = of.fill](Whole& into, const JsonValue& value) { fill(into.*part, value); },
          of.values,
          of.help,
          of.required,
          of.sourced};
}

/// Names of fields, keys and the like.
template <class Named>
std::vector<std::string> names_of(const std::vector<Named>& all) {
  std::vector<std::string> names;
  for (const Named& one : all) names.push_back(one.name);
  return names;
}

/// Reads an object that has these fields, in their order, and `others`, which the caller reads.
/// Errors (bad_input): unknown keys, missing ones, and those of each field.
template <class Struct>
void read_fields(const JsonValue& json, const std::vector<Field<Struct>>& fields, Struct& into,
                 std::vector<std::string> others = {}) {
  for (const Field<Struct>& field : fields) others.push_back(field.name);
  json.allow_only(others);
  for (const Field<Struct>& field : fields) {
    if (field.applies && !field.applies(json, into)) continue;
    if (field.required || json.has(field.name)) field.read(into, json.at(field.name));
  }
}

/// The same by a reader that goes on after an error, and may then read the others.
template <class Struct>
ObjectReader read_fields_of(const JsonValue& json, const std::vector<Field<Struct>>& fields,
                            Struct& into, std::vector<std::string> others = {}) {
  for (const Field<Struct>& field : fields) others.push_back(field.name);
  ObjectReader reader{json, others};
  for (const Field<Struct>& field : fields) {
    if (field.applies && !field.applies(json, into)) continue;
    const auto read = [&](const JsonValue& value) { field.read(into, value); };
    field.required ? reader.required(field.name, read) : reader.optional(field.name, read);
  }
  return reader;
}

/// An object with these fields as the value of another field.
template <class Struct>
Notation<Struct> object(const std::vector<Field<Struct>>& fields) {
  return {Form::word, "", {}, [fields](const JsonValue& json) {
            Struct read;
            read_fields(json, fields, read);
            return read;
          }};
}

}  // namespace orrery
