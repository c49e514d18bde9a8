#pragma once

#include <deque>
#include <string>
#include <vector>

#include "sim/core/write_file.hpp"

namespace orrery {

/// Refuses a name under which a file lies that must not be lost: one that this process has read,
/// or, unless `force` is said, one that is not empty and that Orrery did not write, as its
/// beginning tells. Errors (bad_input).
void require_replaceable(const std::string& path, bool force);

/// The files that a command writes: all of them or, whatever happens before the last is whole and
/// on the disk, none.
class OutputFiles {
 public:
  explicit OutputFiles(bool force) : force_{force} {}

  /// Errors (bad_input): as of require_replaceable(); the path is that of another output as well;
  /// it cannot be written.
  void add(const std::string& path, const std::string& text);
  void commit();

 private:
  bool force_;
  std::vector<std::string> paths_;
  std::deque<FileWriter> files_;
};

}  // namespace orrery
