#include "sim/calibration/calibration_text.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "calibration/host/work_list.hpp"
#include "sim/cluster/dtype.hpp"
#include "sim/core/chart.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/table.hpp"
#include "sim/core/value_list.hpp"
#include "sim/kernels/attention_time.hpp"
#include "sim/kernels/gemm_time.hpp"
#include "sim/kernels/kernel_error.hpp"

namespace orrery {
namespace {

// A GPU with all figures that kernel times depend on, from the tables.
Gpu gpu_of(const KernelTables& tables, const MeasuredGpu& measured) {
  Gpu gpu;
  gpu.name = tables.gpu;
  static_cast<Peaks&>(gpu) = measured;
  gpu.memory_bandwidth = measured.memory_bandwidth;
  gpu.multiprocessors = measured.multiprocessors;
  return gpu;
}

std::string by(const std::vector<std::int64_t>& sizes) { return joined(sizes, " x "); }

AssessedTable assess_gemm(const KernelTables& tables, const GemmTable& table) {
  const GemmTime time{gpu_of(tables, table.measured_on), table.dtype, &tables};
  AssessedTable assessed{"gemm " + name(table.dtype), {}, {}, 0};
  for (const auto& [m, n, k, measured] : table.rows) {
    const GemmProduct product{m, n, k};
    assessed.rows.push_back({by({m, n, k}), measured, time.base(m, n, k),
                             time.without_row(m, n, k).time, gemm_flop({&product, 1})});
  }
  // An octave of m n counts 1.5: beyond 1, neighbours explain less than half of the residual.
  constexpr double near = 1.0;
  for (const calibration::Case& one : calibration::default_work_list(1)) {
    if (one.kind != "gemm" || one.choice("dtype") != name(table.dtype) ||
        one.choice("pass") != "forward")
      continue;
    ++assessed.common;
    if (time.distance(one.size("m"), one.size("n"), one.size("k")) > near)
      assessed.thin.push_back(by({one.size("m"), one.size("n"), one.size("k")}));
  }
  return assessed;
}

AssessedTable assess_attention(const KernelTables& tables, const AttentionBase& base) {
  const AttentionTable& table = *tables.attention;
  const Gpu gpu = gpu_of(tables, table.measured_on);
  const AttentionTime time{gpu, &tables};
  AssessedTable assessed{"attention " + std::to_string(base.head_dim), {}, {}, 0};
  for (const AttentionRow& row : table.rows) {
    if (row.head_dim != base.head_dim) continue;
    const double formula_us =
        attention_formula_us(base, gemm_machine(table.measured_on, Dtype::bf16), causal_square(row),
                             AttentionScope::row);
    const auto factor = [](std::int64_t value) { return static_cast<double>(value); };
    assessed.rows.push_back({by({row.batch, row.sequence, row.heads, row.kv_heads}), row.time,
                             microseconds(formula_us), time.table_time_without_row(row).time,
                             2.0 * factor(row.batch) * factor(row.heads) * factor(row.sequence) *
                                 factor(row.sequence) * factor(row.head_dim)});
  }
  return assessed;
}

}  // namespace

std::vector<AssessedTable> assess(const Calibration& calibration) {
  std::vector<AssessedTable> all;
  if (!calibration.kernels) return all;
  const KernelTables& tables = *calibration.kernels;
  for (const GemmTable& table : tables.gemm)
    if (!table.rows.empty()) all.push_back(assess_gemm(tables, table));
  if (tables.attention)
    for (const AttentionBase& base : tables.attention->bases)
      all.push_back(assess_attention(tables, base));
  return all;
}

namespace {

constexpr int width = 98;

double error_of(Seconds predicted, const AssessedRow& row) {
  return predicted / row.measured - 1.0;
}

void add_errors(std::vector<std::string>& cells, const std::vector<double>& errors) {
  const auto summary = summarize_errors(errors);
  if (!summary) return;
  for (const double value : {summary->median, summary->p90}) cells.push_back(percent(value));
}

std::string kernels_text(const std::vector<AssessedTable>& tables) {
  Table text{
      {{"table", Align::left}, {"rows"}, {"formula"}, {"p90"}, {"others"}, {"p90"}, {"bias"}}};
  for (const AssessedTable& table : tables) {
    std::vector<double> formula, others;
    for (const AssessedRow& row : table.rows) {
      formula.push_back(error_of(row.formula, row));
      others.push_back(error_of(row.others, row));
    }
    std::vector<std::string> cells{table.what, grouped(std::ssize(table.rows))};
    add_errors(cells, formula);
    add_errors(cells, others);
    cells.push_back(signed_percent(middle(others, 0.5)));
    text.add_row(std::move(cells));
  }
  return text.text();
}

// Rows that neither formula nor neighbours explain: wrong, or a kernel of another kind.
std::string worst_rows(const std::vector<AssessedTable>& tables) {
  constexpr double remarkable = 0.1;
  constexpr std::size_t most = 5;
  struct Row {
    double error;
    std::string text;
  };
  std::vector<Row> rows;
  for (const AssessedTable& table : tables)
    for (const AssessedRow& row : table.rows)
      if (const double error = error_of(row.others, row); std::abs(error) > remarkable)
        rows.push_back({error, table.what + ", " + row.shape + ": " + duration_text(row.measured) +
                                   ", the others say " + duration_text(row.others) + " (" +
                                   signed_percent(error) + ")"});
  if (rows.empty()) return "";
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return std::abs(a.error) > std::abs(b.error);
  });
  std::string text = "\nFarthest from what the others say (" + grouped(std::ssize(rows)) +
                     (rows.size() == 1 ? " row" : " rows") + " beyond 10 %):\n";
  for (std::size_t i = 0; i < std::min(most, rows.size()); ++i) text += "  " + rows[i].text + "\n";
  return text;
}

std::string thin_text(const std::vector<AssessedTable>& tables) {
  constexpr std::ptrdiff_t most = 3;
  std::string text;
  for (const AssessedTable& table : tables) {
    if (table.thin.empty()) continue;
    const auto shown = std::min<std::ptrdiff_t>(most, std::ssize(table.thin));
    text += wrapped("  " + table.what + ": " + grouped(std::ssize(table.thin)) + " of " +
                        grouped(static_cast<std::int64_t>(table.common)) + " common shapes, as ",
                    {table.thin.begin(), table.thin.begin() + shown}, ", ", width);
  }
  return text.empty() ? "" : "\nWithout a measured shape nearby (formula only):\n" + text;
}

std::string factors_text(const KernelTables& tables) {
  const auto& listed = tables.factor_sources;
  Table text{{{"factor", Align::left}, {""}, {"", Align::left}}};
  // The first clause names the origin; the file has the rest.
  const auto add = [&](const char* what, double value, const std::string& key) {
    if (!listed.count(key)) return;
    const KernelTables::FactorSource& from = listed.at(key);
    const std::string clause = from.source.substr(0, from.source.find(';'));
    text.add_row({what, fixed(value, 3), (from.measured ? "measured: " : "") + clause});
  };
  add("sustained clock", tables.sustained, "sustained");
  add("wgrad efficiency", tables.wgrad_efficiency, "wgrad_efficiency");
  add("copies, of the bandwidth", tables.copy_efficiency, "copy_efficiency");
  add("attention backward / forward", tables.attention_backward, "attention_backward");
  add("grouped products", tables.grouped_efficiency, "grouped_efficiency");
  add("collective contention", tables.overlap_loss_share, "share_lost_beside");
  return text.text();
}

std::string curves_text(const std::vector<MeasuredCurve>& curves) {
  Table text{
      {{"collective", Align::left}, {"ranks"}, {"nodes"}, {"sizes"}, {"from"}, {"to"}, {"GB/s"}}};
  for (const MeasuredCurve& curve : curves) {
    double best = 0.0;
    for (const auto& [bytes, time] : curve.points)
      best = std::max(best, bytes.si() / time.si() * 1e-9);
    text.add_row({std::string{name(curve.collective)}, grouped(curve.ranks), grouped(curve.nodes),
                  grouped(std::ssize(curve.points)), bytes_text(curve.points.front().bytes),
                  bytes_text(curve.points.back().bytes), fixed(best, 1)});
  }
  return text.text();
}

}  // namespace

std::string calibration_text(const Calibration& calibration,
                             const std::vector<AssessedTable>& tables) {
  std::string text =
      "Calibration   " + calibration.file + "\nGPU           " + calibration.gpu + "\n";
  for (const Calibration::Source& source : calibration.sources) {
    std::vector<std::string> listed{source.file};
    for (const std::string& more : {source.machine, source.started})
      if (!more.empty()) listed.push_back(more);
    text += wrapped("From          ", listed, ", ", width);
  }
  if (!tables.empty())
    text +=
        "\nErrors of the formula, and of each row predicted from the others: median, 90th "
        "percentile\n" +
        kernels_text(tables) + worst_rows(tables) + thin_text(tables);
  if (calibration.kernels) text += "\n" + factors_text(*calibration.kernels);
  if (!calibration.curves.empty())
    text += "\nCollectives; GB/s is the largest algorithm bandwidth\n" +
            curves_text(calibration.curves);
  return text;
}

std::string fit_text(const CalibrationFit& fit) {
  std::string text;
  if (!fit.checks.empty()) {
    Table table{{{"compared with", Align::left}, {"cases"}, {"median"}, {"p90"}, {"bias"}}};
    for (const FitCheck& check : fit.checks) {
      std::vector<std::string> cells{check.what, grouped(std::ssize(check.errors))};
      add_errors(cells, check.errors);
      if (!check.errors.empty()) cells.push_back(signed_percent(middle(check.errors, 0.5)));
      table.add_row(std::move(cells));
    }
    text += "\nPredicted against measured\n" + table.text();
  }
  if (!fit.findings.empty()) text += "\n";
  for (const std::string& finding : fit.findings) text += wrapped("", {finding}, "", width);
  if (!fit.notes.empty()) text += "\nNot used:\n";
  for (const std::string& note : fit.notes) text += wrapped("  ", {note}, "", width);
  return text;
}

namespace {

using F = ChartFrame;

// 1, 2 and 5 times powers of ten around all rates, so that every row lies between two ticks.
std::vector<double> ticks_around(double least, double most) {
  std::vector<double> ticks;
  for (double power = std::pow(10.0, std::floor(std::log10(least))); power <= most; power *= 10.0)
    for (const double factor : {1.0, 2.0, 5.0}) ticks.push_back(factor * power);
  ticks.push_back(10.0 * std::pow(10.0, std::floor(std::log10(most))));
  while (ticks.size() > 2 && ticks[1] <= least) ticks.erase(ticks.begin());
  while (ticks.size() > 2 && ticks[ticks.size() - 2] >= most) ticks.pop_back();
  return ticks;
}

}  // namespace

std::string calibration_chart(const Calibration& calibration,
                              const std::vector<AssessedTable>& tables) {
  struct Dot {
    double predicted, achieved;  // TFLOP/s
  };
  double least = INFINITY, most = 0.0;
  std::vector<std::vector<Dot>> dots;
  for (const AssessedTable& table : tables) {
    dots.emplace_back();
    for (const AssessedRow& row : table.rows) {
      const Dot dot{row.flop / row.others.si() * 1e-12, row.flop / row.measured.si() * 1e-12};
      for (const double rate : {dot.predicted, dot.achieved}) {
        least = std::min(least, rate);
        most = std::max(most, rate);
      }
      dots.back().push_back(dot);
    }
  }
  if (dots.empty())
    fail_input({calibration.file, ""}, "holds no kernels, so that there is nothing to draw",
               "leave --svg out");
  const std::vector<double> ticks = ticks_around(least, most);
  const ChartScale across = ChartScale::logarithmic(ticks, F::left, F::right);
  const ChartScale up = ChartScale::logarithmic(ticks, F::bottom, F::top);
  Svg svg{F::width, F::height};
  draw_frame(svg,
             {"Achieved against predicted, " + calibration.gpu,
              "each row predicted from the others of its table; on the line they agree",
              "predicted TFLOP/s", "achieved TFLOP/s"},
             across, up, true);
  svg.line({across.pixel(ticks.front()), up.pixel(ticks.front())},
           {across.pixel(ticks.back()), up.pixel(ticks.back())}, "#888");
  for (std::size_t i = 0; i < dots.size(); ++i) {
    const AssessedTable& table = tables[i];
    for (std::size_t row = 0; row < dots[i].size(); ++row)
      svg.circle({across.pixel(dots[i][row].predicted), up.pixel(dots[i][row].achieved)}, 2.5,
                 series_colour(i), table.rows[row].shape);
    const double y = F::top + 20.0 * static_cast<double>(i);
    svg.circle({F::right + 20, y - 4}, 4.0, series_colour(i));
    svg.text({F::right + 32, y}, table.what + ", " + grouped(std::ssize(table.rows)) + " rows");
  }
  return svg.document();
}

std::string measured_steps_text(const std::vector<MeasuredStep>& steps) {
  Table table{{{"step", Align::left}, {"measured"}, {"predicted"}, {"error"}, {"range"}}};
  for (const MeasuredStep& step : steps) {
    const auto add = [&](const std::string& what, Seconds StepParts::*part,
                         const std::string& range) {
      const Seconds measured = step.measured.*part, predicted = step.predicted.*part;
      table.add_row({what, duration_text(measured), duration_text(predicted),
                     signed_percent(predicted / measured - 1.0), range});
    };
    const bool inside =
        step.measured.step >= step.range.low() && step.measured.step <= step.range.high();
    add(step.name, &StepParts::step,
        duration_text(step.range.low()) + " to " + duration_text(step.range.high()) +
            (inside ? "" : ", missed"));
    add("  forward", &StepParts::forward, "");
    add("  backward", &StepParts::backward, "");
    add("  optimizer", &StepParts::optimizer, "");
  }
  std::string text = table.text();
  for (const MeasuredStep& step : steps)
    if (step.host)
      text += (&step == &steps.front() ? "\n" : "") + step.name + ": the host hands over " +
              std::to_string(step.launches) + " launches in " + duration_text(*step.host) + "\n";
  return text;
}

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* fitted_by = "fitted to the rows below by orrery calibrate fit";
constexpr const char* of_the_published = "of the table that the rows correct";

std::string four_digits(double value, const char* unit) {
  char text[64];
  std::snprintf(text, sizeof text, "%.4g %s", value, unit);
  return text;
}

// Full precision, so that peaks and bandwidths are read back unchanged.
std::string all_digits(double value, const char* unit) {
  char text[64];
  std::snprintf(text, sizeof text, "%.17g %s", value, unit);
  return text;
}

double four_decimals(double value) { return std::round(value * 1e4) / 1e4 + 0.0; }

double nanoseconds_rounded(Seconds time) { return std::round(time.si() * 1e9) / 1e3; }

Json factor_json(const FittedFactor& factor) {
  return {{"value", four_decimals(factor.value)},
          {"measured", factor.measured},
          {"source", factor.source}};
}

void add_error(Json& json, const std::optional<LeftOutError>& error) {
  if (!error) return;
  json["left_out"] = {{"count", error->rows},
                      {"median_error", four_decimals(error->median)},
                      {"p90_error", four_decimals(error->p90)},
                      {"bias", four_decimals(error->bias)}};
}

// Rows are lists of numbers that a diff should show line by line, inserted afterwards.
class Rows {
 public:
  void add(const std::string& line) { text_ += (text_.empty() ? "\n  [" : ",\n  [") + line + "]"; }
  std::string text() const { return "[" + text_ + "]"; }

 private:
  std::string text_;
};

std::string number(double value) { return Json(value).dump(); }
std::string number(std::int64_t value) { return std::to_string(value); }

// {a, b} with `more` as further members.
std::string with(const Json& json, const std::string& more) {
  std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  text.pop_back();
  return text + (json.empty() ? "" : ", ") + more + "}";
}

std::string gemm_json(const GemmTable& table, const std::string& gpu) {
  const GemmBase& base = table.base;
  const bool corrected = table.measured_on.name != gpu;
  Json json{{"dtype", name(table.dtype)}, {"source", table.source}};
  if (corrected) json["corrected"] = true;
  json.update({{"base",
                {{"source", corrected ? of_the_published : fitted_by},
                 {"overhead", four_digits(base.overhead.si() * 1e6, "us")},
                 {"compute_efficiency", base.compute_efficiency},
                 {"tile_overhead", four_digits(base.tile_overhead.si() * 1e6, "us")},
                 {"memory_efficiency", base.memory_efficiency},
                 {"hard", base.hard},
                 {"throttle", base.throttle}}}});
  add_error(json, table.left_out);
  Rows rows;
  for (const GemmRow& row : table.rows)
    rows.add(number(row.m) + "," + number(row.n) + "," + number(row.k) + "," +
             number(nanoseconds_rounded(row.time)));
  return with(json, R"("columns": ["m", "n", "k", "time_us"], "rows": )" + rows.text());
}

std::string attention_json(const AttentionTable& table) {
  Json json{
      {"source", table.source},
      {"measures", table.measures == AttentionTable::Measures::kernel ? "kernel" : "serving step"}};
  for (const AttentionBase& base : table.bases) {
    Json one{{"head_dim", base.head_dim},
             {"source", fitted_by},
             {"overhead", four_digits(base.overhead.si() * 1e6, "us")},
             {"efficiency", base.efficiency},
             {"diagonal", base.diagonal},
             {"query_traffic", base.query_traffic},
             {"key_traffic", base.key_traffic},
             {"hard", base.hard},
             {"lone", base.isolated}};
    add_error(one, base.left_out);
    json["bases"].push_back(one);
  }
  Rows rows;
  for (const AttentionRow& row : table.rows)
    rows.add(number(row.batch) + "," + number(row.sequence) + "," + number(row.heads) + "," +
             number(row.kv_heads) + "," + number(row.head_dim) + "," +
             number(nanoseconds_rounded(row.time)));
  return with(json,
              R"("columns": ["batch", "sequence", "heads", "kv_heads", "head_dim", "time_us"], )"
              R"("rows": )" +
                  rows.text());
}

std::string kernels_json(const FittedKernels& kernels, const Gpu& gpu) {
  Json reference{{"source", "the catalog's figures of " + gpu.name +
                                "; they only set units: the constants absorb their errors"}};
  for (const PeakKey& peak : peak_keys)
    if (!is_wide(peak.format) && gpu.*peak.peak > FlopPerSecond{})
      reference[std::string{peak.key}] = all_digits((gpu.*peak.peak).si() * 1e-12, "TFLOP/s");
  reference["memory_bandwidth"] = all_digits(gpu.memory_bandwidth.si() * 1e-9, "GB/s");
  reference["multiprocessors"] = gpu.multiprocessors;
  Json json{{"schema", "orrery.kernels/1"},
            {"gpu", gpu.name},
            {"reference", reference},
            {"sustained", factor_json(kernels.sustained)},
            {"wgrad_efficiency", factor_json(kernels.wgrad_efficiency)},
            {"copy_efficiency", factor_json(kernels.copy_efficiency)},
            {"attention_backward", factor_json(kernels.attention_backward)}};
  if (kernels.grouped_efficiency.measured)
    json["grouped_efficiency"] = factor_json(kernels.grouped_efficiency);
  if (kernels.overlap_loss_share.measured)
    json["share_lost_beside"] = factor_json(kernels.overlap_loss_share);
  std::string tables;
  for (const GemmTable& table : kernels.tables.gemm)
    tables += (tables.empty() ? "\n " : ",\n ") + gemm_json(table, gpu.name);
  std::string more = "\n \"gemm\": [" + tables + "]";
  if (kernels.tables.attention)
    more += ",\n \"attention_forward\": " + attention_json(*kernels.tables.attention);
  return with(json, more);
}

}  // namespace

std::string calibration_json(const CalibrationFit& fit) {
  Json sources = Json::array();
  for (const Calibration::Source& source : fit.sources) {
    Json json{{"file", source.file}};
    if (!source.machine.empty()) json["machine"] = source.machine;
    if (!source.started.empty()) json["started"] = source.started;
    sources.push_back(json);
  }
  const Json head{{"schema", "orrery.calibration/1"}, {"gpu", fit.gpu.name}, {"sources", sources}};
  std::string more;
  if (fit.kernels) more = "\n\"kernels\": " + kernels_json(*fit.kernels, fit.gpu);
  if (!fit.curves.empty()) {
    std::string curves = curves_json(fit.curves);
    while (curves.ends_with('\n')) curves.pop_back();
    more += (more.empty() ? "\n" : ",\n") + std::string{"\"collectives\": "} + curves;
  }
  return with(head, more) + "\n";
}

}  // namespace orrery
