#include <algorithm>
#include <cmath>
#include <string_view>

#include "sim/core/number_text.hpp"
#include "sim/core/svg.hpp"
#include "sim/core/table.hpp"
#include "sim/pipeline/schedule_replay.hpp"

namespace orrery {
namespace {

int units(Seconds time) { return static_cast<int>(std::lround(time.si())); }

std::string label_of(const PlottedSchedule& plot, int stage, const PlacedPass& pass) {
  const std::vector<Slot>& slots = plot.order.orders[static_cast<std::size_t>(stage)];
  std::string label = pass_name(slots[pass.slot], plot.order.chunks);
  if (pass.count == 2) label += "+" + pass_name(slots[pass.slot + 1], plot.order.chunks);
  return label;
}

// Characters a unit of time, so that every label fits with a blank behind it.
int width_of(const PlottedSchedule& plot) {
  int width = 2;
  for (int stage = 0; stage < plot.order.stages; ++stage)
    for (const PlacedPass& pass : plot.played.ranks[static_cast<std::size_t>(stage)]) {
      const int length = units(pass.end - pass.start);
      const int needed = static_cast<int>(label_of(plot, stage, pass).size()) + 1;
      width = std::max(width, (needed + length - 1) / length);
    }
  return width;
}

std::string line_of(const PlottedSchedule& plot, int stage, int width) {
  std::string line;
  const auto fill = [&](int until, char mark) {
    for (int unit = static_cast<int>(line.size()) / width; unit < until; ++unit)
      line += mark + std::string(static_cast<std::size_t>(width - 1), ' ');
  };
  for (const PlacedPass& pass : plot.played.ranks[static_cast<std::size_t>(stage)]) {
    fill(units(pass.start), '.');
    line += label_of(plot, stage, pass);
    line.resize(static_cast<std::size_t>(width * units(pass.end)), ' ');
  }
  fill(units(plot.played.end), '.');
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

std::string lengths_text(const PlottedSchedule& plot) {
  const auto& [forward, inputs, weights] = plot.lengths;
  bool splits = false;
  for (const std::vector<Slot>& slots : plot.order.orders)
    splits = splits || std::any_of(slots.begin(), slots.end(),
                                   [](const Slot& slot) { return slot.inputs_only; });
  std::string text = "forward " + grouped(units(forward));
  text += ", backward " + grouped(units(inputs + weights));
  if (splits)
    text += " (I " + grouped(units(inputs)) + ", W " + grouped(units(weights)) + " where split)";
  return text;
}

std::string schedule_drawing(const PlottedSchedule& plot) {
  const ExplicitOrder& order = plot.order;
  const int width = width_of(plot);
  const int end = units(plot.played.end);
  const std::size_t digits = std::to_string(order.stages - 1).size();
  std::string text = plot.name + ": " + grouped(order.stages) + " ranks, " +
                     grouped(order.microbatches) + " micro-batches, " + grouped(end) +
                     " units of time; " + lengths_text(plot) + "\n\n";
  Table table{{{"rank"}, {"idle"}, {"of its time"}, {"holds at most"}}, 0};
  for (int stage = 0; stage < order.stages; ++stage) {
    const std::string number = std::to_string(stage);
    text += "rank " + std::string(digits - number.size(), ' ') + number + "  " +
            line_of(plot, stage, width) + "\n";
    int busy = 0;
    for (const PlacedPass& pass : plot.played.ranks[static_cast<std::size_t>(stage)])
      busy += units(pass.end - pass.start);
    const int held = peak_in_flight(order.orders[static_cast<std::size_t>(stage)]);
    table.add_row({number, grouped(end - busy), percent(1.0 * (end - busy) / end),
                   grouped(held) + (order.chunks > 1 ? " chunks" : "")});
  }
  return text + "\n" + table.text();
}

namespace {

constexpr double left = 70.0, top = 60.0, row_height = 24.0, box = 20.0, right_margin = 20.0;
constexpr double narrowest_unit = 4.0, widest_unit = 26.0, default_width = 1100.0;

// Okabe and Ito's colours, as in the plot of an estimate; lighter for a second chunk.
struct Paint {
  const char* colours[2];
  const char* ink[2];
  const char* name;
};
constexpr Paint forward{{"#0072b2", "#9ccbe6"}, {"#fff", "#000"}, "forward"};
constexpr Paint backward{{"#e69f00", "#f7d794"}, {"#000", "#000"}, "backward"};
constexpr Paint weights{{"#009e73", "#99d8c7"}, {"#fff", "#000"}, "weight gradients"};

const Paint& paint_of(const Slot& slot) {
  if (slot.pass == Pass::forward) return forward;
  return slot.pass == Pass::backward ? backward : weights;
}

// One pass of a slot; two passes that run together have half of its height each.
void draw_slot(Svg& svg, const Slot& slot, int chunks, double begin, double end, double y,
               double height) {
  const Paint& paint = paint_of(slot);
  const int shade = slot.chunk == 0 ? 0 : 1;
  const std::string name = pass_name(slot, chunks);
  svg.rectangle({begin, y}, end - begin - 0.5, height, paint.colours[shade], name);
  const std::string number = name.substr(1, name.find('.') - 1);
  const double size = height < box ? 8.0 : 10.0;
  if (end - begin > 0.65 * size * static_cast<double>(number.size()))
    svg.text({0.5 * (begin + end), y + 0.5 * height + 0.36 * size}, number,
             {.size = size, .anchor = Anchor::middle, .colour = paint.ink[shade]});
}

}  // namespace

std::string schedule_chart(const PlottedSchedule& plot) {
  const ExplicitOrder& order = plot.order;
  const double end = plot.played.end.si();
  const double unit = std::clamp(default_width / end, narrowest_unit, widest_unit);
  const double bottom = top + row_height * order.stages;
  Svg svg{std::max(left + unit * end + right_margin, 640.0), bottom + 16.0};
  svg.text({left, 20.0}, plot.name + ": " + lengths_text(plot), {.size = 14, .bold = true});
  double x = left;
  for (const Paint* paint : {&forward, &backward, &weights}) {
    svg.rectangle({x, 32.0}, 12.0, 12.0, paint->colours[0]);
    if (order.chunks > 1) svg.rectangle({x + 13.0, 32.0}, 12.0, 12.0, paint->colours[1]);
    svg.text({x + 30.0, 42.0}, paint->name);
    x += 50.0 + 6.5 * static_cast<double>(std::string_view{paint->name}.size());
  }
  for (int stage = 0; stage < order.stages; ++stage) {
    const double y = top + row_height * stage;
    svg.text({left - 8.0, y + 14.5}, "rank " + std::to_string(stage), {.anchor = Anchor::end});
    svg.rectangle({left, y}, unit * end, box, "#eee", "idle");
    const std::vector<Slot>& slots = order.orders[static_cast<std::size_t>(stage)];
    for (const PlacedPass& pass : plot.played.ranks[static_cast<std::size_t>(stage)]) {
      const double height = box / pass.count;
      for (int i = 0; i < pass.count; ++i)
        draw_slot(svg, slots[pass.slot + static_cast<std::size_t>(i)], order.chunks,
                  left + unit * pass.start.si(), left + unit * pass.end.si(), y + height * i,
                  height);
    }
  }
  return svg.document();
}

}  // namespace orrery
