#include "sim/cli/engine_option.hpp"

#include <algorithm>

#include "sim/core/nearest.hpp"

namespace po = boost::program_options;

namespace orrery {

po::options_description engine_option() {
  po::options_description options{"Who simulates", 100};
  options.add_options()(
      "engine", po::value<std::string>()->value_name("own|simgrid"),
      "own: Orrery's calendar, and SimGrid where many flows meet (default); simgrid: every timer "
      "and every flow by SimGrid, slower, to check the other");
  return options;
}

Engine engine_of(const ParsedOptions& parsed) {
  if (!parsed.has("engine")) return Engine::own;
  const std::string word = parsed.text("engine");
  const auto found = std::find(engine_names().begin(), engine_names().end(), word);
  if (found == engine_names().end())
    fail_input({"", "--engine"}, "'" + word + "' is not an engine",
               suggestion(word, engine_names()));
  return static_cast<Engine>(found - engine_names().begin());
}

}  // namespace orrery
