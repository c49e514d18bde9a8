#pragma once

#include <set>
#include <string>

namespace orrery {

/// All bytes of a regular file, which is where everything that the program reads comes from.
/// Errors (bad_input): it cannot be opened or read; it is a pipe, a device or a folder. None of
/// these is waited for.
std::string read_input_file(const std::string& path);

/// The paths of all files that are read while it lives.
class FilesRead {
 public:
  FilesRead();
  ~FilesRead();
  FilesRead(const FilesRead&) = delete;
  FilesRead& operator=(const FilesRead&) = delete;

  const std::set<std::string>& paths() const { return paths_; }

  /// Of the one that lives the longest: main()'s. Nothing where there is none.
  static std::set<std::string> by_this_process();

 private:
  friend std::string read_input_file(const std::string& path);

  static FilesRead* innermost_;
  FilesRead* outer_;
  std::set<std::string> paths_;
};

}  // namespace orrery
