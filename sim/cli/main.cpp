#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <iostream>
#include <sstream>
#include <string>

#include "sim/cli/command.hpp"
#include "sim/core/error.hpp"
#include "sim/core/nearest.hpp"
#include "sim/core/process.hpp"
#include "sim/core/text_file.hpp"

namespace {

using namespace orrery;

void print_usage(std::ostream& out) {
  out << "orrery: how long a training step takes on a GPU cluster, why, and whether it fits\n"
         "\n"
         "usage: orrery COMMAND [options]\n"
         "\n";
  constexpr std::size_t width = 15;
  for (const Command& command : commands())
    out << "  " << command.name << std::string(width - command.name.size(), ' ') << command.summary
        << "\n";
  out << "\n"
         "  orrery help COMMAND     the command's most used options; orrery help COMMAND all: all\n"
         "  orrery --version\n"
         "\n"
         "Try: orrery search --model llama3-8b --system dgx-h100 --gpus 64 --gbs 256\n"
         "     orrery estimate --model llama3-8b --system dgx-h100 --gpus 64 --gbs 256 --tp 2\n";
}

int dispatch(const Arguments& words) {
  if (words.empty()) {
    print_usage(std::cerr);
    return exit_bad_input;
  }
  const std::string& word = words.front();
  const Arguments rest{words.begin() + 1, words.end()};
  if (word == "help" && !rest.empty() && !rest.front().starts_with('-')) {
    Arguments for_help = rest;
    const bool all = for_help.size() > 1 && for_help.back() == "all";
    for_help.insert(for_help.end() - all, "--help");
    return dispatch(for_help);
  }
  if (word == "--help" || word == "-h" || word == "help") return print_usage(std::cout), exit_ok;
  if (word == "--version") return std::cout << "orrery " << ORRERY_VERSION << "\n", exit_ok;
  const Command* command = find_command(word);
  if (!command) {
    std::vector<std::string> names;
    for (const Command& one : commands()) names.push_back(one.name);
    std::sort(names.begin(), names.end());
    fail_input({}, "'" + word + "' is not a command", suggestion(word, names));
  }
  Arguments arguments = rest;
  std::replace(arguments.begin(), arguments.end(), std::string{"-h"}, std::string{"--help"});
  return command->run(arguments);
}

// Handles a failed assertion, which has printed its condition. There is no answer, as it would rest
// on a wrong state.
void end_at_a_fault(int) {
  constexpr char text[] =
      "orrery: internal error: the line above should hold and does not, so there is no answer"
      "\nThis is a fault of the program; please report it with the command line.\n";
  // All that a signal's handler may do.
  if (::write(STDERR_FILENO, text, sizeof text - 1) < 0) ::_exit(exit_internal);
  ::_exit(exit_internal);
}

}  // namespace

int main(int argc, char** argv) {
  // A file that outgrows its limit is an error that names the file, like a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGABRT, end_at_a_fault);
  use_large_pages();
  const FilesRead files;  // None of them is to be written over.
  int code = exit_internal;
  try {
    code = dispatch({argv + 1, argv + argc});
  } catch (const Error& error) {
    std::istringstream errors{error.what()};  // A line each.
    for (std::string line; std::getline(errors, line);)
      std::cerr << "orrery: error: " << line << "\n";
    code = error.kind() == Error::Kind::infeasible ? exit_infeasible : exit_bad_input;
  } catch (const std::exception& error) {
    std::cerr << "orrery: internal error: " << harmless(error.what())
              << "\nThis is a fault of the program; please report it with the command line.\n";
  }
  std::cout.flush();
  std::cerr.flush();
  // A full disk or a closed pipe must not look like success.
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0 || !std::cout) {
    std::cerr << "orrery: error: the output cannot be written: it is not complete\n";
    if (code == exit_ok) code = exit_internal;
  }
  std::fflush(nullptr);
  // SimGrid's engine lives as long as the process and has nothing left to say at its end.
  _Exit(code);
}
