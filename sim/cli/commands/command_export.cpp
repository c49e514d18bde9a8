#include <iostream>

#include "sim/base/core/nearest.hpp"
#include "sim/cli/options/scenario_options.hpp"
#include "sim/output/answers/megatron_flags.hpp"

namespace orrery {

int run_export(const Arguments& arguments) {
  static const std::vector<std::string> formats{"megatron"};
  boost::program_options::options_description options;
  options.add(scenario_options());
  options.add_options()("help", "this text");
  const std::string format = arguments.empty() ? "" : arguments[0];
  if (format == "--help") {
    std::cout << "usage: orrery export megatron --model M --system S --gpus N --gbs B [options]\n\n"
                 "Prints a plan and its model as arguments of Megatron-LM's pretrain_gpt.py; what "
                 "they cannot\nsay goes to stderr.\n\n"
              << options;
    return exit_ok;
  }
  if (format != formats.front())
    fail_input({}, format.empty() ? "export to what?" : "'" + format + "' is not a format",
               suggestion(format, formats));
  const ParsedOptions parsed =
      parse_options(options, {arguments.begin() + 1, arguments.end()}, scenario_booleans());
  if (parsed.has("help")) return run_export({"--help"});
  if (!parsed.words.empty())
    fail_input({}, "'" + parsed.words[0] + "' belongs to no option", "see orrery export --help");
  const MegatronFlags flags = megatron_flags(read_scenario(parsed));
  std::cout << megatron_text(flags);
  for (const std::string& what : flags.left_out)
    std::cerr << "orrery: note: no flag for " << what << "\n";
  return exit_ok;
}

}  // namespace orrery
