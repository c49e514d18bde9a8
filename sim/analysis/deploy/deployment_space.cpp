#include "sim/analysis/deploy/deployment_space.hpp"

#include <algorithm>

#include "sim/base/core/nearest.hpp"
#include "sim/base/text/value_list.hpp"

namespace orrery {
namespace {

using Values = std::vector<std::string>;

bool is_degree(const std::string& key) {
  static const Values degrees{"tp", "pp", "dp", "ep", "moe_tp", "replicas"};
  return std::find(degrees.begin(), degrees.end(), key) != degrees.end();
}

// "--tp: 64 heads cannot be cut into 3; use 2" without its remedy, as "tp" and the rest.
void count(const Error& error, DeploymentSpace& space) {
  const std::string text = error.what();
  const std::string problem = text.substr(0, text.find("; "));
  const std::size_t end = problem.find(": ");
  const bool of_key = problem.starts_with("--") && end != problem.npos;
  RefusedDeployments& refused = space.refused[of_key ? problem.substr(2, end - 2) : "memory"];
  if (refused.count++ == 0) refused.example = of_key ? problem.substr(end + 2) : problem;
}

// Walks all combinations of values, the last key fastest.
class Enumeration {
 public:
  Enumeration(const Model& model, const std::vector<FixedKey>& fixed, const Request& longest,
              DeploymentSpace& space)
      : model_{model}, fixed_{fixed}, longest_{longest}, space_{space} {
    keys_ = {"pp", "tp"};
    if (model.experts) keys_.insert(keys_.end(), {"dp", "ep"});
    for (const FixedKey& one : fixed)
      if (std::find(keys_.begin(), keys_.end(), one.key) == keys_.end()) keys_.push_back(one.key);
  }

  void run(int place, const ServingGround& ground) {
    place_ = place;
    ground_ = &ground;
    choose(0, {}, "");
  }

 private:
  const FixedKey* fixed(const std::string& key) const {
    const auto found = std::find_if(fixed_.begin(), fixed_.end(),
                                    [&](const FixedKey& one) { return one.key == key; });
    return found == fixed_.end() ? nullptr : &*found;
  }

  // What GPUs the degrees so far leave to the others: of ep, those of a stage.
  Values values_of(const std::string& key, const DeploymentRequest& request) const {
    if (const FixedKey* said = fixed(key)) return said->values;
    const std::int64_t stage = std::int64_t{request.tp.value_or(1)} * request.dp.value_or(1);
    if (key == "ep") return divisors(stage, stage);
    const std::int64_t used = stage * request.pp.value_or(1);
    const std::int64_t replicas = ground_->gpus / used;
    return ground_->gpus % used == 0 ? divisors(replicas, replicas) : Values{};
  }

  void choose(std::size_t depth, const DeploymentRequest& request, const std::string& flags) {
    if (depth == keys_.size()) return offer(request, flags);
    const std::string& key = keys_[depth];
    for (const std::string& value : values_of(key, request)) {
      DeploymentRequest next = request;
      set_deployment_flag(next, key, value);
      choose(depth + 1, next, flags + (flags.empty() ? "--" : " --") + key + " " + value);
    }
  }

  void offer(const DeploymentRequest& request, const std::string& flags) {
    ++space_.combinations;
    try {
      DeploymentLayout layout{place_, request, flags, {}};
      ServingSetup setup{model_, ground_->system, ground_->engine, {}};
      layout.plan = setup.deployment = make_deployment(model_, ground_->system, ground_->engine,
                                                       request, ground_->gpus, {"", ""});
      need_room(setup, longest_, {"", ""});
      space_.layouts.push_back(std::move(layout));
    } catch (const Error& error) {
      count(error, space_);
    }
  }

  const Model& model_;
  const std::vector<FixedKey>& fixed_;
  const Request& longest_;
  DeploymentSpace& space_;
  Values keys_;
  int place_ = 0;
  const ServingGround* ground_ = nullptr;
};

}  // namespace

FixedKey parse_fixed_key(const std::string& text, const std::vector<int>& gpus) {
  const Place place{"", "--fix"};
  const std::size_t sign = text.find('=');
  if (sign == text.npos || sign == 0 || sign + 1 == text.size())
    fail_input(place, "'" + text + "' fixes nothing", "write it like tp=8 or kv=bf16,fp8");
  FixedKey fixed{text.substr(0, sign), {}};
  Values known;
  for (const DeploymentKey& key : deployment_keys()) known.push_back(key.name);
  if (std::find(known.begin(), known.end(), fixed.key) == known.end())
    fail_input(place, "'" + fixed.key + "' is not a key that can be fixed",
               suggestion(fixed.key, known));
  const OpenRange open = is_degree(fixed.key) ? OpenRange::divides : OpenRange::doubles;
  fixed.values = parse_value_list(text.substr(sign + 1), place, {open, {gpus.begin(), gpus.end()}});
  DeploymentRequest probe;  // Is each value one?
  for (const std::string& value : fixed.values) set_deployment_flag(probe, fixed.key, value);
  return fixed;
}

DeploymentSpace deployment_space(const Model& model, const std::vector<ServingGround>& grounds,
                                 const std::vector<FixedKey>& fixed, const Request& longest) {
  DeploymentSpace space;
  Enumeration enumeration{model, fixed, longest, space};
  for (std::size_t g = 0; g < grounds.size(); ++g) enumeration.run(static_cast<int>(g), grounds[g]);
  return space;
}

}  // namespace orrery
