#include <cmath>

#include "sim/collectives/collective_time.hpp"
#include "sim/validation/collective_case.hpp"
#include "sim/validation/validate_kinds.hpp"

namespace orrery {
namespace {

constexpr double mib = 1024.0 * 1024.0;

void compare(const CollectiveCase& one, bool leave_one_out, ValidationReport& report) {
  CollectiveOptions options;
  if (leave_one_out) options.left_out = one.shape;
  const CollectiveTime price{one.system, options};
  const PriceErrors errors =
      read_price_errors(one.system.gpu.name, Dtype::bf16, {}, name_in_catalog(one.system.network));
  PointErrors small, middle, large;
  for (const auto& [bytes, time] : one.points) {
    const CollectiveCost cost = price(one.shape.kind, bytes, one.shape.group);
    const Seconds predicted = cost.time();
    ++report.points;
    if (std::abs(std::log(time / predicted)) <= range_deviations * cost.deviation(errors))
      ++report.points_in_range;
    const double bus = wire_share(one.shape.kind, one.shape.group.ranks) * bytes.si();
    if (bytes.si() >= 64.0 * mib)
      large.add(bus / time.si(), bus / predicted.si());
    else
      (bytes.si() < mib ? small : middle).add(time.si(), predicted.si());
  }
  if (small.points > 0) report.comparisons.push_back(small.comparison(one.id, "time_s"));
  if (middle.points > 0)
    report.comparisons.push_back(middle.comparison(one.id, "time_from_1_mib_s"));
  if (large.points > 0)
    report.comparisons.push_back(large.comparison(one.id, "bus_bandwidth_bytes_per_s"));
}

}  // namespace

void compare_collectives(const JsonValue& json, const ValidationOptions& options,
                         ValidationReport& report) {
  for (const JsonValue& entry : json.elements()) {
    const std::string id = entry.at("id").text();
    try {
      compare(read_collective_case(entry), options.leave_one_out, report);
    } catch (const Error& error) {
      report.refusals.push_back({id, error.what()});
    }
  }
}

namespace {

void compare(const ExchangeCase& one, bool leave_one_out, ValidationReport& report) {
  CollectiveOptions options;
  if (leave_one_out) options.left_out_exchange = one.table();
  const CollectiveTime collectives{one.system, options};
  const ExpertExchange price{collectives};
  PointErrors dispatch, combine;
  for (const ExchangeCase::Row& row : one.rows) {
    ExchangeShape shape{one.group,         one.hidden,
                        one.experts.count, one.experts.per_token,
                        one.dispatched,    row.multiprocessors};
    const ExchangeLoad load =
        uniform_exchange(one.experts, one.group.ranks, one.group.per_domain, row.tokens);
    const ExchangeCost predicted = price(one.dispatcher, shape, load);
    dispatch.add(row.dispatch.si(), predicted.dispatch.time().si());
    combine.add(row.combine.si(), predicted.combine.time().si());
  }
  report.comparisons.push_back(dispatch.comparison(one.id + " dispatch", "time_s"));
  report.comparisons.push_back(combine.comparison(one.id + " combine", "time_s"));
}

}  // namespace

void compare_exchanges(const JsonValue& json, const ValidationOptions& options,
                       ValidationReport& report) {
  for (const JsonValue& entry : json.elements()) {
    const std::string id = entry.at("id").text();
    try {
      compare(read_exchange_case(entry), options.leave_one_out, report);
    } catch (const Error& error) {
      report.refusals.push_back({id, error.what()});
    }
  }
}

}  // namespace orrery
