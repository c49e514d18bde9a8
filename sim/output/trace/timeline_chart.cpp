#include "sim/output/trace/timeline_chart.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "sim/base/draw/chart_scale.hpp"
#include "sim/base/draw/svg.hpp"
#include "sim/base/text/number_text.hpp"
#include "sim/output/trace/trace_slices.hpp"

namespace orrery {
namespace {

constexpr std::size_t most_ranks = 32;
constexpr double left = 145.0, plot = 990.0, right_margin = 20.0;
constexpr double legend_height = 26.0, axis_height = 30.0;
constexpr double wide_lane = 16.0, narrow_lane = 4.0, between_ranks = 6.0;

struct Kind {
  std::string_view category;
  const char* name;
  const char* colour;
  const char* ink;  // Of what is written on it.
};
// Okabe and Ito's colours, which people who see few colours can tell apart.
constexpr Kind kinds[] = {{"forward", "forward", "#0072b2", "#fff"},
                          {"backward", "backward", "#e69f00", "#000"},
                          {"both", "forward and backward at once", "#f0e442", "#000"},
                          {"weight_gradient", "weight gradients", "#009e73", "#fff"},
                          {"optimizer", "optimizer", "#cc79a7", "#000"},
                          {"tensor", "tensor parallel", "#56b4e9", "#000"},
                          {"context", "context parallel", "#88ccee", "#000"},
                          {"expert", "dispatch and combine", "#d55e00", "#fff"},
                          {"transfer", "between stages", "#777", "#fff"},
                          {"data", "gradients and weights", "#000", "#fff"}};

const Kind* kind_of(const Slice& slice) {
  const bool both = slice.category == "forward" && slice.name.find(" + ") != slice.name.npos;
  for (const Kind& kind : kinds)
    if (kind.category == (both ? "both" : slice.category)) return &kind;
  return nullptr;  // Kernels inside of a pass, which is drawn whole.
}

// Stage by stage; of many the first of each stage; of still more as many as can be seen.
std::vector<int> ranks_to_draw(const Cast& cast) {
  std::vector<int> roles;
  for (std::size_t i = 0; i < cast.roles().size(); ++i) roles.push_back(static_cast<int>(i));
  const auto at = [&](int role) { return cast.roles()[static_cast<std::size_t>(role)].at; };
  sort_by_place(roles, cast);
  if (roles.size() > most_ranks)
    roles.erase(std::unique(roles.begin(), roles.end(),
                            [&](int a, int b) { return at(a).stage == at(b).stage; }),
                roles.end());
  if (roles.size() <= most_ranks) return roles;
  std::vector<int> some;
  for (std::size_t i = 0; i < most_ranks; ++i)
    some.push_back(roles[i * (roles.size() - 1) / (most_ranks - 1)]);
  return some;
}

// One lane of a rank: slices that do not overlap.
class Lane {
 public:
  Lane(double top, double height, double pixels_per_ns)
      : top_{top}, height_{height}, pixels_per_ns_{pixels_per_ns} {}

  // Parts of a pass follow each other without a gap: what is too narrow to be seen alone is drawn
  // with its neighbour.
  void draw(Svg& svg, const Slice& slice, const Kind& kind) {
    constexpr double touches = 0.02;
    if (kind_ == &kind && slice.name == last_.name &&
        pixels(slice.start_ns - last_.finish_ns) < touches &&
        std::min(pixels(length(last_)), pixels(length(slice))) < 1.0) {
      last_.finish_ns = std::max(last_.finish_ns, slice.finish_ns);
      return;
    }
    flush(svg);
    last_ = slice;
    kind_ = &kind;
  }

  void finish(Svg& svg) {
    flush(svg);
    for (const auto& [column, shares] : fine_) {
      double bottom = top_ + height_;
      for (const auto& [kind, share] : shares) {
        const double high = height_ * std::min(1.0, share);
        bottom -= high;
        boxes_[kind].push_back({left + column, bottom, 1.0, high});
      }
    }
    for (const Kind& kind : kinds)
      if (const auto found = boxes_.find(&kind); found != boxes_.end())
        svg.boxes(found->second, kind.colour);
  }

 private:
  static std::string time_text(std::int64_t ns) {
    return duration_text(Seconds{1e-9 * static_cast<double>(ns)});
  }
  static std::int64_t length(const Slice& slice) { return slice.finish_ns - slice.start_ns; }
  double pixels(std::int64_t ns) const { return pixels_per_ns_ * static_cast<double>(ns); }

  void flush(Svg& svg) {
    if (!kind_) return;
    const Slice& slice = last_;
    const Kind& kind = *kind_;
    const double begin = left + pixels(slice.start_ns);
    const double end = left + pixels(slice.finish_ns);
    constexpr double speaks = 4.0, written = 10.0, gap = 0.4;
    if (end - begin < 1.0) return add_fine(begin, end, kind);
    if (end - begin < speaks) {
      boxes_[&kind].push_back({begin, top_, end - begin - 0.5 * gap, height_});
      return;
    }
    const bool is_pass = slice.track == Track::compute;
    svg.rectangle({begin, top_}, end - begin - gap, height_, kind.colour,
                  slice.name + (is_pass ? "" : std::string{", "} + kind.name) + ": " +
                      time_text(length(slice)) + " from " + time_text(slice.start_ns));
    if (height_ < wide_lane || end - begin < written) return;
    const std::string label = grouped(static_cast<std::int64_t>(microbatch_of(slice)));
    if (microbatch_of(slice) >= 0.0 && end - begin > 6.0 * static_cast<double>(label.size()) + 4.0)
      svg.text({0.5 * (begin + end), top_ + height_ - 4.5}, label,
               {.size = 10, .anchor = Anchor::middle, .colour = kind.ink});
  }

  static double microbatch_of(const Slice& slice) {
    for (const auto& [fact, value] : slice.facts)
      if (fact == "microbatch") return value;
    return -1.0;
  }

  // A slice of less than a pixel lies in one column, or in two.
  void add_fine(double begin, double end, const Kind& kind) {
    for (double column = std::floor(begin - left); column < end - left; column += 1.0)
      fine_[column][&kind] += std::min(end - left, column + 1.0) - std::max(begin - left, column);
  }

  double top_, height_, pixels_per_ns_;
  Slice last_;  // Not drawn yet: the next may belong to it.
  const Kind* kind_ = nullptr;
  std::map<const Kind*, std::vector<Svg::Box>> boxes_;
  std::map<double, std::map<const Kind*, double>> fine_;  // By column: share of each kind.
};

using LaneKey = std::pair<int, Track>;  // Role and track.

}  // namespace

TimelineChart timeline_chart(const TrainingStep& step, const Timeline& timeline,
                             const Scenario& scenario) {
  SliceChoice choice{ranks_to_draw(step.cast), false, std::numeric_limits<std::int64_t>::max()};
  std::vector<Slice> slices = slices_of(step, timeline, scenario, choice).slices;
  std::erase_if(
      slices, [](const Slice& slice) { return !kind_of(slice) || slice.track == Track::experts; });

  // Lanes from top to bottom: slices are arranged by rank and track.
  std::map<LaneKey, double> tops;
  std::map<int, double> rank_tops;
  double bottom = legend_height;
  for (const Slice& slice : slices) {
    const LaneKey key{slice.role, slice.track};
    if (tops.contains(key)) continue;
    if (rank_tops.try_emplace(slice.role, bottom + between_ranks).second) bottom += between_ranks;
    tops[key] = bottom;
    bottom += slice.track == Track::compute ? wide_lane : narrow_lane + 1.0;
  }

  const double length = timeline.makespan.seconds().si();
  const double pixels_per_ns = length > 0.0 ? plot / (1e9 * length) : 0.0;
  Svg svg{left + plot + right_margin, bottom + axis_height};
  const ChartScale axis = ChartScale::linear("step_s", 0.0, length, left, left + plot);
  for (const Tick& tick : axis.ticks()) {
    const double x = left + plot * tick.at / length;
    if (x > left + plot + 1.0) continue;
    svg.line({x, legend_height}, {x, bottom + 4.0}, "#e4e4e4");
    svg.text({x, bottom + 18.0}, tick.label, {.size = 11, .anchor = Anchor::middle});
  }

  double x = left;
  for (const Kind& kind : kinds) {
    if (std::none_of(slices.begin(), slices.end(),
                     [&](const Slice& slice) { return kind_of(slice) == &kind; }))
      continue;
    svg.rectangle({x, 4.0}, 12.0, 12.0, kind.colour);
    svg.text({x + 17.0, 14.0}, kind.name);
    x += 30.0 + 6.5 * static_cast<double>(std::string_view{kind.name}.size());
  }

  std::map<LaneKey, Lane> lanes;
  for (const Slice& slice : slices) {
    const double height = slice.track == Track::compute ? wide_lane : narrow_lane;
    const LaneKey key{slice.role, slice.track};
    Lane& lane = lanes.try_emplace(key, tops.at(key), height, pixels_per_ns).first->second;
    lane.draw(svg, slice, *kind_of(slice));
  }
  for (auto& [key, lane] : lanes) lane.finish(svg);

  for (const auto& [role_index, top] : rank_tops) {
    const Role& role = step.cast.roles()[static_cast<std::size_t>(role_index)];
    svg.text({left - 8.0, top + 12.0},
             "stage " + std::to_string(role.at.stage) + ", rank " + std::to_string(role.rank.value),
             {.size = 11, .anchor = Anchor::end});
  }
  return {svg.document(), static_cast<int>(rank_tops.size())};
}

}  // namespace orrery
