#include <filesystem>

#include "sim/core/shard.hpp"
#include "sim/search/search.hpp"
#include "sim/sweep/grid.hpp"
#include "sim/sweep/sweep_folder.hpp"
#include "tests/fuzz/entry_groups.hpp"
#include "tests/fuzz/fuzz_checks.hpp"
#include "tests/support/scenarios.hpp"

namespace orrery {
namespace {

// An accepted sweep is the same when written and read, and all its combinations can be enumerated.
void check_sweep(const SweepBuilder& builder) {
  const Sweep sweep = builder.sweep();
  const std::string text = sweep_json(sweep);
  SweepBuilder again;
  again.read(parsed(text));
  if (sweep_json(again.sweep()) != text) __builtin_trap();
  const Grid grid{sweep};
  if (grid.combinations() <= 10'000) grid.count_points();
  for (const std::int64_t number : {std::int64_t{0}, grid.combinations() - 1})
    if (grid.values(number).size() != grid.axes().size()) __builtin_trap();
}

bool fuzz_sweep(const std::string& text) {
  return is_accepted([&] {
    SweepBuilder builder;
    builder.read(parsed(text));
    check_sweep(builder);
  });
}

bool fuzz_sweep_axes(const std::string& text) {
  return is_accepted([&] {
    SweepBuilder builder;
    builder.add_axes(text, {"", "--sweep"});
    check_sweep(builder);
  });
}

// Keys of both kinds; the values decide whether kinds go together.
bool fuzz_condition(const std::string& text) {
  return is_accepted([&] {
    SweepBuilder builder;
    builder.add_axes("model=m system=s gpus=8 gbs=8,16 tp=1..4 sp=true,false schedule=1f1b,gpipe",
                     {"", "--sweep"});
    builder.add_conditions(text, {"", "--where"});
    check_sweep(builder);
  });
}

// Rows of a shard whose header is sound: what follows counts as far as it is sealed.
bool fuzz_shard(const std::string& text) {
  const ShardHeader header{sealed(R"({"schema":"orrery.sweep-rows/2"})"), 4};
  return with_file("shard.jsonl", header.line + "\n" + text, [&](const std::string& path) {
    const ShardContents found = read_shard(path, header);
    if (found.rows > header.rows || found.complete == !found.damage.empty()) __builtin_trap();
  });
}

bool fuzz_sweep_folder(const std::string& text) {
  return with_file("sweep.json", text, [](const std::string& path) {
    const SweepFolder folder = open_sweep_folder(std::filesystem::path{path}.parent_path());
    if (folder.shards > 100) return;
    if (missing_shards(shard_states(folder)).empty()) __builtin_trap();
  });
}

// What a shard of a search says of itself, sealed: what is accepted is written again as the same,
// and becomes an answer or is refused.
bool fuzz_search_shard(const std::string& text) {
  static const SearchRequest request = [] {
    SearchRequest small;
    small.model = small_gpt(4, 256, 8, 2048);
    small.systems = {read_system("dgx-h100", nowhere)};
    small.gpus = {2};
    small.gbs = {4};
    return small;
  }();
  return is_accepted([&] {
    const std::string line = text.substr(0, text.find('\n'));
    const ShareFile file = read_share(line.ends_with('}') ? sealed(line) + "\n" : line, nowhere);
    const std::string again = share_text(file.share, file.search, file.options);
    const ShareFile twice = read_share(again, nowhere);
    if (share_text(twice.share, twice.search, twice.options) != again) __builtin_trap();
    if (file.share.best.size() > 4) return;
    const SearchResult found = put_together(request, {file.share});
    if (found.plans.size() > file.share.best.size()) __builtin_trap();
  });
}

}  // namespace

std::vector<EntryPoint> sweep_entries() {
  using enum Shape;
  return {{"sweep", fuzz_sweep, json},
          {"sweep_axes", fuzz_sweep_axes, bytes},
          {"condition", fuzz_condition, bytes},
          {"shard", fuzz_shard, bytes},
          {"sweep_folder", fuzz_sweep_folder, json},
          {"search_shard", fuzz_search_shard, json}};
}

}  // namespace orrery
