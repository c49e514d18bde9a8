#include "sim/search/purchase_words.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "sim/core/number_text.hpp"
#include "sim/training/bill_text.hpp"

namespace orrery {
namespace {

// Three digits.
std::string digits(double value) { return fixed(value, value < 10 ? 2 : value < 100 ? 1 : 0); }

std::string listed(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 < words.size() ? "; " : "; or ") + words[i];
  return text;
}

const char* pay_word(PayBy pay) { return pay == PayBy::rent ? "of rent" : "to own"; }

std::string limits_text(const PurchaseRequest& request) {
  std::string text;
  if (request.deadline) text = span_text(*request.deadline);
  if (request.budget_usd)
    text +=
        (text.empty() ? "" : " and ") + dollars_text({*request.budget_usd, *request.budget_usd});
  return text;
}

std::string row_with_figures(const PurchaseRow& row, const PurchaseRequest& request) {
  const std::string cost = cost_text(row, request);
  return row_name(row, request) + ": " + days_text(row.time_days()) + " days" +
         (cost.empty() ? "" : ", " + cost);
}

// Rows of a list that cannot be told from its first: in cost where prices are known.
std::vector<std::string> ties_of(const std::vector<std::size_t>& list, const Purchase& purchase,
                                 const PurchaseRequest& request) {
  std::vector<std::string> names;
  const PurchaseRow& first = purchase.rows[list.front()];
  for (std::size_t i = 1; i < list.size(); ++i) {
    const PurchaseRow& other = purchase.rows[list[i]];
    if (cost_of(other, request.pay).known() && !is_dearer(first, other, request.pay))
      names.push_back(row_name(other, request));
  }
  return names;
}

void add_verdict(std::vector<std::string>& lines, const Purchase& purchase,
                 const PurchaseRequest& request, const PurchaseChoice& choice) {
  const std::string limits = limits_text(request);
  const auto row = [&](std::size_t i) -> const PurchaseRow& { return purchase.rows[i]; };
  if (choice.within.empty()) {
    lines.push_back("No row keeps to " + limits + " by the middles of its ranges.");
    if (choice.nearest)
      lines.push_back("Nearest: " + row_with_figures(row(*choice.nearest), request) + ".");
    for (const std::size_t i : choice.perhaps)
      lines.push_back("With the best prices and luck: " + row_with_figures(row(i), request) + ".");
    return;
  }
  const std::size_t first = choice.within.front();
  const auto surely = [&](std::size_t i) {
    const RowChoice& of = choice.rows[i];
    return (!of.deadline || *of.deadline == Meets::surely) &&
           (!of.budget || *of.budget == Meets::surely);
  };
  const bool priced = cost_of(row(first), request.pay).known();
  lines.push_back("Within " + limits + ", the " + (priced ? "cheapest" : "fastest") + " is " +
                  row_with_figures(row(first), request) +
                  (surely(first) ? ", also at the worst of its ranges."
                                 : ", by the middles of its ranges; at their worst it is not."));
  if (!surely(first)) {
    const auto safe = std::find_if(choice.within.begin(), choice.within.end(), surely);
    lines.push_back(safe == choice.within.end()
                        ? "No row keeps to it at the worst of its ranges."
                        : "Also at the worst: " + row_with_figures(row(*safe), request) + ".");
  }
  if (const auto ties = ties_of(choice.within, purchase, request); !ties.empty())
    lines.push_back("It cannot be told whether that is cheaper than " + listed(ties) + ".");
}

// `units`: falling.
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

ColumnUnit energy_unit(const Purchase& purchase) {
  return unit_of(purchase, energy_kwh, {{1e6, "GWh"}, {1e3, "MWh"}, {1, "kWh"}});
}

std::string row_name(const PurchaseRow& row, const PurchaseRequest& request) {
  return request.systems[row.system].name + ", " + grouped(row.gpus) + " GPUs";
}

std::string cost_text(const PurchaseRow& row, const PurchaseRequest& request) {
  const std::string dollars = dollars_text(cost_of(row, request.pay));
  return dollars.empty() ? "" : dollars + " " + pay_word(request.pay);
}

std::vector<std::string> answer_lines(const Purchase& purchase, const PurchaseRequest& request,
                                      const PurchaseChoice& choice) {
  std::vector<std::string> lines;
  const std::vector<PurchaseRow>& rows = purchase.rows;
  if (request.deadline || request.budget_usd) add_verdict(lines, purchase, request, choice);
  if (!choice.front.empty() && !request.deadline && !request.budget_usd) {
    const std::size_t cheapest = choice.front.back(), fastest = choice.front.front();
    lines.push_back("Cheapest: " + row_with_figures(rows[cheapest], request) + ".");
    if (fastest != cheapest)
      lines.push_back("Fastest: " + row_with_figures(rows[fastest], request) + ".");
  }
  const std::size_t shown = !choice.within.empty() ? choice.within.front()
                            : choice.nearest       ? *choice.nearest
                            : choice.front.empty() ? rows.size()
                                                   : choice.front.back();
  if (shown < rows.size() && rows[shown].break_even_days.known()) {
    const Range& days = rows[shown].break_even_days;
    lines.push_back("To rent " + row_name(rows[shown], request) +
                    ", costs as much as to buy them and pay their electricity after " +
                    range_text(days.low, days.high) + " days.");
  }
  return lines;
}

std::vector<std::string> caveat_lines(const Purchase& purchase, const PurchaseRequest& request) {
  std::vector<std::string> lines;
  lines.push_back(request.reliability
                      ? "Days with failures are by the closed form, for the profile '" +
                            request.reliability->name + "' and a spare always at hand."
                      : "Nothing fails in these days: --reliability PROFILE says what failures "
                        "take.");
  lines.push_back(
      (request.usual_batch ? "Batches go up to what Llama 3 405B was trained with; "
                             "--max-batch-tokens says what your training can use. "
                           : std::string{}) +
      "All batches train on the same tokens: that larger ones need more for the same loss is not "
      "said.");
  lines.push_back(
      "Rent is that of the GPUs used. To own is a share of the cluster's life with electricity: no "
      "building, staff or storage.");
  lines.push_back(
      "Prices are ranges, and out of date: give the quotes that you have with --economics FILE.");
  std::map<std::string, std::set<std::string>> unknown;  // By GPU.
  std::map<std::size_t, std::string> idle;               // By system.
  for (const PurchaseRow& row : purchase.rows) {
    if (!row.has_plan()) continue;
    for (const std::string& key : row.unknown_prices)
      unknown[request.systems[row.system].gpu.name].insert(key);
    if (row.bought > row.gpus) {
      std::string& text = idle[row.system];
      text += (text.empty() ? "" : ", ") + grouped(row.bought) + " for " + grouped(row.gpus);
    }
  }
  for (const auto& [system, text] : idle)
    lines.push_back(request.systems[system].name + " is bought in whole " +
                    (request.systems[system].nvlink_domain > request.systems[system].gpus_per_node
                         ? "NVLink domains: "
                         : "nodes: ") +
                    text + " GPUs.");
  for (const auto& [gpu, keys] : unknown) {
    std::string text;
    for (const std::string& key : keys) text += (text.empty() ? "" : ", ") + key;
    lines.push_back("Not known of " + gpu + ": " + text +
                    "; nothing is assumed, and --economics FILE with these keys fills the gaps.");
  }
  return lines;
}

}  // namespace orrery
