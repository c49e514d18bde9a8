#include <cstdio>

#include "sim/search/purchase_text.hpp"

namespace orrery {
namespace {

// As RFC 4180 has it.
std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\n") == text.npos) return text;
  std::string cell = "\"";
  for (const char letter : text) cell += letter == '"' ? std::string{"\"\""} : std::string{letter};
  return cell + "\"";
}

std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

std::string low_and_high(Range range) {
  return range.known() ? number(range.low) + "," + number(range.high) : ",";
}

}  // namespace

std::string purchase_csv(const Purchase& purchase, const PurchaseRequest& request) {
  const PurchaseChoice choice = choose(purchase, request);
  std::string text =
      "system,gpus,refused,standing,in_time,in_budget,dtype,software,gbs,batch_tokens,step_time_s,"
      "days,days_low,days_high,days_without_failures,rent_usd_low,rent_usd_high,own_usd_low,"
      "own_usd_high,to_buy_usd_low,to_buy_usd_high,gpus_bought,energy_kwh_low,energy_kwh_high,"
      "tokens_per_s_per_gpu,mfu,memory_share,binds,binds_share,plan\n";
  for (std::size_t i = 0; i < purchase.rows.size(); ++i) {
    const PurchaseRow& row = purchase.rows[i];
    const RowChoice& of = choice.rows[i];
    text += quoted(request.systems[row.system].name) + "," + std::to_string(row.gpus) + ",";
    if (!row.has_plan()) {
      text += quoted(row.unfinished ? "not searched before the interruption" : row.refused) +
              std::string(27, ',') + "\n";
      continue;
    }
    const Result& result = *row.result;
    const Plan& plan = result.scenario.plan;
    const Binding binding = what_binds(row.shares);
    for (const std::string& cell : {std::string{},
                                    name(of.standing),
                                    of.deadline ? name(*of.deadline) : "",
                                    of.budget ? name(*of.budget) : "",
                                    name(plan.dtype),
                                    quoted(result.scenario.software.name),
                                    std::to_string(plan.gbs),
                                    std::to_string(plan.gbs * plan.seq),
                                    number(result.step_time.si()),
                                    number(row.time_days()),
                                    low_and_high(row.time_range()),
                                    number(row.days_middle),
                                    low_and_high(cost_of(row, PayBy::rent)),
                                    low_and_high(row.own_usd),
                                    low_and_high(row.to_buy_usd),
                                    std::to_string(row.bought),
                                    low_and_high(energy_kwh(row)),
                                    number(result.tokens_per_s_per_gpu),
                                    number(result.mfu),
                                    number(result.memory.peak() / result.memory.capacity),
                                    name(binding),
                                    number(row.shares[static_cast<std::size_t>(binding)])})
      text += cell + ",";
    text += quoted(row.flags) + "\n";
  }
  return text;
}

}  // namespace orrery
