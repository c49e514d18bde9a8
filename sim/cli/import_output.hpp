#pragma once

#include <string>
#include <vector>

#include "sim/cli/options.hpp"

namespace orrery {

/// --output, --force and --help, for all that `orrery import` reads.
void add_output_options(boost::program_options::options_description& options);

/// Writes what was imported to stdout, or to the file that --output names, and notes to stderr.
/// Errors (bad_input): the file is one that is read.
void write_result(const ParsedOptions& parsed, const std::string& text,
                  const std::vector<std::string>& notes);

}  // namespace orrery
