#include "sim/measurements/collective_curves.hpp"

#include <algorithm>
#include <filesystem>

#include "sim/core/catalog.hpp"
#include "sim/core/object_reader.hpp"

namespace orrery {
namespace {

constexpr bool in_order() {
  for (std::size_t i = 0; i < collective_kinds; ++i)
    if (collective_facts[i].kind != static_cast<CollectiveKind>(i)) return false;
  return true;
}
static_assert(in_order());

}  // namespace

const std::vector<std::string>& collective_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const CollectiveFacts& one : collective_facts) all.emplace_back(one.name);
    return all;
  }();
  return names;
}

std::optional<CollectiveKind> collective_named(std::string_view word) {
  if (word == "alltoall") return CollectiveKind::all_to_all;
  if (word == "sendrecv") return CollectiveKind::send_recv;
  const auto found = std::find_if(collective_facts.begin(), collective_facts.end(),
                                  [&](const CollectiveFacts& one) { return one.name == word; });
  if (found == collective_facts.end()) return std::nullopt;
  return found->kind;
}

namespace {

constexpr int most_ranks = 1 << 24;

MeasuredCurve parse_curve(const JsonValue& entry) {
  // Warnings of `orrery import` about a log are kept in "warnings".
  entry.allow_only(
      {"id", "source", "system", "collective", "ranks", "nodes", "columns", "points", "warnings"});
  MeasuredCurve curve;
  curve.id = entry.at("id").text();
  entry.at("source").at("title").text();
  curve.collective = choice<CollectiveKind>(entry.at("collective"), collective_names());
  curve.ranks = static_cast<int>(entry.at("ranks").integer(2, most_ranks));
  curve.nodes = static_cast<int>(entry.at("nodes").integer(1, curve.ranks));
  curve.points = parse_curve_points(entry.at("points"));
  return curve;
}

}  // namespace

std::vector<MeasuredCurve::Point> parse_curve_points(const JsonValue& json) {
  std::vector<MeasuredCurve::Point> points;
  const std::vector<double> numbers = json.number_table(2);
  for (std::size_t i = 0; i < numbers.size(); i += 2) {
    const MeasuredCurve::Point point{Bytes{numbers[i]}, microseconds(numbers[i + 1])};
    const Bytes before = points.empty() ? Bytes{} : points.back().bytes;
    if (point.bytes <= before)
      json.fail("sizes must be positive and rise, but row " + std::to_string(i / 2) + " does not",
                "sort the rows by their bytes and keep one of each size");
    if (!(point.time > Seconds{}))
      json.fail("the time in row " + std::to_string(i / 2) + " is not positive",
                "write microseconds, or leave the row out");
    points.push_back(point);
  }
  if (points.empty()) json.fail("holds no points", "leave the table out");
  return points;
}

std::vector<MeasuredCurve> parse_collective_curves(const JsonValue& json) {
  require_schema(json, "orrery.curves/1");
  json.allow_only({"schema", "measured_on", "curves"});
  std::vector<MeasuredCurve> curves;
  for (const JsonValue& entry : json.at("curves").elements()) curves.push_back(parse_curve(entry));
  return curves;
}

std::vector<MeasuredCurve> read_collective_curves(const std::string& name) {
  const std::string path = data_folder() + "/calibration/data/collectives/" + name + ".json";
  std::error_code unreadable;
  if (!std::filesystem::exists(path, unreadable)) return {};
  return parse_collective_curves(JsonValue::read_file(path));
}

}  // namespace orrery
