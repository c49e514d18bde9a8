#include "sim/base/text/write_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "sim/base/core/error.hpp"

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

// Beside the target, so that renaming does not cross file systems; unlike mkstemp's, the file gets
// the permissions that the user's mask allows.
int create_beside(const fs::path& target, fs::path& temporary) {
  for (int attempt = 0;; ++attempt) {
    temporary = target;
    temporary += "." + std::to_string(::getpid()) + "-" + std::to_string(attempt) + ".part";
    const int file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file >= 0 || errno != EEXIST) return file;
  }
}

}  // namespace

FileWriter::FileWriter(const std::string& path) : target_{path} {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (fs::is_directory(status)) refuse(EISDIR);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    file_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (file_ < 0) refuse(errno);
    return;
  }
  fs::path target{path};
  if (fs::is_symlink(fs::symlink_status(target, ignored))) {
    const fs::path followed = fs::weakly_canonical(target, ignored);
    if (!ignored) target = followed;
  }
  target_ = target.string();
  fs::path temporary;
  file_ = create_beside(target, temporary);
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
  flush();
  // Some file systems notice a full disk only here.
  if (::close(std::exchange(file_, -1)) != 0) refuse(errno);
  if (temporary_.empty()) return;
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) refuse(errno);
  temporary_.clear();
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

}  // namespace orrery
