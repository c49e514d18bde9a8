#pragma once

#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/error.hpp"
#include "sim/core/progress.hpp"
#include "sim/core/shard.hpp"
#include "sim/search/leaders.hpp"

namespace orrery {

/// What one shard of a search found: its own list, proven as a search's is. The list of all plans
/// is among the shards' lists, since a plan that is beaten in its shard is beaten.
struct SearchShare {
  Shard shard;
  std::int64_t legal = 0;
  std::int64_t fits = 0;
  std::int64_t simulated = 0;
  std::int64_t left = 0;    ///< Not simulated, and could be in the list.
  double best_unexplored =  ///< No plan that is left scores below this.
      std::numeric_limits<double>::infinity();
  std::vector<int> parts_cut_short;  ///< By their places (SearchResult::parts_cut_short).
  bool interrupted = false;
  double least_memory = 0.0;  ///< If plans were legal and none fits, as in Part.
  std::string smallest;
  PlanRefusal refusal;
  std::vector<Leader> leaders;  ///< Of a candidate: space, choice, bounds and memory.
};

/// Where a folder has a shard's file.
std::string share_path(const std::string& folder, Shard shard);

/// A sealed line of JSON, orrery.search-shard/1. `search`: fingerprint of the search and of what it
/// reads. `options`: the command line's, with which another process begins the same search.
std::string share_text(const SearchShare& share, const std::string& search,
                       const std::vector<std::string>& options);

/// The same read back.
struct ShareFile {
  SearchShare share;
  std::string search;
  std::vector<std::string> options;
};
/// Errors (bad_input): it is none, or damaged.
ShareFile read_share(const std::string& text, const Place& place);

/// What the shards of a search that work at the same time tell each other, through files in their
/// folder: who leads. A plan that those of all shards beat need not be simulated. The list stays
/// the same; how many plans are simulated depends on who was there when.
class ShardTalk {
 public:
  /// `search`: fingerprint; what lies in the folder of others is not heard.
  ShardTalk(std::string folder, Shard shard, std::string search);
  /// Takes back what it has said.
  ~ShardTalk();
  ShardTalk(const ShardTalk&) = delete;
  ShardTalk& operator=(const ShardTalk&) = delete;

  /// Whether it is time to speak and to listen; so seldom that it takes little of the time.
  bool is_due() const;
  /// Says who leads among this shard's plans. It does not matter if that fails.
  void say(const std::vector<Leader>& leaders);
  /// What other shards have said since this was asked before.
  std::vector<Leader> heard();

 private:
  std::string folder_, search_;
  Shard shard_;
  std::map<std::string, std::filesystem::file_time_type> known_;  ///< By path.
  Stopwatch since_;
  double wait_s_ = 0.0;
};

/// The one under this path, if it is there and whole.
std::optional<ShareFile> share_there(const std::string& path);
/// How many shards a search has of which some lie in the folder; nothing: none does.
std::optional<int> shards_in(const std::string& folder);

/// Those in a folder, by their shards: all of one search. Errors (bad_input): shards of several
/// searches or counts, or damaged; none; some are missing, which.
std::vector<ShareFile> read_shares(const std::string& folder);

}  // namespace orrery
