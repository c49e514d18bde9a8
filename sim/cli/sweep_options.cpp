#include "sim/cli/sweep_options.hpp"

#include <algorithm>
#include <boost/program_options/value_semantic.hpp>
#include <filesystem>

#include "sim/cli/search_options.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/value_list.hpp"
#include "sim/plan/plan_keys.hpp"

namespace po = boost::program_options;

namespace orrery {
namespace {

Place option(const std::string& name) { return {"", "--" + name}; }

int count_of(const ParsedOptions& options, const std::string& name, int most) {
  return static_cast<int>(value_of_flag(name, options.text(name)).integer(1, most));
}

Sweep read_sweep(const ParsedOptions& options, std::optional<int>& shards) {
  SweepBuilder builder;
  if (options.has("yes")) builder.allow_long_ranges();
  bool described = false;
  // Without a description of its own a folder goes on with what it holds.
  const auto in_folder = [&](const std::string& folder) {
    return (std::filesystem::path{folder} / "sweep.json").string();
  };
  std::vector<std::string> keys{"sweep", "zip", "where", "memory-only", "tokens", "economics"};
  keys.insert(keys.end(), axis_keys().begin(), axis_keys().end());
  for (const std::string& key : keys) described = described || options.has(key);
  std::error_code code;
  if (!options.words.empty())
    builder.read(JsonValue::read_file(options.words.front()));
  else if (!described && std::filesystem::exists(in_folder(options.text("out")), code))
    builder.read(JsonValue::read_file(in_folder(options.text("out"))));
  shards = builder.shards();

  for (const std::string& key : axis_keys())
    if (options.has(key)) builder.add_axis(key, options.text(key), option(key));
  if (options.has("sweep")) builder.add_axes(options.text("sweep"), option("sweep"));
  if (options.has("zip")) builder.add_zip(options.text("zip"), option("zip"));
  if (options.has("where")) builder.add_conditions(options.text("where"), option("where"));
  if (options.has("memory-only")) builder.set_memory_only();
  if (options.has("tokens"))
    builder.set_tokens(parse_tokens(options.text("tokens"), {"--tokens", ""}));
  if (options.has("economics")) builder.set_economics(options.text("economics"));
  return builder.sweep();
}

}  // namespace

po::options_description sweep_run_options() {
  const auto text = [](const std::string& name) {
    return po::value<std::string>()->value_name(name);
  };
  po::options_description what{"What is swept; a list or range may stand for each value", 100};
  what.add_options()  //
      ("sweep", text("AXES"), "'gbs=256..8192*2 mbs=1,2,4': axes, each combined with all others")(
          "zip", text("AXES"), "'gpus=64,128 gbs=256,512': axes that move together")(
          "where", text("COND"), "'tp*pp <= 64 and mbs <= 4': which combinations count")(
          "memory-only", "what a GPU holds, without simulating the step")(
          "tokens", text("N"), "tokens to train on, as 15T: adds what that takes and costs")(
          "economics", text("FILE"), "your prices and powers, over the catalog's")(
          "model", text("LIST"), "models of the catalog, or files")(
          "system", text("LIST"), "systems of the catalog, or files")(
          "calibration", text("LIST"), "measurements: orrery calibrate fit")("gpus", text("LIST"),
                                                                             "GPUs in all");
  for (const PlanKey& key : plan_keys())
    what.add_options()(key.name.c_str(), text("LIST"), key.help.c_str());
  po::options_description how{"How it is run", 100};
  how.add_options()                                                                            //
      ("out", text("DIR"), "folder of the rows; run again, it goes on where it stopped")       //
      ("jobs", text("N"), "worker processes (also -j N; default: Slurm's, or all cores)")      //
      ("shards", text("N"), "files that the rows are spread over (default 1)")                 //
      ("shard", text("I/N"), "compute one of N shards (default: Slurm's array task, or all)")  //
      ("time-limit", text("TIME"), "what a point may take: '60 s'")                            //
      ("memory-limit", text("BYTES"), "what a worker may hold: '4 GB'")                        //
      ("yes", "ranges of more than 64 values are meant")                                       //
      ("html", text("FILE"), "write a report for a browser: curves or maps of the rows")       //
      ("force", "replace files that Orrery did not write")                                     //
      ("quiet", "no progress on a terminal")                                                   //
      ("help", "this text");
  return what.add(how);
}

SweepJob read_sweep_job(const ParsedOptions& options) {
  if (options.words.size() > 1)
    fail_input({}, "'" + options.words[1] + "' belongs to no option",
               "a sweep is described by one file");
  if (!options.has("out"))
    fail_input({}, "--out is missing", "name a folder for the rows: --out sweep1");
  std::optional<int> in_file;
  const Sweep sweep = read_sweep(options, in_file);

  std::optional<Shard> one;
  if (options.has("shard")) one = parse_shard(options.text("shard"));
  const std::optional<int> task = count_in_environment("SLURM_ARRAY_TASK_ID");
  const bool from_slurm = !one && task;

  // The sweep fixes the number of shards. An array that is submitted again for those which are
  // missing has fewer tasks, so that Slurm's count is only asked where nothing else says it.
  int shards = options.has("shards") ? count_of(options, "shards", largest_shard_count) : 0;
  if (one) {
    if (shards > 0 && shards != one->of)
      fail_input(option("shards"), "contradicts --shard " + options.text("shard"),
                 "keep one of them");
    shards = one->of;
  }
  if (shards == 0) shards = in_file.value_or(0);
  SweepJob job;
  const std::string out = options.text("out");
  std::error_code code;
  if (shards == 0 && from_slurm && !std::filesystem::exists(out + "/sweep.json", code))
    shards = count_in_environment("SLURM_ARRAY_TASK_COUNT").value_or(0);
  job.workers = options.has("jobs") ? count_of(options, "jobs", most_workers) : default_workers();
  if (options.has("time-limit"))
    job.limits.time = parse_duration(options.text("time-limit"), option("time-limit"));
  if (options.has("memory-limit"))
    job.limits.memory = parse_bytes(options.text("memory-limit"), option("memory-limit"));
  job.inputs = read_inputs(sweep);
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

SweepProgress::SweepProgress(const Sweep& sweep, std::int64_t there, std::int64_t total, bool quiet)
    : sweep_{sweep},
      best_{sweep, 1},
      there_{there},
      total_{total},
      line_{quiet},
      begin_{Clock::now()} {}

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
