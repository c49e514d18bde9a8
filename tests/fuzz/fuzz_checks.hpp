#pragma once

#include <filesystem>
#include <string>

#include "sim/core/error.hpp"
#include "sim/core/json_value.hpp"

namespace orrery {

inline const Place nowhere{"fuzz", ""};

/// Stops the process unless the message is one printable line: it goes to a terminal.
void check_message(const Error& error);

/// Whether `action` ends without an Error, whose message is looked at.
template <class Action>
bool is_accepted(Action action) {
  try {
    action();
    return true;
  } catch (const Error& error) {
    check_message(error);
    return false;
  }
}

inline JsonValue parsed(const std::string& text) { return JsonValue::parse(text, "fuzz.json"); }

/// A folder of this process alone, which is removed when it ends.
const std::filesystem::path& scratch_folder();

/// Writes a file, as quickly as it can be done.
void write_quickly(const std::filesystem::path& path, const std::string& text);

/// Of what is read from a file alone: whether `action` accepts one of that name and text, whose
/// path it gets.
template <class Action>
bool with_file(const std::string& name, const std::string& text, Action action) {
  const std::string path = (scratch_folder() / name).string();
  write_quickly(path, text);
  return is_accepted([&] { action(path); });
}

}  // namespace orrery
