#pragma once

#include <string>
#include <vector>

#include "sim/formats/shell/launched_program.hpp"
#include "sim/formats/shell/shell_script.hpp"

namespace orrery {

/// The last command that trains; without one, variables that look like arguments, or words that
/// begin with arguments. `notes` gains a sentence about the choice.
LaunchCommand find_launch(const ShellScript& script, std::vector<std::string>& notes);

/// A recipe of Megatron-LM's functional tests as a script that starts it.
struct ConfigScript {
  std::string text;
  std::vector<std::size_t> lines;  ///< Line of the recipe, from 0, for each line of the script.
};

/// It has MODEL_ARGS at its top, as the model_config.yaml of a functional test.
bool is_model_config(const std::string& text);

/// The arguments that its runner (tests/functional_tests/shell_test_utils/_run_training.sh) makes:
/// a true flag has no word, a false one is left out, a list is several words, all else is one.
/// Errors (bad_input): no YAML; MODEL_ARGS has no arguments of Megatron-LM.
ConfigScript script_of_config(const std::string& text, const std::string& file);

}  // namespace orrery
