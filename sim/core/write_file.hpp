#pragma once

#include <deque>
#include <string>
#include <vector>

namespace orrery {

/// Writes a file piece by piece so that a reader finds the old file or the whole new one, never a
/// part, also after a loss of power: a temporary file in the same folder, when it is on the disk,
/// takes the name's place in commit(). A link is followed; a device or a pipe, such as /dev/stdout,
/// is written to directly. An existing file keeps its permissions. What processes that were killed
/// left of the same file is removed.
/// Errors (bad_input): the file cannot be written, and why. Nothing is left behind then, nor
/// without commit().
class FileWriter {
 public:
  explicit FileWriter(const std::string& path);
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  void append(const std::string& text);
  void commit();

  /// The two halves of commit(), for several files that belong together: all of it on the disk,
  /// then under its name.
  void prepare();
  void publish();

 private:
  void flush();
  void drop();
  [[noreturn]] void refuse(int error);

  std::string target_;
  std::string temporary_;  ///< Empty: the target itself is written to.
  std::string waiting_;    ///< Collected for a write of reasonable size.
  int file_ = -1;
};

/// All of `text` in one go, as FileWriter does.
void write_file(const std::string& path, const std::string& text);

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
  /// "-": standard output.
  void add(const std::string& name, const std::string& text);
  void commit();

 private:
  bool force_;
  std::vector<std::string> paths_;
  std::deque<FileWriter> files_;
};

/// One such file.
inline void write_output(const std::string& path, const std::string& text, bool force) {
  OutputFiles files{force};
  files.add(path, text);
  files.commit();
}

}  // namespace orrery
