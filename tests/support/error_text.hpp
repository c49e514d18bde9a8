#pragma once

#include <string>

#include "sim/core/error.hpp"

namespace orrery {

/// The message with which `action` refuses its input; "no error" if it does not.
template <class Action>
std::string error_text(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace orrery
