#include "sim/cli/commands/command_sweep.hpp"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <set>

#include "sim/analysis/sweep/merge.hpp"
#include "sim/analysis/sweep/run_shard.hpp"
#include "sim/base/core/nearest.hpp"
#include "sim/base/text/number_text.hpp"
#include "sim/base/text/output_files.hpp"
#include "sim/base/text/table.hpp"
#include "sim/base/workers/interruption.hpp"
#include "sim/cli/options/option_table.hpp"
#include "sim/cli/options/sweep_options.hpp"
#include "sim/cli/options/sweep_progress.hpp"
#include "sim/output/answers/run_heading.hpp"

namespace po = boost::program_options;

namespace orrery {
namespace {

constexpr std::size_t shown_rows = 10;

std::string counts(const BestRows& rows) {
  std::string text = grouped(rows.ok()) + " ok, " + grouped(rows.infeasible()) + " infeasible";
  if (rows.failed() > 0) text += ", " + grouped(rows.failed()) + " failed";
  return text;
}

// Rows are merged long after a model's file has gone.
std::optional<Model> model_if_there(const std::string& word) {
  try {
    return read_model(word, {});
  } catch (const Error&) {
    return std::nullopt;
  }
}

// What all points have in common: keys of one value, and how long sequences are.
std::string heading(const Sweep& sweep) {
  std::map<std::string, std::string> one;
  std::vector<std::string> items;
  bool says_sequence = false;
  for (const Dimension& dimension : sweep.dimensions)
    for (const Axis& axis : dimension.axes) {
      says_sequence = says_sequence || axis.key == "seq";
      if (axis.values.size() == 1) one[axis.key] = axis.values.front().text;
    }
  for (const std::string& key : axis_keys())
    if (one.contains(key) && key != "model" && key != "system")
      items.push_back(key + " " + one[key]);
  if (!says_sequence && one.contains("model"))
    if (const auto model = model_if_there(one["model"]))
      items.push_back(usual_sequence_text(*model));
  const auto word = [&](const char* key, const char* several) {
    return one.contains(key) ? one[key] : std::string{several};
  };
  return run_heading(word("model", "several models") + " on " + word("system", "several systems"),
                     items);
}

// The command that computes this row alone.
std::string estimate_command(const Sweep& sweep, const BestRows& rows, const Row& row) {
  std::string text = "orrery estimate";
  for (const Dimension& dimension : sweep.dimensions)
    for (const Axis& axis : dimension.axes)
      text += " --" + axis.key + " " + rows.cell(row, axis.key).text;
  return text;
}

std::string best_text(const Sweep& sweep, const BestRows& rows) {
  std::vector<std::string> varied;
  for (const Dimension& dimension : sweep.dimensions)
    for (const Axis& axis : dimension.axes)
      if (axis.values.size() > 1) varied.push_back(axis.key);
  std::vector<Column> columns;
  for (const std::string& key : varied) columns.push_back({key});
  if (!sweep.memory_only) columns.insert(columns.end(), {{"step time"}, {"tokens/s/GPU"}, {"MFU"}});
  columns.push_back({"memory a GPU"});
  Table table{std::move(columns)};
  for (const Row& row : rows.best()) {
    std::vector<std::string> cells;
    const auto number = [&](const char* name) { return rows.cell(row, name).number; };
    for (const std::string& key : varied) cells.push_back(rows.cell(row, key).text);
    if (!sweep.memory_only) {
      cells.push_back(duration_text(Seconds{number("step_time_s")}));
      cells.push_back(fixed(number("tokens_per_s_per_gpu"), 1));
      cells.push_back(percent(number("mfu")));
    }
    cells.push_back(bytes_text(Bytes{number("memory_peak_bytes")}));
    table.add_row(std::move(cells));
  }
  return table.text();
}

void print_summary(const Sweep& sweep, const BestRows& rows) {
  std::cout << heading(sweep) << "\n";
  std::cout << grouped(rows.rows()) << " points: " << counts(rows) << "\n";
  if (rows.best().empty()) return;
  const std::string order = sweep.memory_only ? "memory" : "tokens/s/GPU";
  std::cout << "\n"
            << (rows.ok() > std::ssize(rows.best())
                    ? "The best " + std::to_string(rows.best().size()) + " by " + order
                    : "By " + order)
            << "\n"
            << best_text(sweep, rows);
  if (!sweep.memory_only)
    std::cout << "\nTo estimate the first in full:\n  "
              << estimate_command(sweep, rows, rows.best().front()) << "\n";
}

void say_damage(const std::string& damage) {
  std::cerr << "orrery: " << damage << "; it is computed again from there on\n";
}

// Columns stay empty where a price is not known.
void note_unknown_prices(const SweepInputs& inputs) {
  std::set<std::string> said;
  for (const auto& [name, economics] : inputs.economics) {
    const std::string& gpu = inputs.systems.at(name).gpu.name;
    const std::vector<std::string> keys = unknown_prices(economics);
    if (!keys.empty() && said.insert(gpu).second)
      std::cerr << "orrery: note: not all is known of what the GPU '" << gpu
                << "' costs, and columns stay empty: " << price_remedy(keys) << "\n";
  }
}

int run(const Arguments& arguments) {
  const po::options_description options = sweep_run_options();
  const ParsedOptions parsed = parse_options(options, arguments, {});
  if (parsed.has("help")) {
    std::cout << "usage: orrery sweep run [FILE] --out DIR [options]\n\n"
                 "FILE describes a sweep as docs/SWEEPS.md says; options win over it.\n\n"
              << options;
    return exit_ok;
  }
  const SweepJob job = read_sweep_job(parsed);
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
    SweepProgress progress{folder.sweep, there, total, parsed.has("quiet")};
    for (const Shard& shard : job.shards)
      if (!Interruption::asked())
        run_shard(folder, shard, grid, evaluator, job.workers, job.limits,
                  {[&](const std::string& row) {
                     progress.row(row);
                     ++there;
                   },
                   say_damage});
  }
  if (Interruption::asked()) {
    std::cerr << "orrery: stopped with " << grouped(there) << " of " << grouped(total)
              << " points; to go on: orrery sweep run --out " << folder.path << "\n";
    return exit_interrupted;
  }
  if (static_cast<int>(job.shards.size()) < folder.shards) {
    std::cout << "shard " << job.shards.front().index << " of " << folder.shards
              << " is complete: " << grouped(total) << " points\n";
    return exit_ok;
  }
  BestRows rows{folder.sweep, shown_rows};
  read_rows(folder, rows);
  print_summary(folder.sweep, rows);
  return rows.failed() > 0 ? exit_partial : exit_ok;
}

int status(const Arguments& arguments) {
  po::options_description options{"Options", 100};
  options.add_options()("missing",
                        "print the shards that are not complete alone, as 1,3,17-20: "
                        "what sbatch --array takes; nothing if all are")("help", "this text");
  const ParsedOptions parsed = parse_options(options, arguments, {});
  if (parsed.has("help")) {
    std::cout << "usage: orrery sweep status DIR [--missing]\n\n" << options;
    return exit_ok;
  }
  const SweepFolder folder = sweep_folder_of(parsed);
  const std::vector<ShardState> states = shard_states(folder);
  const std::string missing = missing_shards(states);
  if (parsed.has("missing")) {
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
  po::options_description options{"Options", 100};
  options.add_options()("output", po::value<std::string>()->value_name("FILE"),
                        "where to: a name that ends in .sqlite, .csv or .jsonl (also -o FILE)")(
      "force", "replace a file that Orrery did not write; never a database")("help", "this text");
  const ParsedOptions parsed = parse_options(options, arguments, {});
  if (parsed.has("help")) {
    std::cout << "usage: orrery sweep merge DIR -o FILE\n\n" << options;
    return exit_ok;
  }
  const SweepFolder folder = sweep_folder_of(parsed);
  if (!parsed.has("output"))
    fail_input({}, "--output is missing", "name a file: -o results.sqlite");
  BestRows rows{folder.sweep, shown_rows};
  refuse_sweeps_own_files(folder, parsed.text("output"));
  if (!is_database(parsed.text("output")))
    require_replaceable(parsed.text("output"), parsed.has("force"));
  merge_rows(folder, parsed.text("output"), rows);
  print_summary(folder.sweep, rows);
  if (rows.rows() == folder.points) return rows.failed() > 0 ? exit_partial : exit_ok;
  std::cerr << "orrery: " << grouped(folder.points - rows.rows())
            << " points have no row yet; orrery sweep status names the shards\n";
  return exit_partial;
}

}  // namespace

void refuse_sweeps_own_files(const SweepFolder& folder, const std::string& output) {
  const std::filesystem::path path{output};
  const std::string name = path.filename().string();
  std::error_code code;
  const std::filesystem::path beside = path.has_parent_path() ? path.parent_path() : ".";
  if (std::filesystem::equivalent(beside, folder.path, code) &&
      (name == "sweep.json" || name.starts_with("shard-")))
    fail_input({"", "--output"}, "'" + output + "' is a file of the sweep itself",
               "name another file");
}

SweepFolder sweep_folder_of(const ParsedOptions& parsed) {
  if (parsed.words.size() != 1)
    fail_input({}, parsed.words.empty() ? "no folder is named" : "more than one folder is named",
               "name the folder that was given to orrery sweep run --out");
  return open_sweep_folder(parsed.words.front());
}

int run_sweep(const Arguments& arguments) {
  const std::vector<std::string> names{"run", "status", "merge", "plot"};
  CommandListener::tell(names);
  if (arguments.empty() || arguments.front() == "--help") {
    (arguments.empty() ? std::cerr : std::cout)
        << "usage: orrery sweep run [FILE] --out DIR [options]   compute a grid of plans\n"
           "       orrery sweep status DIR [--missing]           how far it is\n"
           "       orrery sweep merge DIR -o FILE                one database or table of it\n"
           "       orrery sweep plot DIR -o FILE.svg             a line, heat or Pareto chart\n"
           "\n"
           "Try: orrery sweep run --model llama3-8b --system dgx-h100 --gpus 64 --tp 2 \\\n"
           "       --sweep 'gbs=256..8192*2 mbs=1,2,4' --out sweep1\n";
    return arguments.empty() ? exit_bad_input : exit_ok;
  }
  const Arguments rest{arguments.begin() + 1, arguments.end()};
  if (arguments.front() == "run") return run(rest);
  if (arguments.front() == "status") return status(rest);
  if (arguments.front() == "merge") return merge(rest);
  if (arguments.front() == "plot") return run_sweep_plot(rest);
  fail_input({}, "'" + arguments.front() + "' is nothing that a sweep does",
             suggestion(arguments.front(), names));
}

}  // namespace orrery
