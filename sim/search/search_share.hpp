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
#include "sim/search/candidate.hpp"

namespace orrery {

/// The result of one shard of a search: its own list, proven as a search's is. The list of all
/// plans is among the shards' lists, since a plan that is beaten in its shard is beaten.
struct SearchShare {
  Shard shard;
  std::int64_t legal = 0;
  std::int64_t fits = 0;
  std::int64_t simulated = 0;
  std::int64_t left = 0;    ///< Not simulated, and could be in the list.
  double best_unexplored =  ///< No plan that is left scores below this.
      std::numeric_limits<double>::infinity();
  std::vector<int> parts_cut_short;  ///< Their places (SearchResult::parts_cut_short).
  bool interrupted = false;
  NoPlan none;
  std::vector<Candidate> best;  ///< Simulated; of those read back number and layout are not known.
};

/// The path of a shard's file in a folder.
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

/// Exchange between the shards of a search that work at the same time, through files in their
/// folder: the best plans so far. A plan that those of all shards beat need not be simulated. The
/// list stays the same; how many plans are simulated depends on which shards work at which time.
class ShardExchange {
 public:
  /// `search`: fingerprint; files of other searches in the folder are ignored.
  ShardExchange(std::string folder, Shard shard, std::string search);
  /// Removes the file that it has written.
  ~ShardExchange();
  ShardExchange(const ShardExchange&) = delete;
  ShardExchange& operator=(const ShardExchange&) = delete;

  /// True when it is time to write and to read again; so seldom that it takes little of the time.
  bool is_due() const;
  /// Writes the best of this shard's plans. It does not matter if that fails.
  void send(const std::vector<Candidate>& best);
  /// The plans that other shards have written since the last call.
  std::vector<Candidate> received();

 private:
  std::string folder_, search_;
  Shard shard_;
  std::map<std::string, std::filesystem::file_time_type> known_;  ///< One a path.
  Stopwatch since_;
  double wait_s_ = 0.0;
};

/// The one under this path, if it is there and whole.
std::optional<ShareFile> share_there(const std::string& path);
/// The number of shards of the search that has files in the folder; nothing: there are none.
std::optional<int> shards_in(const std::string& folder);

/// Those in a folder, by their shards: all of one search. Errors (bad_input): shards of several
/// searches or counts, or damaged; none; some are missing, which.
std::vector<ShareFile> read_shares(const std::string& folder);

}  // namespace orrery
