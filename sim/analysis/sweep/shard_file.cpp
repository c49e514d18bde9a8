#include "sim/analysis/sweep/shard_file.hpp"

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
#include <vector>

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
             "name another --out folder, or remove this one");
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

}  // namespace

std::string shard_path(const std::string& folder, Shard shard) {
  return (std::filesystem::path{folder} / shard_name(shard)).string();
}

std::string partial_shard_path(const std::string& folder, Shard shard) {
  return shard_path(folder, shard) + std::string{partial};
}

ShardWriter::ShardWriter(const std::string& folder, Shard shard, const std::string& header)
    : path_{partial_shard_path(folder, shard)}, final_path_{shard_path(folder, shard)} {
  // A file that outgrows the limit of its size shall be an error like a full disk, not a signal.
  ::signal(SIGXFSZ, SIG_IGN);
  file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file_ < 0) refuse(path_, "written", errno);
  if (is_locked_elsewhere(file_)) {
    ::close(file_);
    fail_input({path_, ""}, "is being written by another process",
               "wait until it ends, or give this one another --shard");
  }
  try {
    read_what_is_there(header);
  } catch (...) {
    ::close(file_);
    throw;
  }
}

ShardWriter::~ShardWriter() {
  if (file_ >= 0) ::close(file_);
}

void ShardWriter::read_what_is_there(const std::string& header) {
  constexpr std::size_t chunk = 1 << 20;
  std::string line;
  std::int64_t lines = 0;
  for (std::int64_t offset = 0;;) {
    const std::string bytes = read_at(file_, offset, chunk, path_);
    if (bytes.empty()) break;
    for (std::size_t begin = 0; begin < bytes.size();) {
      const std::size_t end = bytes.find('\n', begin);
      line.append(bytes, begin, std::min(end, bytes.size()) - begin);
      if (end == bytes.npos) break;
      if (lines++ == 0 && line != header) refuse_header(path_);
      last_row_ = std::move(line);
      line.clear();
      begin = end + 1;
      size_ = offset + static_cast<std::int64_t>(begin);
    }
    offset += static_cast<std::int64_t>(bytes.size());
  }
  if (::ftruncate(file_, size_) != 0) refuse(path_, "written", errno);
  if (lines == 0) write(header + "\n");
  rows_ = std::max<std::int64_t>(0, lines - 1);
  if (rows_ == 0) last_row_.clear();
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
  write(row + "\n");
  ++rows_;
}

void ShardWriter::complete() {
  if (::fsync(file_) != 0 && errno != EINVAL) refuse(path_, "written", errno);
  // Another process that was faster has written the same bytes.
  if (::rename(path_.c_str(), final_path_.c_str()) != 0 &&
      !(errno == ENOENT && ::access(final_path_.c_str(), F_OK) == 0))
    refuse(final_path_, "written", errno);
}

ShardReader::ShardReader(const std::string& path, const std::string& header, std::size_t chunk)
    : path_{path}, chunk_{chunk} {
  if (const auto first = next(); first && *first != header) refuse_header(path);
}

// The file is opened anew for each chunk: a sweep may have more shards than a process open files.
std::optional<std::string> ShardReader::next() {
  for (;;) {
    const std::size_t end = buffer_.find('\n', at_);
    if (end != buffer_.npos) {
      std::string line = buffer_.substr(at_, end - at_);
      at_ = end + 1;
      ++line_;
      return line;
    }
    buffer_.erase(0, at_);
    at_ = 0;
    int file = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0 && errno == ENOENT && path_.ends_with(partial)) {
      path_.erase(path_.size() - partial.size());  // It was completed in the meantime.
      file = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    }
    if (file < 0) refuse(path_, "read", errno);
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

Place ShardReader::place() const { return {path_ + ":" + std::to_string(line_), ""}; }

std::int64_t count_lines(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  std::vector<char> buffer(1 << 20);
  std::int64_t lines = 0;
  for (;;) {
    const ssize_t count = ::read(file, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    lines += std::count(buffer.begin(), buffer.begin() + count, '\n');
  }
  ::close(file);
  return lines;
}

}  // namespace orrery
