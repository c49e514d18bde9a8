#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace orrery {

/// Holds `text` against tests/golden/`name`, byte for byte, and shows the first line that differs.
/// With UPDATE_GOLDEN=1 in the environment it writes the file instead; review the difference like
/// code. A file that is missing fails: a test that compares with nothing shows nothing.
inline void expect_golden(const std::string& name, const std::string& text) {
  const std::filesystem::path path =
      std::filesystem::path{ORRERY_TEST_SOURCE} / "tests" / "golden" / name;
  const char* update = std::getenv("UPDATE_GOLDEN");
  if (update && std::string{update} == "1") {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream{path, std::ios::binary} << text;
  }
  std::ifstream file{path, std::ios::binary};
  ASSERT_TRUE(file) << name << " is missing; write it with UPDATE_GOLDEN=1";
  const std::string expected{std::istreambuf_iterator<char>{file}, {}};
  if (text == expected) return;

  std::istringstream have{text}, want{expected};
  std::string have_line, want_line;
  int line = 0;
  bool same = true;
  while (same) {
    ++line;
    const bool more_have = static_cast<bool>(std::getline(have, have_line));
    const bool more_want = static_cast<bool>(std::getline(want, want_line));
    if (!more_have) have_line = "(end)";
    if (!more_want) want_line = "(end)";
    same = more_have && more_want && have_line == want_line;
  }
  ADD_FAILURE() << "tests/golden/" << name << ":" << line << ":\n  golden: " << want_line
                << "\n  now:    " << have_line
                << "\nIf the change is meant, run the test with UPDATE_GOLDEN=1 and look at the "
                   "difference.";
}

}  // namespace orrery
