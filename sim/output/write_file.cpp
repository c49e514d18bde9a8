#include "sim/output/write_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "sim/core/error.hpp"

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

[[noreturn]] void refuse(const fs::path& target, int error) {
  fail_input({target.string(), ""}, std::string{"cannot be written: "} + std::strerror(error),
             remedy(error, target));
}

// All of `text`, and the error that kept it from being written (0: none). Closes the file.
int write_and_close(int file, const std::string& text) {
  int error = 0;
  for (std::size_t done = 0; done < text.size() && error == 0;) {
    const ssize_t count = ::write(file, text.data() + done, text.size() - done);
    if (count >= 0)
      done += static_cast<std::size_t>(count);
    else if (errno != EINTR)
      error = errno;
  }
  // Some file systems notice a full disk only here.
  if (::close(file) != 0 && error == 0) error = errno;
  return error;
}

void write_directly(const fs::path& target, const std::string& text) {
  const int file = ::open(target.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) refuse(target, errno);
  if (const int error = write_and_close(file, text)) refuse(target, error);
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

void write_file(const std::string& path, const std::string& text) {
  std::error_code ignored;
  fs::path target{path};
  const fs::file_status status = fs::status(target, ignored);
  if (fs::is_directory(status)) refuse(target, EISDIR);
  if (fs::exists(status) && !fs::is_regular_file(status)) return write_directly(target, text);
  if (fs::is_symlink(fs::symlink_status(target, ignored))) {
    const fs::path followed = fs::weakly_canonical(target, ignored);
    if (!ignored) target = followed;
  }

  fs::path temporary;
  const int file = create_beside(target, temporary);
  if (file < 0) refuse(target, errno);
  int error = write_and_close(file, text);
  if (error == 0 && fs::exists(status)) fs::permissions(temporary, status.permissions(), ignored);
  if (error == 0 && ::rename(temporary.c_str(), target.c_str()) != 0) error = errno;
  if (error == 0) return;
  ::unlink(temporary.c_str());
  refuse(target, error);
}

}  // namespace orrery
