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

namespace po = boost::program_options;

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

Threshold parse_threshold(const std::string& text) {
  const Place place{"", "--fail-if"};
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
  po::options_description options{"Options", 100};
  options.add_options()                                     //
      ("json", "print the reports as orrery.validation/1")  //
      ("leave-one-out",
       "predict each collective, dispatch and combine without the tables of its shape")  //
      ("markdown", "print them as Markdown")                                             //
      ("fail-if", po::value<std::string>()->value_name("COND"),
       "exit 4 if a file's figure is over a limit: 'mean_abs_error>0.05'")  //
      ("help", "this text");
  options.add(simulator_option());
  const ParsedOptions parsed = parse_options(options, arguments, {});
  if (parsed.has("help")) {
    std::cout << "usage: orrery validate FILE... [options]\n\n"
                 "FILE holds published runs or measured kernels as docs/notes/validation.md "
                 "describes them.\n\n"
              << options;
    return exit_ok;
  }
  const SimulatorChoice simulator{simulator_of(parsed)};
  if (parsed.words.empty())
    fail_input({}, "no file to validate", "name one: tests/validation/training/korthikanti.json");
  if (parsed.has("json") && parsed.has("markdown"))
    fail_input({}, "--json and --markdown exclude each other", "keep one of them");
  std::optional<Threshold> threshold;
  if (parsed.has("fail-if")) threshold = parse_threshold(parsed.text("fail-if"));

  ValidationOptions how;
  how.leave_one_out = parsed.has("leave-one-out");
  std::vector<ValidationReport> reports;
  {
    LongWork line;
    for (const std::string& file : parsed.words) reports.push_back(validate_file(file, how));
  }
  if (parsed.has("json")) {
    std::cout << validation_json(reports);
  } else if (parsed.has("markdown")) {
    std::cout << validation_markdown(reports);
  } else {
    for (const ValidationReport& report : reports)
      std::cout << validation_text(report) << (&report == &reports.back() ? "" : "\n");
    std::cout << rows_of_all_text(reports);
  }
  return threshold && exceeds(reports, *threshold) ? exit_threshold : exit_ok;
}

}  // namespace orrery
