#pragma once

#include <boost/program_options/options_description.hpp>
#include <boost/program_options/variables_map.hpp>
#include <string>
#include <vector>

#include "sim/cli/command.hpp"
#include "sim/core/error.hpp"

namespace orrery {

/// Where options stand: `command_line / "gpus"` is --gpus.
inline const Place command_line{};

/// Parsed words of a command line: long options only, none abbreviated, each at most once.
struct ParsedOptions {
  boost::program_options::variables_map values;
  std::vector<std::string> words;  ///< What is no option.

  bool has(const std::string& name) const { return values.count(name) > 0; }
  std::string text(const std::string& name) const { return values[name].as<std::string>(); }
};

/// Parses against `known`. `booleans`: options of it whose value may be left out, meaning true.
/// The short options that other tools have taught everybody: -o is --output, -j 4 and -j4 --jobs 4.
/// Errors: an unknown option (with the nearest), a missing value, an option given twice.
ParsedOptions parse_options(const boost::program_options::options_description& known,
                            const Arguments& arguments, const std::vector<std::string>& booleans);

/// The value of an option that must be there; `remedy` is what to write where it is not.
std::string required(const ParsedOptions& parsed, const std::string& name,
                     const std::string& remedy);

/// A whole number in [minimum, maximum], the value of `option`.
int parse_count(const std::string& text, const std::string& option, int minimum, int maximum);

}  // namespace orrery
