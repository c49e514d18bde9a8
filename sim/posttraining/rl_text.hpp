#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/cluster/economics.hpp"
#include "sim/posttraining/rl_search.hpp"
#include "sim/posttraining/rl_step.hpp"

namespace orrery {

/// What a step costs at rent and power of its GPUs; `steps`: of a run, 0 for none.
struct RlBill {
  Range usd_per_thousand, kwh_per_thousand;  ///< Samples. Unknown if a price is.
  std::int64_t steps = 0;
  Seconds run;
  Range run_usd;
};
RlBill rl_bill(const RlStep& step, const Economics& economics, std::int64_t steps);

std::string rl_step_text(const RlStep& step, const RlBill& bill);
/// orrery.post-result/1 (docs/reference/json.md), with "changes" if there are any.
std::string rl_step_json(const RlStep& step, const RlBill& bill,
                         const std::vector<RlChange>& changes);
/// A line for each change: the step with it, and by how much it is shorter.
std::string rl_changes_text(const RlStep& step, const std::vector<RlChange>& changes);
/// A line for each of the best steps, with what was searched.
std::string rl_search_text(const RlSearchRequest& request, const RlSearchResult& result);
/// orrery.post-search/1: the results of the best steps, and the space.
std::string rl_search_json(const RlSearchResult& result, const Economics& economics);

/// A row for each offer, by system and size: the step, its samples a second, what a thousand
/// samples cost, and the best plan. Marked are those that no other one beats in time and money.
/// `bills`: of offers that have a step.
std::string rl_offers_text(const RlSearchRequest& request, const std::vector<RlOffer>& offers,
                           const std::vector<RlBill>& bills);
/// orrery.post-purchase/1: the same.
std::string rl_offers_json(const std::vector<RlOffer>& offers, const std::vector<RlBill>& bills);

/// What the GPUs of a pool do for a time.
struct PoolTime {
  bool of_engine = false;        ///< The pool that generates, where it has GPUs of its own.
  std::optional<RlPhase> phase;  ///< Nothing: the pool waits for the other one.
  Seconds begin, time;
};

/// What each pool does from the begin of a step to its end, without gaps. The trainer's times are
/// first. Loops that generate while they train have three equal steps.
std::vector<PoolTime> pool_times(const RlStep& step);

/// How many samples run from a moment of a synchronous rollout on, at `most` moments or fewer.
std::vector<std::pair<Seconds, std::int64_t>> running_samples(const Rollout& rollout,
                                                              std::size_t most);

/// A step as Chrome trace JSON, which ui.perfetto.dev opens: a process for each pool of GPUs with
/// its phases and its waits, one after the other; how many samples run at each moment of a rollout;
/// and the samples that end last, each with its prompt's wait and its answer. If a loop generates
/// while it trains, the trace shows three equal steps and no samples. Times are microseconds from
/// the begin of the step.
///
/// Source   "Trace Event Format" (Chromium project, 2016): event types X, M, C, b and e.
std::string rl_trace(const RlStep& step);

}  // namespace orrery
