#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/posttraining/rl_step.hpp"

namespace orrery {

/// One change of a job, and the step with it.
struct RlChange {
  std::string words;    ///< "one optimizer step"
  std::string options;  ///< "--train_batch 2048"
  Seconds step;
  std::string refused;  ///< Why it cannot be; "": it can.
};

/// Tries one change of a job at a time: other degrees of the engine, twice the GPUs, fewer passes
/// and optimizer steps, a lower limit of answers, both halves at a time, other splits. The shortest
/// step first, those that cannot be last. `gpus` of all plans but one are the job's.
std::vector<RlChange> rl_changes(const RlStep& step);

/// What a search varies.
struct RlSearchRequest {
  Model model;
  System system;
  RlFramework framework;
  RlRequest job;  ///< What it says of its halves stays as it is.
  int gpus = 0;
};

struct RlSearchResult {
  std::vector<RlStep> best;  ///< The shortest steps first, one for each split and engine degree.
  std::int64_t jobs = 0;     ///< Trainers of the space: those that were simulated and fit,
  std::int64_t fits = 0;     ///< those that
  std::int64_t bounded_out = 0;  ///< a bound proves slower than the best,
  std::int64_t too_large = 0;    ///< do not fit in memory,
  std::int64_t undivided = 0;    ///< or do not divide or run by the software.
  std::string refusal;           ///< The last reason, where none fits.
};

/// A machine that could run a job, with the shortest step of all plans for it.
struct RlOffer {
  System system;
  int gpus = 0;
  std::optional<RlStep> best;
  std::string refusal;  ///< Why there is none.
};

/// Leaves degrees, stages and the split of a job to a search.
void free_degrees(RlRequest& job);

/// The best step on each of `systems` with each number of GPUs. Degrees, stages and splits of
/// `request.job` are those of the machine that it ran on, and are searched anew.
std::vector<RlOffer> rl_offers(const RlSearchRequest& request, const std::vector<System>& systems,
                               const std::vector<int>& gpus);

/// The shortest step over splits of the GPUs in whole nodes, tensor, pipeline and expert degrees of
/// the trainer, and tensor degrees of the engine within an NVLink domain, or over nodes where no
/// domain holds the model. Context parallelism is tried for software without tensor parallelism and
/// where a plan does not fit without it, full recomputation where it does not fit without that, and
/// ZeRO-2 where the software shards weights. Without max_staleness all GPUs do both by turns.
///
/// A step is a sum or a maximum of its halves, each of which depends on its own plan alone, so that
/// each half is simulated once. A split is left out if its engine, or the trainer's operations at
/// the GPUs' peak, take longer than the best step: it is proven slower. So are other trainers of a
/// split whose engine keeps the one found waiting. Of more than 32 splits every second, fourth, ...
/// is simulated first, and then those between the best one and its neighbours.
RlSearchResult search_rl(const RlSearchRequest& request, std::size_t top);

}  // namespace orrery
