#include <nlohmann/json.hpp>

#include "sim/engine/network_model.hpp"
#include "sim/search/purchase_text.hpp"
#include "sim/training/result_json.hpp"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

// Nine digits, as in a result.
double rounded(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", value);
  return std::strtod(text, nullptr);
}

Json range_json(Range range) {
  if (!range.known()) return nullptr;
  return {{"low", rounded(range.low)}, {"high", rounded(range.high)}};
}

Json spread_json(double middle_of, Range range) {
  return {
      {"middle", rounded(middle_of)}, {"low", rounded(range.low)}, {"high", rounded(range.high)}};
}

Json meets_json(const std::optional<Meets>& meets) {
  return meets ? Json(name(*meets)) : Json(nullptr);
}

Json batches_json(const PurchaseRow& row, std::int64_t seq) {
  Json batches = Json::array();
  for (const BatchChoice& batch : row.batches)
    batches.push_back({{"at_most_gbs", batch.level},
                       {"gbs", batch.gbs},
                       {"tokens", batch.gbs * seq},
                       {"beyond_limit", batch.beyond},
                       {"step_time_s", rounded(batch.step.si())},
                       {"days", rounded(batch.time.si() / 86400.0)},
                       {"flags", batch.flags}});
  return batches;
}

Json row_json(const PurchaseRow& row, const RowChoice& choice, const PurchaseRequest& request,
              const PurchaseNames& names) {
  Json json{{"system", request.systems[row.system].name}, {"gpus", row.gpus}};
  if (!row.has_plan()) {
    json["refused"] = row.unfinished ? "not searched before the interruption" : row.refused;
    return json;
  }
  const Result& result = *row.result;
  const Plan& plan = result.scenario.plan;
  const Range usd = cost_of(row, request.pay);
  Json shares = Json::object();
  for (std::size_t i = 0; i < bindings; ++i)
    shares[name(static_cast<Binding>(i))] = rounded(row.shares[i]);
  json["standing"] = name(choice.standing);
  json["in_time"] = meets_json(choice.deadline);
  json["in_budget"] = meets_json(choice.budget);
  json["dtype"] = name(plan.dtype);
  json["software"] = result.scenario.software.name;
  json["gbs"] = plan.gbs;
  json["days"] = spread_json(row.time_days(), row.time_range());
  json["days_without_failures"] = spread_json(row.days_middle, row.days);
  json["rent_usd"] = range_json(cost_of(row, PayBy::rent));
  json["own_usd"] = range_json(row.own_usd);
  json["to_buy_usd"] = range_json(row.to_buy_usd);
  json["gpus_bought"] = row.bought;
  json["break_even_days"] = range_json(row.break_even_days);
  json["energy_kwh"] = range_json(energy_kwh(row));
  json["tokens_per_usd"] = usd.known()
                               ? range_json({request.tokens / usd.high, request.tokens / usd.low})
                               : Json(nullptr);
  json["unknown_prices"] = row.unknown_prices;
  json["binds"] = name(what_binds(row.shares));
  json["binding_shares"] = std::move(shares);
  json["batches"] = batches_json(row, plan.seq);
  json["groups"] = row.groups;
  json["left_out_uneven"] = row.uneven;
  json["simulated"] = row.simulated;
  json["command"] = command_of(row, request, names);
  json["result"] = Json::parse(result_json(result, {.about_this_run = false, .inputs = false}));
  return json;
}

}  // namespace

std::string purchase_json(const Purchase& purchase, const PurchaseRequest& request,
                          const PurchaseNames& names) {
  const PurchaseChoice choice = choose(purchase, request);
  Json rows = Json::array();
  Json inputs = Json::object();  // Of all rows together, as most have the same.
  for (std::size_t i = 0; i < purchase.rows.size(); ++i) {
    rows.push_back(row_json(purchase.rows[i], choice.rows[i], request, names));
    if (purchase.rows[i].has_plan())
      inputs.update(inputs_json(purchase.rows[i].result->scenario), true);
  }
  Json strip = Json::array();
  for (const DeadlineChoice& of : choice.strip)
    strip.push_back({{"days", of.days}, {"row", of.row ? Json(*of.row) : Json(nullptr)}});
  Json json;
  json["schema"] = "orrery.purchase/1";
  json["model"] = request.model.name;
  json["tokens"] = request.tokens;
  json["pay"] = request.pay == PayBy::rent ? "rent" : "own";
  json["most_gbs"] = request.batches.empty() ? Json(request.most_batch) : Json(nullptr);
  json["deadline_s"] = request.deadline ? Json(request.deadline->si()) : Json(nullptr);
  json["budget_usd"] = request.budget_usd ? Json(*request.budget_usd) : Json(nullptr);
  json["reliability"] = request.reliability ? Json(request.reliability->name) : Json(nullptr);
  json["rows"] = std::move(rows);
  json["front"] = choice.front;
  json["within"] = choice.within;
  json["perhaps"] = choice.perhaps;
  json["nearest"] = choice.nearest ? Json(*choice.nearest) : Json(nullptr);
  json["deadlines"] = std::move(strip);
  json["interrupted"] = purchase.interrupted;
  json["simulator"] = name(chosen_simulator());
  json["inputs"] = std::move(inputs);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace orrery
