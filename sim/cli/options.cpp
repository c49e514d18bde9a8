#include "sim/cli/options.hpp"

#include <algorithm>
#include <boost/program_options.hpp>
#include <charconv>
#include <map>
#include <sstream>
#include <utility>

#include "sim/core/nearest.hpp"
#include "sim/plan/plan_keys.hpp"

namespace po = boost::program_options;

namespace orrery {

CommandListener::CommandListener(Ears ears)
    : outer_{std::exchange(innermost_, this)}, ears_{std::move(ears)} {}

CommandListener::~CommandListener() { innermost_ = outer_; }

void CommandListener::tell(const OptionTable& table) {
  if (innermost_) innermost_->ears_.table(table);
}

void CommandListener::tell(const std::vector<std::string>& words) {
  if (innermost_) innermost_->ears_.words(words);
}

namespace {

// "--sp --json" is "--sp true --json".
Arguments with_spoken_booleans(const Arguments& arguments,
                               const std::vector<std::string>& booleans) {
  Arguments spoken;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    spoken.push_back(arguments[i]);
    const bool boolean =
        arguments[i].starts_with("--") &&
        std::find(booleans.begin(), booleans.end(), arguments[i].substr(2)) != booleans.end();
    if (boolean && (i + 1 == arguments.size() || arguments[i + 1].starts_with("--")))
      spoken.push_back("true");
  }
  return spoken;
}

// -o is --output, and -j 4 as well as -j4 are --jobs 4, where there are such options.
Arguments with_long_names(const po::options_description& known, const Arguments& arguments) {
  const auto has = [&](const char* name) { return known.find_nothrow(name, false) != nullptr; };
  const bool output = has("output");
  const bool jobs = has("jobs");
  Arguments longer;
  for (const std::string& word : arguments) {
    const bool count =
        word.starts_with("-j") && word.find_first_not_of("0123456789", 2) == word.npos;
    if (output && word == "-o") {
      longer.emplace_back("--output");
    } else if (jobs && count) {
      longer.emplace_back("--jobs");
      if (word.size() > 2) longer.push_back(word.substr(2));
    } else {
      longer.push_back(word);
    }
  }
  return longer;
}

// What Megatron-LM, DeepSpeed and Slurm call the same.
std::string other_name(const std::string& word) {
  static const std::map<std::string, std::string> names = [] {
    std::map<std::string, std::string> map{//
                                           {"--fp8", "--dtype fp8"},
                                           {"--bf16", "--dtype bf16"},
                                           {"--world-size", "--gpus"},
                                           {"--num-gpus", "--gpus"},
                                           {"--nodes", "--gpus N (all GPUs of all nodes)"},
                                           {"--nnodes", "--gpus N (all GPUs of all nodes)"},
                                           {"--cluster", "--system"},
                                           {"--config", "--model"},
                                           {"--price", "--economics"}};
    for (const PlanKey& key : plan_keys()) {
      if (!key.megatron.empty()) map.emplace("--" + key.megatron, "--" + key.name);
      for (const std::string& other : key.elsewhere) map.emplace("--" + other, "--" + key.name);
    }
    return map;
  }();
  const auto found = names.find(word);
  return found == names.end() ? std::string{} : found->second;
}

// The option that an unknown one was probably meant to be, or "".
std::string meant(const std::string& word, const po::options_description& known) {
  const std::string other = other_name(word);
  if (!other.empty() && known.find_nothrow(other.substr(2, other.find(' ') - 2), false))
    return other;
  std::vector<std::string> names;
  for (const auto& described : known.options()) names.push_back("--" + described->long_name());
  return nearest(word, names);
}

// Boost keeps the headings of groups to itself, but prints them: a line that ends in a colon.
std::map<std::string, std::string> groups_in(const std::string& text) {
  std::map<std::string, std::string> groups;
  std::string heading;
  std::istringstream lines{text};
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with(':') && !line.starts_with(' ')) heading = line.substr(0, line.size() - 1);
    if (line.starts_with("  --")) groups[line.substr(4, line.find(' ', 4) - 4)] = heading;
  }
  return groups;
}

OptionTable table_of(const po::options_description& known,
                     const std::vector<std::string>& booleans) {
  OptionTable table;
  std::ostringstream text;
  text << known;
  table.text = text.str();
  const auto groups = groups_in(table.text);
  for (const auto& option : known.options()) {
    const std::string& name = option->long_name();
    const bool takes_one = option->semantic()->max_tokens() > 0;
    const auto group = groups.find(name);
    table.options.push_back({name, takes_one ? option->semantic()->name() : "",
                             option->description(), group == groups.end() ? "" : group->second,
                             std::find(booleans.begin(), booleans.end(), name) != booleans.end(),
                             option->semantic()->is_composing()});
  }
  return table;
}

}  // namespace

ParsedOptions parse_options(const po::options_description& known, const Arguments& arguments,
                            const std::vector<std::string>& booleans) {
  if (CommandListener::is_there()) CommandListener::tell(table_of(known, booleans));
  ParsedOptions parsed;
  for (const std::string& word : arguments)
    if (word == "--" || word.starts_with("--="))
      fail_input(command_line, "'" + word + "' is no option", "leave it out");
  try {
    using namespace po::command_line_style;
    const po::parsed_options options =
        po::command_line_parser(with_spoken_booleans(with_long_names(known, arguments), booleans))
            .options(known)
            .style(allow_long | long_allow_adjacent | long_allow_next)
            .allow_unregistered()
            .run();
    for (const auto& option : options.options) {
      if (option.unregistered) {
        const std::string word = option.original_tokens.front();
        const std::string near = meant(word.substr(0, word.find('=')), known);
        fail_input(command_line, "unknown option '" + word + "'",
                   near.empty() ? "see --help" : "did you mean '" + near + "'?");
      }
      const std::string& word = option.original_tokens.front();
      if (option.position_key >= 0 && word.size() > 1 && word.front() == '-')
        if (const std::string near = meant("-" + word.substr(0, word.find('=')), known);
            !near.empty())
          fail_input(command_line, "unknown option '" + word + "'", "did you mean '" + near + "'?");
      if (option.position_key >= 0)
        parsed.words.insert(parsed.words.end(), option.value.begin(), option.value.end());
    }
    po::store(options, parsed.values);
    po::notify(parsed.values);
  } catch (const po::multiple_occurrences& error) {
    fail_input(command_line, "the option '" + error.get_option_name() + "' is given twice",
               "keep one of them");
  } catch (const po::error_with_option_name& error) {
    fail_input(command_line, "the option '" + error.get_option_name() + "' needs a value",
               "write it after the option");
  } catch (const po::error& error) {
    fail_input(command_line, error.what(), "see --help");
  }
  return parsed;
}

std::string required(const ParsedOptions& parsed, const std::string& name,
                     const std::string& remedy) {
  if (!parsed.has(name)) fail_input(command_line, "--" + name + " is missing", remedy);
  return parsed.text(name);
}

int parse_count(const std::string& text, const std::string& option, int minimum, int maximum) {
  int value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || rest != end || value < minimum || value > maximum)
    fail_input(
        {"", "--" + option}, "'" + text + "' is not such a number",
        "write a whole number from " + std::to_string(minimum) + " to " + std::to_string(maximum));
  return value;
}

}  // namespace orrery
