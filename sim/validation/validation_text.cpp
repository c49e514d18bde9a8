#include "sim/validation/validation_text.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <set>

#include "sim/core/number_text.hpp"
#include "sim/core/table.hpp"
#include "sim/engine/network_model.hpp"
#include "sim/validation/coverage.hpp"

namespace orrery {
namespace {

// A percentage with the error's sign, also if it rounds to zero.
std::string error_text(double fraction) {
  if (!std::isfinite(fraction)) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%+.1f %%", 100.0 * fraction);
  return text;
}

std::string plain_percent(double fraction) {
  return std::isfinite(fraction) ? percent(fraction) : "-";
}

constexpr const char* peak_memory = "peak_memory_bytes";

bool is_memory(const Comparison& comparison) { return comparison.quantity == peak_memory; }

std::string run_amount(const std::string& quantity, double value) {
  if (quantity.ends_with("_bytes")) return bytes_text(Bytes{value});
  if (quantity.ends_with("_s")) return fixed(value, 1) + " s";
  if (quantity.ends_with("_h")) return fixed(value, 2) + " h";
  return fixed(value, quantity == "ettr" || quantity.ends_with("_ratio") ? 3 : 1);
}

// "0.938", "above 0.900"
std::string measured_text(const Comparison& comparison, const std::string& quantity) {
  if (!comparison.bounds) return run_amount(quantity, comparison.measured);
  const auto [low, high] = *comparison.bounds;
  std::string text;
  if (low > 0.0) text = "above " + run_amount(quantity, low);
  if (std::isfinite(high))
    text += (text.empty() ? "" : ", ") + ("below " + run_amount(quantity, high));
  return text;
}

std::string amount(const Comparison& comparison, double value) {
  if (comparison.quantity == "time_s" || comparison.quantity == "time_from_1_mib_s")
    return fixed(value * 1e6, 1) + " us";
  if (comparison.quantity == "bus_bandwidth_bytes_per_s") return fixed(value / 1e9, 1) + " GB/s";
  if (comparison.quantity.find("_ms") != std::string::npos)
    return fixed(value, value < 100.0 ? 2 : 1) + " ms";
  if (comparison.quantity.ends_with("_tokens"))
    return grouped(static_cast<std::int64_t>(value)) + " tokens";
  if (comparison.quantity.find("tokens_per_s") != std::string::npos)
    return fixed(value, 1) + " tokens/s";
  if (comparison.quantity == "requests_per_s") return fixed(value, 3) + " requests/s";
  if (comparison.quantity.ends_with("_share") || comparison.quantity == "attainment")
    return percent(value);
  if (comparison.quantity.ends_with("_ratio") || comparison.quantity.ends_with("_replicas"))
    return fixed(value, 2);
  return is_memory(comparison) ? bytes_text(Bytes{value})
                               : fixed(value, value < 10.0 ? 3 : 2) + " s";
}

std::set<std::string> peers_of(const ValidationReport& report) {
  std::set<std::string> peers;
  for (const Comparison& comparison : report.comparisons)
    for (const auto& [peer, error] : comparison.peer_errors) peers.insert(peer);
  return peers;
}

// A phase of a step of reinforcement learning.
bool is_phase(const Comparison& comparison) {
  const std::string& quantity = comparison.quantity;
  return quantity == "generation_s" || quantity == "logprobs_s" || quantity == "training_s" ||
         quantity == "transfer_s";
}

// Figures of one served case are distinguished by their names.
std::string quantity_suffix(const Comparison& comparison) {
  const std::string& quantity = comparison.quantity;
  if (quantity == "attainment" || quantity == "start_s") return "";
  const bool is_one_of_several = quantity.ends_with("_ms") || quantity.ends_with("_without") ||
                                 quantity.ends_with("_ratio") || quantity.ends_with("_share") ||
                                 quantity.ends_with("_replicas") || is_phase(comparison) ||
                                 quantity == "duration_s" || quantity == "requests_per_s" ||
                                 quantity.find("tokens_per_s") != std::string::npos;
  return is_one_of_several ? " " + quantity : "";
}

// Memory appears next to time, distinguished by its unit.
std::vector<std::string> cells_of(const ValidationReport& report, const Comparison& comparison,
                                  const std::set<std::string>& peers) {
  if (report.kind == "runs")
    return {comparison.id + " " + comparison.quantity,
            measured_text(comparison, comparison.quantity),
            run_amount(comparison.quantity, comparison.predicted), error_text(comparison.error())};
  std::vector<std::string> cells{
      comparison.id + quantity_suffix(comparison), amount(comparison, comparison.measured),
      amount(comparison, comparison.predicted),
      comparison.over_points ? plain_percent(comparison.error()) : error_text(comparison.error())};
  for (const std::string& peer : peers) {
    const auto error = comparison.peer_errors.find(peer);
    cells.push_back(error == comparison.peer_errors.end() ? "" : error_text(error->second));
  }
  return cells;
}

std::string subject(const ValidationReport& report) {
  if (report.main_quantity == "bus_bandwidth_bytes_per_s") return "bus bandwidth from 64 MiB on";
  if (report.kind == "expert exchange" || report.kind == "kernels") return "time";
  if (report.kind == "serving" || report.kind == "runs") return report.main_quantity;
  if (report.main_quantity == "time_from_1_mib_s") return "time from 1 to 64 MiB";
  return report.kind == "collectives" ? "time below 1 MiB" : "step time";
}

std::int64_t timed(const ValidationReport& report) {
  return std::count_if(report.comparisons.begin(), report.comparisons.end(),
                       [](const Comparison& comparison) { return !is_memory(comparison); });
}

// Statistics of the errors of peak memory.
struct MemoryErrors {
  std::int64_t count = 0;
  std::string mean_abs, lowest, highest;
};

MemoryErrors memory_errors(const ValidationReport& report) {
  std::vector<double> errors;
  for (const Comparison& comparison : report.comparisons)
    if (is_memory(comparison)) errors.push_back(comparison.error());
  if (errors.empty()) return {};
  const auto [lowest, highest] = std::minmax_element(errors.begin(), errors.end());
  return {std::ssize(errors), plain_percent(mean_abs_error_of(report, peak_memory)),
          error_text(*lowest), error_text(*highest)};
}

// Measured quantities of serving or runs other than the main one.
std::set<std::string> other_quantities(const ValidationReport& report) {
  std::set<std::string> others;
  if (report.kind != "serving" && report.kind != "runs") return others;
  for (const Comparison& comparison : report.comparisons)
    if (comparison.quantity != report.main_quantity) others.insert(comparison.quantity);
  return others;
}

// Mean absolute error of one peer over the cases that it predicted.
double peer_error(const ValidationReport& report, const std::string& peer) {
  double sum = 0.0;
  int count = 0;
  for (const Comparison& comparison : report.comparisons)
    if (const auto error = comparison.peer_errors.find(peer); error != comparison.peer_errors.end())
      sum += std::abs(error->second), ++count;
  return sum / count;
}

// The same for one quantity; nullopt if it predicted none.
std::optional<double> peer_error(const ValidationReport& report, const std::string& peer,
                                 const std::string& quantity) {
  double sum = 0.0;
  int count = 0;
  for (const Comparison& comparison : report.comparisons) {
    const auto error = comparison.peer_errors.find(peer);
    if (comparison.quantity != quantity || error == comparison.peer_errors.end()) continue;
    sum += std::abs(error->second), ++count;
  }
  return count > 0 ? std::optional{sum / count} : std::nullopt;
}

// Reasons without the file's name in front, which the heading states.
std::string short_reason(const ValidationReport& report, const std::string& reason) {
  const std::string prefix = report.file + ": ";
  return reason.starts_with(prefix) ? reason.substr(prefix.size()) : reason;
}

std::string table_row(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (const std::string& cell : cells) line += " " + cell + " |";
  return line + "\n";
}

std::string rule(std::size_t left, std::size_t right) {
  std::string line = "|";
  for (std::size_t i = 0; i < left; ++i) line += "---|";
  for (std::size_t i = 0; i < right; ++i) line += "---:|";
  return line + "\n";
}

std::string family(const std::string& file) { return std::filesystem::path{file}.stem().string(); }

std::string of_all(int part, int all) {
  return std::to_string(part) + " of " + std::to_string(all);
}

std::string coverage_markdown(const std::vector<ValidationReport>& reports) {
  std::string text = table_row({"family", "half-width", "in range", "pairs in range"}) + rule(1, 3);
  Coverage sum{"all"};
  for (const Coverage& one : coverage_of(reports)) {
    text += table_row({family(one.family), percent(one.half_width), of_all(one.inside, one.steps),
                       of_all(one.pairs_inside, one.pairs)});
    sum.pairs += one.pairs, sum.pairs_inside += one.pairs_inside;
    sum.half_width += one.half_width * one.steps;
    sum.steps += one.steps, sum.inside += one.inside;
  }
  if (sum.steps == 0) return "";
  return text + table_row({"all", percent(sum.half_width / sum.steps),
                           of_all(sum.inside, sum.steps), of_all(sum.pairs_inside, sum.pairs)});
}

const std::vector<std::string>& score_headers() {
  static const std::vector<std::string> headers{"ranges",   "publications", "cases",
                                                "in range", "half-width",   "score"};
  return headers;
}

// A row for each kind of range: by class as printed, by all other publications, with fixed widths,
// and after an own step.
std::vector<std::vector<std::string>> score_rows(const std::vector<ValidationReport>& reports) {
  std::vector<std::vector<std::string>> rows;
  for (const RangeScore& one : range_scores(reports)) {
    const std::string of = one.stands_in ? "another stands in" : "software described";
    const auto add = [&](const std::string& what, int publications, int steps,
                         const RangeScore::Means& means) {
      if (publications > 0)
        rows.push_back({of + what, std::to_string(publications), std::to_string(steps),
                        plain_percent(means.in_range), fixed(means.half_width, 3),
                        fixed(means.score, 3)});
    };
    add("", one.publications, one.steps, one.as_printed);
    if (!one.stands_in && one.publications > 1)
      add(", by the other publications", one.publications, one.steps, one.left_out);
    add(one.stands_in ? ", always 0.40" : ", always 0.20", one.publications, one.steps, one.fixed);
    add(", after one own step of the plan", one.pair_publications, one.pair_steps, one.by_own_step);
  }
  for (const ServingCoverage& of : serving_coverage_of(reports)) {
    const auto add = [&](const std::string& what, double in_range) {
      rows.push_back({"serving, " + of.figure + what, std::to_string(of.publications),
                      std::to_string(of.cases), plain_percent(in_range), fixed(of.error, 3), ""});
    };
    add("", of.in_range);
    if (of.publications > 1) add(", by the other publications", of.left_out_in_range);
  }
  return rows;
}

std::string scores_markdown(const std::vector<ValidationReport>& reports) {
  std::string text;
  for (const auto& row : score_rows(reports)) text += table_row(row);
  return text.empty() ? "" : table_row(score_headers()) + rule(1, 5) + text;
}

std::string others_markdown(const std::vector<ValidationReport>& reports) {
  std::string text =
      table_row({"family", "mean abs.", "by its other runs", "half-width", "in range"}) +
      rule(1, 4);
  ByOthers sum;
  double error = 0.0;
  for (const ByOthers& one : predicted_by_others(reports)) {
    const auto report = std::find_if(reports.begin(), reports.end(),
                                     [&](const auto& of) { return of.file == one.family; });
    text += table_row({family(one.family), plain_percent(report->mean_abs_error),
                       plain_percent(one.mean_abs_error), percent(one.half_width),
                       of_all(one.inside, one.steps)});
    sum.steps += one.steps, sum.inside += one.inside;
    sum.mean_abs_error += one.mean_abs_error * one.steps;
    sum.half_width += one.half_width * one.steps;
    error += report->mean_abs_error * one.steps;
  }
  if (sum.steps == 0) return "";
  return text + table_row({"all", plain_percent(error / sum.steps),
                           plain_percent(sum.mean_abs_error / sum.steps),
                           percent(sum.half_width / sum.steps), of_all(sum.inside, sum.steps)});
}

std::string refusals_markdown(const ValidationReport& report) {
  std::string text;
  if (!report.refusals.empty()) text += "\n" + table_row({"refused", "reason"}) + rule(2, 0);
  for (const Refusal& refusal : report.refusals)
    text += table_row({refusal.id, short_reason(report, refusal.reason)});
  return text;
}

// Statistics of serving, one row a quantity.
std::string quantities_markdown(const std::vector<ValidationReport>& reports) {
  std::string text;
  for (const ValidationReport& report : reports) {
    if (report.kind != "serving") continue;
    std::map<std::string, std::vector<double>> errors;
    for (const Comparison& comparison : report.comparisons)
      errors[comparison.quantity].push_back(comparison.error());
    if (text.empty())
      text = table_row({"family", "quantity", "cases", "mean abs.", "median abs.", "signed mean",
                        "peers' mean abs."}) +
             rule(2, 5);
    for (const auto& [quantity, all] : errors) {
      std::string peers;
      for (const std::string& peer : peers_of(report))
        if (const auto error = peer_error(report, peer, quantity))
          peers += (peers.empty() ? "" : ", ") + peer + " " + plain_percent(*error);
      const double mean =
          std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
      text += table_row({family(report.file), quantity, grouped(std::ssize(all)),
                         plain_percent(mean_abs_error_of(report, quantity)),
                         plain_percent(median_abs_error_of(report, quantity)), error_text(mean),
                         peers});
    }
  }
  return text;
}

std::string memory_markdown(const std::vector<ValidationReport>& reports) {
  std::string text;
  for (const ValidationReport& report : reports) {
    const MemoryErrors errors = memory_errors(report);
    if (errors.count == 0) continue;
    if (text.empty())
      text =
          table_row({"family", "peaks of memory", "mean abs.", "lowest", "highest"}) + rule(1, 4);
    text += table_row({family(report.file), std::to_string(errors.count), errors.mean_abs,
                       errors.lowest, errors.highest});
  }
  return text;
}

std::vector<std::string> cells_of(const RowErrors& of) {
  return {of.part.empty() ? of.of : "  " + of.part,
          grouped(of.rows()),
          plain_percent(of.mean_abs()),
          plain_percent(of.median_abs()),
          plain_percent(of.p90_abs()),
          error_text(of.bias())};
}

const std::vector<std::string>& row_headers() {
  static const std::vector<std::string> headers{"kernels",     "rows",       "mean abs.",
                                                "median abs.", "90th perc.", "signed median"};
  return headers;
}

Table table_of(const std::vector<RowErrors>& rows) {
  std::vector<Column> columns;
  for (const std::string& header : row_headers())
    columns.push_back({header, columns.empty() ? Align::left : Align::right});
  Table table{columns};
  for (const RowErrors& of : rows) table.add_row(cells_of(of));
  return table;
}

// A summary of the report's rows, or a line per comparison.
Table table_of(const ValidationReport& report, const std::set<std::string>& peers) {
  if (!report.rows.empty()) return table_of(report.rows);
  std::vector<Column> columns{{"case", Align::left}, {"measured"}, {"predicted"}, {"error"}};
  for (const std::string& peer : peers) columns.push_back({peer});
  Table table{columns};
  for (const Comparison& comparison : report.comparisons)
    table.add_row(cells_of(report, comparison, peers));
  return table;
}

}  // namespace

std::string validation_text(const ValidationReport& report) {
  const std::set<std::string> peers = peers_of(report);
  std::string text = report.file + "\n\n" + table_of(report, peers).text();
  for (const Refusal& refusal : report.refusals)
    text += "  " + refusal.id + "\n    refused: " + short_reason(report, refusal.reason) + "\n";
  text += "\n  " + (report.rows.empty() ? std::to_string(timed(report)) : grouped(timed(report))) +
          " predicted, " + std::to_string(report.refusals.size()) + " refused; " + subject(report) +
          ": mean absolute error " + plain_percent(report.mean_abs_error) + ", signed mean " +
          error_text(report.mean_error) + ", median " + plain_percent(report.median_abs_error) +
          (report.rows.empty() ? "" : ", 90th percentile " + plain_percent(report.p90_abs_error)) +
          ", largest " + plain_percent(report.max_abs_error) + "\n";
  if (report.kind == "collectives") {
    for (const auto& [quantity, sizes] :
         {std::pair{"time_s", "below 1 MiB"}, std::pair{"time_from_1_mib_s", "from 1 to 64 MiB"}})
      if (quantity != report.main_quantity)
        text += std::string{"  time "} + sizes + ": mean absolute error " +
                plain_percent(mean_abs_error_of(report, quantity)) + "\n";
    text +=
        "  in range: " + of_all(report.points_in_range, report.points) + " points, 90 % expected\n";
  }
  for (const std::string& quantity : other_quantities(report))
    text += "  " + quantity + ": mean absolute error " +
            plain_percent(mean_abs_error_of(report, quantity)) + ", median " +
            plain_percent(median_abs_error_of(report, quantity)) + "\n";
  for (const Coverage& coverage : coverage_of({report}))
    text += "  in range: " + of_all(coverage.inside, coverage.steps) +
            " step times, 90 % expected; half-width " + percent(coverage.half_width) +
            " on average\n";
  for (const ByOthers& others : predicted_by_others({report}))
    text += "  predicted from the file's other runs: mean absolute error " +
            plain_percent(others.mean_abs_error) + ", " + of_all(others.inside, others.steps) +
            " in range, half of which is " + percent(others.half_width) + "\n";
  std::string served;
  for (const ServingCoverage& of : serving_coverage_of({report}))
    served += (served.empty() ? "" : ", ") + of.figure + " " + of_all(of.inside, of.cases);
  if (!served.empty()) text += "  in range: " + served + "; 90 % expected\n";
  if (const MemoryErrors errors = memory_errors(report); errors.count > 0)
    text += "  peak memory: " + std::to_string(errors.count) + " compared, mean absolute error " +
            errors.mean_abs + ", from " + errors.lowest + " to " + errors.highest + "\n";
  for (const std::string& peer : peers)
    text += "  " + peer + " on the same cases: mean absolute error " +
            plain_percent(peer_error(report, peer)) + "\n";
  return text;
}

std::string rows_of_all_text(const std::vector<ValidationReport>& reports) {
  const auto with_rows = std::count_if(reports.begin(), reports.end(),
                                       [](const auto& report) { return !report.rows.empty(); });
  if (with_rows < 2) return "";
  return "\nall " + std::to_string(with_rows) + " files of kernels\n\n" +
         table_of(rows_of_all(reports)).text();
}

std::string range_scores_text(const std::vector<ValidationReport>& reports) {
  const auto rows = score_rows(reports);
  if (rows.empty()) return "";
  std::vector<Column> columns;
  for (const std::string& header : score_headers()) columns.push_back({header});
  columns.front().align = Align::left;
  Table table{columns};
  for (const auto& row : rows) table.add_row(row);
  return "\nranges, a vote a publication\n\n" + table.text();
}

std::string validation_markdown(const std::vector<ValidationReport>& reports) {
  std::string text = table_row({"family", "predicted", "refused", "mean abs.", "signed mean",
                                "median", "largest", "peer's mean abs."});
  text += rule(1, 7);
  for (const ValidationReport& report : reports) {
    std::string peers;
    for (const std::string& peer : peers_of(report))
      peers += (peers.empty() ? "" : ", ") + peer + " " + plain_percent(peer_error(report, peer));
    text += table_row({family(report.file), std::to_string(timed(report)),
                       std::to_string(report.refusals.size()), plain_percent(report.mean_abs_error),
                       error_text(report.mean_error), plain_percent(report.median_abs_error),
                       plain_percent(report.max_abs_error), peers});
  }
  for (const std::string& more :
       {quantities_markdown(reports), coverage_markdown(reports), scores_markdown(reports),
        others_markdown(reports), memory_markdown(reports)})
    if (!more.empty()) text += "\n" + more;
  for (const ValidationReport& report : reports) {
    text += "\n### " + family(report.file) + "\n\n";
    if (!report.rows.empty()) {
      text += table_row(row_headers()) + rule(1, row_headers().size() - 1);
      for (const RowErrors& of : report.rows) text += table_row(cells_of(of));
      text += refusals_markdown(report);
      continue;
    }
    std::vector<std::string> headers{"case", "measured", "predicted", "error"};
    const std::set<std::string> peers = peers_of(report);
    headers.insert(headers.end(), peers.begin(), peers.end());
    if (!report.comparisons.empty()) text += table_row(headers) + rule(1, headers.size() - 1);
    for (const Comparison& comparison : report.comparisons)
      text += table_row(cells_of(report, comparison, peers));
    text += refusals_markdown(report);
  }
  return text;
}

namespace {

using Json = nlohmann::ordered_json;

// Rounds so that results of different compilers are equal.
double rounded(double value) { return std::round(value * 1e4) / 1e4; }

Json number_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json report_json(const ValidationReport& report) {
  Json cases = Json::array();
  for (const Comparison& comparison : report.comparisons) {
    Json entry{{"id", comparison.id},
               {"quantity", comparison.quantity},
               {"measured", comparison.measured},
               {"predicted", comparison.predicted},
               {"error", comparison.error()}};
    if (comparison.range)
      entry["step_time_range"] = {{"low_s", comparison.range->low().si()},
                                  {"high_s", comparison.range->high().si()}};
    if (comparison.bounds)
      entry["measured_bounds"] = {{"low", comparison.bounds->first},
                                  {"high", number_or_null(comparison.bounds->second)}};
    if (!comparison.peer_errors.empty()) entry["peer_errors"] = comparison.peer_errors;
    cases.push_back(std::move(entry));
  }
  Json refused = Json::array();
  for (const Refusal& refusal : report.refusals)
    refused.push_back({{"id", refusal.id}, {"reason", refusal.reason}});
  Json json{{"file", report.file},
            {"kind", report.kind},
            {"cases", std::move(cases)},
            {"refused", std::move(refused)},
            {"mean_abs_error", number_or_null(report.mean_abs_error)},
            {"mean_error", number_or_null(report.mean_error)},
            {"median_abs_error", number_or_null(report.median_abs_error)},
            {"p90_abs_error", number_or_null(report.p90_abs_error)},
            {"max_abs_error", number_or_null(report.max_abs_error)}};
  if (report.kind == "collectives")
    json["points_in_range"] = {{"all", report.points}, {"inside", report.points_in_range}};
  for (const RowErrors& of : report.rows) {
    Json rows{{"of", of.of}};
    if (!of.part.empty()) rows["part"] = of.part;
    rows["rows"] = of.rows();
    rows["mean_abs_error"] = of.mean_abs();
    rows["median_abs_error"] = of.median_abs();
    rows["p90_abs_error"] = of.p90_abs();
    rows["median_error"] = of.bias();
    json["rows"].push_back(std::move(rows));
  }
  return json;
}

}  // namespace

std::string validation_json(const std::vector<ValidationReport>& reports) {
  Json files = Json::array();
  for (const ValidationReport& report : reports) files.push_back(report_json(report));
  Json training = Json::array();
  for (const auto& [step, error] : training_errors(reports))
    training.push_back(
        {{"experts", step.experts}, {"narrow", step.narrow}, {"error", number_or_null(error)}});
  Json published = nullptr;
  if (const auto steps = published_steps(reports))
    published = {{"publications", steps->publications},
                 {"steps", steps->steps},
                 {"described", rounded(steps->described)},
                 {"prices", rounded(steps->prices)}};
  Json scores = Json::array();
  for (const RangeScore& one : range_scores(reports)) {
    const auto means = [](const RangeScore::Means& of) {
      return Json{{"in_range", rounded(of.in_range)},
                  {"half_width", rounded(of.half_width)},
                  {"score", rounded(of.score)}};
    };
    Json score{{"stands_in", one.stands_in},
               {"publications", one.publications},
               {"steps", one.steps},
               {"as_printed", means(one.as_printed)},
               {"by_other_publications", means(one.left_out)},
               {"fixed", means(one.fixed)},
               {"own_step_publications", one.pair_publications},
               {"own_step_steps", one.pair_steps}};
    score["by_own_step"] = one.pair_publications > 0 ? means(one.by_own_step) : Json(nullptr);
    scores.push_back(std::move(score));
  }
  Json serving = Json::array();
  for (const ServingCoverage& of : serving_coverage_of(reports))
    serving.push_back({{"figure", of.figure},
                       {"publications", of.publications},
                       {"cases", of.cases},
                       {"error", number_or_null(of.error)},
                       {"in_range", rounded(of.in_range)},
                       {"left_out_in_range", number_or_null(rounded(of.left_out_in_range))}});
  return Json{{"schema", "orrery.validation/1"},
              {"simulator", name(chosen_simulator())},
              {"files", std::move(files)},
              {"training_errors", std::move(training)},
              {"published_steps", std::move(published)},
              {"ranges", std::move(scores)},
              {"serving_errors", std::move(serving)}}
             .dump(2) +
         "\n";
}

}  // namespace orrery
