#include "sim/cli/import_output.hpp"

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "sim/cli/terminal.hpp"
#include "sim/core/text_file.hpp"
#include "sim/core/write_file.hpp"

namespace orrery {

void add_output(Options& options, ImportOutput& into) {
  options.add("output", "FILE", "write there instead of to stdout (also -o FILE)", into.file);
  options.add("force", "replace files that Orrery did not write", into.force);
  options.help();
}

void write_result(const Options& options, const ImportOutput& output, const std::string& text,
                  const std::vector<std::string>& notes) {
  if (output.file && *output.file != "-") {
    // A file that stands where the result is to go would be lost.
    const std::vector<std::string>& read = options.words();
    if (std::find(read.begin(), read.end(), *output.file) != read.end())
      fail_input(command_line / "output", "'" + *output.file + "' is also what is read",
                 "name another file");
    write_output(*output.file, text, output.force);
  } else {
    std::cout << text;
  }
  for (const std::string& note : notes) print_note(note);
}

std::optional<std::string> text_if_there(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return std::nullopt;
  return read_text_file(path);
}

namespace {

// "TP=8" as a variable and its value.
void add_set(Options& options, const std::string& help, std::map<std::string, std::string>& into) {
  const auto set = [&into](const std::string& text, const Place& at) {
    const std::size_t equals = text.find('=');
    if (equals == 0 || equals == text.npos)
      fail_input(at, "'" + text + "' sets no variable", "write NAME=VALUE, as TP=8");
    into.insert_or_assign(text.substr(0, equals), text.substr(equals + 1));
  };
  options.add({"set", "NAME=VALUE", help, "", set, true});
}

}  // namespace

void add_variables(Options& options, std::map<std::string, std::string>& into) {
  add_set(options,
          "a shell variable that the script gets from outside, or its first word as 1=VALUE; wins "
          "over what it sets; may be repeated",
          into);
}

void add_settings(Options& options, std::map<std::string, std::string>& into) {
  add_set(
      options,
      "a setting by its path, as training.seq_len=8192, in place of the file's; may be repeated",
      into);
}

MegatronArguments read_launch_script(const std::string& file,
                                     const std::map<std::string, std::string>& variables) {
  return MegatronArguments::read(read_text_file(file), file, variables, text_if_there);
}

}  // namespace orrery
