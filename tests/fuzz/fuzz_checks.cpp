#include "tests/fuzz/fuzz_checks.hpp"

#include <stdlib.h>
#include <unistd.h>

#include <fstream>

#include "sim/core/error.hpp"

namespace orrery {
namespace {

namespace fs = std::filesystem;

class ScratchFolder {
 public:
  ScratchFolder() {
    std::string pattern = (fs::temp_directory_path() / "orrery-fuzz-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~ScratchFolder() {
    std::error_code ignored;
    if (::getpid() == owner_) fs::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  const pid_t owner_ = ::getpid();
  fs::path path_;
};

}  // namespace

void check_message(const Error& error) {
  const bool several = dynamic_cast<const SeveralErrors*>(&error);  // A line each.
  for (const char c : std::string{error.what()})
    if (static_cast<unsigned char>(c) < 0x20 && !(several && c == '\n')) __builtin_trap();
}

const fs::path& scratch_folder() {
  static const ScratchFolder folder;
  return folder.path();
}

void write_quickly(const fs::path& path, const std::string& text) {
  std::ofstream{path, std::ios::binary} << text;
}

}  // namespace orrery
