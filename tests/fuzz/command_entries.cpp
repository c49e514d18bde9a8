// The words of a command line and the environment, as main() gets them: a line a word, before them
// lines such as "SLURM_ARRAY_TASK_ID=3".
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <map>
#include <sstream>

#include "sim/cli/command.hpp"
#include "sim/core/text_file.hpp"
#include "tests/fuzz/corpus.hpp"
#include "tests/fuzz/entry_groups.hpp"
#include "tests/fuzz/fuzz_checks.hpp"

namespace orrery {
namespace {

namespace fs = std::filesystem;

// Both streams, kept from a terminal and, of stdout, readable.
class Silence {
 public:
  Silence() : out_{std::cout.rdbuf(text_.rdbuf())}, error_{std::cerr.rdbuf(errors_.rdbuf())} {}
  ~Silence() {
    std::cout.rdbuf(out_);
    std::cerr.rdbuf(error_);
  }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;
  std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_, errors_;
  std::streambuf* out_;
  std::streambuf* error_;
};

// What a command line may name: of each reader a text that it may accept, called as the reader is
// with ".json" behind it. A command that writes does so here; then the folder is made anew.
class SampleFolder {
 public:
  SampleFolder() { make(); }

  void enter() {
    before_ = fs::current_path();
    fs::current_path(path_);
  }
  void leave() {
    fs::current_path(before_);
    if (fs::last_write_time(path_) == made_ && fs::last_write_time(path_ / "folder") == made_too_)
      return;
    fs::remove_all(path_);
    make();
  }

 private:
  // The largest that the reader accepts.
  static std::map<std::string, std::string> samples() {
    std::map<std::string, std::string> found;
    for (const EntryPoint& entry : entry_points()) {
      if (entry.simulates || entry.shape == Shape::lines) continue;
      std::string& sample = found[entry.name + ".json"];
      for (const auto& [name, text] : corpus_of(entry))
        if (text.size() > sample.size() && entry.run(text)) sample = text;
    }
    found["folder/sweep.json"] = found["sweep_folder.json"];
    return found;
  }

  void make() {
    static const std::map<std::string, std::string> all = samples();
    fs::create_directories(path_ / "folder");
    for (const auto& [name, text] : all) write_quickly(path_ / name, text);
    made_ = fs::last_write_time(path_);
    made_too_ = fs::last_write_time(path_ / "folder");
  }

  fs::path path_ = scratch_folder() / "samples";
  fs::path before_;
  fs::file_time_type made_, made_too_;
};

class Variables {
 public:
  void set(const std::string& name, const std::string& value) {
    const char* old = std::getenv(name.c_str());
    before_.try_emplace(name, old ? std::optional<std::string>{old} : std::nullopt);
    ::setenv(name.c_str(), value.c_str(), 1);
  }
  Variables() = default;
  ~Variables() {
    for (const auto& [name, value] : before_)
      value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
  }
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;

 private:
  std::map<std::string, std::optional<std::string>> before_;
};

bool is_ours(const std::string& variable) {
  return variable.starts_with("SLURM_") || variable.starts_with("ORRERY_") ||
         variable.starts_with("NO_COLOR") || variable.starts_with("FORCE_COLOR") ||
         variable == "COLUMNS" || variable == "TERM";
}

// Whether the question is one that is answered in milliseconds: no number that is neither small nor
// too large for any option.
bool is_quick(const Arguments& words) {
  bool every_rank = words.front() == "collective";
  for (const std::string& word : words)
    every_rank |= word.find("folded") != word.npos || word.find("expanded") != word.npos;
  for (const std::string& word : words)
    for (std::size_t at = 0; at < word.size();) {
      const std::size_t digit = word.find_first_of("0123456789", at);
      if (digit == word.npos) break;
      at = std::min(word.find_first_not_of("0123456789", digit), word.size());
      const double number = std::strtod(word.substr(digit, at - digit).c_str(), nullptr);
      if (number > (every_rank ? 128.0 : 1024.0) && number < 1e10) return false;
    }
  return true;
}

// A word with a '/' could name a file outside of the test.
bool is_within(const std::string& word) {
  return word.find('/') == word.npos && word.find("..") == word.npos &&
         word.find('\0') == word.npos;
}

bool fuzz_command_line(const std::string& text) {
  Variables variables;
  Arguments words;
  std::istringstream lines{text};
  for (std::string line; std::getline(lines, line);) {
    const std::size_t equals = line.find('=');
    if (!is_within(line)) return false;
    if (words.empty() && equals != line.npos && is_ours(line.substr(0, equals)))
      variables.set(line.substr(0, equals), line.substr(equals + 1));
    else
      words.push_back(line);
  }
  const Command* command = words.empty() ? nullptr : find_command(words.front());
  if (!command || !is_quick(words)) return false;
  static SampleFolder folder;
  folder.enter();
  const FilesRead files;
  std::string printed;
  bool accepted = false;
  try {
    const Silence silence;
    const int code = command->run({words.begin() + 1, words.end()});
    accepted = code == exit_ok;
    printed = silence.text();
  } catch (const Error& error) {
    check_message(error);
  }
  folder.leave();
  const bool is_json = accepted && printed.starts_with('{');
  if (is_json && words.front() != "schedule") parsed(printed);
  return accepted;
}

}  // namespace

std::vector<EntryPoint> command_entries() {
  return {{"command_line", fuzz_command_line, Shape::lines, true}};
}

}  // namespace orrery
