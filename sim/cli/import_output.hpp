#pragma once

#include <string>
#include <vector>

#include "sim/cli/options.hpp"
#include "sim/formats/megatron/megatron_arguments.hpp"

namespace orrery {

/// The place of what was imported.
struct ImportOutput {
  std::optional<std::string> file;
  bool force = false;
};
/// --output, --force and --help, for all that `orrery import` reads.
void add_output(Options& options, ImportOutput& into);

/// Writes what was imported to stdout, or to the file that --output names, and notes to stderr.
/// Errors (bad_input): the file is one of the words, which are read.
void write_result(const Options& options, const ImportOutput& output, const std::string& text,
                  const std::vector<std::string>& notes);

/// The text of a file that a run names, which may be on another machine; nothing: it is not here.
std::optional<std::string> text_if_there(const std::string& path);

/// --set NAME=VALUE, for commands that read a launch script: the last of each name.
void add_variables(Options& options, std::map<std::string, std::string>& into);
/// The same for commands that read a file of settings.
void add_settings(Options& options, std::map<std::string, std::string>& into);

/// The arguments of Megatron-LM that the file has, with the variables that --set gives, and with
/// the files that it reads.
MegatronArguments read_launch_script(const std::string& file,
                                     const std::map<std::string, std::string>& variables);

}  // namespace orrery
