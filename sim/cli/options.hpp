#pragma once

#include <boost/program_options/options_description.hpp>
#include <boost/program_options/variables_map.hpp>
#include <functional>
#include <string>
#include <vector>

#include "sim/cli/command.hpp"
#include "sim/core/error.hpp"

namespace orrery {

/// An option as the parser of command lines knows it.
struct OptionEntry {
  std::string name;   ///< Without its dashes.
  std::string value;  ///< What stands for the value in the help: "N", "NAME|FILE". "": takes none.
  std::string help;
  std::string group;            ///< The heading that it stands under.
  bool value_may_lack = false;  ///< Then it means true.
  bool may_repeat = false;
};

/// All options of a command, in the order of its help.
struct OptionTable {
  std::vector<OptionEntry> options;
  std::string text;  ///< As the help prints it.
};

/// Hears, while it lives, what the commands say of themselves that run: the tables against which
/// they parse, and the words by which they choose a smaller command. So manual pages and completion
/// cannot differ from what a command takes. The innermost hears where several live.
class CommandListener {
 public:
  struct Ears {
    std::function<void(const OptionTable&)> table;
    std::function<void(const std::vector<std::string>&)> words;
  };
  explicit CommandListener(Ears ears);
  ~CommandListener();
  CommandListener(const CommandListener&) = delete;
  CommandListener& operator=(const CommandListener&) = delete;

  static bool is_there() { return innermost_ != nullptr; }
  static void tell(const OptionTable& table);
  /// `words`: those that may follow the command's name, as "run" and "merge" follow "sweep".
  static void tell(const std::vector<std::string>& words);

 private:
  static inline CommandListener* innermost_ = nullptr;
  CommandListener* outer_;
  Ears ears_;
};

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
