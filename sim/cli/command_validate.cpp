#include <algorithm>
#include <charconv>
#include <cmath>
#include <iostream>
#include <map>

#include "sim/cli/options.hpp"
#include "sim/cli/scenario_options.hpp"
#include "sim/cli/terminal.hpp"
#include "sim/core/nearest.hpp"
#include "sim/validation/validate.hpp"
#include "sim/validation/validation_text.hpp"

namespace orrery {
namespace {

// "mean_abs_error>0.05"
struct Threshold {
  std::string figure;
  double limit = 0.0;
};

double figure_of(const ValidationReport& report, const std::string& name) {
  const std::map<std::string, double> figures{{"mean_abs_error", report.mean_abs_error},
                                              {"mean_error", report.mean_error},
                                              {"median_abs_error", report.median_abs_error},
                                              {"p90_abs_error", report.p90_abs_error},
                                              {"max_abs_error", report.max_abs_error}};
  return figures.at(name);
}

Threshold parse_threshold(const std::string& text, const Place& place) {
  const std::vector<std::string> figures{"mean_abs_error", "mean_error", "median_abs_error",
                                         "p90_abs_error", "max_abs_error"};
  const std::size_t sign = text.find('>');
  if (sign == text.npos)
    fail_input(place, "'" + text + "' is not a condition", "write it like 'mean_abs_error>0.05'");
  Threshold threshold{text.substr(0, sign), 0.0};
  if (std::find(figures.begin(), figures.end(), threshold.figure) == figures.end())
    fail_input(place, "'" + threshold.figure + "' is not a figure of a validation",
               suggestion(threshold.figure, figures));
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + sign + 1, end, threshold.limit);
  if (error != std::errc{} || rest != end || !std::isfinite(threshold.limit))
    fail_input(place, "'" + text.substr(sign + 1) + "' is not a number",
               "write a fraction: 0.05 is 5 %");
  return threshold;
}

// A file in which nothing could be compared exceeds every threshold: no news is not good news.
bool exceeds(const std::vector<ValidationReport>& reports, const Threshold& threshold) {
  bool any = false;
  for (const ValidationReport& report : reports) {
    const double figure = figure_of(report, threshold.figure);
    if (figure <= threshold.limit) continue;
    std::cerr << "orrery: " << report.file << ": " << threshold.figure << " is " << figure
              << ", over " << threshold.limit << "\n";
    any = true;
  }
  return any;
}

}  // namespace

int run_validate(const Arguments& arguments) {
  ValidationOptions how;
  std::optional<Threshold> threshold;
  bool json = false, markdown = false;
  Options options;
  options.add("json", "print the reports as orrery.validation/1", json);
  options.add("leave-one-out",
              "predict each collective, dispatch and combine without the tables of its shape",
              how.leave_one_out);
  options.add("markdown", "print them as Markdown", markdown);
  options.add("fail-if", "COND", "exit 4 if a file's figure is over a limit: 'mean_abs_error>0.05'",
              threshold, parse_threshold);
  options.help();
  add_simulator(options);
  if (!options.read(
          arguments,
          "usage: orrery validate FILE... [options]\n\n"
          "FILE holds published runs or measured kernels as docs/notes/validation.md describes "
          "them."))
    return exit_ok;
  const std::vector<std::string>& files = options.words();
  if (files.empty())
    fail_input({}, "no file to validate", "name one: tests/validation/training/korthikanti.json");
  if (json && markdown)
    fail_input({}, "--json and --markdown exclude each other", "keep one of them");

  std::vector<ValidationReport> reports;
  {
    LongWork line;
    for (const std::string& file : files) reports.push_back(validate_file(file, how));
  }
  if (json) {
    std::cout << validation_json(reports);
  } else if (markdown) {
    std::cout << validation_markdown(reports);
  } else {
    for (const ValidationReport& report : reports)
      std::cout << validation_text(report) << (&report == &reports.back() ? "" : "\n");
    std::cout << rows_of_all_text(reports) << range_scores_text(reports);
  }
  return threshold && exceeds(reports, *threshold) ? exit_threshold : exit_ok;
}

}  // namespace orrery
