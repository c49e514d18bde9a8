#include "sim/profile/kernel_text.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/core/figures.hpp"
#include "sim/core/number_text.hpp"
#include "sim/profile/roofline.hpp"

namespace orrery {
namespace {

// Time that is within this of the smallest size's counts as no more.
constexpr double hardly_more = 0.1;

// "343.6 GFLOP"
std::string flop_text(Flop flop) {
  static constexpr std::pair<double, const char*> units[] = {
      {1e15, "PFLOP"}, {1e12, "TFLOP"}, {1e9, "GFLOP"}, {1e6, "MFLOP"}, {1e3, "kFLOP"}};
  for (const auto& [size, unit] : units)
    if (flop.si() >= size) return fixed(flop.si() / size, 3) + " " + unit;
  return fixed(flop.si(), 0) + " FLOP";
}

std::string ratio_text(double value) {
  return fixed(value, value < 10.0 ? 3 : value < 1000.0 ? 1 : 0);
}

std::string range_text(const OperationPrice& price) {
  const DisplayUnit unit = time_unit(price.time);
  const double low = price.low.si() / unit.si, high = price.high.si() / unit.si;
  const int decimals = high < 100.0 ? 3 : 1;
  return fixed(low, decimals) + " .. " + fixed(high, decimals) + " " + std::string{unit.name};
}

std::string rate(const OperationPrice& price) {
  if (price.on_network || price.roofs.flop <= Flop{} ||
      price.roofs.memory_time() > price.roofs.compute_time())
    return fixed((price.roofs.bytes / price.time).si() / 1e9, 1) + " GB/s";
  return fixed(price.reached().si() / 1e12, 1) + " TFLOP/s";
}

void add_time(Table& table, const std::string& what, const OperationPrice& price) {
  table.add_row({what, duration_text(price.time), range_text(price), rate(price),
                 percent(price.share_of_roof()), name(price.tag)});
}

std::string alone_words(const KernelAnswer& answer) {
  switch (answer.question.kind->of) {
    case KernelKind::Of::gemm:
      return is_narrow(answer.question.dtype) ? "alone, A quantised in it" : "alone";
    case KernelKind::Of::attention:
      return "alone, as serving runs it";
    default:
      return "alone";
  }
}

std::string traffic_text(const KernelAnswer& answer) {
  std::string text;
  for (const TrafficPart& part : answer.parts)
    text += (text.empty() ? "" : ", ") + part.name + " " + bytes_text(part.bytes);
  return text;
}

std::string work_table(const KernelAnswer& answer) {
  const OperationPrice& price = answer.main();
  const KernelRoofs& roofs = price.roofs;
  Table table{{{"", Align::left}, {"", Align::left}, {"", Align::left}}};
  if (price.on_network) {
    table.add_row({"bytes of a port", bytes_text(roofs.bytes), traffic_text(answer)});
    table.add_row({"least time", duration_text(roofs.memory_time()),
                   "at " + fixed(roofs.bandwidth.si() / 1e9, 1) + " GB/s"});
    table.add_row({"bound by", "network", ""});
    return table.text();
  }
  table.add_row({"operations", flop_text(roofs.flop), ""});
  table.add_row({"memory traffic", bytes_text(roofs.bytes), traffic_text(answer)});
  table.add_row({"ops:byte", ratio_text(roofs.ops_per_byte()),
                 "the GPU's is " + ratio_text(roofs.ridge()) + " in " + price.format + ": " +
                     fixed(roofs.peak.si() / 1e12, 0) + " TFLOP/s over " +
                     fixed(roofs.bandwidth.si() / 1e9, 0) + " GB/s"});
  table.add_row({"least time", duration_text(roofs.least_time()),
                 "compute " + duration_text(roofs.compute_time()) + ", memory " +
                     duration_text(roofs.memory_time())});
  const bool latency = price.bound() == Bound::latency;
  table.add_row(
      {"bound by", name(price.bound()), latency ? "a launch takes longer than either" : ""});
  return table.text();
}

std::string nearest_text(const KernelAnswer& answer) {
  if (answer.nearest.empty()) return "";
  Table table{{{"nearest measured: " + answer.table, Align::left}, {"time"}, {"distance"}}};
  for (const NearRow& row : answer.nearest)
    table.add_row({row.sizes, duration_text(row.time), row.same ? "same" : fixed(row.distance, 2)});
  return "\n" + table.text();
}

}  // namespace

std::string kernel_title(const KernelAnswer& answer, const std::string& gpu) {
  const KernelQuestion& question = answer.question;
  const OperationPrice& price = answer.main();
  std::string text = question.kind->name + " " + price.sizes;
  if (question.kind->of == KernelKind::Of::decode)
    text += ", kv " + name(question.kv);
  else if (price.on_network)
    text += ", " + name(question.dispatcher);
  else
    text += ", " + name(question.dtype);
  if (!question.pass.empty()) text += ", " + question.pass;
  return text + ", on " + gpu;
}

std::string kernel_text(const KernelAnswer& answer, const KernelPricer& pricer, TextWidth width) {
  const System& system = pricer.system();
  std::string text =
      kernel_title(answer, answer.main().on_network ? system.name : system.gpu.name) + "\n  " +
      answer.question.kind->title + "\n\n" + work_table(answer) + "\n";
  Table times{{{"time", Align::left},
               {""},
               {"90 % interval"},
               {"reaches", Align::right, true},
               {"of roof"},
               {"basis", Align::left}}};
  if (answer.alone) add_time(times, alone_words(answer), *answer.alone);
  if (answer.training) add_time(times, "in a step of " + pricer.software().name, *answer.training);
  if (answer.served) add_time(times, "served by " + pricer.engine().name, *answer.served);
  return text + times.text(width) + nearest_text(answer);
}

std::string knee_text(const KernelSweep& sweep) {
  const OperationPrice& first = sweep.answers.front().main();
  if (!sweep.has_knee) return "";
  const std::string ridge = ratio_text(first.roofs.ridge());
  std::string text;
  if (!sweep.knee)
    text =
        "Memory-bound at every " + sweep.key + ": ops:byte stays below the GPU's " + ridge + ".\n";
  else if (*sweep.knee == 1)
    text = "Compute-bound at every " + sweep.key + ": ops:byte is above the GPU's " + ridge + ".\n";
  else
    text = wrapped_words("",
                         "The knee: from " + sweep.key + " = " + grouped(*sweep.knee) +
                             " on ops:byte is above the GPU's " + ridge +
                             ", and compute bounds it; below, memory.",
                         text_columns);
  const auto shortest = [](const KernelAnswer& answer) {
    return answer.served ? answer.served->time : answer.main().time;
  };
  std::int64_t free = 0;
  for (const KernelAnswer& answer : sweep.answers) {
    if (shortest(answer) > (1.0 + hardly_more) * shortest(sweep.answers.front())) break;
    free = answer.question.at(sweep.key);
  }
  const std::int64_t from = sweep.answers.front().question.at(sweep.key);
  if (free > from)
    text += "Up to " + sweep.key + " = " + grouped(free) + " it takes hardly longer than at " +
            grouped(from) + " (10 % at most).\n";
  return text;
}

std::string sweep_text(const KernelSweep& sweep, const KernelPricer& pricer, TextWidth width) {
  const KernelAnswer& first = sweep.answers.front();
  const bool is_network = first.main().on_network;
  std::vector<Figures> rows;
  for (const KernelAnswer& answer : sweep.answers) {
    const OperationPrice& price = answer.main();
    Figures& row = rows.emplace_back();
    row.show({sweep.key}, grouped(answer.question.at(sweep.key)));
    if (!is_network) row.show({"operations", Align::right, true}, flop_text(price.roofs.flop));
    row.show({is_network ? "bytes of a port" : "traffic", Align::right, !is_network},
             bytes_text(price.roofs.bytes));
    if (!is_network)
      row.show({"ops:byte", Align::right, true}, ratio_text(price.roofs.ops_per_byte()));
    row.show({"bound by", Align::left}, name(price.bound()));
    if (answer.alone) row.show({"alone"}, duration_text(price.time));
    row.show({"90 % interval"}, range_text(price));
    row.show({"reaches", Align::right, true}, rate(price));
    row.show({"of roof", Align::right, !is_network}, percent(price.share_of_roof()));
    row.show({"basis", Align::left, true}, name(price.tag));
    if (answer.training) row.show({"in a step"}, duration_text(answer.training->time));
    if (answer.served) row.show({"served"}, duration_text(answer.served->time));
  }
  const System& system = pricer.system();
  std::string title = first.question.kind->name + " on " +
                      (first.main().on_network ? system.name : system.gpu.name);
  for (const SizeKey& key : first.question.kind->sizes)
    if (key.name != sweep.key && first.question.at(key.name) > 0)
      title += ", " + key.name + " " + std::to_string(first.question.at(key.name));
  if (!first.main().on_network && first.question.kind->of != KernelKind::Of::decode)
    title += ", " + name(first.question.dtype);
  if (!first.question.pass.empty()) title += ", " + first.question.pass;
  return title + "\n\n" + table_of(rows).text(width) + "\n" + knee_text(sweep);
}

namespace {

void add_figures(Figures& row, const OperationPrice& one) {
  const KernelRoofs& roofs = one.roofs;
  row.add("flop", roofs.flop.si());
  row.add("bytes", roofs.bytes.si());
  row.add("ops_per_byte", roofs.ops_per_byte());
  row.add("ridge_ops_per_byte", roofs.ridge());
  row.add("compute_roof_s", roofs.compute_time().si());
  row.add("memory_roof_s", roofs.memory_time().si());
  row.add("bound", name(one.bound()));
  row.add("time_s", one.time.si());
  row.add("low_s", one.low.si());
  row.add("high_s", one.high.si());
  row.add("basis", name(one.tag));
  row.add("flop_per_s", one.reached().si());
  row.add("share_of_roof", one.share_of_roof());
}

}  // namespace

std::string kernel_csv(const std::vector<KernelAnswer>& answers, const std::string& key) {
  std::vector<Figures> rows;
  for (const KernelAnswer& answer : answers) {
    Figures& row = rows.emplace_back();
    const auto add = [&](const char* column, const std::optional<OperationPrice>& price,
                         const auto& of) {
      row.add(column, price ? Figures::Json(of(*price)) : Figures::Json(nullptr));
    };
    const auto time = [](const OperationPrice& one) { return one.time.si(); };
    const auto basis = [](const OperationPrice& one) { return name(one.tag); };
    if (!key.empty()) row.add(key, answer.question.at(key));
    add_figures(row, answer.main());
    add("training_time_s", answer.training, time);
    add("training_low_s", answer.training, [](const auto& one) { return one.low.si(); });
    add("training_high_s", answer.training, [](const auto& one) { return one.high.si(); });
    add("training_basis", answer.training, basis);
    add("served_time_s", answer.served, time);
    add("served_basis", answer.served, basis);
  }
  return csv_of(rows, nine_digits);
}

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

namespace {

std::string kinds_text(const OperationPrice& one) {
  std::string text;
  for (const OperationPrice::OfKind& of : one.kinds) text += (text.empty() ? "" : ", ") + of.kind;
  return text;
}

}  // namespace

Table operations_table(const OperationList& list) {
  const bool any_kinds = std::any_of(list.operations.begin(), list.operations.end(),
                                     [](const auto& one) { return !one.kinds.empty(); });
  const bool any_sizes = std::any_of(list.operations.begin(), list.operations.end(),
                                     [](const auto& one) { return !one.sizes.empty(); });
  std::vector<Column> columns{{"", Align::left},
                              {"operation", Align::left},
                              {"", Align::left},
                              {any_sizes ? "sizes" : "", Align::left, true},
                              {"times"},
                              {"ops:byte", Align::right, true},
                              {"bound by", Align::left},
                              {"each"},
                              {"reaches", Align::right, true},
                              {"of roof"},
                              {"share"},
                              {"basis", Align::left, true}};
  if (any_kinds) columns.push_back({"in layers", Align::left, true});
  Table table{std::move(columns)};
  const Seconds all = sum_of(list);
  constexpr double most = 0.99;
  Seconds shown;
  std::size_t index = 0, lines = 0;
  for (const OperationPrice& one : list.operations) {
    const std::string mark = is_plotted(one) ? roofline_mark(index) : "";
    index += is_plotted(one);
    if (shown >= most * all) continue;
    shown += one.all_time();
    ++lines;
    std::vector<std::string> row{
        mark,
        one.name,
        one.when,
        one.sizes,
        grouped(std::llround(one.count)),
        intensity_text(one),
        name(one.bound()),
        duration_text(one.time),
        rate_text(one),
        one.roofs.least_time() > Seconds{} ? percent(one.share_of_roof()) : "",
        percent(one.all_time() / all),
        name(one.tag)};
    if (any_kinds) row.push_back(kinds_text(one));
    table.add_row(std::move(row));
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

std::string operations_text(const OperationList& list, TextWidth width) {
  return operations_table(list).text(width) + "\nBound by     " + bounds_text(list) +
         "\nTogether     " + duration_text(sum_of(list)) + ", including overlapped operations\n";
}

std::string operations_csv(const OperationList& list) {
  std::vector<Figures> rows;
  for (const OperationPrice& one : list.operations) {
    Figures& row = rows.emplace_back();
    row.add("operation", one.name);
    row.add("kind", one.kind);
    row.add("when", one.when);
    row.add("sizes", one.sizes);
    row.add("format", one.format);
    row.add("count", one.count);
    add_figures(row, one);
  }
  return csv_of(rows, nine_digits);
}

}  // namespace orrery
