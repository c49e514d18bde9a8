#include "sim/core/text_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>

#include "sim/core/error.hpp"

namespace orrery {
namespace {

constexpr std::uintmax_t largest_text_bytes = 64u << 20;

// All that `number` yields, at most `most` bytes. `expected`: how many, as far as is known.
std::string bytes_of(int number, std::size_t expected, std::uintmax_t most, const Place& place) {
  std::string text(expected, '\0');
  std::size_t done = 0;
  for (;;) {
    if (done == text.size()) text.resize(done + (1 << 16));  // It may have grown.
    const ssize_t count = ::read(number, text.data() + done, text.size() - done);
    if (count == 0) break;
    if (count < 0 && errno != EINTR)
      fail_input(place, std::string{"cannot be read: "} + std::strerror(errno), "check the disk");
    if (count > 0) done += static_cast<std::size_t>(count);
    if (done > most)
      fail_input(place, "holds more than " + std::to_string(most >> 20) + " MiB",
                 "keep only the lines of this run");
  }
  text.resize(done);
  return text;
}

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
  return bytes_of(file.number(), static_cast<std::size_t>(about.st_size),
                  std::numeric_limits<std::uintmax_t>::max(), place);
}

const std::string& read_standard_input() {
  static const std::string all =
      bytes_of(STDIN_FILENO, 0, largest_text_bytes, {standard_input, ""});
  return all;
}

FilesRead* FilesRead::innermost_ = nullptr;

FilesRead::FilesRead() : outer_{innermost_} { innermost_ = this; }

FilesRead::~FilesRead() { innermost_ = outer_; }

std::set<std::string> FilesRead::by_this_process() {
  const FilesRead* record = innermost_;
  while (record && record->outer_) record = record->outer_;
  return record ? record->paths_ : std::set<std::string>{};
}

namespace {

constexpr std::string_view whitespace = " \t\n\r\v\f";

}  // namespace

std::string read_text_file(const std::string& path) {
  namespace fs = std::filesystem;
  if (path == standard_input) return read_standard_input();
  const Place place{path, ""};
  std::error_code code;
  const fs::file_status status = fs::status(path, code);
  if (!fs::exists(status)) fail_input(place, "no such file", "check the path");
  if (fs::is_directory(status)) fail_input(place, "is a directory", "name a file in it");
  if (!fs::is_regular_file(status)) fail_input(place, "is not a regular file", "save it to a file");
  const std::uintmax_t size = fs::file_size(path, code);
  if (!code && size > largest_text_bytes)
    fail_input(place, "has " + std::to_string(size >> 20) + " MiB, more than the 64 MiB allowed",
               "keep only the lines of this run");
  return read_input_file(path);
}

void require_text(const std::string& text, const std::string& file, const std::string& what) {
  const Place place{file, ""};
  if (text.find_first_not_of(" \t\r\n") == text.npos) fail_input(place, "is empty", "give " + what);
  const bool is_utf16 = text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff");
  if (is_utf16) fail_input(place, "is UTF-16 text", "convert it to UTF-8");
  if (text.find('\0') != text.npos) fail_input(place, "is a binary file", "give " + what);
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
  return lines;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(whitespace);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(whitespace) - first + 1);
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t at = line.find_first_not_of(whitespace); at != line.npos;
       at = line.find_first_not_of(whitespace, at)) {
    const std::size_t end = std::min(line.find_first_of(whitespace, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

std::vector<std::string> items_of(std::string list) {
  for (char& c : list)
    if (std::string_view{",[]'\""}.find(c) != std::string_view::npos) c = ' ';
  const std::vector<std::string_view> words = words_of(list);
  return {words.begin(), words.end()};
}

std::optional<double> plain_number(std::string_view word) {
  double value = 0.0;
  const auto [rest, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  const bool whole = error == std::errc{} && rest == word.data() + word.size();
  if (!whole || !std::isfinite(value) || value < 0.0) return std::nullopt;
  return value;
}

std::optional<int> plain_integer(std::string_view word, int maximum) {
  int value = 0;
  const auto [rest, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  const bool whole = error == std::errc{} && rest == word.data() + word.size();
  if (!whole || value < 0 || value > maximum) return std::nullopt;
  return value;
}

Place line_place(const std::string& file, std::size_t index) {
  return {file, "line " + std::to_string(index + 1)};
}

}  // namespace orrery
