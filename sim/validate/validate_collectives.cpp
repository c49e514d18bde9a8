#include "sim/validate/validate_collectives.hpp"

#include <cmath>

#include "sim/cost/collective_time.hpp"
#include "sim/validate/collective_case.hpp"

namespace orrery {
namespace {

constexpr double mib = 1024.0 * 1024.0;

// Means over the points of one band, each weighing the same.
struct Band {
  int points = 0;
  double measured = 0.0, predicted = 0.0, abs_error = 0.0, error = 0.0;

  void add(double was, double said) {
    ++points;
    measured += was;
    predicted += said;
    error += said / was - 1.0;
    abs_error += std::abs(said / was - 1.0);
  }

  Comparison comparison(const std::string& id, const std::string& quantity) const {
    Comparison row{id, quantity, measured / points, predicted / points, {}, {}};
    row.over_points = Comparison::Points{points, abs_error / points, error / points};
    return row;
  }
};

void compare(const CollectiveCase& one, bool leave_one_out, ValidationReport& report) {
  CollectiveOptions options;
  if (leave_one_out) options.left_out = one.shape;
  const CollectiveTime price{one.system, options};
  Band small, large;
  for (const auto& [bytes, time] : one.points) {
    const Seconds said = price(one.shape.kind, bytes, one.shape.group).time();
    const double bus = wire_share(one.shape.kind, one.shape.group.ranks) * bytes.si();
    if (bytes.si() < mib) small.add(time.si(), said.si());
    if (bytes.si() >= 64.0 * mib) large.add(bus / time.si(), bus / said.si());
  }
  if (small.points > 0) report.comparisons.push_back(small.comparison(one.id, "time_s"));
  if (large.points > 0)
    report.comparisons.push_back(large.comparison(one.id, "bus_bandwidth_bytes_per_s"));
}

}  // namespace

void compare_collectives(const JsonValue& json, const ValidationOptions& options,
                         ValidationReport& report) {
  for (const JsonValue& entry : json.elements()) {
    const std::string id = entry.at("id").text();
    try {
      const std::size_t before = report.comparisons.size();
      compare(read_collective_case(entry), options.leave_one_out, report);
      if (report.comparisons.size() == before)
        report.refusals.push_back({id, "all points lie from 1 to 64 MiB, which are not compared"});
    } catch (const Error& error) {
      report.refusals.push_back({id, error.what()});
    }
  }
}

}  // namespace orrery
