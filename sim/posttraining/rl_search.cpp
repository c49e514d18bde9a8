#include "sim/posttraining/rl_search.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "sim/core/number_text.hpp"
#include "sim/layers/step_cost.hpp"
#include "sim/serving/serving_kernels.hpp"

namespace orrery {
namespace {

class Changes {
 public:
  explicit Changes(const RlStep& step) : step_{step} {}

  std::vector<RlChange> all() {
    const RlJob& job = step_.job;
    const Deployment& engine = job.rollout.deployment;
    const auto degree = [&](int tp) {
      attempt("tp " + std::to_string(tp) + " of the engine", "--rollout tp=" + std::to_string(tp),
              [&](RlRequest& r) { r.rollout.tp = tp; });
    };
    if (engine.tp * 2 <= job.rollout_gpus) degree(engine.tp * 2);
    if (engine.tp > 1) degree(engine.tp / 2);
    if (job.optimizer_steps > 1)
      attempt("one optimizer step", "--train_batch " + std::to_string(job.samples.size()),
              [](RlRequest& r) { r.train_batch.reset(); });
    if (job.reference)
      attempt("no reference", "--reference false", [](RlRequest& r) { r.reference = false; });
    if (job.old_logprobs)
      attempt("log-probabilities of the engine", "--old_logprobs false",
              [](RlRequest& r) { r.old_logprobs = false; });
    cut_answers();
    if (!job.is_asynchronous() && job.routing != SampleRouting::by_length)
      attempt("samples spread as if their lengths were known", "--sample_routing by_length",
              [](RlRequest& r) { r.routing = SampleRouting::by_length; });
    split();
    attempt(
        "twice the GPUs", "--gpus " + std::to_string(2 * job.gpus),
        [&](RlRequest& r) {
          if (r.rollout_gpus) r.rollout_gpus = 2 * *r.rollout_gpus;
        },
        2 * job.gpus);
    std::stable_sort(changes_.begin(), changes_.end(), [](const RlChange& a, const RlChange& b) {
      if (a.refused.empty() != b.refused.empty()) return a.refused.empty();
      return a.step < b.step;
    });
    return std::move(changes_);
  }

 private:
  template <class Change>
  void attempt(const std::string& words, const std::string& options, const Change& change,
               int gpus = 0) {
    const RlJob& job = step_.job;
    RlRequest request = job.request;
    change(request);
    RlChange one{words, options, {}, {}};
    try {
      one.step = rl_step(make_rl_job(job.model, job.system, job.framework, request,
                                     gpus > 0 ? gpus : job.gpus, {"", ""}))
                     .time;
    } catch (const Error& error) {
      one.refused = error.what();
    }
    changes_.push_back(std::move(one));
  }

  // With the same distribution, of which more is cut.
  void cut_answers() {
    const RlJob& job = step_.job;
    const std::int64_t half = job.max_response / 2;
    if (half < 1) return;
    attempt("answers cut at half", "--max_response " + std::to_string(half), [&](RlRequest& r) {
      r.max_response = half;
      if (!r.mean_response) return;
      const auto most = static_cast<double>(job.max_response);
      constexpr double sigma = RlRequest::usual_sigma;
      r.response_length =
          LengthDistribution{LengthDistribution::Kind::lognormal,
                             median_of_cut_mean(*r.mean_response, sigma, most), 0.0, sigma};
      r.mean_response.reset();
    });
  }

  void split() {
    const RlJob& job = step_.job;
    const auto at_a_time = [](RlRequest& r) {
      r.max_staleness = 1;
      r.in_flight_updates = true;
    };
    if (job.colocated) {
      if (job.gpus < 2) return;
      attempt("half of the GPUs generate while the others train",
              "--rollout_gpus " + std::to_string(job.gpus / 2) +
                  " --max_staleness 1 --in_flight_updates true",
              [&](RlRequest& r) {
                at_a_time(r);
                r.rollout_gpus = job.gpus / 2;
              });
      return;
    }
    if (!job.is_asynchronous())
      attempt("both pools at a time", "--max_staleness 1 --in_flight_updates true", at_a_time);
    else {
      if (!job.request.in_flight_updates)
        attempt("answers go on while weights arrive", "--in_flight_updates true",
                [](RlRequest& r) { r.in_flight_updates = true; });
      attempt("a step more of staleness",
              "--max_staleness " + std::to_string(job.request.max_staleness + 1),
              [](RlRequest& r) { ++r.max_staleness; });
    }
    const int unit = std::min(job.system.gpus_per_node, job.gpus / 2);
    for (const int other : {job.rollout_gpus - unit, job.rollout_gpus + unit})
      if (other > 0 && other < job.gpus)
        attempt(plural(other, "GPU") + " generate", "--rollout_gpus " + std::to_string(other),
                [&](RlRequest& r) { r.rollout_gpus = other; });
  }

  const RlStep& step_;
  std::vector<RlChange> changes_;
};

Seconds trainer_time(const RlStep& step) {
  return step.overlap ? step.overlap->trainer : step.time;
}

// The engine's half of a split, by its tensor degree.
struct Generator {
  int tp = 1;
  GeneratorHalf half;
};

class Search {
 public:
  Search(const RlSearchRequest& request, std::size_t top)
      : request_{request}, top_{top}, context_{request.system} {}

  RlSearchResult run() {
    std::vector<Split> splits;
    if (generating_gpus().empty()) result_.refusal = "pools that work at a time need two GPUs";
    for (const int gpus : generating_gpus()) {
      Split split{gpus, generators(gpus), {}};
      if (split.generators.empty()) continue;  // Why not is in the refusal.
      split.bound = bound(split);
      splits.push_back(std::move(split));
    }
    std::stable_sort(splits.begin(), splits.end(),
                     [](const Split& a, const Split& b) { return a.bound < b.bound; });
    for (const Split& split : splits) consider(split);
    return std::move(result_);
  }

 private:
  struct Split {
    int rollout_gpus = 0;  ///< 0: all GPUs do both.
    std::vector<Generator> generators;
    Seconds bound;  ///< No step of this split is shorter.
  };

  bool is_given(const std::string& key) const {
    return std::find(request_.given.begin(), request_.given.end(), key) != request_.given.end();
  }

  std::vector<int> generating_gpus() const {
    if (request_.job.rollout_gpus) return {*request_.job.rollout_gpus};
    if (request_.job.max_staleness == 0) return {0};
    const int node = request_.system.gpus_per_node;
    const int unit = request_.gpus > node ? node : 1;
    std::vector<int> all;
    for (int gpus = unit; gpus < request_.gpus; gpus += unit) all.push_back(gpus);
    return all;
  }

  RlRequest base(int rollout_gpus) const {
    RlRequest request = request_.job;
    if (rollout_gpus > 0) request.rollout_gpus = rollout_gpus;
    return request;
  }

  std::vector<Generator> generators(int rollout_gpus) {
    std::vector<Generator> all;
    const int gpus = rollout_gpus > 0 ? rollout_gpus : request_.gpus;
    // Engines over nodes are for models that no node holds.
    const int domain = request_.system.nvlink_domain;
    for (int tp = 1; tp <= gpus && (tp <= domain || all.empty()); tp *= 2) {
      RlRequest request = base(rollout_gpus);
      if (request.rollout.tp) {
        if (tp > 1) break;
      } else {
        request.rollout.tp = tp;
      }
      try {
        const RlJob job = make_rl_generator(request_.model, request_.system, request_.framework,
                                            request, request_.gpus, {"", ""});
        tokens_ = static_cast<double>(job.statistics.tokens);
        all.push_back({job.rollout.deployment.tp, generator_half(job, priced(job.rollout))});
      } catch (const Error& error) {
        result_.refusal = error.what();
      }
    }
    return all;
  }

  // Deployments on one GPU and engine share their kernels.
  PricedServing priced(const ServingSetup& setup) {
    if (!kernels_)
      kernels_ = std::make_shared<const ServingKernels>(setup.system.gpu, setup.engine);
    return PricedServing{setup, kernels_};
  }

  Seconds bound(const Split& split) const {
    Seconds fastest = split.generators.front().half.time();
    for (const Generator& one : split.generators) fastest = std::min(fastest, one.half.time());
    const Seconds trainer = least_training(request_.gpus - split.rollout_gpus);
    return request_.job.max_staleness > 0 ? std::max(fastest, trainer) : fastest + trainer;
  }

  // All operations of training and of passes at the peak of the GPUs.
  Seconds least_training(int gpus) const {
    // Layers of several kinds may have no count of operations.
    if (request_.model.pattern) return {};
    const PlanRequest& plan = request_.job.training;
    const Flop flop = tokens_ * model_flop(request_.model, 1, 1, true, plan.trains_weights());
    const Dtype dtype = plan.dtype.value_or(Dtype::bf16);
    return flop / (static_cast<double>(gpus) * request_.system.gpu.peak(dtype, {}));
  }

  std::vector<RlRequest> training_plans(int rollout_gpus) const {
    const int gpus = request_.gpus - rollout_gpus;
    const auto degrees = [&](const char* key, int given, int most) {
      if (is_given(key)) return std::vector<int>{given};
      std::vector<int> all;
      for (int degree = 1; degree <= most; degree *= 2) all.push_back(degree);
      return all;
    };
    const PlanRequest& asked = request_.job.training;
    const int experts =
        request_.model.experts ? static_cast<int>(request_.model.experts->count) : 1;
    std::vector<RlRequest> plans;
    for (const int tp : degrees("tp", asked.tp, std::min(gpus, request_.system.gpus_per_node)))
      for (const int pp : degrees("pp", asked.pp, std::min(gpus, request_.model.layers)))
        for (const int ep : degrees("ep", asked.ep, std::min(gpus, experts))) {
          if (gpus % (tp * pp * asked.cp) != 0) continue;
          RlRequest plan = base(rollout_gpus);
          plan.training.tp = tp;
          plan.training.pp = pp;
          plan.training.ep = ep;
          plans.push_back(std::move(plan));
        }
    return plans;
  }

  void consider(const Split& split) {
    for (const RlRequest& plan : training_plans(split.rollout_gpus)) {
      ++result_.jobs;
      if (!result_.best.empty() && split.bound > result_.best.front().time) {
        ++result_.bounded_out;
        continue;
      }
      try_plan(split, plan);
    }
  }

  void try_plan(const Split& split, RlRequest plan) {
    std::optional<TrainerHalf> trainer;
    for (const bool recomputes : {false, true}) {
      if (is_given("recompute") && recomputes) break;
      if (!is_given("recompute"))
        plan.training.recompute = recomputes ? Recompute::full : Recompute::none;
      try {
        for (const Generator& generator : split.generators) {
          RlRequest both = plan;
          both.rollout.tp = generator.tp;
          const RlJob job = make_rl_job(request_.model, request_.system, request_.framework, both,
                                        request_.gpus, {"", ""});
          if (!trainer) {
            trainer = trainer_half(job, context_, 1.0);
            ++result_.simulated;
          }
          keep(rl_step(job, *trainer, generator.half));
        }
        ++result_.fits;
        return;
      } catch (const Error& error) {
        result_.refusal = error.what();
        trainer.reset();
      }
    }
  }

  // The best of each split and degree of the engine.
  void keep(RlStep step) {
    auto& best = result_.best;
    const auto same = std::find_if(best.begin(), best.end(), [&](const RlStep& other) {
      return other.job.rollout_gpus == step.job.rollout_gpus &&
             other.job.rollout.deployment.tp == step.job.rollout.deployment.tp;
    });
    if (same != best.end()) {
      // Of trainers that an engine keeps waiting the fastest is shown.
      if (std::pair{same->time, trainer_time(*same)} <= std::pair{step.time, trainer_time(step)})
        return;
      best.erase(same);
    }
    const auto place =
        std::upper_bound(best.begin(), best.end(), step.time,
                         [](Seconds time, const RlStep& other) { return time < other.time; });
    best.insert(place, std::move(step));
    if (best.size() > top_) best.pop_back();
  }

  const RlSearchRequest& request_;
  std::size_t top_;
  EstimateContext context_;
  std::shared_ptr<const ServingKernels> kernels_;
  double tokens_ = 0.0;  // Of a step's samples.
  RlSearchResult result_;
};

}  // namespace

std::vector<RlChange> rl_changes(const RlStep& step) { return Changes{step}.all(); }

RlSearchResult search_rl(const RlSearchRequest& request, std::size_t top) {
  return Search{request, top}.run();
}

void free_degrees(RlRequest& job) {
  PlanRequest& training = job.training;
  training.tp = training.pp = training.ep = 1;
  training.layers = {};
  training.vpp.reset();
  training.schedule.reset();
  training.sp.reset();
  training.recompute = {};
  job.rollout.tp.reset();
  if (job.max_staleness > 0) job.rollout_gpus.reset();
}

std::vector<RlOffer> rl_offers(const RlSearchRequest& request, const std::vector<System>& systems,
                               const std::vector<int>& gpus) {
  RlSearchRequest each = request;
  free_degrees(each.job);
  each.job.rollout_gpus.reset();
  each.given.clear();
  std::vector<RlOffer> offers;
  for (const System& system : systems)
    for (const int number : gpus) {
      each.system = system;
      each.gpus = number;
      RlSearchResult found = search_rl(each, 1);
      RlOffer offer{system, number, {}, found.refusal};
      if (!found.best.empty()) offer.best = std::move(found.best.front());
      offers.push_back(std::move(offer));
    }
  return offers;
}

}  // namespace orrery
