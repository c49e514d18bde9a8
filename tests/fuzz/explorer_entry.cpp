// What a page of the explorer asks: no page is trusted, and none may name a file.
#include "sim/explore/state/explored_state.hpp"
#include "sim/input/scenario/scenario.hpp"
#include "tests/fuzz/entry_groups.hpp"
#include "tests/fuzz/fuzz_checks.hpp"

namespace orrery {
namespace {

bool fuzz_explorer_state(const std::string& text) {
  static const NamesAllowed names = NamesAllowed::of_catalog();
  static const Model model = read_model("gpt3-175b", nowhere);
  static const System system = read_system("dgx-h100", nowhere);
  return is_accepted([&] {
    const ExploredState state = ExploredState::read(text, names);
    for (const auto& [key, word] : state.words()) {
      const bool named = key == "model" || key == "system" || key == "software" ||
                         key == "routing" || key == "schedule";
      if (named && word.find_first_of("/\\") != word.npos) __builtin_trap();
      if (key == "calibration" || key == "economics") __builtin_trap();
    }
    // One line, whatever is in it.
    if (state.command().find('\n') != std::string::npos &&
        state.command().find('\'') == std::string::npos)
      __builtin_trap();
    make_scenario(model, system, state.request(), state.gpus(), nowhere);
  });
}

}  // namespace

std::vector<EntryPoint> explorer_entries() {
  return {{"explorer_state", fuzz_explorer_state, Shape::json}};
}

}  // namespace orrery
