#include "sim/core/input_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "sim/core/error.hpp"

namespace orrery {
namespace {

// Closes itself, whatever happens.
class OpenFile {
 public:
  // A pipe without a writer would be waited for.
  explicit OpenFile(const std::string& path)
      : number_{::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)} {}
  ~OpenFile() {
    if (number_ >= 0) ::close(number_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  int number() const { return number_; }

 private:
  int number_;
};

}  // namespace

std::string read_input_file(const std::string& path) {
  const Place place{path, ""};
  const OpenFile file{path};
  if (file.number() < 0)
    fail_input(place, "cannot be opened",
               errno == ENOENT ? "check the path" : "check its permissions");
  struct stat about {};
  if (::fstat(file.number(), &about) != 0 || !S_ISREG(about.st_mode))
    fail_input(place, "is not a regular file", "save it to a file");
  for (FilesRead* record = FilesRead::innermost_; record; record = record->outer_)
    record->paths_.insert(path);
  std::string text(static_cast<std::size_t>(about.st_size), '\0');
  std::size_t done = 0;
  for (;;) {
    if (done == text.size()) text.resize(done + (1 << 16));  // It may have grown.
    const ssize_t count = ::read(file.number(), text.data() + done, text.size() - done);
    if (count == 0) break;
    if (count < 0 && errno != EINTR)
      fail_input(place, std::string{"cannot be read: "} + std::strerror(errno), "check the disk");
    if (count > 0) done += static_cast<std::size_t>(count);
  }
  text.resize(done);
  return text;
}

FilesRead* FilesRead::innermost_ = nullptr;

FilesRead::FilesRead() : outer_{innermost_} { innermost_ = this; }

FilesRead::~FilesRead() { innermost_ = outer_; }

std::set<std::string> FilesRead::by_this_process() {
  const FilesRead* record = innermost_;
  while (record && record->outer_) record = record->outer_;
  return record ? record->paths_ : std::set<std::string>{};
}

}  // namespace orrery
