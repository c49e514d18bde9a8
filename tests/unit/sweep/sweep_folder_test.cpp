#include "sim/sweep/sweep_folder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "sim/core/shard.hpp"
#include "sim/sweep/merge.hpp"
#include "sim/sweep/run_shard.hpp"
#include "sim/sweep/sweep.hpp"
#include "sim/training/estimate.hpp"
#include "sim/training/result_json.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/temporary_folder.hpp"

namespace orrery::sweep_folder_test {
namespace {

namespace fs = std::filesystem;

// 120 combinations, of which some divide, some do not, and some do not fit.
Sweep memory_sweep(const std::string& more = "") {
  SweepBuilder builder;
  builder.add_axes(
      "model=llama3-8b,llama3-70b system=dgx-h100 gpus=16 gbs=32,48 tp=1,2,4,6,8 "
      "pp=1,2,4 mbs=1,2 " +
          more,
      {"", "--sweep"});
  builder.add_conditions("tp*pp <= 16", {"", "--where"});
  builder.set_memory_only();
  return builder.sweep();
}

std::string contents(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream{path, std::ios::binary}.rdbuf();
  return text.str();
}

void run_all(const SweepFolder& folder, int workers) {
  const Grid grid{folder.sweep};
  const SweepInputs inputs = read_inputs(folder.sweep);
  PointEvaluator evaluator{folder.sweep, grid, inputs};
  for (int i = 0; i < folder.shards; ++i)
    run_shard(folder, {i, folder.shards}, grid, evaluator, workers, {},
              {[](const std::string&) {}});
}

class SweepFolders : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }

  std::string merged(const SweepFolder& folder, const std::string& name) {
    BestRows rows{folder.sweep, 10};
    merge_rows(folder, path(name), rows);
    EXPECT_EQ(rows.rows(), folder.points);
    return contents(path(name));
  }

 private:
  TemporaryFolder folder_;
};

TEST_F(SweepFolders, RowsDependOnNeitherShardsNorWorkers) {
  const SweepFolder one = begin_sweep_folder(path("one"), memory_sweep(), 0);
  run_all(one, 1);
  EXPECT_EQ(one.shards, 1);
  const std::string jsonl = merged(one, "one.jsonl");
  EXPECT_EQ(std::count(jsonl.begin(), jsonl.end(), '\n'), one.points);
  for (const std::string status : {"ok", "infeasible"})
    EXPECT_NE(jsonl.find("\"status\":\"" + status + "\""), jsonl.npos);
  EXPECT_NE(jsonl.find("the plan does not fit"), jsonl.npos);
  EXPECT_NE(jsonl.find("tp=6 does not divide"), jsonl.npos);
  EXPECT_EQ(jsonl.find("\"status\":\"failed\""), jsonl.npos);

  // More shards than points among them.
  for (int shards : {2, 7, 200})
    for (int workers : {1, 3}) {
      if (shards == 200 && workers == 3) continue;  // A file synchronised a shard takes its time.
      const std::string name = std::to_string(shards) + "-" + std::to_string(workers);
      const SweepFolder folder = begin_sweep_folder(path(name), memory_sweep(), shards);
      run_all(folder, workers);
      EXPECT_EQ(missing_shards(shard_states(folder)), "");
      EXPECT_EQ(merged(folder, name + ".jsonl"), jsonl);
      EXPECT_EQ(merged(folder, name + ".csv"), merged(one, "one.csv"));
      EXPECT_EQ(merged(folder, name + ".sqlite"), merged(one, "one.sqlite"));
      fs::remove(path("one.sqlite"));
    }
}

TEST_F(SweepFolders, MergingTwiceChangesNothing) {
  const SweepFolder folder = begin_sweep_folder(path("sweep"), memory_sweep(), 3);
  const Grid grid{folder.sweep};
  const SweepInputs inputs = read_inputs(folder.sweep);
  PointEvaluator evaluator{folder.sweep, grid, inputs};
  // First one shard, then all of them: what is there stays as it is.
  run_shard(folder, {1, 3}, grid, evaluator, 1, {}, {[](const std::string&) {}});
  BestRows part{folder.sweep, 10};
  merge_rows(folder, path("rows.sqlite"), part);
  EXPECT_EQ(part.rows(), (Shard{1, 3}.share(folder.points)));
  run_all(folder, 1);
  merged(folder, "rows.sqlite");
  const std::string once = contents(path("rows.sqlite"));
  merged(folder, "rows.sqlite");
  EXPECT_EQ(contents(path("rows.sqlite")), once);
}

TEST_F(SweepFolders, KnowWhatIsMissing) {
  const SweepFolder folder = begin_sweep_folder(path("sweep"), memory_sweep(), 8);
  EXPECT_EQ(missing_shards(shard_states(folder)), "0-7");
  const Grid grid{folder.sweep};
  const SweepInputs inputs = read_inputs(folder.sweep);
  PointEvaluator evaluator{folder.sweep, grid, inputs};
  for (int i : {0, 2, 5, 6})
    run_shard(folder, {i, 8}, grid, evaluator, 1, {}, {[](const std::string&) {}});
  EXPECT_EQ(missing_shards(shard_states(folder)), "1,3-4,7");
}

TEST_F(SweepFolders, HoldOneSweepOfOneProgram) {
  begin_sweep_folder(path("sweep"), memory_sweep(), 4);
  EXPECT_EQ(begin_sweep_folder(path("sweep"), memory_sweep(), 0).shards, 4);
  const std::string file = path("sweep") + "/sweep.json";
  EXPECT_EQ(error_text([&] { begin_sweep_folder(path("sweep"), memory_sweep("seq=2048"), 0); }),
            file + ": holds another sweep; name another --output folder, or remove this one");
  EXPECT_EQ(error_text([&] { begin_sweep_folder(path("sweep"), memory_sweep(), 5); }),
            file +
                ": was begun in 4 shards, not 5; leave the number out, or name another --output "
                "folder");
  std::string text = contents(file);
  const std::size_t at = text.find("\"fingerprint\": \"") + 16;
  text[at] = text[at] == '0' ? '1' : '0';
  std::ofstream{file} << text;
  EXPECT_EQ(error_text([&] { begin_sweep_folder(path("sweep"), memory_sweep(), 0); }),
            file +
                ": was begun with another build of orrery, or other catalog or calibration "
                "files; finish it with those, or name another --output folder, or remove this one");
  EXPECT_EQ(error_text([&] { open_sweep_folder(path("nothing")); }),
            path("nothing") +
                ": is not a folder of a sweep: it has no sweep.json; name the folder "
                "that was given to orrery sweep run --output");
}

TEST_F(SweepFolders, RowsOfAnotherSweepAreRefused) {
  const SweepFolder one = begin_sweep_folder(path("one"), memory_sweep(), 2);
  const SweepFolder two = begin_sweep_folder(path("two"), memory_sweep("seq=2048"), 2);
  run_all(one, 1);
  run_all(two, 1);
  fs::copy_file(shard_path(two.path, {1, 2}), shard_path(one.path, {1, 2}),
                fs::copy_options::overwrite_existing);
  EXPECT_NE(error_text([&] { merged(one, "rows.csv"); }).find("holds rows of another sweep"),
            std::string::npos);
  EXPECT_FALSE(fs::exists(path("rows.csv")));
}

// Whatever a sweep names by a path, and whatever that names: other rows may come of it.
TEST_F(SweepFolders, EveryFileThatIsReadIsInTheFingerprint) {
  const auto routing = [&](double exponent) {
    std::ofstream{path("routing.json")}
        << R"({"schema": "orrery.routing/1", "name": "r", "popularity": "zipf", "exponent": )"
        << exponent << "}";
  };
  routing(1.0);
  SweepBuilder builder;
  builder.add_axes(
      "model=mixtral-8x7b system=dgx-h100 gpus=16 gbs=32 routing=" + path("routing.json"),
      {"", "--sweep"});
  const Sweep sweep = builder.sweep();
  const std::string before = fingerprint_of_inputs(sweep);
  EXPECT_EQ(fingerprint_of_inputs(sweep), before);
  routing(1.5);
  EXPECT_NE(fingerprint_of_inputs(sweep), before);

  std::ofstream{path("routing.json")}
      << R"({"schema": "orrery.routing/1", "name": "r", "trace": "trace.csv"})";
  std::ofstream{path("trace.csv")} << "layer,micro_batch,rank,expert,tokens\n0,0,0,0,7\n";
  const std::string traced = fingerprint_of_inputs(sweep);
  std::ofstream{path("trace.csv")} << "layer,micro_batch,rank,expert,tokens\n0,0,0,0,8\n";
  EXPECT_NE(fingerprint_of_inputs(sweep), traced);
}

// Only config.json of a model's folder counts: its weights are large.
TEST_F(SweepFolders, FilesThatAreNotReadAreNotInTheFingerprint) {
  fs::create_directory(path("model"));
  std::ofstream{path("model/config.json")}
      << R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 256,
             "num_attention_heads": 8, "intermediate_size": 1024, "vocab_size": 1024,
             "max_position_embeddings": 4096})";
  SweepBuilder builder;
  builder.add_axes("system=dgx-h100 gpus=16 gbs=32 model=" + path("model"), {"", "--sweep"});
  const Sweep sweep = builder.sweep();
  const std::string before = fingerprint_of_inputs(sweep);
  std::ofstream{path("model/weights.safetensors")} << "weights";
  EXPECT_EQ(fingerprint_of_inputs(sweep), before);
  std::ofstream{path("model/config.json"), std::ios::app} << " ";
  EXPECT_NE(fingerprint_of_inputs(sweep), before);
}

TEST_F(SweepFolders, AnInputThatChangesMeanwhileLeavesNoRows) {
  const std::string file = path("routing.json");
  const auto routing = [&](double exponent) {
    std::ofstream{file}
        << R"({"schema": "orrery.routing/1", "name": "r", "popularity": "zipf", "exponent": )"
        << exponent << "}";
  };
  routing(1.0);
  SweepBuilder builder;
  builder.add_axes("model=mixtral-8x7b system=dgx-h100 gpus=16 gbs=32,64 routing=" + file,
                   {"", "--sweep"});
  builder.set_memory_only();
  const SweepFolder folder = begin_sweep_folder(path("sweep"), builder.sweep(), 0);
  const Grid grid{folder.sweep};
  const SweepInputs inputs = read_inputs(folder.sweep);
  PointEvaluator evaluator{folder.sweep, grid, inputs};
  const std::string error = error_text([&] {
    run_shard(folder, {0, 1}, grid, evaluator, 1, {}, {[&](const std::string&) { routing(1.5); }});
  });
  EXPECT_NE(error.find("is removed: a model, a system, a routing or another input changed"),
            error.npos)
      << error;
  EXPECT_EQ(shard_states(folder).front().rows, 0);
}

// A file that was complete and is not any more, in every way: what is sound stays, the rest is
// computed again, the bytes are the same, and it is said.
TEST_F(SweepFolders, WhatIsDamagedIsComputedAgain) {
  const SweepFolder folder = begin_sweep_folder(path("sweep"), memory_sweep(), 1);
  run_all(folder, 1);
  const std::string file = shard_path(folder.path, {0, 1});
  const std::string expected = contents(file);
  std::string spoilt = expected;
  spoilt[expected.size() / 2] ^= 1;
  for (const std::string& damaged :
       {std::string{}, expected.substr(0, expected.size() / 3), spoilt,
        expected.substr(0, expected.size() - 1), std::string(1000, '\0')}) {
    std::ofstream{file, std::ios::binary} << damaged;
    const ShardState state = shard_states(folder).front();
    EXPECT_FALSE(state.complete);
    EXPECT_NE(state.damage, "");
    EXPECT_EQ(missing_shards(shard_states(folder)), "0");
    BestRows unused{folder.sweep, 1};
    EXPECT_NE(error_text([&] { read_rows(folder, unused); }).find("computes again what is damaged"),
              std::string::npos);
    const Grid grid{folder.sweep};
    const SweepInputs inputs = read_inputs(folder.sweep);
    PointEvaluator evaluator{folder.sweep, grid, inputs};
    std::string said;
    std::int64_t computed = 0;
    run_shard(
        folder, {0, 1}, grid, evaluator, 1, {},
        {[&](const std::string&) { ++computed; }, [&](const std::string& text) { said = text; }});
    EXPECT_EQ(contents(file), expected);
    EXPECT_EQ(said, (fs::path{folder.path} / state.damage).string());
    EXPECT_EQ(computed, folder.points - state.rows);
  }
}

// Rows of points that the machine stopped are computed again by the next run, and only these.
TEST_F(SweepFolders, WhatTheMachineStoppedIsTriedAgain) {
  const SweepFolder folder = begin_sweep_folder(path("sweep"), memory_sweep(), 1);
  const SweepFolder never = begin_sweep_folder(path("never"), memory_sweep(), 1);
  run_all(never, 1);
  const Grid grid{folder.sweep};
  const SweepInputs inputs = read_inputs(folder.sweep);
  PointEvaluator evaluator{folder.sweep, grid, inputs};
  const auto run = [&](const WorkerLimits& limits) {
    run_shard(folder, {0, 1}, grid, evaluator, 2, limits, {[](const std::string&) {}});
    return shard_states(folder).front();
  };
  const ShardState stopped = run({Seconds{1e-9}, {}});
  EXPECT_EQ(stopped.rows, folder.points);
  EXPECT_GT(stopped.stopped, 0);
  EXPECT_EQ(missing_shards(shard_states(folder)), "0");
  BestRows stopped_rows{folder.sweep, 1};
  merge_rows(folder, path("rows.sqlite"), stopped_rows);
  EXPECT_EQ(stopped_rows.failed(), stopped.stopped);

  const ShardState again = run({});
  EXPECT_EQ(again.stopped, 0);
  EXPECT_TRUE(again.complete);
  EXPECT_EQ(merged(folder, "rows.jsonl"), merged(never, "never.jsonl"));
  // A database that has the old rows gets the new ones.
  BestRows rows{folder.sweep, 1};
  merge_rows(folder, path("rows.sqlite"), rows);
  EXPECT_EQ(rows.failed(), 0);
  EXPECT_EQ(contents(path("rows.sqlite")).find("took longer"), std::string::npos);
}

// One point simulated: each figure is the one that estimate prints.
TEST_F(SweepFolders, FiguresAreThoseOfEstimate) {
  SweepBuilder builder;
  builder.add_axes("model=llama3-8b system=dgx-h100 gpus=16 gbs=32 tp=2 pp=2", {"", "--sweep"});
  const Sweep sweep = builder.sweep();
  const Grid grid{sweep};
  const SweepInputs inputs = read_inputs(sweep);
  const Answer answer = PointEvaluator{sweep, grid, inputs}(0);
  const std::vector<RowColumn> columns = row_columns(sweep);
  const Row row = read_row(answer.bytes, columns, {"test", ""});

  PlanRequest request;
  request.tp = request.pp = 2;
  request.gbs = 32;
  const Result result = estimate(make_scenario(read_model("llama3-8b", {}),
                                               read_system("dgx-h100", {}), request, 16, {}))
                            .result;
  const JsonValue json = JsonValue::parse(result_json(result), "result");
  int compared = 0;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::string& name = columns[i].name;
    JsonValue object = json;
    std::string key = name;
    for (const std::string part : {"breakdown", "provenance", "memory"})
      if (name.starts_with(part + "_")) {
        object = json.at(part == "breakdown" ? "breakdown_s" : part);
        key = name.substr(part.size() + 1);
        if (part == "breakdown") key.resize(key.size() - 2);  // The object's name has the unit.
      }
    const std::optional<JsonValue> expected = object.find(key);
    if (!expected || !expected->is_number() || name == "gpus") continue;
    ASSERT_TRUE(row[i]) << name;
    EXPECT_EQ(row[i]->number, expected->number(-1e300, 1e300)) << name;
    ++compared;
  }
  // And none of its parts is missing.
  for (const std::string& part : json.at("breakdown_s").keys())
    EXPECT_TRUE(std::any_of(columns.begin(), columns.end(), [&](const RowColumn& column) {
      return column.name == "breakdown_" + part + "_s";
    })) << part;
  EXPECT_EQ(compared, std::ssize(sweep_figures(result)));
}

}  // namespace
}  // namespace orrery::sweep_folder_test
