#include "sim/calibration/calibration_text.hpp"

#include <algorithm>
#include <cmath>

#include "sim/core/number_text.hpp"
#include "sim/core/table.hpp"
#include "sim/kernels/kernel_error.hpp"

namespace orrery {
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
  return text.empty() ? "" : "\nNo measured shape is near; the formula alone prices:\n" + text;
}

std::string factors_text(const KernelTables& tables) {
  const auto& said = tables.factor_sources;
  Table text{{{"factor", Align::left}, {""}, {"", Align::left}}};
  // Of where it is from the first clause; the file has the rest.
  const auto add = [&](const char* what, double value, const std::string& key) {
    if (!said.count(key)) return;
    const KernelTables::FactorSource& from = said.at(key);
    const std::string clause = from.source.substr(0, from.source.find(';'));
    text.add_row({what, fixed(value, 3), (from.measured ? "measured: " : "") + clause});
  };
  add("sustained clock", tables.sustained, "sustained");
  add("wgrad efficiency", tables.wgrad_efficiency, "wgrad_efficiency");
  add("copies, of the bandwidth", tables.copy_efficiency, "copy_efficiency");
  add("attention backward / forward", tables.attention_backward, "attention_backward");
  add("grouped products", tables.grouped_efficiency, "grouped_efficiency");
  add("lost beside collectives", tables.share_lost_beside, "share_lost_beside");
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
    std::vector<std::string> said{source.file};
    for (const std::string& more : {source.machine, source.started})
      if (!more.empty()) said.push_back(more);
    text += wrapped("From          ", said, ", ", width);
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
    Table table{{{"held against", Align::left}, {"cases"}, {"median"}, {"p90"}, {"bias"}}};
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

}  // namespace orrery
