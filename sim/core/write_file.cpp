#include "sim/core/write_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>

#include "sim/core/error.hpp"
#include "sim/core/text_file.hpp"

namespace orrery {
namespace {

namespace fs = std::filesystem;

std::string remedy(int error, const fs::path& target) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return "name a file in a folder that exists";
    case EISDIR:
      return "name a file in it, such as " + (target / "out.json").string();
    case EACCES:
    case EPERM:
    case EROFS:
      return "choose a folder that you may write to";
    case ENOSPC:
    case EDQUOT:
      return "free some space, or choose another disk";
    default:
      return "choose another file or folder";
  }
}

constexpr std::string_view ending = ".part";

// Names of temporary files end in the number of the process, of the attempt, and `ending`.
bool is_temporary_of(const std::string& name, const std::string& target) {
  if (!name.starts_with(target + ".") || !name.ends_with(ending)) return false;
  const std::string between =
      name.substr(target.size() + 1, name.size() - target.size() - 1 - ending.size());
  return !between.empty() && between.find_first_not_of("0123456789-") == between.npos;
}

// Every process locks its temporary file, so that one without a lock is a leftover.
void remove_leftovers(const fs::path& target) {
  std::error_code code;
  const fs::path folder = target.has_parent_path() ? target.parent_path() : fs::path{"."};
  for (fs::directory_iterator entry{folder, code}, end; !code && entry != end;
       entry.increment(code)) {
    if (!is_temporary_of(entry->path().filename().string(), target.filename().string())) continue;
    const int file = ::open(entry->path().c_str(), O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0) continue;
    if (::flock(file, LOCK_EX | LOCK_NB) == 0) ::unlink(entry->path().c_str());
    ::close(file);
  }
}

// The file lies next to the target, so that renaming does not cross file systems; unlike mkstemp's,
// it gets the permissions that the user's mask allows.
int create_next_to(const fs::path& target, fs::path& temporary) {
  for (int attempt = 0;; ++attempt) {
    temporary = target;
    temporary += "." + std::to_string(::getpid()) + "-" + std::to_string(attempt);
    temporary += ending;
    const int file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0 && errno == EEXIST) continue;
    if (file < 0) return file;
    // A file system without locks keeps its leftovers.
    ::flock(file, LOCK_EX | LOCK_NB);
    struct stat about {};
    if (::fstat(file, &about) == 0 && about.st_nlink > 0) return file;
    ::close(file);  // Taken for a leftover before it was locked.
  }
}

}  // namespace

FileWriter::FileWriter(const std::string& path) : target_{path} {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (fs::is_directory(status)) refuse(EISDIR);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    // Opening a pipe without a reader would block.
    file_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK);
    if (file_ < 0 && errno == ENXIO)
      fail_input({path, ""}, "is a pipe without a reader",
                 "start its reader first, or name a file");
    if (file_ < 0) refuse(errno);
    ::fcntl(file_, F_SETFL, ::fcntl(file_, F_GETFL) & ~O_NONBLOCK);
    return;
  }
  fs::path target{path};
  if (fs::is_symlink(fs::symlink_status(target, ignored))) {
    const fs::path followed = fs::weakly_canonical(target, ignored);
    if (!ignored) target = followed;
  }
  target_ = target.string();
  remove_leftovers(target);
  fs::path temporary;
  file_ = create_next_to(target, temporary);
  if (file_ < 0) refuse(errno);
  temporary_ = temporary.string();
  if (fs::exists(status)) fs::permissions(temporary, status.permissions(), ignored);
}

FileWriter::~FileWriter() { drop(); }

void FileWriter::append(const std::string& text) {
  constexpr std::size_t enough = 1 << 18;
  waiting_ += text;
  if (waiting_.size() >= enough) flush();
}

void FileWriter::flush() {
  for (std::size_t done = 0; done < waiting_.size();) {
    const ssize_t count = ::write(file_, waiting_.data() + done, waiting_.size() - done);
    if (count >= 0)
      done += static_cast<std::size_t>(count);
    else if (errno != EINTR)
      refuse(errno);
  }
  waiting_.clear();
}

void FileWriter::commit() {
  prepare();
  publish();
}

void FileWriter::prepare() {
  flush();
  // Pipes and some devices have nothing to wait for.
  if (!temporary_.empty() && ::fsync(file_) != 0 && errno != EINVAL) refuse(errno);
  // The lock of a temporary file ends with publish().
  if (!temporary_.empty()) return;
  // Some file systems notice a full disk only here.
  if (::close(std::exchange(file_, -1)) != 0) refuse(errno);
}

void FileWriter::publish() {
  if (temporary_.empty()) return;
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) refuse(errno);
  temporary_.clear();
  if (::close(std::exchange(file_, -1)) != 0) refuse(errno);
  // So that the name outlives a loss of power as well. Not every file system can.
  const std::string folder = fs::path{target_}.parent_path().string();
  const int file =
      ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return;
  const int error = ::fsync(file) == 0 || errno == EINVAL ? 0 : errno;
  ::close(file);
  if (error != 0) refuse(error);
}

void FileWriter::drop() {
  if (file_ >= 0) ::close(std::exchange(file_, -1));
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  temporary_.clear();
}

void FileWriter::refuse(int error) {
  drop();
  fail_input({target_, ""}, std::string{"cannot be written: "} + std::strerror(error),
             remedy(error, target_));
}

void write_file(const std::string& path, const std::string& text) {
  FileWriter file{path};
  file.append(text);
  file.commit();
}

namespace {

namespace fs = std::filesystem;

// Beginnings of all that Orrery writes: JSON with a schema, HTML, SVG and Graphviz with a remark, a
// trace, the rows of a sweep.
bool is_by_orrery(const std::string& path) {
  std::string text(4096, '\0');
  std::ifstream file{path, std::ios::binary};
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.empty()) return true;
  for (const std::string_view mark :
       {R"("schema": "orrery.)", R"("schema":"orrery.)", R"(name="generator" content="orrery")",
        "<!-- orrery -->", "// orrery\n"})
    if (text.find(mark) != text.npos) return true;
  for (const std::string_view beginning : {R"({"displayTimeUnit":"ms",)"
                                           "\n"
                                           R"("otherData":{"model":)",
                                           R"({"point":)", "point,"})
    if (text.starts_with(beginning)) return true;
  return false;
}

bool is_same_file(const std::string& one, const std::string& other) {
  std::error_code code;
  if (fs::equivalent(one, other, code)) return true;
  // Names decide for files that do not exist yet.
  return fs::weakly_canonical(fs::absolute(one, code), code) ==
         fs::weakly_canonical(fs::absolute(other, code), code);
}

}  // namespace

void require_replaceable(const std::string& path, bool force) {
  std::error_code code;
  if (!fs::is_regular_file(path, code)) return;
  for (const std::string& input : FilesRead::by_this_process())
    if (is_same_file(path, input))
      fail_input({path, ""}, "is also what is read", "name another file");
  if (!force && !is_by_orrery(path))
    fail_input({path, ""}, "is there, and Orrery did not write it",
               "name another file, or say --force to replace it");
}

void OutputFiles::add(const std::string& name, const std::string& text) {
  const std::string path = name == "-" ? "/dev/stdout" : name;
  require_replaceable(path, force_);
  std::error_code code;
  const bool is_device = fs::exists(path, code) && !fs::is_regular_file(path, code);
  for (const std::string& other : paths_)
    if (!is_device && is_same_file(path, other))
      fail_input({path, ""}, "is named for two outputs", "name a file for each");
  paths_.push_back(path);
  files_.emplace_back(path).append(text);
}

void OutputFiles::commit() {
  for (FileWriter& file : files_) file.prepare();
  for (FileWriter& file : files_) file.publish();
  files_.clear();
}

}  // namespace orrery
