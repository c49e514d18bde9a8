#include "sim/pipeline/schedule_drawing.hpp"

#include <algorithm>
#include <cmath>

#include "sim/core/number_text.hpp"
#include "sim/core/table.hpp"

namespace orrery {
namespace {

int units(Seconds time) { return static_cast<int>(std::lround(time.si())); }

std::string label_of(const DrawnSchedule& drawn, int stage, const PlacedPass& pass) {
  const std::vector<Slot>& slots = drawn.order.orders[static_cast<std::size_t>(stage)];
  std::string label = pass_name(slots[pass.slot], drawn.order.chunks);
  if (pass.count == 2) label += "+" + pass_name(slots[pass.slot + 1], drawn.order.chunks);
  return label;
}

// Characters a unit, so that every label has room and a blank behind it.
int width_of(const DrawnSchedule& drawn) {
  int width = 2;
  for (int stage = 0; stage < drawn.order.stages; ++stage)
    for (const PlacedPass& pass : drawn.played.ranks[static_cast<std::size_t>(stage)]) {
      const int length = units(pass.end - pass.start);
      const int needed = static_cast<int>(label_of(drawn, stage, pass).size()) + 1;
      width = std::max(width, (needed + length - 1) / length);
    }
  return width;
}

std::string line_of(const DrawnSchedule& drawn, int stage, int width) {
  std::string line;
  const auto fill = [&](int until, char mark) {
    for (int unit = static_cast<int>(line.size()) / width; unit < until; ++unit)
      line += mark + std::string(static_cast<std::size_t>(width - 1), ' ');
  };
  for (const PlacedPass& pass : drawn.played.ranks[static_cast<std::size_t>(stage)]) {
    fill(units(pass.start), '.');
    line += label_of(drawn, stage, pass);
    line.resize(static_cast<std::size_t>(width * units(pass.end)), ' ');
  }
  fill(units(drawn.played.end), '.');
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

std::string lengths_text(const DrawnSchedule& drawn) {
  const auto& [forward, inputs, weights] = drawn.lengths;
  bool splits = false;
  for (const std::vector<Slot>& slots : drawn.order.orders)
    splits = splits || std::any_of(slots.begin(), slots.end(),
                                   [](const Slot& slot) { return slot.inputs_only; });
  std::string text = "forward " + grouped(units(forward));
  text += ", backward " + grouped(units(inputs + weights));
  if (splits)
    text += " (I " + grouped(units(inputs)) + ", W " + grouped(units(weights)) + " where split)";
  return text;
}

std::string schedule_drawing(const DrawnSchedule& drawn) {
  const SpeltOrder& order = drawn.order;
  const int width = width_of(drawn);
  const int end = units(drawn.played.end);
  const std::size_t digits = std::to_string(order.stages - 1).size();
  std::string text = drawn.name + ": " + grouped(order.stages) + " ranks, " +
                     grouped(order.microbatches) + " micro-batches, " + grouped(end) +
                     " units of time; " + lengths_text(drawn) + "\n\n";
  Table table{{{"rank"}, {"idle"}, {"of its time"}, {"holds at most"}}, 0};
  for (int stage = 0; stage < order.stages; ++stage) {
    const std::string number = std::to_string(stage);
    text += "rank " + std::string(digits - number.size(), ' ') + number + "  " +
            line_of(drawn, stage, width) + "\n";
    int busy = 0;
    for (const PlacedPass& pass : drawn.played.ranks[static_cast<std::size_t>(stage)])
      busy += units(pass.end - pass.start);
    const int held = peak_in_flight(order.orders[static_cast<std::size_t>(stage)]);
    table.add_row({number, grouped(end - busy), percent(1.0 * (end - busy) / end),
                   grouped(held) + (order.chunks > 1 ? " chunks" : "")});
  }
  return text + "\n" + table.text();
}

}  // namespace orrery
