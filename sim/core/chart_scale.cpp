#include "sim/core/chart_scale.hpp"

#include <algorithm>
#include <cmath>

#include "sim/core/number_text.hpp"

namespace orrery {
namespace {

// 1, 2 or 5 times a power of ten: the smallest such step that needs at most `most` of them.
double round_step(double range, int most) {
  const double rough = range / most;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough) return factor * power;
  return 10.0 * power;
}

int decimals_of(double step) {
  return std::max(0, static_cast<int>(std::ceil(-std::log10(step) - 1e-9)));
}

bool is_time(const std::string& name) { return name.ends_with("_s") && !name.ends_with("per_s"); }

DisplayUnit unit_of(const std::string& name, double most) {
  if (name.ends_with("_bytes")) return bytes_unit(Bytes{most});
  if (is_time(name)) return time_unit(Seconds{most});
  return {"", 1.0};
}

}  // namespace

ChartScale ChartScale::linear(const std::string& name, double first, double last, double begin,
                              double end) {
  // One value alone, or differences that are rounding, shall not fill the axis.
  const double least = std::max({std::abs(first), std::abs(last), 1e-9}) * 1e-3;
  if (last - first < least) {
    first -= least;
    last += least;
  }
  ChartScale scale;
  const double margin = 0.04 * (last - first);
  scale.first_ = first >= 0.0 ? std::max(0.0, first - margin) : first - margin;
  scale.last_ = last + margin;
  scale.begin_ = begin;
  scale.end_ = end;
  constexpr int most_ticks = 7;
  const DisplayUnit unit = unit_of(name, scale.last_);
  const double step = round_step((scale.last_ - scale.first_) / unit.si, most_ticks);
  const std::string behind = unit.name.empty() ? "" : " " + std::string{unit.name};
  for (double i = std::ceil(scale.first_ / unit.si / step); i * step * unit.si <= scale.last_;
       i += 1.0)
    scale.ticks_.push_back({i * step * unit.si, fixed(i * step, decimals_of(step)) + behind});
  return scale;
}

ChartScale ChartScale::places(std::vector<std::string> labels, double begin, double end) {
  ChartScale scale;
  scale.first_ = -0.5;
  scale.last_ = static_cast<double>(labels.size()) - 0.5;
  scale.begin_ = begin;
  scale.end_ = end;
  for (std::size_t i = 0; i < labels.size(); ++i)
    scale.ticks_.push_back({static_cast<double>(i), std::move(labels[i])});
  return scale;
}

ChartScale ChartScale::logarithmic(const std::vector<double>& values, double begin, double end) {
  ChartScale scale;
  scale.logarithmic_ = true;
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  const double margin = 0.04 * std::max(std::log2(*most / *least), 1.0);
  scale.first_ = std::log2(*least) - margin;
  scale.last_ = std::log2(*most) + margin;
  scale.begin_ = begin;
  scale.end_ = end;
  for (const double value : values)
    scale.ticks_.push_back({value, fixed(value, value == std::floor(value) ? 0 : 2)});
  return scale;
}

ChartScale ChartScale::logarithmic(double first, double last, const std::vector<double>& values,
                                   double begin, double end) {
  ChartScale scale;
  scale.logarithmic_ = true;
  scale.first_ = std::log2(first);
  scale.last_ = std::log2(last);
  scale.begin_ = begin;
  scale.end_ = end;
  for (const double value : values)
    if (value >= first && value <= last)
      scale.ticks_.push_back(
          {value,
           fixed(value, value >= 1.0 ? 0 : static_cast<int>(std::ceil(-std::log10(value))))});
  return scale;
}

double ChartScale::scaled(double value) const { return logarithmic_ ? std::log2(value) : value; }

double ChartScale::pixel(double value) const {
  return begin_ + (scaled(value) - first_) / (last_ - first_) * (end_ - begin_);
}

std::string figure_label(const std::string& name, double value) {
  if (name.ends_with("_bytes")) return bytes_text(Bytes{value});
  if (is_time(name)) return duration_text(Seconds{value});
  if (value == std::floor(value) || std::abs(value) >= 1e3) return fixed(value, 0);
  return fixed(value, std::abs(value) >= 100.0 ? 1 : 3);
}

}  // namespace orrery
