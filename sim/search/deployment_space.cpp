#include "sim/search/deployment_space.hpp"

#include <algorithm>

#include "sim/core/nearest.hpp"
#include "sim/core/value_list.hpp"

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

// Visits all combinations of values, the last key fastest.
class Enumeration {
 public:
  Enumeration(const Model& model, const std::vector<Fixed>& fixed, const Request& longest,
              DeploymentSpace& space)
      : model_{model}, fixed_{fixed}, longest_{longest}, space_{space} {
    keys_ = {"pp", "tp"};
    if (model.experts) keys_.insert(keys_.end(), {"dp", "ep"});
    for (const Fixed& one : fixed)
      if (std::find(keys_.begin(), keys_.end(), one.key) == keys_.end()) keys_.push_back(one.key);
  }

  void run(int place, const ServingPlatform& platform) {
    place_ = place;
    platform_ = &platform;
    choose(0, {}, "", [this](const DeploymentRequest& request, const std::string& flags) {
      offer(request, flags);
    });
  }

  void run_pools(int place, const ServingPlatform& platform) {
    if (!platform.engine.pools) return;
    place_ = place;
    platform_ = &platform;
    const std::size_t first = space_.cuts.size();
    of_pool_ = true;
    choose(0, {}, "", [this](const DeploymentRequest& request, const std::string& flags) {
      offer_cut(request, flags);
    });
    of_pool_ = false;
    for (std::size_t prefill = first; prefill < space_.cuts.size(); ++prefill)
      for (std::size_t decode = first; decode < space_.cuts.size(); ++decode)
        join(static_cast<int>(prefill), static_cast<int>(decode));
  }

 private:
  const Fixed* fixed(const std::string& key) const {
    const auto found = std::find_if(fixed_.begin(), fixed_.end(),
                                    [&](const Fixed& one) { return one.key == key; });
    return found == fixed_.end() ? nullptr : &*found;
  }

  // The GPUs that the degrees so far leave to the others; ep has those of a stage.
  Values values_of(const std::string& key, const DeploymentRequest& request) const {
    if (const Fixed* stated = fixed(key)) return stated->values;
    if (of_pool_ && key == "pp") return {"1"};
    const std::int64_t stage = std::int64_t{request.tp.value_or(1)} * request.dp.value_or(1);
    if (key == "ep") return divisors(stage, stage);
    const std::int64_t used = stage * request.pp.value_or(1);
    const std::int64_t replicas = platform_->gpus / used;
    return platform_->gpus % used == 0 ? divisors(replicas, replicas) : Values{};
  }

  template <class Offer>
  void choose(std::size_t depth, const DeploymentRequest& request, const std::string& flags,
              const Offer& taken) {
    if (depth == keys_.size()) return taken(request, flags);
    const std::string& key = keys_[depth];
    for (const std::string& value : values_of(key, request)) {
      DeploymentRequest next = request;
      set_deployment_flag(next, key, value);
      choose(depth + 1, next, flags + (flags.empty() ? "--" : " --") + key + " " + value, taken);
    }
  }

  // A replica of a pool, where both pools can have one.
  void offer_cut(DeploymentRequest request, const std::string& flags) {
    request.replicas = 1;
    const std::int64_t gpus =
        std::int64_t{*request.tp} * request.pp.value_or(1) * request.dp.value_or(1);
    if (gpus >= platform_->gpus) return;
    PoolCut cut;
    cut.platform = place_;
    for (const std::string& key : keys_) {
      const std::string flag = "--" + key + " ";
      const std::size_t at = flags.find(flag) + flag.size();
      const std::string value = flags.substr(at, flags.find(' ', at) - at);
      if (key == "replicas" || (key == "pp" && value == "1")) continue;
      std::string& list = is_degree(key) ? cut.keys : cut.flags;
      if (!list.empty()) list += is_degree(key) ? "," : " ";
      list += is_degree(key) ? key + "=" + value : flag + value;
    }
    if (!request.speculate) return take_cut(cut, request, true, true);
    // A pool that makes no tokens drafts none.
    DeploymentRequest prompts = request;
    prompts.speculate.reset();
    take_cut(cut, prompts, true, false);
    take_cut(cut, request, false, true);
  }

  void take_cut(PoolCut cut, const DeploymentRequest& request, bool prefills, bool decodes) {
    ServingSetup setup{model_, platform_->system, platform_->engine, {}};
    Request prompt = longest_;
    prompt.output_tokens = 1;
    const std::int64_t gpus =
        std::int64_t{*request.tp} * request.pp.value_or(1) * request.dp.value_or(1);
    try {
      cut.plan = setup.deployment = make_deployment(model_, platform_->system, platform_->engine,
                                                    request, static_cast<int>(gpus), {"", ""});
      need_space(setup, prompt, {"", ""});
      cut.prefills = prefills;
      if (decodes) need_space(setup, longest_, {"", ""});
      cut.decodes = decodes;
    } catch (const Error& error) {
      if (!cut.prefills) return count_refused(error);
    }
    space_.cuts.push_back(std::move(cut));
  }

  void count_refused(const Error& error) {
    ++space_.combinations;
    count(error, space_);
  }

  // All numbers of replicas of two cuts that use all GPUs.
  void join(int prefill, int decode) {
    const PoolCut& p = space_.cuts[static_cast<std::size_t>(prefill)];
    const PoolCut& d = space_.cuts[static_cast<std::size_t>(decode)];
    if (!p.prefills || !d.decodes || p.flags != d.flags) return;
    const std::int64_t each = d.plan.replica_gpus();
    for (int x = 1; x * p.plan.replica_gpus() < platform_->gpus; ++x) {
      const std::int64_t rest = platform_->gpus - x * p.plan.replica_gpus();
      if (rest % each != 0) continue;
      ++space_.combinations;
      Deployment prefills = p.plan, decodes = d.plan;
      prefills.replicas = x;
      decodes.replicas = static_cast<int>(rest / each);
      const std::string flags = "--prefill " + p.keys + " --decode " + d.keys + " --pools " +
                                std::to_string(x) + "P" + std::to_string(decodes.replicas) + "D" +
                                (p.flags.empty() ? "" : " " + p.flags);
      try {
        DeploymentLayout layout{place_, flags, decodes};
        layout.pools = join_pools(platform_->system, prefills, decodes,
                                  platform_->engine.pools->sending, false, {"", "--pools"});
        layout.prefill = prefill;
        layout.decode = decode;
        space_.layouts.push_back(std::move(layout));
      } catch (const Error& error) {
        count(error, space_);
      }
    }
  }

  void offer(const DeploymentRequest& request, const std::string& flags) {
    ++space_.combinations;
    try {
      DeploymentLayout layout{place_, flags, {}};
      ServingSetup setup{model_, platform_->system, platform_->engine, {}};
      layout.plan = setup.deployment = make_deployment(model_, platform_->system, platform_->engine,
                                                       request, platform_->gpus, {"", ""});
      need_space(setup, longest_, {"", ""});
      space_.layouts.push_back(std::move(layout));
    } catch (const Error& error) {
      count(error, space_);
    }
  }

  const Model& model_;
  const std::vector<Fixed>& fixed_;
  const Request& longest_;
  DeploymentSpace& space_;
  Values keys_;
  int place_ = 0;
  const ServingPlatform* platform_ = nullptr;
  bool of_pool_ = false;
};

}  // namespace

Fixed parse_fixed_key(const std::string& text, const std::vector<int>& gpus) {
  const Place place{"", "--fix"};
  const std::size_t sign = text.find('=');
  if (sign == text.npos || sign == 0 || sign + 1 == text.size())
    fail_input(place, "'" + text + "' fixes nothing", "write it like tp=8 or kv=bf16,fp8");
  Fixed fixed{text.substr(0, sign), {}};
  const Values known = names_of(deployment_keys());
  if (std::find(known.begin(), known.end(), fixed.key) == known.end())
    fail_input(place, "'" + fixed.key + "' is not a key that can be fixed",
               suggestion(fixed.key, known));
  const OpenRange open = is_degree(fixed.key) ? OpenRange::divides : OpenRange::doubles;
  fixed.values = parse_value_list(text.substr(sign + 1), place, {open, {gpus.begin(), gpus.end()}});
  DeploymentRequest probe;  // Is each value one?
  for (const std::string& value : fixed.values) set_deployment_flag(probe, fixed.key, value);
  return fixed;
}

DeploymentSpace deployment_space(const Model& model, const std::vector<ServingPlatform>& platforms,
                                 const std::vector<Fixed>& fixed, const Request& longest,
                                 PoolChoice pools) {
  DeploymentSpace space;
  Enumeration enumeration{model, fixed, longest, space};
  for (std::size_t g = 0; g < platforms.size(); ++g) {
    if (pools != PoolChoice::only) enumeration.run(static_cast<int>(g), platforms[g]);
    if (pools != PoolChoice::none) enumeration.run_pools(static_cast<int>(g), platforms[g]);
  }
  return space;
}

PoolChoice parse_pool_choice(const std::string& text) {
  if (text == "all") return PoolChoice::all;
  if (text == "only") return PoolChoice::only;
  fail_input({"", "--pools"}, "'" + text + "' is no choice of a search",
             "write all, to try deployments with pools and without, or only");
}

}  // namespace orrery
