#include <filesystem>
#include <iostream>

#include "sim/cli/man_page.hpp"
#include "sim/cli/options.hpp"
#include "sim/core/nearest.hpp"
#include "sim/core/output_files.hpp"

namespace po = boost::program_options;

namespace orrery {

int run_manual(const Arguments& arguments) {
  po::options_description options{"Options", 100};
  options.add_options()  //
      ("out", po::value<std::string>()->value_name("DIR"),
       "write all pages into this folder: orrery.1, orrery-search.1, ...")  //
      ("force", "replace files that Orrery did not write")                  //
      ("help", "this text");
  const ParsedOptions parsed = parse_options(options, arguments, {});
  if (parsed.has("help")) {
    std::cout << "usage: orrery manual [COMMAND]\n"
                 "       orrery manual --out DIR\n\n"
                 "Prints a manual page for man(1): orrery manual search | man -l -\n\n"
              << options;
    return exit_ok;
  }
  if (parsed.words.size() > 1 || (parsed.has("out") && !parsed.words.empty()))
    fail_input({}, "'" + parsed.words.back() + "' is one word too many",
               "name one command, or a folder for all: --out DIR");
  if (parsed.has("out")) {
    const std::filesystem::path folder{parsed.text("out")};
    OutputFiles files{parsed.has("force")};
    files.add((folder / "orrery.1").string(), man_page_of_program());
    for (const Command& command : commands())
      files.add((folder / ("orrery-" + command.name + ".1")).string(), man_page(command));
    files.commit();
    return exit_ok;
  }
  if (parsed.words.empty()) return std::cout << man_page_of_program(), exit_ok;
  const Command* command = find_command(parsed.words.front());
  if (!command) {
    std::vector<std::string> names;
    for (const Command& one : commands()) names.push_back(one.name);
    fail_input({}, "'" + parsed.words.front() + "' is not a command",
               suggestion(parsed.words.front(), names));
  }
  std::cout << man_page(*command);
  return exit_ok;
}

}  // namespace orrery
