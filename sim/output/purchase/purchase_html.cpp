#include <algorithm>
#include <sstream>

#include "sim/base/draw/chart.hpp"
#include "sim/base/draw/html_page.hpp"
#include "sim/base/text/markup.hpp"
#include "sim/base/text/number_text.hpp"
#include "sim/output/purchase/purchase_text.hpp"
#include "sim/output/purchase/purchase_words.hpp"

namespace orrery {
namespace {

// Line by line, as escaped() lets no control character pass, of which the line's end is one.
std::string lines(const std::string& text) {
  std::string html = "<pre>";
  std::istringstream all{text};
  for (std::string line; std::getline(all, line);) html += escaped(line) + "\n";
  return html + "</pre>\n";
}

std::string cost_chart(const Purchase& purchase, const PurchaseRequest& request,
                       const PurchaseChoice& choice) {
  const ColumnUnit unit =
      money_unit(purchase, [&](const PurchaseRow& row) { return cost_of(row, request.pay); });
  const auto point = [&](std::size_t i) {
    const PurchaseRow& row = purchase.rows[i];
    return ChartPoint{row.time_days(), middle(cost_of(row, request.pay)) / unit.size,
                      row_name(row, request)};
  };
  std::vector<ChartPoint> all, front;
  for (std::size_t i = 0; i < purchase.rows.size(); ++i)
    if (choice.rows[i].standing != Standing::unknown) all.push_back(point(i));
  for (const std::size_t i : choice.front) front.push_back(point(i));
  if (all.empty()) return "";
  return pareto_chart(
      {"Cost against days",
       "grey: all other rows; the line: no other is both faster and cheaper, by the middles",
       "days", (request.pay == PayBy::rent ? "rent, " : "to own, ") + unit.name},
      all, front);
}

std::string days_chart(const Purchase& purchase, const PurchaseRequest& request) {
  ChartAxis gpus;
  for (const int n : request.gpus) {
    gpus.labels.push_back(grouped(n));
    gpus.numbers.push_back(n);
  }
  std::vector<ChartSeries> series;
  for (std::size_t s = 0; s < request.systems.size(); ++s) {
    ChartSeries& of = series.emplace_back();
    of.name = request.systems[s].name;
    for (const PurchaseRow& row : purchase.rows)
      if (row.system == s)
        of.values.push_back(row.has_plan() ? std::optional{row.time_days()} : std::nullopt);
  }
  return line_chart({"Days of training", "", "GPUs", "days"}, gpus, series);
}

}  // namespace

std::string purchase_html(const Purchase& purchase, const PurchaseRequest& request,
                          const PurchaseNames& names) {
  const PurchaseChoice choice = choose(purchase, request);
  return html_page(request.model.name + ", " + names.tokens + " tokens: which machine?",
                   cost_chart(purchase, request, choice) + days_chart(purchase, request) +
                       lines(purchase_text(purchase, request, names)) +
                       json_element(purchase_json(purchase, request, names)));
}

}  // namespace orrery
