#include "sim/posttraining/rl_search.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "sim/core/number_text.hpp"
#include "sim/layers/step_cost.hpp"
#include "sim/plan/software.hpp"
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
    if (job.optimizer_steps > job.request.epochs)
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
        "twice the GPUs",
        "--gpus " + std::to_string(2 * job.gpus) +
            (job.request.rollout_gpus
                 ? " --rollout_gpus " + std::to_string(2 * *job.request.rollout_gpus)
                 : ""),
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
    std::string options = "--max_response " + std::to_string(half);
    std::optional<LengthDistribution> lengths;
    if (job.request.mean_response) {
      const auto most = static_cast<double>(job.max_response);
      constexpr double sigma = RlRequest::usual_sigma;
      const double median = median_of_cut_mean(*job.request.mean_response, sigma, most);
      lengths =
          LengthDistribution{LengthDistribution::Kind::lognormal, std::round(median), 0.0, sigma};
      options += " --response_length " + length_distribution_text(*lengths);
    }
    const std::string words = std::string{"answers cut at half"} +
                              (lengths ? ", their lengths in place of mean_response" : "");
    attempt(words, options, [&](RlRequest& r) {
      r.max_response = half;
      if (!lengths) return;
      r.response_length = lengths;
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
  ServingSetup setup;
  GeneratorHalf half;
};

constexpr std::size_t most_splits = 32;  // Of the first round.

class Search {
 public:
  Search(const RlSearchRequest& request, std::size_t top)
      : request_{request}, top_{top}, context_{request.system}, trainer_software_{software()} {}

  RlSearchResult run() {
    const std::vector<int> all = generating_gpus();
    if (all.empty()) result_.refusal = "pools that work at a time need two GPUs";
    std::size_t stride = 1;
    while (all.size() > most_splits * stride) stride *= 2;
    std::vector<bool> seen(all.size());
    for (; stride > 0; stride /= 2) {
      std::vector<int> gpus;
      for (const std::size_t i : next_round(all, stride))
        if (i < all.size() && !seen[i]) {
          seen[i] = true;
          gpus.push_back(all[i]);
        }
      consider_all(gpus);
    }
    return std::move(result_);
  }

 private:
  struct Split {
    int rollout_gpus = 0;  ///< 0: all GPUs do both.
    std::vector<Generator> generators;
    Seconds fastest;  ///< Of its engines,
    Seconds bound;    ///< and of its steps: none is shorter.
  };

  Software software() const {
    const std::string& own = request_.job.training.software;
    return read_software(own.empty() ? request_.framework.software : own, {"", "--training"});
  }

  // The neighbours of the best split, or all where none fits yet.
  std::vector<std::size_t> next_round(const std::vector<int>& all, std::size_t stride) const {
    std::vector<std::size_t> round;
    if (result_.best.empty()) {
      for (std::size_t i = stride / 2; i < all.size(); i += stride) round.push_back(i);
      return round;
    }
    const int best = result_.best.front().job.request.rollout_gpus.value_or(0);
    const auto at = static_cast<std::size_t>(std::find(all.begin(), all.end(), best) - all.begin());
    if (at >= stride) round.push_back(at - stride);
    round.push_back(at + stride);
    return round;
  }

  void consider_all(const std::vector<int>& gpus) {
    std::vector<Split> splits;
    for (const int each : gpus) {
      Split split{each, generators(each), {}, {}};
      if (split.generators.empty()) continue;  // Why not is in the refusal.
      split.fastest = split.generators.front().half.time();
      for (const Generator& one : split.generators)
        split.fastest = std::min(split.fastest, one.half.time());
      const Seconds trainer = least_training(request_.gpus - split.rollout_gpus);
      split.bound = works_at_a_time() ? std::max(split.fastest, trainer) : split.fastest + trainer;
      splits.push_back(std::move(split));
    }
    std::stable_sort(splits.begin(), splits.end(),
                     [](const Split& a, const Split& b) { return a.bound < b.bound; });
    for (const Split& split : splits) consider(split);
  }

  bool works_at_a_time() const { return request_.job.max_staleness > 0; }

  std::vector<int> generating_gpus() const {
    if (request_.job.rollout_gpus) return {*request_.job.rollout_gpus};
    if (!works_at_a_time()) return {0};
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
        RlJob job = make_rl_generator(request_.model, request_.system, request_.framework, request,
                                      request_.gpus, {"", ""}, like());
        if (!drawn_) drawn_ = job;
        GeneratorHalf half = generator_half(job, kernels_of(job.rollout));
        // Times of all requests, which a table does not show.
        if (half.burst) half.burst->run.replay.times = {};
        all.push_back({std::move(job.rollout), std::move(half)});
      } catch (const Error& error) {
        result_.refusal = error.what();
      }
    }
    return all;
  }

  const RlJob* like() const { return drawn_ ? &*drawn_ : nullptr; }

  // Deployments on one GPU and engine share their kernels.
  const std::shared_ptr<const ServingKernels>& kernels_of(const ServingSetup& setup) {
    if (!kernels_)
      kernels_ = std::make_shared<const ServingKernels>(setup.system.gpu, setup.engine);
    return kernels_;
  }

  // All operations of training and of passes at the peak of the GPUs.
  Seconds least_training(int gpus) const {
    // Layers of several kinds may have no count of operations.
    if (request_.model.pattern) return {};
    const PlanRequest& plan = request_.job.training;
    const auto tokens = static_cast<double>(drawn_->statistics.tokens);
    const Flop flop = tokens * model_flop(request_.model, 1, 1, true, plan.trains_weights());
    const Dtype dtype = plan.dtype.value_or(Dtype::bf16);
    return flop / (static_cast<double>(gpus) * request_.system.gpu.peak(dtype, {}));
  }

  // Powers of two up to `most`, of those that the software has, or what is said.
  std::vector<int> degrees(const char* key, int said, int most) const {
    if (request_.job.says(key)) return {said};
    std::vector<int> all;
    for (int degree = 1; degree <= most; degree *= 2)
      if (supports(trainer_software_, key, std::to_string(degree))) all.push_back(degree);
    return all;
  }

  bool is_sharded_alone() const { return !supports(trainer_software_, "tp", "2"); }

  // Plans of one tp, pp, ep and zero follow each other with more and more context parallelism.
  std::vector<RlRequest> training_plans(int rollout_gpus) const {
    const int gpus = request_.gpus - rollout_gpus;
    const int node = std::min(gpus, request_.system.gpus_per_node);
    const PlanRequest& asked = request_.job.training;
    const int experts =
        request_.model.experts ? static_cast<int>(request_.model.experts->count) : 1;
    std::vector<std::optional<int>> shards{asked.zero};
    if (!request_.job.says("zero") && trainer_software_.zero == 3 &&
        supports(trainer_software_, "zero", "2"))
      shards.push_back(2);
    std::vector<RlRequest> plans;
    for (const int tp : degrees("tp", asked.tp, node))
      for (const int pp : degrees("pp", asked.pp, std::min(gpus, request_.model.layers)))
        for (const int ep : degrees("ep", asked.ep, std::min(gpus, experts)))
          for (const std::optional<int> zero : shards)
            for (const int cp : degrees("cp", asked.cp, node)) {
              if (gpus % (tp * pp * cp) != 0 || (cp > 1 && tp * cp > node)) continue;
              RlRequest plan = base(rollout_gpus);
              plan.training.tp = tp;
              plan.training.pp = pp;
              plan.training.ep = ep;
              plan.training.cp = cp;
              plan.training.zero = zero;
              plans.push_back(std::move(plan));
            }
    return plans;
  }

  void consider(const Split& split) {
    bool fitted = false, is_engine_slower = false;
    for (const RlRequest& plan : training_plans(split.rollout_gpus)) {
      if (plan.training.cp == 1) fitted = false;
      // Context parallelism is for what does not fit without it, unless nothing else cuts a layer.
      if (fitted && !is_sharded_alone() && !request_.job.says("cp")) continue;
      ++result_.jobs;
      const bool is_slower = result_.best.size() == top_ && split.bound > result_.best.back().time;
      if (is_slower || is_engine_slower) {
        ++result_.bounded_out;
        continue;
      }
      const std::optional<Seconds> trainer = try_plan(split, plan);
      fitted = fitted || trainer;
      is_engine_slower = trainer && works_at_a_time() && *trainer <= split.fastest;
    }
  }

  // The trainer's time, if it fits.
  std::optional<Seconds> try_plan(const Split& split, RlRequest plan) {
    const bool says_recompute = plan.says("recompute");
    if (!says_recompute) plan.training_keys.push_back("recompute");
    plan.rollout.tp = split.generators.front().setup.deployment.tp;
    bool divides = false;
    for (const Recompute recompute : {Recompute::none, Recompute::full}) {
      if (!says_recompute) plan.training.recompute = recompute;
      try {
        RlJob job = make_rl_job(request_.model, request_.system, request_.framework, plan,
                                request_.gpus, {"", ""}, like());
        divides = true;
        const TrainerHalf trainer = trainer_half(job, context_, 1.0);
        std::optional<Seconds> time;
        for (const Generator& generator : split.generators) {
          job.rollout = generator.setup;
          job.request.rollout.tp = generator.setup.deployment.tp;
          RlStep step = rl_step(job, trainer, generator.half);
          time = trainer_time(step);
          keep(std::move(step));
        }
        ++result_.fits;
        return time;
      } catch (const Error& error) {
        if (divides || !is_short_of_memory_) result_.refusal = error.what();
        is_short_of_memory_ = is_short_of_memory_ || divides;
      }
      if (says_recompute) break;
    }
    ++(divides ? result_.too_large : result_.undivided);
    return std::nullopt;
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
  Software trainer_software_;
  std::shared_ptr<const ServingKernels> kernels_;
  std::optional<RlJob> drawn_;       // All jobs have its samples.
  bool is_short_of_memory_ = false;  // The refusal is of a plan that divides.
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
  training.cp = 1;
  training.zero.reset();
  training.cp_comm.reset();
  std::erase_if(job.training_keys, [](const std::string& key) {
    constexpr const char* freed[] = {"tp",  "pp",       "cp", "ep",        "zero",   "layers",
                                     "vpp", "schedule", "sp", "recompute", "cp_comm"};
    return std::find(std::begin(freed), std::end(freed), key) != std::end(freed);
  });
  job.rollout.tp.reset();
  if (job.max_staleness > 0) job.rollout_gpus.reset();
}

std::vector<RlOffer> rl_offers(const RlSearchRequest& request, const std::vector<System>& systems,
                               const std::vector<int>& gpus) {
  RlSearchRequest each = request;
  free_degrees(each.job);
  each.job.rollout_gpus.reset();
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
