#include <algorithm>

#include "sim/core/number_text.hpp"
#include "sim/engine/network_model.hpp"
#include "sim/search/purchase_text.hpp"
#include "sim/training/result_json.hpp"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

// Three digits.
std::string digits(double value) { return fixed(value, value < 10 ? 2 : value < 100 ? 1 : 0); }

// `units`: the largest first.
ColumnUnit unit_of(const Purchase& purchase, const std::function<Range(const PurchaseRow&)>& of,
                   const std::vector<ColumnUnit>& units) {
  double most = 0.0;
  for (const PurchaseRow& row : purchase.rows)
    if (row.has_plan()) most = std::max(most, of(row).high);
  const auto found = std::find_if(units.begin(), units.end(),
                                  [&](const ColumnUnit& unit) { return most >= unit.size; });
  return found == units.end() ? units.back() : *found;
}

}  // namespace

std::string days_text(double days) { return digits(days); }

std::string range_text(double low, double high) {
  const std::string from = digits(low), to = digits(high);
  return from == to ? from : from + ".." + to;
}

std::string range_text(Range range, double unit) {
  return range.known() ? range_text(range.low / unit, range.high / unit) : "?";
}

std::string million_tokens_text(std::int64_t tokens) {
  return digits(static_cast<double>(tokens) / 1e6);
}

ColumnUnit money_unit(const Purchase& purchase,
                      const std::function<Range(const PurchaseRow&)>& of) {
  return unit_of(purchase, of, {{1e6, "$M"}, {1e3, "$k"}, {1, "$"}});
}

std::string why_no_plan(const PurchaseRow& row) {
  return row.unfinished ? "not searched before the interruption" : row.refused;
}

namespace {

const char* mark(ParetoStatus status) {
  switch (status) {
    case ParetoStatus::front:
      return "*";
    case ParetoStatus::perhaps:
      return "=";
    default:
      return "";
  }
}

std::string bottleneck_text(const PurchaseRow& row, const System& system) {
  const RowBottleneck bottleneck = row_bottleneck(row.shares);
  const std::string word = bottleneck != RowBottleneck::scale_up ? name(bottleneck)
                           : system.wiring == NodeWiring::pcie   ? "PCIe"
                                                                 : "NVLink";
  return word + " " + fixed(100.0 * row.shares[static_cast<std::size_t>(bottleneck)], 0) + " %";
}

std::string meets_text(const std::optional<Meets>& meets) { return meets ? name(*meets) : "?"; }

Json range_json(Range range) {
  if (!range.known()) return {{"low", nullptr}, {"high", nullptr}};
  return {{"low", to_nine_digits(range.low)}, {"high", to_nine_digits(range.high)}};
}

Json spread_json(double middle, Range range) {
  Json json{{"middle", to_nine_digits(middle)}};
  json.update(range_json(range));
  return json;
}

Json batches_json(const PurchaseRow& row, std::int64_t seq) {
  Json batches = Json::array();
  for (const BatchChoice& batch : row.batches)
    batches.push_back({{"at_most_gbs", batch.level},
                       {"gbs", batch.gbs},
                       {"tokens", batch.gbs * seq},
                       {"beyond_limit", batch.beyond},
                       {"step_time_s", to_nine_digits(batch.step.si())},
                       {"days", to_nine_digits(batch.time.si() / 86400.0)},
                       {"flags", batch.flags}});
  return batches;
}

Json shares_json(const BottleneckShares& shares) {
  Json json = Json::object();
  for (std::size_t i = 0; i < row_bottlenecks; ++i)
    json[name(static_cast<RowBottleneck>(i))] = to_nine_digits(shares[i]);
  return json;
}

}  // namespace

std::vector<Figures> figures_of(const Purchase& purchase, const PurchaseRequest& request,
                                const PurchaseChoice& choice) {
  const auto rent_of = [](const PurchaseRow& row) { return cost_of(row, PayBy::rent); };
  const ColumnUnit rent = money_unit(purchase, rent_of),
                   own = money_unit(purchase, [](const auto&row) { return row.own_usd; }),
                   price = money_unit(purchase, [](const auto&row) { return row.hardware.usd; }),
                   energy = unit_of(purchase, energy_kwh, {{1e6, "GWh"}, {1e3, "MWh"}, {1, "kWh"}});
  const bool has_limits = request.deadline || request.budget_usd || request.capital_usd;
  std::vector<Figures> rows;
  for (std::size_t i = 0; i < purchase.rows.size(); ++i) {
    const PurchaseRow& row = purchase.rows[i];
    const RowChoice& of = choice.rows[i];
    const System& system = request.systems[row.system];
    Figures& list = rows.emplace_back();
    const auto add_range = [&](const char* key, const std::string& heading, Range range,
                               double unit, bool is_detail = false) {
      list.add(key, range_json(range))
          .shown({heading, Align::right, is_detail}, range_text(range, unit));
    };
    const auto add_verdict = [&](const char* key, const std::optional<Meets>& meets) {
      list.add(key, meets ? Json(name(*meets)) : Json(nullptr));
    };
    list.show({"", Align::left}, mark(of.status));
    list.add("system", system.name).shown({"system", Align::left}, system.name);
    list.add("gpus", row.gpus).shown({"GPUs"}, grouped(row.gpus));
    if (!row.has_plan()) {
      list.add("refused", why_no_plan(row)).shown({"days"}, "none");
      continue;
    }
    const Result& result = *row.result;
    const Plan& plan = result.scenario.plan;
    const RowBottleneck bottleneck = row_bottleneck(row.shares);
    const Range usd = cost_of(row, request.pay);
    const Range tokens =
        usd.known() ? Range{request.tokens / usd.high, request.tokens / usd.low} : Range{};
    list.add("refused", nullptr).csv_only();
    list.add("standing", name(of.status));
    add_verdict("in_time", of.deadline);
    add_verdict("in_budget", of.budget);
    add_verdict("in_capital", of.capital);
    list.add("dtype", name(plan.dtype));
    list.add("software", result.scenario.software.name);
    list.add("gbs", plan.gbs);
    list.add("batch_tokens", plan.gbs * plan.seq).csv_only();
    list.add("step_time_s", result.step_time.si()).csv_only();
    list.add("days", spread_json(row.time_days(), row.time_range()))
        .shown({"days"}, days_text(row.time_days()));
    list.show({"90 % interval"}, range_text(row.time_range().low, row.time_range().high));
    list.add("days_without_failures", spread_json(row.days_middle, row.days)).json_only();
    list.add("days_without_failures", row.days_middle).csv_only();
    if (request.reliability)
      list.show({"without failures", Align::right, true}, days_text(row.days_middle));
    add_range("rent_usd", "rent, " + rent.name, rent_of(row), rent.size,
              request.pay != PayBy::rent);
    add_range("own_usd", "to own, " + own.name, row.own_usd, own.size, request.pay != PayBy::own);
    add_range("to_buy_usd", "to buy, " + price.name, row.hardware.usd, price.size,
              has_limits && !request.capital_usd);
    list.add("gpus_bought", row.hardware.gpus());
    list.add("spare_gpus", row.failing ? row.failing->spare_gpus : 0);
    list.add("break_even_days", range_json(row.break_even_days)).json_only();
    add_range("energy_kwh", energy.name, energy_kwh(row), energy.size, true);
    list.add("tokens_per_usd", range_json(tokens))
        .json_only()
        .shown({"tokens/$", Align::right, true},
               range_text(tokens, 1e6) + (tokens.known() ? "M" : ""));
    list.add("unknown_prices", row.unknown_prices).json_only();
    list.add("tokens_per_s_per_gpu", result.tokens_per_s_per_gpu).csv_only();
    list.add("mfu", result.mfu).csv_only();
    list.add("memory_share", result.memory.peak() / result.memory.capacity).csv_only();
    list.add("binds", name(bottleneck))
        .shown({"bottleneck", Align::left, has_limits}, bottleneck_text(row, system));
    list.add("binds_share", row.shares[static_cast<std::size_t>(bottleneck)]).csv_only();
    list.add("binding_shares", shares_json(row.shares)).json_only();
    list.add("batches", batches_json(row, plan.seq)).json_only();
    list.add("groups", row.groups).json_only();
    list.add("left_out_uneven", row.uneven).json_only();
    list.add("simulated", row.simulated).json_only();
    list.add("plan", row.flags).csv_only();
    if (request.deadline) list.show({"in time", Align::left}, meets_text(of.deadline));
    if (request.budget_usd) list.show({"in budget", Align::left}, meets_text(of.budget));
    if (request.capital_usd) list.show({"in capital", Align::left}, meets_text(of.capital));
  }
  return rows;
}

std::string purchase_json(const Purchase& purchase, const PurchaseRequest& request,
                          const PurchaseNames& names) {
  const PurchaseChoice choice = choose(purchase, request);
  Json rows = Json::array();
  Json inputs = Json::object();  // Inputs of all rows together, as most have the same.
  const std::vector<Figures> figures = figures_of(purchase, request, choice);
  for (std::size_t i = 0; i < figures.size(); ++i) {
    const PurchaseRow& row = purchase.rows[i];
    Json& json = rows.emplace_back(figures[i].json());
    if (!row.has_plan()) continue;
    json["command"] = command_of(row, request, names);
    json["result"] =
        Json::parse(result_json(*row.result, {.about_this_run = false, .inputs = false}));
    inputs.update(inputs_json(row.result->scenario), true);
  }
  Json strip = Json::array();
  for (const DeadlineChoice& of : choice.strip)
    strip.push_back({{"days", of.days},
                     {"row", of.row ? Json(*of.row) : Json(nullptr)},
                     {"nearest", of.nearest ? Json(*of.nearest) : Json(nullptr)}});
  Json json;
  json["schema"] = "orrery.purchase/1";
  json["model"] = request.model.name;
  json["tokens"] = request.tokens;
  json["pay"] = request.pay == PayBy::rent ? "rent" : "own";
  json["most_gbs"] = request.batches.empty() ? Json(request.most_batch) : Json(nullptr);
  json["deadline_s"] = request.deadline ? Json(request.deadline->si()) : Json(nullptr);
  json["budget_usd"] = request.budget_usd ? Json(*request.budget_usd) : Json(nullptr);
  json["capital_usd"] = request.capital_usd ? Json(*request.capital_usd) : Json(nullptr);
  json["reliability"] = request.reliability ? Json(request.reliability->name) : Json(nullptr);
  Json buys = Json::array();
  for (const std::optional<Affordable>& most : purchase.affordable)
    buys.push_back(most ? Json{{"surely", most->surely.gpus()}, {"perhaps", most->perhaps.gpus()}}
                        : Json(nullptr));
  json["capital_buys"] = std::move(buys);
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

std::string purchase_csv(const Purchase& purchase, const PurchaseRequest& request) {
  return csv_of(figures_of(purchase, request, choose(purchase, request)), nine_digits);
}

}  // namespace orrery
