#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <set>

#include "sim/cli/options.hpp"
#include "sim/cli/scenario_options.hpp"
#include "sim/cli/sweep_options.hpp"
#include "sim/core/nearest.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/progress.hpp"
#include "sim/core/quoting.hpp"
#include "sim/core/shard.hpp"
#include "sim/core/write_file.hpp"
#include "sim/explorer/reports.hpp"
#include "sim/sweep/merge.hpp"
#include "sim/sweep/run_shard.hpp"
#include "sim/sweep/sweep_folder.hpp"
#include "sim/sweep/sweep_text.hpp"

namespace orrery {
namespace {

constexpr int shown_rows = 10;

// An answer must not overwrite rows. Errors (bad_input): `output` is one of the folder's own files,
// or would be.
void refuse_sweeps_own_files(const SweepFolder& folder, const std::string& output) {
  const std::filesystem::path path{output};
  const std::string name = path.filename().string();
  std::error_code code;
  const std::filesystem::path parent = path.has_parent_path() ? path.parent_path() : ".";
  if (std::filesystem::equivalent(parent, folder.path, code) &&
      (name == "sweep.json" || name.starts_with("shard-")))
    fail_input(command_line / "output", "'" + output + "' is a file of the sweep itself",
               "name another file");
}

// The one folder that is named. Errors: none or several; no folder of a sweep.
SweepFolder sweep_folder_of(const Options& options) {
  return open_sweep_folder(
      options.only_word("no folder is named", "more than one folder is named",
                        "name the folder that was given to orrery sweep run --output"));
}

void print_summary(const Sweep& sweep, const BestRows& rows) {
  std::cout << sweep_document(sweep, rows, shown_rows).text();
}

void write_report(const SweepFolder& folder, const BestRows& rows,
                  const std::optional<SweepInputs>& inputs, const std::string& html, bool force,
                  const std::string& command) {
  write_output(html, sweep_report(folder, rows, inputs, {command}), force);
}

// The inputs of the rows, if they are all unchanged.
std::optional<SweepInputs> inputs_of(const SweepFolder& folder) {
  try {
    if (fingerprint_of_inputs(folder.sweep) == folder.fingerprint) return read_inputs(folder.sweep);
  } catch (const Error&) {
    // Rows may be merged where their inputs have never been.
  }
  return std::nullopt;
}

void report_damage(const std::string& damage) {
  std::cerr << "orrery: " << damage << "; it is computed again from there on\n";
}

// Columns stay empty where a price is not known.
void note_unknown_prices(const SweepInputs& inputs) {
  std::set<std::string> seen;
  for (const auto& [name, economics] : inputs.economics) {
    const std::string& gpu = inputs.systems.at(name).gpu.name;
    const std::vector<std::string> keys = unknown_prices(economics);
    if (!keys.empty() && seen.insert(gpu).second)
      print_note("not all is known of what the GPU '" + gpu +
                 "' costs, and columns stay empty: " + price_remedy(keys));
  }
}

int run(const Arguments& arguments) {
  SweepOptions given;
  Options options{"What is swept; a list or range may stand for each value"};
  add_sweep_run(options, given);
  add_simulator(options);
  if (!options.read(arguments,
                    "usage: orrery sweep run [FILE] --output DIR [options]\n\n"
                    "FILE describes a sweep as docs/guides/sweep.md says; options win over it."))
    return exit_ok;
  if (given.html) require_replaceable(*given.html, given.force);
  const SweepJob job = read_sweep_job(given, options.words());
  if (given.html && static_cast<int>(job.shards.size()) < job.folder.shards)
    fail_input(command_line / "html", "is of a whole sweep, and this computes one of its shards",
               "when all are there: orrery sweep merge " + shell_word(job.folder.path) +
                   " --html " + shell_word(*given.html));
  note_unknown_prices(job.inputs);
  const SweepFolder& folder = job.folder;
  const Grid grid{folder.sweep};
  PointEvaluator evaluator{folder.sweep, grid, job.inputs};
  const Interruption interruption;  // After SimGrid's engine, which wants Ctrl-C for itself.

  std::int64_t there = 0, total = 0;
  for (const ShardState& state : shard_states(folder))
    if (job.shards.size() > 1 || state.shard.index == job.shards.front().index) {
      there += state.rows;
      total += state.points;
    }
  {
    SweepProgress progress{folder.sweep, there, total};
    for (const Shard& shard : job.shards)
      if (!Interruption::requested())
        run_shard(folder, shard, grid, evaluator, job.workers, job.limits,
                  {[&](const std::string& row) {
                     progress.row(row);
                     ++there;
                   },
                   report_damage});
  }
  if (Interruption::requested()) {
    std::cerr << "orrery: stopped with " << grouped(there) << " of " << grouped(total)
              << " points; to go on: orrery sweep run --output " << folder.path << "\n";
    return exit_interrupted;
  }
  if (static_cast<int>(job.shards.size()) < folder.shards) {
    std::cout << "shard " << job.shards.front().index << " of " << folder.shards
              << " is complete: " << grouped(total) << " points\n";
    return exit_ok;
  }
  BestRows rows{folder.sweep, given.html ? most_rows_in_a_report : shown_rows};
  read_rows(folder, rows);
  if (given.html)
    write_report(folder, rows, job.inputs, *given.html, given.force,
                 typed_command("sweep run", arguments));
  print_summary(folder.sweep, rows);
  return rows.failed() > 0 ? exit_partial : exit_ok;
}

int status(const Arguments& arguments) {
  Options options;
  bool only_missing = false;
  options.add("missing",
              "print the shards that are not complete alone, as 1,3,17-20: what sbatch --array "
              "takes; nothing if all are",
              only_missing);
  options.help();
  if (!options.read(arguments, "usage: orrery sweep status DIR [--missing]")) return exit_ok;
  const SweepFolder folder = sweep_folder_of(options);
  const std::vector<ShardState> states = shard_states(folder);
  const std::string missing = missing_shards(states);
  if (only_missing) {
    if (!missing.empty()) std::cout << missing << "\n";
    return missing.empty() ? exit_ok : exit_partial;
  }
  std::int64_t rows = 0, complete = 0, stopped = 0;
  for (const ShardState& state : states) {
    stopped += state.stopped;
    rows += state.rows;
    complete += state.complete;
  }
  std::cout << "points  " << grouped(rows) << " of " << grouped(folder.points) << ", "
            << percent(static_cast<double>(rows) / static_cast<double>(folder.points)) << "\n"
            << "shards  " << grouped(complete) << " of " << grouped(folder.shards) << " complete\n";
  if (stopped > 0) std::cout << "stopped " << grouped(stopped) << ": the next run tries again\n";
  if (!missing.empty()) std::cout << "missing shards: " << missing << "\n";
  for (const ShardState& state : states)
    if (!state.damage.empty())
      std::cerr << "orrery: " << state.damage << "; run computes it again\n";
  return missing.empty() ? exit_ok : exit_partial;
}

int merge(const Arguments& arguments) {
  std::optional<std::string> output, html;
  bool force = false;
  Options options;
  options.add("output", "FILE",
              "where to: a name that ends in .sqlite, .csv or .jsonl (also -o FILE)", output);
  options.add("html", "FILE", "write a report for a browser: curves or maps of the rows", html);
  options.add("force", "replace files that Orrery did not write", force);
  options.help();
  if (!options.read(arguments, "usage: orrery sweep merge DIR -o FILE [--html FILE]"))
    return exit_ok;
  const SweepFolder folder = sweep_folder_of(options);
  if (!output && !html) fail_input({}, "--output is missing", "name a file: -o results.sqlite");
  BestRows rows{folder.sweep, html ? most_rows_in_a_report : shown_rows};
  if (html) require_replaceable(*html, force);
  if (output) {
    refuse_sweeps_own_files(folder, *output);
    if (!is_database(*output)) require_replaceable(*output, force);
    merge_rows(folder, *output, rows);
  } else {
    read_rows(folder, rows);
  }
  if (html)
    write_report(folder, rows, inputs_of(folder), *html, force,
                 typed_command("sweep merge", arguments));
  print_summary(folder.sweep, rows);
  if (rows.rows() == folder.points) return rows.failed() > 0 ? exit_partial : exit_ok;
  std::cerr << "orrery: " << grouped(folder.points - rows.rows())
            << " points have no row yet; orrery sweep status names the shards\n";
  return exit_partial;
}

int run_sweep_plot(const Arguments& arguments) {
  PlotRequest request;
  std::optional<std::string> output;
  bool force = false;
  Options options;
  options.add("output", "FILE", "the SVG document (also -o FILE)", output);
  options.add("kind", "line|heat|pareto", "what is drawn (default line)", request.kind,
              OneOf{{"line", "heat", "pareto"}, "is not a kind of plot"});
  options.add("x", "NAME", "key along the x axis; of a Pareto chart a figure", request.x);
  options.add("y", "NAME", "figure along the y axis; of a heat map a key", request.y);
  options.add("by", "KEY", "line: a line for each of its values", request.by);
  options.add("figure", "NAME", "heat: what is coloured (default tokens_per_s_per_gpu)",
              request.figure);
  options.add("force", "replace files that Orrery did not write", force);
  options.help();
  if (!options.read(arguments,
                    "usage: orrery sweep plot DIR -o FILE.svg [options]\n\n"
                    "Keys are those that the sweep varies, figures the columns of its rows."))
    return exit_ok;
  const SweepFolder folder = sweep_folder_of(options);
  if (!output) fail_input({}, "--output is missing", "name a file: -o plot.svg");
  if (!output->ends_with(".svg"))
    fail_input(command_line / "output", "'" + *output + "' is not an SVG document by its name",
               "end it in .svg; rsvg-convert or a browser makes a PNG of it");
  if (!request.by.empty() && request.kind != PlotRequest::Kind::line)
    fail_input(command_line / "by", "belongs to --kind line", "leave it out");
  if (!request.figure.empty() && request.kind != PlotRequest::Kind::heat)
    fail_input(command_line / "figure", "belongs to --kind heat", "name the figure by --y");
  refuse_sweeps_own_files(folder, *output);
  write_output(*output, plot_svg(folder, request), force);
  return exit_ok;
}

}  // namespace

int run_sweep(const Arguments& arguments) {
  const std::string usage =
      "usage: orrery sweep run [FILE] --output DIR [options]   compute a grid of plans\n"
      "       orrery sweep status DIR [--missing]           how far it is\n"
      "       orrery sweep merge DIR -o FILE                one database or table of it\n"
      "       orrery sweep plot DIR -o FILE.svg             a line, heat or Pareto chart\n"
      "\n"
      "Try: orrery sweep run --model llama3-8b --system dgx-h100 --gpus 64 --tp 2 \\\n"
      "       --sweep 'gbs=256..8192*2 mbs=1,2,4' --output sweep1\n";
  if (arguments.empty()) return std::cerr << usage, exit_bad_input;
  return run_subcommand(
      arguments, {{"run", run}, {"status", status}, {"merge", merge}, {"plot", run_sweep_plot}},
      usage, "", "is nothing that a sweep does");
}

}  // namespace orrery
