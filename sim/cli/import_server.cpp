#include "sim/cli/import_server.hpp"

#include <iostream>

#include "sim/cli/import_output.hpp"
#include "sim/cli/launch_script.hpp"
#include "sim/core/text_file.hpp"
#include "sim/formats/servers/imported_servers.hpp"

namespace po = boost::program_options;

namespace orrery {

int import_server(const Arguments& arguments) {
  po::options_description options{"Options", 100};
  const auto text = [](const char* value) { return po::value<std::string>()->value_name(value); };
  options.add_options()("model", text("NAME|FILE"), "in place of the model that is named")(
      "engine", text("NAME"), "another release of the engine: orrery list engines")(
      "system", text("NAME|FILE"), "the cluster on which it runs, written to the file")(
      "accepted", text("RATE"),
      "in how many steps drafted tokens are accepted, which no command says "
      "(docs/SPECULATION.md)");
  add_setting_options(options);
  add_output_options(options);
  const ParsedOptions parsed = parse_options(options, arguments, {});
  if (parsed.has("help")) {
    std::cout << "usage: orrery import server FILE... [options]\n\n"
                 "Reads a script with vllm serve, sglang.launch_server, trtllm-serve or Dynamo's "
                 "workers, and the\nfiles of settings that these name; writes a deployment, for "
                 "orrery serve --plan.\n\n"
              << options;
    return exit_ok;
  }
  if (parsed.words.empty()) fail_input({}, "nothing to import", "name a script");
  std::vector<RecipeFile> files;
  for (const std::string& path : parsed.words) files.push_back({read_text_file(path), path});
  RecipeAnswers answers;
  if (parsed.has("model")) answers.model = parsed.text("model");
  answers.set = given_values(parsed);
  for (const char* name : {"engine", "system", "accepted"})
    if (parsed.has(name)) answers.set[name] = parsed.text(name);
  answers.other_file = text_if_there;
  const ImportedRun run = import_servers(files, answers);
  write_result(parsed, run.json, run.notes);
  return exit_ok;
}

}  // namespace orrery
