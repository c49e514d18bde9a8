#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace orrery {

/// Possible texts of the word that is being typed.
struct Candidates {
  struct Word {
    std::string text;
    std::string meaning;  ///< "": its name says it all.
  };
  std::vector<Word> words;  ///< All of them begin with what was typed.
  bool files = false;
  bool folders = false;
};

/// `words` follow "orrery"; the last is being typed and may be empty. Commands supply their
/// options, the catalog its names.
Candidates candidates(const std::vector<std::string>& words);

/// The script that makes a shell call `orrery completion words` whenever it completes the command.
/// `shell`: bash, zsh or fish. "": another.
std::string_view completion_script(std::string_view shell);

}  // namespace orrery
