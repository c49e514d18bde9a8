#include "sim/cli/import_output.hpp"

#include <algorithm>
#include <iostream>

#include "sim/core/output_files.hpp"

namespace po = boost::program_options;

namespace orrery {
namespace {

// A file that stands where the result is to go would be lost.
void write_text(const ParsedOptions& parsed, const std::string& text) {
  if (!parsed.has("output")) {
    std::cout << text;
    return;
  }
  const std::string path = parsed.text("output");
  if (std::find(parsed.words.begin(), parsed.words.end(), path) != parsed.words.end())
    fail_input({"", "--output"}, "'" + path + "' is also what is read", "name another file");
  OutputFiles files{parsed.has("force")};
  files.add(path, text);
  files.commit();
}

}  // namespace

void add_output_options(po::options_description& options) {
  options.add_options()("output", po::value<std::string>()->value_name("FILE"),
                        "write there instead of to stdout (also -o FILE)")(
      "force", "replace a file that Orrery did not write")("help", "this text");
}

void write_result(const ParsedOptions& parsed, const std::string& text,
                  const std::vector<std::string>& notes) {
  write_text(parsed, text);
  for (const std::string& note : notes) std::cerr << "orrery: note: " << note << "\n";
}

}  // namespace orrery
