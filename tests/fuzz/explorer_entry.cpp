// What a page of the explorer asks: no page is trusted, and none may name a file.
#include "sim/explorer/explored_search.hpp"
#include "sim/explorer/explored_state.hpp"
#include "sim/plan/scenario.hpp"
#include "tests/fuzz/entry_groups.hpp"
#include "tests/fuzz/fuzz_checks.hpp"

namespace orrery {
namespace {

const NamesAllowed& names() {
  static const NamesAllowed all = NamesAllowed::of_catalog();
  return all;
}

void require_no_file(const ExploredState& state) {
  for (const auto& [key, word] : state.words()) {
    const bool named = key == "model" || key == "system" || key == "software" || key == "routing" ||
                       key == "schedule";
    if (named && word.find_first_of("/\\") != word.npos) __builtin_trap();
    if (key == "calibration" || key == "economics") __builtin_trap();
  }
}

// One line, whatever is in it.
void require_one_line(const std::string& command) {
  if (command.find('\n') != command.npos && command.find('\'') == command.npos) __builtin_trap();
}

bool fuzz_explorer_state(const std::string& text) {
  static const Model model = read_model("gpt3-175b", nowhere);
  static const System system = read_system("dgx-h100", nowhere);
  return is_accepted([&] {
    const ExploredState state = ExploredState::read(text, names());
    require_no_file(state);
    require_one_line(state.command());
    make_scenario(model, system, state.request(), state.gpus(), nowhere);
  });
}

bool fuzz_explorer_search(const std::string& text) {
  static WarmInputs inputs{names(), Detail{}};
  return is_accepted([&] {
    const ExploredSearch requested = ExploredSearch::read(text, names());
    require_no_file(requested.state);
    require_one_line(requested.command());
    const SearchRequest request = requested.request(inputs);
    if (request.gpus.empty() || request.gbs.empty() || request.systems.size() != 1)
      __builtin_trap();
    if (request.fixed.size() != requested.fixed_keys().size()) __builtin_trap();
  });
}

bool fuzz_explorer_sweep(const std::string& text) {
  return is_accepted([&] {
    const ExploredSweep requested = ExploredSweep::read(text, names());
    require_no_file(requested.state);
    require_one_line(requested.command());
    const Grid grid{requested.sweep};
    const std::int64_t points = grid.count_points();
    if (points < 1 || points > ExploredSweep::most_points || requested.axes().empty())
      __builtin_trap();
    for (std::int64_t number = 0; number < grid.combinations(); ++number)
      if (grid.is_point(number)) {
        require_no_file(requested.state_at(grid, number));
        break;
      }
  });
}

}  // namespace

std::vector<EntryPoint> explorer_entries() {
  return {{"explorer_state", fuzz_explorer_state, Shape::json},
          {"explorer_search", fuzz_explorer_search, Shape::json},
          {"explorer_sweep", fuzz_explorer_sweep, Shape::json}};
}

}  // namespace orrery
