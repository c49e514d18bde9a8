#include "sim/output/report/bill_text.hpp"

#include <cmath>

#include "sim/base/text/number_text.hpp"

namespace orrery {
namespace {

struct Scale {
  double size;
  const char* unit;
};

// Three digits are more than a price range deserves.
std::string digits(double value) { return fixed(value, value < 10 ? 2 : value < 100 ? 1 : 0); }

std::string scaled(Range range, const char* before, std::initializer_list<Scale> scales) {
  const Scale* scale = scales.begin();
  for (const Scale& larger : scales)
    if (range.high >= larger.size) scale = &larger;
  const std::string low = digits(range.low / scale->size);
  const std::string high = digits(range.high / scale->size);
  return before + (low == high ? low : low + " to " + high) + scale->unit;
}

std::string dollars(Range range) {
  return scaled(range, "$", {{1, ""}, {1e3, " thousand"}, {1e6, " million"}, {1e9, " billion"}});
}

std::string tokens_text(double tokens) {
  return scaled({tokens, tokens}, "",
                {{1, ""}, {1e6, " million"}, {1e9, " billion"}, {1e12, " trillion"}});
}

}  // namespace

std::string bill_head(const Bill& bill) {
  return "Training on " + tokens_text(bill.tokens) + " tokens without interruption";
}

Table bill_table(const Bill& bill) {
  constexpr double day = 86400.0;
  Table table{{{"", Align::left}, {"", Align::left}, {"", Align::left}}};
  table.add_row({"time", digits(bill.time.si() / day) + " days",
                 grouped(std::llround(bill.steps)) + " steps"});
  table.add_row({"rent", dollars(bill.rent_usd),
                 dollars(bill.usd_per_trillion_tokens) + " a trillion tokens"});
  table.add_row({"to buy", dollars(bill.hardware_usd),
                 "servers, " + grouped(bill.fabric.switches) +
                     (bill.fabric.switches == 1 ? " switch, " : " switches, ") +
                     grouped(bill.fabric.cables) + " cables"});
  table.add_row({"energy", scaled(bill.energy_kwh, "", {{1, " kWh"}, {1e3, " MWh"}, {1e6, " GWh"}}),
                 dollars(bill.energy_usd) + ", drawing " +
                     scaled(bill.watts, "", {{1, " W"}, {1e3, " kW"}, {1e6, " MW"}})});
  return table;
}

}  // namespace orrery
