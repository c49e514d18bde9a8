#include "sim/base/draw/stacked_bars.hpp"

#include <algorithm>
#include <numeric>

#include "sim/base/draw/svg.hpp"

namespace orrery {
namespace {

constexpr double left = 110.0, plot = 830.0, right = 180.0;
constexpr double row_height = 20.0, bar_height = 15.0, legend_row = 20.0;

}  // namespace

std::string StackedBars::svg(std::string (*shown)(double)) const {
  // The legend first: as many rows as its words take.
  struct Place {
    double x, y;
  };
  std::vector<Place> places;
  double x = left;
  double y = 4.0;
  for (const Kind& kind : kinds) {
    const double width = 30.0 + 6.5 * static_cast<double>(kind.name.size());
    if (x + width > left + plot + right) x = left, y += legend_row;
    places.push_back({x, y});
    x += width;
  }
  const double top = y + legend_row + (limit > 0.0 ? 16.0 : 4.0);
  Svg svg{left + plot + right, top + row_height * static_cast<double>(rows.size()) + 4.0};
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    svg.rectangle({places[i].x, places[i].y}, 12.0, 12.0, kinds[i].colour);
    svg.text({places[i].x + 17.0, places[i].y + 10.0}, kinds[i].name);
  }
  const double scale = full > 0.0 ? plot / full : 0.0;
  double row_top = top;
  for (const Row& row : rows) {
    svg.text({left - 8.0, row_top + 12.0}, row.label, {.size = 11, .anchor = Anchor::end});
    double at = left;
    for (std::size_t i = 0; i < row.parts.size(); ++i) {
      const double width = scale * std::max(0.0, row.parts[i]);
      if (width > 0.0)
        svg.rectangle({at, row_top}, width, bar_height, kinds[i].colour,
                      kinds[i].name + ": " + shown(row.parts[i]));
      at += width;
    }
    // Not across the line of the limit.
    const double line = left + scale * limit;
    const bool meets = limit > 0.0 && at + 6.0 < line && at + 50.0 > line;
    svg.text({(meets ? line : at) + 6.0, row_top + 12.0}, row.total, {.size = 11});
    row_top += row_height;
  }
  if (limit > 0.0) {
    const double at = left + scale * limit;
    svg.line({at, top - 4.0}, {at, row_top}, "#c00", 1.5);
    svg.text({at, top - 7.0}, limit_name, {.size = 11, .anchor = Anchor::end, .colour = "#c00"});
  }
  return svg.document();
}

}  // namespace orrery
