#include <algorithm>
#include <cmath>

#include "sim/core/number_text.hpp"
#include "sim/fleet/scaling.hpp"
#include "sim/serving/request.hpp"

namespace orrery {
namespace {

// A forecast of the next value from those so far.
class Predictor {
 public:
  explicit Predictor(Forecast kind) : kind_{kind} {}

  // Leading zeros are skipped.
  void add(double value) {
    if (!began_ && value == 0.0) return;
    last_ = value;
    if (kind_ == Forecast::kalman) step(value);
    began_ = true;
  }
  double next() const { return kind_ == Forecast::kalman ? std::max(0.0, level_ + trend_) : last_; }

 private:
  // A local linear trend: F = [[1, 1], [0, 1]], Q = diag(1, 0.1), R = 10, P0 = 1000 I
  // (core/load/predictors.py). The first value is the first level.
  void step(double value) {
    if (!began_) {
      level_ = value;
      return;
    }
    constexpr double q_level = 1.0, q_trend = 0.1, r = 10.0;
    const double level = level_ + trend_;
    const double p00 = p00_ + 2.0 * p01_ + p11_ + q_level, p01 = p01_ + p11_, p11 = p11_ + q_trend;
    const double gain_level = p00 / (p00 + r), gain_trend = p01 / (p00 + r);
    const double missed = value - level;
    level_ = level + gain_level * missed;
    trend_ += gain_trend * missed;
    p00_ = (1.0 - gain_level) * p00;
    p11_ = p11 - gain_trend * p01;
    p01_ = (1.0 - gain_level) * p01;
  }

  Forecast kind_;
  bool began_ = false;
  double last_ = 0.0, level_ = 0.0, trend_ = 0.0;
  double p00_ = 1000.0, p01_ = 0.0, p11_ = 1000.0;
};

// Two laws for a pool that computes prompts and answers. Every `throughput` the forecast of the
// load over what an engine serves within the limits, without headroom; every `load` one replica
// more or fewer by the work of each replica. With both, the first is a floor of the second. While
// replicas start, nothing changes: Kubernetes refuses a deployment that is not ready.
class Planner final : public ScalingPolicy {
 public:
  Planner(const PlannerLaw& law, const EngineProfile& profile)
      : law_{law},
        profile_{profile},
        requests_{law.predict},
        prompts_{law.predict},
        outputs_{law.predict} {}

  Wish wish(const ScalingSignals& seen) override {
    const bool looks = law_.load > Seconds{};
    const bool forecasts =
        law_.throughput > Seconds{} && seen.now + Seconds{1e-9} >= forecast_ + law_.throughput;
    Wish by_forecast{seen.asked, ""};
    if (forecasts) {
      forecast_ = seen.now;
      by_forecast = forecast(seen);
      floor_ = by_forecast.replicas;
    }
    if (seen.ready != seen.asked) return {seen.asked, "replicas start"};
    if (!looks) return by_forecast;
    Wish by_load = by_queues(seen);
    if (by_load.replicas < floor_) return {floor_, "forecast of " + std::to_string(floor_)};
    return by_load;
  }
  Seconds cycle() const override { return law_.load > Seconds{} ? law_.load : law_.throughput; }
  Seconds window() const override {
    return law_.throughput > Seconds{} ? law_.throughput : Seconds{60.0};
  }

 private:
  // Requests a second of a replica with a batch of b: the largest b whose iterations, with the
  // prompts that keep it full, stay within the limits and the cache.
  double engine_rate(double isl, double osl) const {
    const double most = std::min({profile_.most_requests, profile_.cache_tokens / (isl + 0.5 * osl),
                                  osl * profile_.budget / (isl + osl)});
    const auto rate = [&](double batch) { return batch / (osl * step(batch, isl, osl).si()); };
    const auto keeps = [&](double batch) {
      const Seconds wall = step(batch, isl, osl);
      return wall <= profile_.tpot && std::ceil(isl / profile_.budget) * wall <= profile_.ttft;
    };
    double low = 1.0, high = std::max(1.0, std::floor(most));
    if (!keeps(low)) return rate(low);
    while (high - low >= 1.0) {
      const double middle = std::ceil(0.5 * (low + high));
      if (keeps(middle))
        low = middle;
      else
        high = middle - 1.0;
    }
    return rate(low);
  }
  Seconds step(double batch, double isl, double osl) const {
    return profile_.step(static_cast<std::int64_t>(batch), batch * (isl + 0.5 * osl),
                         batch * isl / osl);
  }

  Wish forecast(const ScalingSignals& seen) {
    requests_.add(static_cast<double>(seen.came));
    prompts_.add(seen.prompt_tokens);
    outputs_.add(seen.output_tokens);
    const double rate = requests_.next() / law_.throughput.si();
    if (!(rate > 0.0)) return {1, "no load"};
    const double each = engine_rate(std::max(1.0, prompts_.next()), std::max(1.0, outputs_.next()));
    return {std::max(1, static_cast<int>(std::ceil(rate / each - 1e-9))),
            "forecast of " + fixed(rate, 2) + " a second, " + fixed(each, 2) + " a replica"};
  }

  Wish by_queues(const ScalingSignals& seen) const {
    if (seen.replicas.empty()) return {seen.asked, ""};
    return law_.target == PlannerTarget::sla ? by_limits(seen) : by_thresholds(seen);
  }

  Wish by_thresholds(const ScalingSignals& seen) const {
    const bool is_latency = law_.target == PlannerTarget::latency;
    const double queue_up = is_latency ? 0.1 : 1.0, queue_down = is_latency ? 0.0 : 0.1;
    const double cache_up = is_latency ? 0.4 : 1.0, cache_down = is_latency ? 0.1 : 0.6;
    bool up = false, down = true;
    double queue = 0.0, cache = 0.0;
    for (const ReplicaWork& of : seen.replicas) {
      // Queued tokens over those of a context.
      const double q = of.queued_prompts / std::max(1.0, seen.prompt_tokens);
      const double c = of.cache / of.cache_size;
      up = up || q >= queue_up || c > cache_up;
      down = down && (is_latency ? q <= queue_down : q < queue_down) && c < cache_down;
      queue = std::max(queue, q);
      cache = std::max(cache, c);
    }
    const std::string at = "queue " + fixed(queue, 1) + " prompts, cache " + percent(cache);
    return {seen.asked + (up ? 1 : down ? -1 : 0), at};
  }

  // Expected latencies of a further request at each replica.
  Wish by_limits(const ScalingSignals& seen) const {
    const double isl = std::max(1.0, seen.prompt_tokens), osl = std::max(1.0, seen.output_tokens);
    const double n = static_cast<double>(seen.replicas.size());
    const double share = n > 1.0 ? n / (n - 1.0) : 1.0;
    bool all_over = true, all_fit = n > 1.0;
    double worst = 0.0;
    for (const ReplicaWork& of : seen.replicas) {
      const auto ttft = [&](double queued) {
        const double iterations = std::ceil((queued + isl) / profile_.budget);
        return iterations *
               profile_.step(of.decodes, of.cache, std::min(queued + isl, profile_.budget));
      };
      const auto itl = [&](double cache, double decodes) {
        return profile_.step(static_cast<std::int64_t>(decodes), cache,
                             std::min(profile_.budget, decodes * isl / osl));
      };
      const auto decodes = static_cast<double>(std::max<std::int64_t>(1, of.decodes));
      const Seconds first = ttft(of.queued_prompts), own = ttft(0.0);
      const Seconds token = itl(of.cache + isl, decodes);
      worst = std::max({worst, first / profile_.ttft, token / profile_.tpot});
      all_over = all_over && (first > profile_.ttft || token > profile_.tpot);
      const bool fits =
          ttft(of.queued_prompts * share) - own < law_.sensitivity * (profile_.ttft - own) &&
          itl((of.cache + isl) * share, decodes * share) < law_.sensitivity * profile_.tpot &&
          (of.cache + isl) * share < of.cache_size;
      all_fit = all_fit && fits;
    }
    return {seen.asked + (all_over  ? 1
                          : all_fit ? -1
                                    : 0),
            "worst replica at " + fixed(worst, 2) + " of the limits"};
  }

  PlannerLaw law_;
  const EngineProfile& profile_;
  Predictor requests_, prompts_, outputs_;
  Seconds forecast_;
  int floor_ = 1;
};

}  // namespace

std::unique_ptr<ScalingPolicy> make_planner(const PlannerLaw& law, const EngineProfile& profile) {
  return std::make_unique<Planner>(law, profile);
}

}  // namespace orrery
