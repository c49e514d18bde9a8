#include "sim/sweep/row_stream.hpp"

#include <algorithm>
#include <filesystem>

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

}  // namespace orrery
