#include "sim/profile/operations_text.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/core/number_text.hpp"
#include "sim/profile/kernel_csv.hpp"
#include "sim/profile/roofline.hpp"

namespace orrery {
namespace {

Seconds sum_of(const OperationList& list) {
  Seconds sum;
  for (const OperationPrice& one : list.operations) sum += one.all_time();
  return sum;
}

std::string intensity_text(const OperationPrice& one) {
  if (one.on_network || one.roofs.flop <= Flop{} || one.roofs.bytes <= Bytes{}) return "";
  const double value = one.roofs.ops_per_byte();
  return fixed(value, value < 10.0 ? 2 : value < 1000.0 ? 1 : 0);
}

std::string rate_text(const OperationPrice& one) {
  if (one.roofs.flop > Flop{}) {
    const double rate = one.reached().si() / 1e12;
    return fixed(rate, rate < 10.0 ? 2 : 1) + " TFLOP/s";
  }
  if (one.roofs.bytes > Bytes{}) return fixed((one.roofs.bytes / one.time).si() / 1e9, 0) + " GB/s";
  return "";
}

}  // namespace

Table operations_table(const OperationList& list) {
  const bool any_sizes = std::any_of(list.operations.begin(), list.operations.end(),
                                     [](const auto& one) { return !one.sizes.empty(); });
  Table table{{{"", Align::left},
               {"operation", Align::left},
               {"", Align::left},
               {any_sizes ? "sizes" : "", Align::left},
               {"times"},
               {"ops:byte"},
               {"bound by", Align::left},
               {"each"},
               {"reaches"},
               {"of roof"},
               {"share"},
               {"basis", Align::left}}};
  const Seconds all = sum_of(list);
  constexpr double most = 0.99;
  Seconds shown;
  std::size_t drawn = 0, lines = 0;
  for (const OperationPrice& one : list.operations) {
    const std::string mark = is_drawn(one) ? roofline_mark(drawn) : "";
    drawn += is_drawn(one);
    if (shown >= most * all) continue;
    shown += one.all_time();
    ++lines;
    table.add_row({mark, one.name, one.when, one.sizes, grouped(std::llround(one.count)),
                   intensity_text(one), name(one.bound()), duration_text(one.time), rate_text(one),
                   one.roofs.least_time() > Seconds{} ? percent(one.share_of_roof()) : "",
                   percent(one.all_time() / all), name(one.tag)});
  }
  if (lines < list.operations.size())
    table.add_row(
        {"", grouped(std::ssize(list.operations) - static_cast<std::int64_t>(lines)) + " others",
         "", "", "", "", "", "", "", "", percent(1.0 - shown / all)});
  return table;
}

std::string bounds_text(const OperationList& list) {
  std::array<Seconds, 5> by_bound{};
  for (const OperationPrice& one : list.operations)
    by_bound[static_cast<std::size_t>(one.bound())] += one.all_time();
  const Seconds all = sum_of(list);
  constexpr double least = 5e-4;  // Less is 0.0 %.
  std::string text;
  for (const Bound bound :
       {Bound::compute, Bound::memory, Bound::latency, Bound::host, Bound::network})
    if (const Seconds time = by_bound[static_cast<std::size_t>(bound)]; time >= least * all)
      text += (text.empty() ? "" : ", ") + name(bound) + " " + percent(time / all);
  return text;
}

std::string operations_text(const OperationList& list) {
  return operations_table(list).text() + "\nBound by     " + bounds_text(list) + "\nTogether     " +
         duration_text(sum_of(list)) + ", also what runs beside each other\n";
}

std::string operations_csv(const OperationList& list) {
  std::string text = operation_csv_header() + "\n";
  for (const OperationPrice& one : list.operations) text += operation_csv_line(one) + "\n";
  return text;
}

}  // namespace orrery
