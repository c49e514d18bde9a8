#include "sim/sweep/shard_file.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string_view>

namespace orrery {
namespace {

constexpr std::string_view partial = ".part";

[[noreturn]] void refuse(const std::string& path, const std::string& doing, int error) {
  const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  fail_input({path, ""}, "cannot be " + doing + ": " + std::strerror(error),
             full ? "make room and run the same command again; what is written counts"
                  : "check the path, its permissions and the disk");
}

[[noreturn]] void refuse_header(const std::string& path) {
  fail_input({path, ""}, "holds rows of another sweep, of another version of it or of the program",
             "name another --output folder, or remove this one");
}

// Advisory, and not inherited by forked workers. Where the file system knows no locks, none is
// kept.
bool is_locked_elsewhere(int file) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return ::fcntl(file, F_SETLK, &lock) != 0 && (errno == EACCES || errno == EAGAIN);
}

std::string shard_name(Shard shard) {
  char name[64];
  std::snprintf(name, sizeof name, "shard-%05d-of-%05d.jsonl", shard.index, shard.of);
  return name;
}

// Bytes [offset, offset + size) of an open file, fewer at its end.
std::string read_at(int file, std::int64_t offset, std::size_t size, const std::string& path) {
  std::string bytes(size, '\0');
  std::size_t done = 0;
  while (done < size) {
    const ssize_t count =
        ::pread(file, bytes.data() + done, size - done, offset + static_cast<off_t>(done));
    if (count == 0) break;
    if (count < 0 && errno != EINTR) refuse(path, "read", errno);
    if (count > 0) done += static_cast<std::size_t>(count);
  }
  bytes.resize(done);
  return bytes;
}

// The file to be read; -1: there is none. A pipe is not waited for.
int open_to_read(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0 && errno != ENOENT) refuse(path, "read", errno);
  return file;
}

void require_regular(int file, const std::string& path) {
  struct stat about {};
  if (::fstat(file, &about) == 0 && S_ISREG(about.st_mode)) return;
  ::close(file);
  fail_input({path, ""}, "is no file", "remove it; its points will be computed again");
}

// True if it is this sweep's. It belongs to another one only if its seal is sound.
bool is_header(const std::string& line, const ShardHeader& header, const std::string& path) {
  if (line == header.line) return true;
  if (unsealed(line)) refuse_header(path);
  return false;
}

// Reads an open file's rows as far as they are sound. `size`: of these, with the header.
ShardContents read_contents(int file, const std::string& path, const ShardHeader& header,
                            const OnRow& on_row, std::int64_t& size) {
  constexpr std::size_t chunk = 1 << 20;
  const RowSeal seal{header};
  ShardContents found;
  std::string line;
  bool has_header = false;
  size = 0;
  for (std::int64_t offset = 0; found.damage.empty();) {
    const std::string bytes = read_at(file, offset, chunk, path);
    if (bytes.empty()) break;
    for (std::size_t begin = 0; begin < bytes.size();) {
      const std::size_t end = bytes.find('\n', begin);
      line.append(bytes, begin, std::min(end, bytes.size()) - begin);
      if (end == bytes.npos) break;
      if (!has_header) {
        has_header = is_header(line, header, path);
        if (!has_header) found.damage = "the first line is damaged";
      } else if (const auto row = seal.open(found.rows, line); row && found.rows < header.rows) {
        if (on_row) on_row(found.rows, *row);
        ++found.rows;
      } else {
        found.damage = "row " + std::to_string(found.rows + 1) + " is damaged";
      }
      if (!found.damage.empty()) break;
      line.clear();
      begin = end + 1;
      size = offset + static_cast<std::int64_t>(begin);
    }
    offset += static_cast<std::int64_t>(bytes.size());
  }
  found.complete = found.damage.empty() && has_header && found.rows == header.rows && line.empty();
  const bool whole = !path.ends_with(partial);
  if (found.damage.empty() && whole && !found.complete)
    found.damage =
        "it ends after row " + std::to_string(found.rows) + " of " + std::to_string(header.rows);
  return found;
}

// So that a name outlives a loss of power. Not every file system can.
void sync_folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path{path}.parent_path().string();
  const int file =
      ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return;
  const bool failed = ::fsync(file) != 0 && errno != EINVAL;
  const int error = errno;
  ::close(file);
  if (failed) refuse(path, "written", error);
}

}  // namespace

std::string shard_path(const std::string& folder, Shard shard) {
  return (std::filesystem::path{folder} / shard_name(shard)).string();
}

std::string partial_shard_path(const std::string& folder, Shard shard) {
  return shard_path(folder, shard) + std::string{partial};
}

ShardContents read_shard(const std::string& path, const ShardHeader& header, const OnRow& on_row) {
  const int file = open_to_read(path);
  if (file < 0) return {};
  require_regular(file, path);
  try {
    std::int64_t size = 0;
    ShardContents found = read_contents(file, path, header, on_row, size);
    ::close(file);
    return found;
  } catch (...) {
    ::close(file);
    throw;
  }
}

ShardWriter::ShardWriter(const std::string& folder, Shard shard, const ShardHeader& header,
                         const OnRow& on_row)
    : path_{partial_shard_path(folder, shard)},
      final_path_{shard_path(folder, shard)},
      seal_{header} {
  // A file that outgrows the limit of its size shall be an error like a full disk, not a signal.
  ::signal(SIGXFSZ, SIG_IGN);
  file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0666);
  if (file_ < 0) refuse(path_, "written", errno);
  require_regular(file_, path_);
  try {
    if (is_locked_elsewhere(file_))
      fail_input({path_, ""}, "is being written by another process",
                 "wait until it ends, or give this one another --shard");
    contents_ = read_contents(
        file_, path_, header,
        [&](std::int64_t place, const std::string& row) {
          last_row_ = row;
          if (on_row) on_row(place, row);
        },
        size_);
    if (::ftruncate(file_, size_) != 0) refuse(path_, "written", errno);
    if (size_ == 0) write(header.line + "\n");
  } catch (...) {
    ::close(file_);
    throw;
  }
}

ShardWriter::~ShardWriter() {
  if (file_ >= 0) ::close(file_);
}

void ShardWriter::write(const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t count = ::pwrite(file_, text.data() + done, text.size() - done,
                                   size_ + static_cast<std::int64_t>(done));
    if (count >= 0) {
      done += static_cast<std::size_t>(count);
    } else if (errno != EINTR) {
      const int error = errno;
      // Whole rows stay; the part of this one would be cut off by the next run all the same.
      if (::ftruncate(file_, size_) != 0) refuse(path_, "written", errno);
      refuse(path_, "written", error);
    }
  }
  size_ += static_cast<std::int64_t>(text.size());
}

void ShardWriter::append(const std::string& row) {
  write(seal_.seal(contents_.rows, row) + "\n");
  ++contents_.rows;
  last_row_ = row;
}

void ShardWriter::complete() {
  if (::fsync(file_) != 0 && errno != EINVAL) refuse(path_, "written", errno);
  // Another process that was faster has written the same bytes.
  if (::rename(path_.c_str(), final_path_.c_str()) != 0 &&
      !(errno == ENOENT && ::access(final_path_.c_str(), F_OK) == 0))
    refuse(final_path_, "written", errno);
  sync_folder_of(final_path_);
}

void ShardWriter::discard() {
  if (::unlink(path_.c_str()) != 0 && errno != ENOENT) refuse(path_, "removed", errno);
}

ShardReader::ShardReader(const std::string& path, const ShardHeader& header, std::size_t chunk)
    : path_{path}, header_{header}, seal_{header}, chunk_{chunk} {
  const auto first = next_line();
  if (first ? !is_header(*first, header, path) : !path_.ends_with(partial))
    refuse_damage("the first line is damaged");
}

std::optional<std::string> ShardReader::next() {
  const auto line = next_line();
  if (!line) {
    if (!path_.ends_with(partial) && (rows_ < header_.rows || !buffer_.empty()))
      refuse_damage("it ends after row " + std::to_string(rows_) + " of " +
                    std::to_string(header_.rows));
    return std::nullopt;
  }
  auto row = seal_.open(rows_, *line);
  if (!row || rows_ == header_.rows)
    refuse_damage("row " + std::to_string(rows_ + 1) + " is damaged");
  ++rows_;
  return row;
}

// The file is opened anew for each chunk: a sweep may have more shards than a process open files.
std::optional<std::string> ShardReader::next_line() {
  for (;;) {
    const std::size_t end = buffer_.find('\n', at_);
    if (end != buffer_.npos) {
      std::string line = buffer_.substr(at_, end - at_);
      at_ = end + 1;
      return line;
    }
    buffer_.erase(0, at_);
    at_ = 0;
    int file = open_to_read(path_);
    if (file < 0 && path_.ends_with(partial)) {
      path_.erase(path_.size() - partial.size());  // It was completed in the meantime.
      file = open_to_read(path_);
    }
    if (file < 0) refuse(path_, "read", ENOENT);
    require_regular(file, path_);
    std::string bytes;
    try {
      bytes = read_at(file, offset_, chunk_, path_);
    } catch (...) {
      ::close(file);
      throw;
    }
    ::close(file);
    if (bytes.empty()) return std::nullopt;
    offset_ += static_cast<std::int64_t>(bytes.size());
    buffer_ += bytes;
  }
}

void ShardReader::refuse_damage(const std::string& what) const {
  fail_input({path_, ""}, what, "run orrery sweep run again: it computes again what is damaged");
}

// Line 1 is the header.
Place ShardReader::place() const { return {path_ + ":" + std::to_string(rows_ + 1), ""}; }

}  // namespace orrery
