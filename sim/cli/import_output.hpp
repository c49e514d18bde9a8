#pragma once

#include <string>
#include <vector>

#include "sim/cli/options.hpp"
#include "sim/formats/megatron/megatron_arguments.hpp"

namespace orrery {

/// --output, --force and --help, for all that `orrery import` reads.
void add_output_options(boost::program_options::options_description& options);

/// Writes what was imported to stdout, or to the file that --output names, and notes to stderr.
/// Errors (bad_input): the file is one that is read.
void write_result(const ParsedOptions& parsed, const std::string& text,
                  const std::vector<std::string>& notes);

/// The text of a file that a run names, which may be on another machine; nothing: it is not here.
std::optional<std::string> text_if_there(const std::string& path);

/// --set NAME=VALUE, for commands that read a launch script.
void add_script_options(boost::program_options::options_description& options);

/// The same for commands that read a file of settings.
void add_setting_options(boost::program_options::options_description& options);

/// What --set gives, the last of each name.
std::map<std::string, std::string> given_values(const ParsedOptions& parsed);

/// The arguments of Megatron-LM that the file has, with the variables that --set gives, and with
/// the files that it reads.
MegatronArguments read_launch_script(const std::string& file, const ParsedOptions& parsed);

}  // namespace orrery
