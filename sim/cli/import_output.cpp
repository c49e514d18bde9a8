#include "sim/cli/import_output.hpp"

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "sim/core/text_file.hpp"
#include "sim/core/write_file.hpp"

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

namespace {

// "TP=8" as a variable and its value.
std::pair<std::string, std::string> variable_of(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == 0 || equals == text.npos)
    fail_input({"", "--set"}, "'" + text + "' sets no variable", "write NAME=VALUE, as TP=8");
  return {text.substr(0, equals), text.substr(equals + 1)};
}

}  // namespace

std::optional<std::string> text_if_there(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return std::nullopt;
  return read_text_file(path);
}

void add_script_options(po::options_description& options) {
  options.add_options()(
      "set", po::value<std::vector<std::string>>()->composing()->value_name("NAME=VALUE"),
      "a shell variable that the script gets from outside, or its first word as 1=VALUE; wins "
      "over what it sets; may be repeated");
}

void add_setting_options(po::options_description& options) {
  options.add_options()(
      "set", po::value<std::vector<std::string>>()->composing()->value_name("NAME=VALUE"),
      "a setting by its path, as training.seq_len=8192, in place of the file's; may be repeated");
}

std::map<std::string, std::string> given_values(const ParsedOptions& parsed) {
  std::map<std::string, std::string> given;
  if (parsed.has("set"))
    for (const std::string& text : parsed.values["set"].as<std::vector<std::string>>())
      given.insert_or_assign(variable_of(text).first, variable_of(text).second);
  return given;
}

MegatronArguments read_launch_script(const std::string& file, const ParsedOptions& parsed) {
  return MegatronArguments::read(read_text_file(file), file, given_values(parsed), text_if_there);
}

}  // namespace orrery
