#include "sim/search/objective.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

#include "sim/core/nearest.hpp"
#include "sim/reliability/failure_time.hpp"
#include "sim/training/bill.hpp"

namespace orrery {
namespace {}  // namespace

const std::vector<std::string>& goal_names() {
  static const std::vector<std::string> names{
      "step_time", "tokens_per_s_per_gpu", "cost_per_token", "energy_per_token",
      "gpus",      "training_time",        "goodput"};
  return names;
}

Goal parse_goal(const std::string& text) {
  const auto found = std::find(goal_names().begin(), goal_names().end(), text);
  if (found == goal_names().end())
    fail_input({"", "--objective"}, "'" + text + "' is not an objective",
               suggestion(text, goal_names()));
  return static_cast<Goal>(found - goal_names().begin());
}

const std::vector<std::string>& prices_of(Goal goal) {
  static const std::vector<std::string> none;
  static const std::vector<std::string> cost{"rent_usd_per_gpu_hour"};
  static const std::vector<std::string> energy{"server_watts_per_gpu", "switch_watts", "pue"};
  return goal == Goal::cost_per_token ? cost : goal == Goal::energy_per_token ? energy : none;
}

double Objective::score(const Scenario& scenario, Seconds time, const Economics* economics) const {
  const Plan& plan = scenario.plan;
  const double tokens = static_cast<double>(plan.gbs) * static_cast<double>(plan.seq);
  if (deadline_ && std::ceil(deadline_->tokens / tokens) * time > deadline_->time)
    return std::numeric_limits<double>::infinity();
  switch (goal_) {
    case Goal::step_time:
      return time.si();
    case Goal::tokens_per_s_per_gpu:
      return plan.gpus() * time.si() / tokens;
    case Goal::gpus:
      return plan.gpus();
    case Goal::training_time:
      return time.si() / tokens;
    case Goal::goodput:
      assert(failures_);
      return time.si() / tokens *
             least_time_over_steps(scenario, failures_->profile, failures_->store,
                                   failures_->spares, failures_->elastic);
    case Goal::cost_per_token:
      assert(economics);
      return bill_of(scenario, time, tokens, *economics).usd_per_step.midpoint() / tokens;
    case Goal::energy_per_token:
      assert(economics);
      return bill_of(scenario, time, tokens, *economics).energy_kwh.midpoint() / tokens;
  }
  return time.si();
}

}  // namespace orrery
