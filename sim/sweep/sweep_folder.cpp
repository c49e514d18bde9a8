#include "sim/sweep/sweep_folder.hpp"

#include <algorithm>
#include <filesystem>

#include "sim/core/object_reader.hpp"
#include "sim/core/shard.hpp"
#include "sim/core/write_file.hpp"
#include "sim/engine/network_model.hpp"
#include "sim/sweep/grid.hpp"
#include "sim/sweep/point_evaluator.hpp"
#include "sim/sweep/row.hpp"

namespace fs = std::filesystem;

namespace orrery {

RowStream::RowStream(const SweepFolder& folder) {
  // Chunks of all shards together stay within 64 MiB.
  const std::size_t chunk = std::clamp<std::size_t>(
      (std::size_t{64} << 20) / static_cast<std::size_t>(folder.shards), 4096, 1 << 20);
  readers_.resize(static_cast<std::size_t>(folder.shards));
  for (int i = 0; i < folder.shards; ++i) {
    const Shard shard{i, folder.shards};
    std::error_code code;
    std::string path = shard_path(folder.path, shard);
    if (!fs::exists(path, code)) path = partial_shard_path(folder.path, shard);
    if (!fs::exists(path, code)) continue;
    readers_[static_cast<std::size_t>(i)].emplace(path, folder.header(shard), chunk);
    ++open_;
  }
}

std::optional<std::string> RowStream::next() {
  while (open_ > 0) {
    const std::size_t at = next_;
    next_ = (next_ + 1) % readers_.size();
    if (!readers_[at]) continue;
    std::optional<std::string> line = readers_[at]->next();
    if (!line) {
      readers_[at].reset();
      --open_;
      continue;
    }
    last_ = at;
    const std::int64_t point = point_of_row(*line, place());
    if (point <= point_)
      fail_input(place(), "has point " + std::to_string(point) + " out of order",
                 "remove the file; its points will be computed again");
    point_ = point;
    return line;
  }
  return std::nullopt;
}

void for_each_row(const SweepFolder& folder, const std::vector<RowColumn>& columns,
                  const std::function<void(const std::string& line, const Row& row)>& action) {
  RowStream stream{folder};
  while (const auto line = stream.next()) action(*line, read_row(*line, columns, stream.place()));
}

namespace {

namespace fs = std::filesystem;

std::string description_path(const std::string& folder) {
  return (fs::path{folder} / "sweep.json").string();
}

std::string description(const SweepFolder& folder) {
  return sweep_json(folder.sweep,
                    "  \"shards\": " + std::to_string(folder.shards) +
                        ",\n  \"points\": " + std::to_string(folder.points) +
                        ",\n  \"made_with\": {\"orrery_version\": " + json_quoted(ORRERY_VERSION) +
                        ", \"fingerprint\": " + json_quoted(folder.fingerprint) +
                        ", \"simulator\": " + json_quoted(folder.simulator) + "},\n");
}

void refuse_another(const SweepFolder& there, const SweepFolder& wanted) {
  const Place at{description_path(there.path), ""};
  const std::string remedy = "name another --output folder, or remove this one";
  if (sweep_json(there.sweep) != sweep_json(wanted.sweep))
    fail_input(at, "holds another sweep", remedy);
  if (there.fingerprint != wanted.fingerprint)
    fail_input(at, "was begun with another build of orrery, or other catalog or calibration files",
               "finish it with those, or " + remedy);
  if (there.simulator != wanted.simulator)
    fail_input(at, "was begun with another simulator",
               "finish it with --simulator " + there.simulator + ", or " + remedy);
}

}  // namespace

ShardHeader SweepFolder::header(Shard shard) const {
  const std::int64_t rows = shard.share(points);
  return {sealed(R"({"schema":"orrery.sweep-rows/2","sweep":")" +
                 fingerprint_of(sweep_json(sweep) + fingerprint) + R"(","shard":)" +
                 std::to_string(shard.index) + R"(,"of":)" + std::to_string(shard.of) +
                 R"(,"rows":)" + std::to_string(rows) + "}"),
          rows};
}

std::string fingerprint_of_inputs(const Sweep& sweep) {
  return fingerprint_of_inputs([&] { read_inputs(sweep); });
}

SweepFolder open_sweep_folder(const std::string& path) {
  const std::string file = description_path(path);
  std::error_code code;
  if (!fs::exists(file, code))
    fail_input({path, ""}, "is not a folder of a sweep: it has no sweep.json",
               "name the folder that was given to orrery sweep run --output");
  const JsonValue json = JsonValue::read_file(file);
  SweepBuilder builder;
  builder.read(json);
  SweepFolder folder;
  folder.path = path;
  folder.sweep = builder.sweep();
  folder.shards = static_cast<int>(json.at("shards").integer(1, largest_shard_count));
  folder.points = json.at("points").integer(1, std::int64_t{1} << 40);
  folder.fingerprint = json.at("made_with").at("fingerprint").text();
  const auto simulator = json.at("made_with").find("simulator");
  folder.simulator = name(simulator ? choice<Simulator>(*simulator) : Simulator::own);
  return folder;
}

SweepFolder begin_sweep_folder(const std::string& path, const Sweep& sweep, int shards) {
  SweepFolder wanted;
  wanted.path = path;
  wanted.sweep = sweep;
  wanted.fingerprint = fingerprint_of_inputs(sweep);
  wanted.simulator = name(chosen_simulator());
  std::error_code code;
  if (fs::exists(description_path(path), code)) {
    SweepFolder there = open_sweep_folder(path);
    refuse_another(there, wanted);
    if (shards > 0 && shards != there.shards)
      fail_input(
          {description_path(path), ""},
          "was begun in " + std::to_string(there.shards) + " shards, not " + std::to_string(shards),
          "leave the number out, or name another --output folder");
    return there;
  }
  wanted.shards = shards > 0 ? shards : 1;
  wanted.points = Grid{wanted.sweep}.count_points();
  make_folder(path, {"", "--output"});
  write_file(description_path(path), description(wanted));
  return wanted;
}

ShardState shard_state(const SweepFolder& folder, Shard shard) {
  ShardState state;
  state.shard = shard;
  state.points = shard.share(folder.points);
  const ShardHeader header = folder.header(shard);
  for (const std::string& path :
       {shard_path(folder.path, shard), partial_shard_path(folder.path, shard)}) {
    std::int64_t stopped = 0;
    const ShardContents found = read_shard(path, header, [&](std::int64_t, const std::string& row) {
      stopped += is_stopped(row) ? 1 : 0;
    });
    if (!found.damage.empty() && state.damage.empty())
      state.damage = fs::path{path}.filename().string() + ": " + found.damage;
    if (found.rows <= state.rows && path.ends_with(".part")) continue;
    state.rows = found.rows;
    state.stopped = stopped;
    state.complete = found.complete && stopped == 0 && !path.ends_with(".part");
    if (found.complete) break;
  }
  return state;
}

std::vector<ShardState> shard_states(const SweepFolder& folder) {
  std::vector<ShardState> states;
  for (int i = 0; i < folder.shards; ++i) states.push_back(shard_state(folder, {i, folder.shards}));
  return states;
}

std::string missing_shards(const std::vector<ShardState>& states) {
  std::vector<bool> complete;
  for (const ShardState& state : states) complete.push_back(state.complete);
  return places_missing(complete);
}

}  // namespace orrery
