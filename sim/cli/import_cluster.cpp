#include "sim/cli/import_cluster.hpp"

#include <filesystem>
#include <iostream>

#include "sim/cli/import_output.hpp"
#include "sim/formats/inventory/cluster_words.hpp"

namespace po = boost::program_options;

namespace orrery {

int import_cluster(const Arguments& arguments) {
  po::options_description options{"Options", 100};
  for (const ClusterOption& option : cluster_options())
    options.add_options()(option.name.c_str(), po::value<std::string>()->value_name(option.value),
                          option.help.c_str());
  add_output_options(options);
  const ParsedOptions parsed = parse_options(options, arguments, {});
  if (parsed.has("help")) {
    std::cout << "usage: orrery import cluster --gpu NAME --gpus-per-node N --nics NxRATE "
                 "[options]\n\n"
                 "Writes a system from a few words. What you leave open is assumed, and said.\n\n"
              << options;
    return exit_ok;
  }
  if (!parsed.words.empty())
    fail_input({}, "'" + parsed.words[0] + "' belongs to no option",
               "write --gpu NAME --gpus-per-node N --nics NxRATE");
  SystemAnswers words;
  for (const ClusterOption& option : cluster_options())
    if (parsed.has(option.name)) words[option.name] = parsed.text(option.name);
  if (!words.contains("name") && parsed.has("output"))
    words["name"] = std::filesystem::path{parsed.text("output")}.stem().string();
  const ImportedSystem imported = cluster_json(words);
  write_result(parsed, imported.json, imported.notes);
  return exit_ok;
}

}  // namespace orrery
