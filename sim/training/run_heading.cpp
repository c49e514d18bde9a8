#include "sim/training/run_heading.hpp"

#include "sim/core/number_text.hpp"
#include "sim/core/table.hpp"

namespace orrery {

std::string usual_sequence_text(const Model& model) {
  const std::string text = "sequences of " + grouped(usual_sequence(model)) + " tokens";
  if (model.pretraining_sequence > 0) return text + " as in pre-training";
  return guesses_sequence(model) ? text + " (assumed)" : text;
}

std::string run_heading(const std::string& what, const std::vector<std::string>& items) {
  constexpr int width = 78;
  return what + "\n" + wrapped("  ", items, ", ", width);
}

}  // namespace orrery
