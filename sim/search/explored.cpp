#include "sim/search/explored.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "sim/core/progress.hpp"
#include "sim/core/worker_pool.hpp"

namespace orrery {

std::int32_t LayoutNumbers::of(const Candidate& candidate) {
  return numbers_
      .try_emplace({candidate.space, context_.space(candidate).layout(candidate.choice)},
                   static_cast<std::int32_t>(numbers_.size()))
      .first->second;
}

namespace {

// Space and part.
using PartPlace = std::pair<std::size_t, int>;

std::vector<PartPlace> places_of(const SearchContext& context) {
  std::vector<PartPlace> parts;
  for (std::size_t s = 0; s < context.spaces.size(); ++s)
    for (int p = 0; p < context.spaces[s].parts(); ++p) parts.emplace_back(s, p);
  return parts;
}

// Plans of all parts, in the order of enumeration.
Explored sum_of_parts(const SearchContext& context, const std::vector<PartPlace>& places,
                      std::vector<Part>& parts) {
  Explored all{{}, 0, {}, {}, LayoutNumbers{context}};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Part& part = parts[i];
    if (!part.whole) all.parts_cut_short.push_back(static_cast<int>(i));
    all.legal += part.legal;
    all.none.take(part.none);
    for (Candidate& candidate : part.fitting) {
      candidate.space = static_cast<std::int32_t>(places[i].first);
      candidate.number = static_cast<std::int32_t>(all.candidates.size());
      candidate.layout = all.layouts.of(candidate);
      all.candidates.push_back(candidate);
    }
    part.fitting = {};
  }
  return all;
}

}  // namespace

int parts_of(const SearchContext& context) { return static_cast<int>(places_of(context).size()); }

Explored explore_all(const SearchRequest& request, const SearchContext& context,
                     const Objective& objective, Shard shard, const Stopwatch& stopwatch,
                     SearchProgress& progress,
                     const std::function<void(const SearchProgress&)>& watch) {
  const std::vector<PartPlace> places = places_of(context);
  std::vector<Part> parts(places.size());
  for (Part& part : parts) part.whole = false;
  std::vector<std::size_t> todo(places.size());
  std::iota(todo.begin(), todo.end(), std::size_t{0});
  progress.parts = static_cast<int>(places.size());
  constexpr double longer = 4.0;
  const double half = request.budget ? 0.5 * request.budget->si() : 0.0;
  for (double time = 0.02; !todo.empty(); time *= longer) {
    std::size_t next = 0;
    std::vector<std::size_t> cut;
    run_tasks(
        request.workers, {},
        [&]() -> std::optional<std::int64_t> {
          if (request.budget && progress.fits > 0 && stopwatch.passed().si() >= half)
            return std::nullopt;
          return next < todo.size() ? std::optional{static_cast<std::int64_t>(todo[next++])}
                                    : std::nullopt;
        },
        [&](std::int64_t task) {
          const auto [space, part] = places[static_cast<std::size_t>(task)];
          std::optional<Seconds> most;
          if (request.budget) most = Seconds{std::min(time, half - stopwatch.passed().si())};
          const auto number = static_cast<std::int32_t>(space);
          EstimateContext& estimates = context.estimates(number);
          KnownPassTimes passes{estimates};
          const PlanScorer scorer{objective, context.prices(number), estimates, passes};
          return Answer{
              packed(explore(context.spaces[space], part, shard, request.max_memory, scorer, most)),
              false};
        },
        [&](const Outcome& outcome) {
          if (!outcome.failure.empty())
            throw std::runtime_error{"a worker of the search at part " +
                                     std::to_string(outcome.task) + ": " + outcome.failure};
          const auto place = static_cast<std::size_t>(outcome.task);
          Part part = unpacked(outcome.bytes);
          if (part.whole)
            ++progress.parts_done;
          else
            cut.push_back(place);
          // Cut short by the end of the time it may know less than before.
          if (part.whole || part.legal > parts[place].legal) {
            progress.legal += part.legal - parts[place].legal;
            progress.fits += static_cast<std::int64_t>(part.fitting.size()) -
                             static_cast<std::int64_t>(parts[place].fitting.size());
            parts[place] = std::move(part);
          }
          if (watch) watch(progress);
          return true;
        },
        Delivery::as_finished);
    todo = std::move(cut);
    if (Interruption::requested() || (request.budget && stopwatch.passed().si() >= half)) break;
  }
  return sum_of_parts(context, places, parts);
}

}  // namespace orrery
