#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace orrery {

/// The checkout that these tests were built from, read as text.
inline const std::filesystem::path& source_tree() {
  static const std::filesystem::path root{ORRERY_TEST_SOURCE};
  return root;
}

inline std::string contents(const std::filesystem::path& file) {
  std::ifstream in{file, std::ios::binary};
  EXPECT_TRUE(in) << file << " cannot be read";
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

inline std::vector<std::string> lines_of(const std::filesystem::path& file) {
  std::istringstream in{contents(file)};
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// Regular files below `folder` of the checkout with one of `extensions`, relative to it, sorted.
inline std::vector<std::string> files_below(const std::string& folder,
                                            const std::vector<std::string>& extensions) {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator{source_tree() / folder})
    if (entry.is_regular_file() && std::find(extensions.begin(), extensions.end(),
                                             entry.path().extension().string()) != extensions.end())
      files.push_back(fs::relative(entry.path(), source_tree()).string());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace orrery
