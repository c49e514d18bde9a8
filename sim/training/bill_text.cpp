#include <cmath>

#include "sim/core/number_text.hpp"
#include "sim/core/value_list.hpp"
#include "sim/training/training_text.hpp"

namespace orrery {
namespace {

struct Scale {
  double size;
  const char* unit;
};

// A price range is not known to more than two or three digits.
std::string digits(double value) { return fixed(value, value < 10 ? 2 : value < 100 ? 1 : 0); }

// Empty if the range is unknown.
std::string scaled(Range range, const char* before, std::initializer_list<Scale> scales) {
  if (!range.known()) return "";
  const Scale* scale = scales.begin();
  for (const Scale& larger : scales)
    if (range.high >= larger.size) scale = &larger;
  const std::string low = digits(range.low / scale->size);
  const std::string high = digits(range.high / scale->size);
  return before + (low == high ? low : low + " to " + high) + scale->unit;
}

// The figure between two texts; empty if the figure is.
std::string where_known(const std::string& before, const std::string& figure,
                        const std::string& behind) {
  return figure.empty() ? "" : before + figure + behind;
}

// "12 switches (8 leaves)"
std::string switches_text(const FabricParts& fabric) {
  const std::string leaves = grouped(fabric.leaves) + (fabric.leaves == 1 ? " leaf" : " leaves");
  return grouped(fabric.switches) + (fabric.switches == 1 ? " switch" : " switches") +
         (fabric.leaves > 0 ? " (" + leaves + ")" : "");
}

}  // namespace

std::string tokens_text(double tokens) {
  return scaled({tokens, tokens}, "",
                {{1, ""}, {1e6, " million"}, {1e9, " billion"}, {1e12, " trillion"}});
}

std::string dollars_text(Range range) {
  return scaled(range, "$", {{1, ""}, {1e3, " thousand"}, {1e6, " million"}, {1e9, " billion"}});
}

std::string energy_text(Range kwh) {
  return scaled(kwh, "", {{1, " kWh"}, {1e3, " MWh"}, {1e6, " GWh"}});
}

std::string bill_head(const Bill& bill) {
  return "Training on " + tokens_text(bill.tokens) + " tokens without interruption";
}

std::string whole_units_text(const Hardware& hardware, int gpus, int domains) {
  std::string text = hardware.units_text() + " of " + grouped(hardware.gpus_of_unit) + " GPUs " +
                     (hardware.units == 1 ? "is" : "are") + " bought for " + grouped(gpus) +
                     ", as they are sold whole.";
  if (domains > hardware.units)
    text += " The step was simulated on " + grouped(domains) + " of them, " +
            grouped(gpus / domains) + " GPUs in each, as schedulers place jobs.";
  return text;
}

std::string rent_note(const std::string& provider) {
  return "Unless --economics FILE gives " + provider +
         "'s own price, rent is what the market asks for such a GPU: " + provider +
         " may ask for more or less.";
}

std::string provider_note(const std::string& provider, bool has_own_rent) {
  return (has_own_rent ? "" : rent_note(provider) + " ") + provider +
         " sells no such machines: to buy is the price of equal ones.";
}

std::string bill_note(const Bill& bill) {
  std::vector<std::string> notes;
  if (bill.hardware.gpus() > bill.gpus)
    notes.push_back(whole_units_text(bill.hardware, bill.gpus, bill.domains));
  if (!bill.provider.empty()) notes.push_back(provider_note(bill.provider, bill.has_own_rent));
  if (!bill.unknown_prices.empty())
    notes.push_back("Not known are " + joined(bill.unknown_prices) +
                    ": --economics FILE with these keys fills the gaps.");
  return joined(notes, " ");
}

Table bill_table(const Bill& bill) {
  Table table{{{"", Align::left}, {"", Align::left}, {"", Align::left}}};
  table.add_row({"time", span_text(bill.time), grouped(std::llround(bill.steps)) + " steps"});
  table.add_row(
      {"rent", dollars_text(bill.rent_usd),
       where_known("", dollars_text(bill.usd_per_trillion_tokens), " a trillion tokens")});
  const Hardware& hardware = bill.hardware;
  table.add_row({"to buy", dollars_text(hardware.usd),
                 hardware.units_text() + ", " + switches_text(hardware.fabric) + ", " +
                     grouped(hardware.fabric.cables) + " cables"});
  const std::string power = scaled(bill.watts, "", {{1, " W"}, {1e3, " kW"}, {1e6, " MW"}});
  table.add_row(
      {"energy", energy_text(bill.energy_kwh),
       where_known("", dollars_text(bill.energy_usd), ", ") + where_known("drawing ", power, "")});
  return table;
}

std::string bill_text(const Bill& bill) {
  const std::string note = bill_note(bill);
  return bill_head(bill) + "\n" + bill_table(bill).text() +
         (note.empty() ? "" : wrapped_words("", note, 78));
}

}  // namespace orrery
