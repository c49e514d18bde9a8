#include "sim/validation/validate_exchange.hpp"

#include "sim/validation/exchange_case.hpp"
#include "sim/validation/point_errors.hpp"

namespace orrery {
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
    const ExchangeCost said = price(one.dispatcher, shape, load);
    dispatch.add(row.dispatch.si(), said.dispatch.time().si());
    combine.add(row.combine.si(), said.combine.time().si());
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
