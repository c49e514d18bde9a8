#pragma once

#include <concepts>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/error.hpp"

namespace orrery {

/// All bytes of a regular file, which is where everything that the program reads comes from.
/// Errors (bad_input): it cannot be opened or read; it is a pipe, a device or a folder. None of
/// these is waited for.
std::string read_input_file(const std::string& path);

/// The name of standard input among files, as "-" of other programs.
inline constexpr const char* standard_input = "-";
/// All that standard input holds, however often it is asked for. Errors (bad_input): it cannot be
/// read, or holds more than read_text_file() takes.
const std::string& read_standard_input();

/// The paths of all files that are read while it lives.
class FilesRead {
 public:
  FilesRead();
  ~FilesRead();
  FilesRead(const FilesRead&) = delete;
  FilesRead& operator=(const FilesRead&) = delete;

  const std::set<std::string>& paths() const { return paths_; }

  /// Paths of the one that lives the longest: main()'s. Empty if there is none.
  static std::set<std::string> by_this_process();

 private:
  friend std::string read_input_file(const std::string& path);

  static FilesRead* innermost_;
  FilesRead* outer_;
  std::set<std::string> paths_;
};

/// The text of a log, or of standard input. Errors (bad_input): no regular file, unreadable, or
/// over 64 MiB, which no log or topology reaches (a whole NVL72 rack's dump is about 100 kB).
std::string read_text_file(const std::string& path);

/// Refuses what is no text: nothing but blanks, NUL bytes, UTF-16. `what`: "an nccl-tests log".
void require_text(const std::string& text, const std::string& file, const std::string& what);

/// Lines without their ends, be they Unix's or Windows'.
std::vector<std::string_view> lines_of(std::string_view text);
std::string_view trimmed(std::string_view text);
std::vector<std::string_view> words_of(std::string_view line);
/// The lines and words are parts of the text: a temporary string would end before they are used.
template <std::same_as<std::string> Text>
void lines_of(Text&& text) = delete;
template <std::same_as<std::string> Text>
void words_of(Text&& line) = delete;
/// Words of a list as a shell, YAML or Python writes it: "a b", "a, b", "['a', 'b']".
std::vector<std::string> items_of(std::string list);

/// All of `word` as a finite number that is not negative; nothing for "N/A", "nan" and the like.
std::optional<double> plain_number(std::string_view word);
/// All of `word` as digits, at most `maximum`.
std::optional<int> plain_integer(std::string_view word, int maximum);

/// Line `index` (from 0) of `file`, as errors show it: "log.txt: line 12".
Place line_place(const std::string& file, std::size_t index);

}  // namespace orrery
