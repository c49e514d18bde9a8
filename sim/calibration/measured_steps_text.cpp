#include "sim/calibration/measured_steps_text.hpp"

#include "sim/core/number_text.hpp"
#include "sim/core/table.hpp"

namespace orrery {

std::string measured_steps_text(const std::vector<MeasuredStep>& steps) {
  Table table{{{"step", Align::left}, {"measured"}, {"predicted"}, {"error"}, {"range"}}};
  for (const MeasuredStep& step : steps) {
    const auto add = [&](const std::string& what, Seconds StepParts::*part,
                         const std::string& range) {
      const Seconds measured = step.measured.*part, predicted = step.predicted.*part;
      table.add_row({what, duration_text(measured), duration_text(predicted),
                     signed_percent(predicted / measured - 1.0), range});
    };
    const bool inside =
        step.measured.step >= step.range.low() && step.measured.step <= step.range.high();
    add(step.name, &StepParts::step,
        duration_text(step.range.low()) + " to " + duration_text(step.range.high()) +
            (inside ? "" : ", missed"));
    add("  forward", &StepParts::forward, "");
    add("  backward", &StepParts::backward, "");
    add("  optimizer", &StepParts::optimizer, "");
  }
  std::string text = table.text();
  for (const MeasuredStep& step : steps)
    if (step.host)
      text += (&step == &steps.front() ? "\n" : "") + step.name + ": the host hands over " +
              std::to_string(step.launches) + " launches in " + duration_text(*step.host) + "\n";
  return text;
}

}  // namespace orrery
