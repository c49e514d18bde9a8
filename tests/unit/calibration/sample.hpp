#pragma once

#include <gtest/gtest.h>

#include <string>

#include "sim/core/error.hpp"
#include "sim/core/text_file.hpp"

namespace orrery {

/// A file of the folder data: written for these tests in the layouts of the tools, with invented
/// figures.
inline std::string sample(const std::string& name) {
  return read_text_file(std::string{ORRERY_TEST_SOURCE} + "/tests/unit/calibration/data/" + name);
}

/// `text` with the first `right` replaced by `wrong`.
inline std::string replaced(std::string text, const std::string& right, const std::string& wrong) {
  const std::size_t at = text.find(right);
  EXPECT_NE(at, text.npos) << right;
  return at == text.npos ? text : text.replace(at, right.size(), wrong);
}

inline std::string replaced_everywhere(std::string text, const std::string& right,
                                       const std::string& wrong) {
  EXPECT_NE(text.find(right), text.npos) << right;
  for (std::size_t at = 0; (at = text.find(right, at)) != text.npos; at += wrong.size())
    text.replace(at, right.size(), wrong);
  return text;
}

/// The message with which `action` refuses.
template <class Action>
std::string refusal_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::bad_input);
    return error.what();
  }
  return "no error";
}

}  // namespace orrery
