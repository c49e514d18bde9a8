#include "sim/cli/sweep_options.hpp"

#include <algorithm>
#include <filesystem>

#include "sim/cli/scenario_options.hpp"
#include "sim/cli/search_options.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/value_list.hpp"
#include "sim/plan/plan_keys.hpp"
#include "sim/plan/unlikely_inputs.hpp"

namespace orrery {
namespace {

void add_plan_file(SweepBuilder& builder, const std::string& word) {
  builder.set_plan(word);
  for (const KeyOfPlanFile& key : keys_of_plan_file(read_plan_file(word)))
    builder.add_plan_key(key.name, key.value, key.held);
}

Sweep read_sweep(const SweepOptions& given, const std::vector<std::string>& files,
                 std::optional<int>& shards) {
  SweepBuilder builder;
  if (given.long_ranges) builder.allow_long_ranges();
  const bool described = given.plan || given.sweep || given.zip || given.where ||
                         given.memory_only || given.tokens || given.economics ||
                         !given.axes.empty();
  // Without a description of its own a folder goes on with what it holds.
  const std::string in_folder = (std::filesystem::path{*given.output} / "sweep.json").string();
  std::error_code code;
  if (given.plan) add_plan_file(builder, *given.plan);
  if (!files.empty())
    builder.read(JsonValue::read_file(files.front()));
  else if (!described && std::filesystem::exists(in_folder, code))
    builder.read(JsonValue::read_file(in_folder));
  shards = builder.shards();

  for (const std::string& key : axis_keys())
    if (const auto axis = given.axes.find(key); axis != given.axes.end())
      builder.add_axis(key, axis->second, command_line / key);
  if (given.sweep) builder.add_axes(*given.sweep, command_line / "sweep");
  if (given.zip) builder.add_zip(*given.zip, command_line / "zip");
  if (given.where) builder.add_conditions(*given.where, command_line / "where");
  if (given.memory_only) builder.set_memory_only();
  if (given.tokens) builder.set_tokens(*given.tokens);
  if (given.economics) builder.set_economics(*given.economics);
  Sweep sweep = builder.sweep();
  for (const auto& [key, input] : sweep.plan.held) note_other_in_catalog(key, input);
  return sweep;
}

}  // namespace

void add_sweep_run(Options& options, SweepOptions& into) {
  options.add("sweep", "AXES", "'gbs=256..8192*2 mbs=1,2,4': axes, each combined with all others",
              into.sweep);
  options.add("zip", "AXES", "'gpus=64,128 gbs=256,512': axes that move together", into.zip);
  options.add("where", "COND", "'tp*pp <= 64 and mbs <= 4': which combinations count", into.where);
  options.add("memory-only", "what a GPU holds, without simulating the step", into.memory_only);
  options.add("tokens", "N", "tokens to train on, as 15T: adds what that takes and costs",
              into.tokens, parse_tokens);
  options.add("economics", "FILE[,FILE]",
              "your prices and powers, over those of topologies/economics", into.economics);
  options.add("plan", "FILE",
              "a plan, an imported run or a result: what is not swept is as it says", into.plan);
  options.add("model", "LIST", "models of the catalog, or files", into.axes);
  options.add("system", "LIST", "systems of the catalog, or files", into.axes);
  options.add("calibration", "LIST", "measurements of the system: orrery calibrate fit", into.axes);
  options.add("gpus", "LIST", "GPUs in all", into.axes);
  for (const PlanKey& key : plan_keys()) options.add(key.name, "LIST", key.help, into.axes);

  options.group("How it is run");
  options.add("output", "DIR",
              "folder of the rows (also -o DIR); run again, it goes on where it stopped",
              into.output);
  add_jobs(options, into.workers);
  options.add("shards", "N", "files that the rows are spread over (default 1)", into.shards,
              whole(1, largest_shard_count));
  options.add("shard", "I/N", "compute one of N shards (default: Slurm's array task, or all)",
              into.shard, parse_shard);
  options.add("point-time-limit", "TIME", "what a point may take: '60 s'", into.limits.time,
              parse_duration);
  options.add("memory-limit", "BYTES", "what a worker may hold: '4 GB'", into.limits.memory,
              parse_bytes);
  options.add("yes", "ranges of more than 64 values are meant", into.long_ranges);
  options.add("html", "FILE", "write a report for a browser: curves or maps of the rows",
              into.html);
  options.add("force", "replace files that Orrery did not write", into.force);
  options.help();
  options.basic({"sweep", "zip", "where", "tokens", "plan", "model", "system", "gpus", "tp", "pp",
                 "ep", "gbs", "mbs", "software", "output", "jobs", "html", "force", "help"});
}

SweepJob read_sweep_job(const SweepOptions& given, const std::vector<std::string>& files) {
  if (files.size() > 1)
    fail_input({}, "'" + files[1] + "' belongs to no option", "a sweep is described by one file");
  if (!given.output) fail_input({}, "--output is missing", "name a folder for the rows: -o sweep1");
  std::optional<int> in_file;
  const Sweep sweep = read_sweep(given, files, in_file);

  std::optional<Shard> one = given.shard;
  const std::optional<int> task = count_in_environment("SLURM_ARRAY_TASK_ID");
  const bool from_slurm = !one && task;

  // The sweep fixes the number of shards. An array that is submitted again for those which are
  // missing has fewer tasks, so that Slurm's count is the last resort.
  int shards = given.shards;
  if (one) {
    if (shards > 0 && shards != one->of)
      fail_input(
          command_line / "shards",
          "contradicts --shard " + std::to_string(one->index) + "/" + std::to_string(one->of),
          "keep one of them");
    shards = one->of;
  }
  if (shards == 0) shards = in_file.value_or(0);
  SweepJob job;
  const std::string& out = *given.output;
  std::error_code code;
  if (shards == 0 && from_slurm && !std::filesystem::exists(out + "/sweep.json", code))
    shards = count_in_environment("SLURM_ARRAY_TASK_COUNT").value_or(0);
  job.workers = given.workers;
  job.limits = given.limits;
  job.inputs = read_inputs(sweep);
  if (sweep.tokens)
    for (const auto& [name, model] : job.inputs.models)
      note_doubt(unlikely_tokens(*sweep.tokens, default_sequence(model)));
  job.folder = begin_sweep_folder(out, sweep, shards);
  if (from_slurm) {
    one = Shard{*task, job.folder.shards};
    if (one->index >= one->of)
      fail_input({"SLURM_ARRAY_TASK_ID", ""},
                 "shard " + std::to_string(one->index) + " is none of " + std::to_string(one->of),
                 "submit with --array=0-" + std::to_string(one->of - 1) +
                     ", or begin the sweep with --shards");
  }
  if (one)
    job.shards.push_back(*one);
  else
    for (int i = 0; i < job.folder.shards; ++i) job.shards.push_back({i, job.folder.shards});

  return job;
}

namespace {

// "12 s", "3 min 20 s", "5 h 10 min"
std::string time_left(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::min(seconds, 1e9));
  const auto text = [](std::int64_t value) { return std::to_string(value); };
  if (whole < 60) return text(whole) + " s";
  if (whole < 3600) return text(whole / 60) + " min " + text(whole % 60) + " s";
  return grouped(whole / 3600) + " h " + text(whole / 60 % 60) + " min";
}

}  // namespace

SweepProgress::SweepProgress(const Sweep& sweep, std::int64_t there, std::int64_t total)
    : sweep_{sweep}, best_{sweep, 1}, there_{there}, total_{total}, begin_{Clock::now()} {}

void SweepProgress::row(const std::string& line) {
  if (!line_.is_shown()) return;
  ++done_;
  best_.add(read_row(line, best_.columns(), {}));
  if (line_.is_due() || there_ + done_ == total_) draw();
}

void SweepProgress::draw() {
  const std::int64_t rows = there_ + done_;
  const double share = static_cast<double>(rows) / static_cast<double>(total_);
  const double seconds =
      std::max(1e-3, std::chrono::duration<double>(Clock::now() - begin_).count());
  const double rate = static_cast<double>(done_) / seconds;
  std::string text = "[" + bar(share, 20) + std::string(20 - bar(share, 20).size(), '.') + "] " +
                     grouped(rows) + " of " + grouped(total_) + "  " +
                     fixed(rate, rate < 10.0 ? 1 : 0) + "/s  " +
                     time_left(static_cast<double>(total_ - rows) / rate) + " left";
  if (!best_.best().empty()) {
    const Row& row = best_.best().front().row;
    const double figure = best_.cell(row, best_.figure()).number;
    text += best_.figure() == "memory_peak_bytes" ? "  best " + bytes_text(Bytes{figure})
                                                  : "  best " + fixed(figure, 1) + " tokens/s/GPU";
    text += ": " + varied_keys(sweep_, best_, row);
  }
  line_.draw(text);
}

std::string varied_keys(const Sweep& sweep, const BestRows& rows, const Row& row) {
  std::string text;
  for (const Dimension& dimension : sweep.dimensions)
    for (const Axis& axis : dimension.axes)
      if (axis.values.size() > 1)
        text += (text.empty() ? "" : ", ") + axis.key + " " + rows.cell(row, axis.key).text;
  return text;
}

}  // namespace orrery
