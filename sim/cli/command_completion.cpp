#include <iostream>

#include "sim/cli/candidates.hpp"
#include "sim/cli/command.hpp"
#include "sim/cli/option_table.hpp"
#include "sim/cli/shell_scripts.hpp"
#include "sim/core/error.hpp"
#include "sim/core/nearest.hpp"

namespace orrery {
namespace {

void print(const Candidates& found) {
  for (const auto& word : found.words)
    std::cout << word.text << (word.meaning.empty() ? "" : "\t" + word.meaning) << "\n";
  if (found.files) std::cout << ":files\n";
  if (found.folders) std::cout << ":folders\n";
}

}  // namespace

int run_completion(const Arguments& arguments) {
  static const std::vector<std::string> words{"bash", "zsh", "fish", "words"};
  CommandListener::tell(words);
  const std::string word = arguments.empty() ? "" : arguments[0];
  if (word == "words") {  // What follows is the user's line, which may hold any option.
    print(candidates({arguments.begin() + 1, arguments.end()}));
    return exit_ok;
  }
  if (word == "--help" || (arguments.size() == 2 && arguments[1] == "--help")) {
    std::cout << "usage: orrery completion bash|zsh|fish\n"
                 "       orrery completion words WORD...\n\n"
                 "Prints what a shell reads to complete commands, options and names of orrery:\n\n"
                 "  bash  source <(orrery completion bash)\n"
                 "  zsh   source <(orrery completion zsh)\n"
                 "  fish  orrery completion fish | source\n\n"
                 "The shell then asks for each word what it may be: completion words.\n";
    return exit_ok;
  }
  const std::string_view script = completion_script(word);
  if (script.empty())
    fail_input({}, word.empty() ? "for which shell?" : "'" + word + "' cannot complete",
               suggestion(word, words));
  if (arguments.size() > 1)
    fail_input({}, "'" + arguments[1] + "' is one word too many", "orrery completion " + word);
  std::cout << script;
  return exit_ok;
}

}  // namespace orrery
