// A library to be loaded before the C library (LD_PRELOAD): the FAULT_AT-th call that reads,
// writes, cuts, synchronises or renames a file below FAULT_FOLDER fails as FAULT says: "ENOSPC" or
// "EIO" with that error, "EINTR" and "short" as a signal or a full pipe would have it, "kill" ends
// the process. FAULT_COUNT names a file that the number of calls is written to. Forked processes
// are left alone, so that the count is the same every time.
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

const char* text(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

const pid_t process = ::getpid();
const char* const folder = text("FAULT_FOLDER");
const char* const fault = text("FAULT");
const long at = std::atol(text("FAULT_AT"));
long calls = 0;

// The program ends at every call without cleaning up.
void tell_count() {
  if (!*text("FAULT_COUNT")) return;
  char number[32];
  const int size = std::snprintf(number, sizeof number, "%ld\n", calls);
  static const int file = ::open(text("FAULT_COUNT"), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (::syscall(SYS_pwrite64, file, number, size, 0) < 0) std::abort();
}

bool is_below(const char* path) { return *folder && std::strstr(path, folder) == path; }

bool is_below(int file) {
  char link[64], path[4096];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t size = ::readlink(link, path, sizeof path - 1);
  if (size <= 0) return false;
  path[size] = '\0';
  return is_below(path);
}

// True if this call is the one that fails. Only calls that move bytes are interrupted or short.
bool is_due(bool concerned, bool moves_bytes) {
  if (!concerned || ::getpid() != process) return false;
  ++calls;
  tell_count();
  if (calls != at) return false;
  if (std::strcmp(fault, "kill") == 0) ::kill(process, SIGKILL);
  const bool partial = std::strcmp(fault, "EINTR") == 0 || std::strcmp(fault, "short") == 0;
  return moves_bytes || !partial;
}

bool is_short() { return std::strcmp(fault, "short") == 0; }

int failed() {
  errno = std::strcmp(fault, "ENOSPC") == 0  ? ENOSPC
          : std::strcmp(fault, "EINTR") == 0 ? EINTR
                                             : EIO;
  return -1;
}

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

ssize_t read(int file, void* into, std::size_t size) {
  static const auto real = next<ssize_t (*)(int, void*, std::size_t)>("read");
  if (!is_due(is_below(file), true)) return real(file, into, size);
  return is_short() ? real(file, into, (size + 1) / 2) : failed();
}

ssize_t pread(int file, void* into, std::size_t size, off_t offset) {
  static const auto real = next<ssize_t (*)(int, void*, std::size_t, off_t)>("pread");
  if (!is_due(is_below(file), true)) return real(file, into, size, offset);
  return is_short() ? real(file, into, (size + 1) / 2, offset) : failed();
}

ssize_t write(int file, const void* from, std::size_t size) {
  static const auto real = next<ssize_t (*)(int, const void*, std::size_t)>("write");
  if (!is_due(is_below(file), true)) return real(file, from, size);
  return is_short() ? real(file, from, (size + 1) / 2) : failed();
}

ssize_t pwrite(int file, const void* from, std::size_t size, off_t offset) {
  static const auto real = next<ssize_t (*)(int, const void*, std::size_t, off_t)>("pwrite");
  if (!is_due(is_below(file), true)) return real(file, from, size, offset);
  return is_short() ? real(file, from, (size + 1) / 2, offset) : failed();
}

ssize_t pread64(int file, void* into, std::size_t size, off_t offset) {
  return pread(file, into, size, offset);
}

ssize_t pwrite64(int file, const void* from, std::size_t size, off_t offset) {
  return pwrite(file, from, size, offset);
}

int fsync(int file) {
  static const auto real = next<int (*)(int)>("fsync");
  return is_due(is_below(file), false) ? failed() : real(file);
}

int fdatasync(int file) {
  static const auto real = next<int (*)(int)>("fdatasync");
  return is_due(is_below(file), false) ? failed() : real(file);
}

int ftruncate(int file, off_t size) {
  static const auto real = next<int (*)(int, off_t)>("ftruncate");
  return is_due(is_below(file), false) ? failed() : real(file, size);
}

int ftruncate64(int file, off_t size) { return ftruncate(file, size); }

int rename(const char* from, const char* to) {
  static const auto real = next<int (*)(const char*, const char*)>("rename");
  // Names may be relative; nothing else than outputs is renamed.
  return is_due(true, false) ? failed() : real(from, to);
}

}  // extern "C"
