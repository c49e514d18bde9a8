#include "sim/fleet/scaling.hpp"

#include <algorithm>
#include <cmath>

#include "sim/core/nearest.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/text_file.hpp"
#include "sim/core/value_list.hpp"

namespace orrery {

double LoadCurve::rate_at(Seconds time) const {
  if (time >= end) return 0.0;
  double rate = 0.0;
  for (const Stage& stage : stages)
    if (stage.begin <= time) rate = stage.rate;
  return rate;
}

double LoadCurve::most(Seconds from, Seconds until) const {
  double most = rate_at(from);
  for (const Stage& stage : stages)
    if (stage.begin > from && stage.begin <= until && stage.begin < end)
      most = std::max(most, stage.rate);
  return most;
}

double LoadCurve::requests() const {
  double sum = 0.0;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const Seconds until = i + 1 < stages.size() ? stages[i + 1].begin : end;
    sum += stages[i].rate * (until - stages[i].begin).si();
  }
  return sum;
}

void MetricHistogram::add(double value, std::int64_t count) {
  const auto bucket = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
  counts_[static_cast<std::size_t>(bucket)] += count;
  count_ += count;
  sum_ += static_cast<double>(count) * value;
}

double MetricHistogram::quantile(double share) const {
  if (count_ == 0) return 0.0;
  const double rank = share * static_cast<double>(count_);
  double below = 0.0;
  for (std::size_t i = 0; i < bounds_.size(); ++i) {
    const auto here = static_cast<double>(counts_[i]);
    if (here > 0.0 && below + here >= rank) {
      const double low = i == 0 ? 0.0 : bounds_[i - 1];
      return low + (bounds_[i] - low) * (rank - below) / here;
    }
    below += here;
  }
  return bounds_.back();
}

int Granting::grant(Seconds now, int asked) {
  if (!has_wish_) return asked;
  wishes_.emplace_back(now, wished_);
  const Seconds longest = std::max(rules_.up_window, rules_.down_window);
  while (wishes_.front().first < now - longest) wishes_.pop_front();
  int least = wished_, most = wished_;
  for (const auto& [time, replicas] : wishes_) {
    if (time >= now - rules_.up_window) least = std::min(least, replicas);
    if (time >= now - rules_.down_window) most = std::max(most, replicas);
  }
  int target = asked;
  if (least > asked) target = least;
  if (most < asked) target = most;
  target = std::clamp(target, least_, most_);
  const auto within = [&](std::deque<Change>& changes, Seconds period) {
    while (!changes.empty() && changes.front().time <= now - period) changes.pop_front();
    int sum = 0;
    for (const Change& change : changes) sum += change.by;
    return sum;
  };
  if (target > asked) {
    const int recent = within(ups_, rules_.up_period);
    const int base = asked - recent;
    const int by_share = static_cast<int>(std::ceil(rules_.up_share * base));
    target = std::min(target, base + std::max(rules_.up_by, by_share));
    if (target > asked) ups_.push_back({now, target - asked});
    return std::max(target, asked);
  }
  if (target < asked) {
    const int recent = within(downs_, rules_.down_period);
    target = std::max(target, asked + recent - rules_.down_by);
    if (target < asked) downs_.push_back({now, asked - target});
    return std::min(target, asked);
  }
  return asked;
}

namespace {

struct ScalerKey {
  const char* name;
  double least, most;
  void (*set)(ScalerRequest&, double);
};

// Keys of all laws, of WVA and of Kubernetes' one.
const std::vector<ScalerKey>& common_keys() {
  static const std::vector<ScalerKey> keys{
      {"min", 1, 1 << 16, [](ScalerRequest& r, double v) { r.least = static_cast<int>(v); }},
      {"max", 1, 1 << 16, [](ScalerRequest& r, double v) { r.most = static_cast<int>(v); }},
      {"up-by", 1, 1 << 16,
       [](ScalerRequest& r, double v) { r.grants.up_by = static_cast<int>(v); }},
      {"up-share", 0, 100, [](ScalerRequest& r, double v) { r.grants.up_share = v; }},
      {"up-period", 1, 86400, [](ScalerRequest& r, double v) { r.grants.up_period = Seconds{v}; }},
      {"up-window", 0, 86400, [](ScalerRequest& r, double v) { r.grants.up_window = Seconds{v}; }},
      {"down-by", 1, 1 << 16,
       [](ScalerRequest& r, double v) { r.grants.down_by = static_cast<int>(v); }},
      {"down-period", 1, 86400,
       [](ScalerRequest& r, double v) { r.grants.down_period = Seconds{v}; }},
      {"down-window", 0, 86400,
       [](ScalerRequest& r, double v) { r.grants.down_window = Seconds{v}; }}};
  return keys;
}

const std::vector<ScalerKey>& keys_of(ScalingLaw law) {
  static const std::vector<ScalerKey> none;
  static const std::vector<ScalerKey> oracle{
      {"capacity", 1e-6, 1e6, [](ScalerRequest& r, double v) { r.capacity = v; }}};
  static const std::vector<ScalerKey> wva{
      {"up", 0.01, 10, [](ScalerRequest& r, double v) { r.up = v; }},
      {"down", 0, 10, [](ScalerRequest& r, double v) { r.down = v; }},
      {"alpha", 0.001, 1, [](ScalerRequest& r, double v) { r.alpha = v; }},
      {"cap", 0.1, 1000, [](ScalerRequest& r, double v) { r.cap = v; }}};
  static const std::vector<ScalerKey> hpa{
      {"kv", 0.01, 1, [](ScalerRequest& r, double v) { r.kv = v; }},
      {"queue", 0.01, 1e6, [](ScalerRequest& r, double v) { r.queue = v; }}};
  switch (law) {
    case ScalingLaw::fixed:
      return none;
    case ScalingLaw::oracle:
      return oracle;
    case ScalingLaw::wva:
      return wva;
    case ScalingLaw::hpa:
      return hpa;
  }
  return none;
}

}  // namespace

ScalerRequest parse_scaler(const std::string& text, const Place& at) {
  const std::size_t colon = text.find(':');
  ScalerRequest request;
  request.law = choice<ScalingLaw>(text.substr(0, colon), at);
  // Kubernetes' defaults, which llm-d's sample of WVA changes.
  if (request.law == ScalingLaw::hpa)
    request.grants = {.up_window = Seconds{},
                      .down_window = Seconds{300.0},
                      .up_period = Seconds{15.0},
                      .down_by = 1 << 16,
                      .down_period = Seconds{15.0}};
  if (colon == text.npos) return request;
  for (const std::string& item : split_list(text.substr(colon + 1), at)) {
    const std::size_t equals = item.find('=');
    const std::string key = item.substr(0, equals);
    const std::string value = equals == item.npos ? "" : item.substr(equals + 1);
    if (request.law == ScalingLaw::wva && key == "signal") {
      if (value != "mean" && value != "p90")
        fail_input(at, "the signal '" + shown_text(value) + "' is neither mean nor p90",
                   "write signal=p90");
      request.by_mean = value == "mean";
      continue;
    }
    std::vector<std::string> names;
    const ScalerKey* found = nullptr;
    for (const auto* keys : {&common_keys(), &keys_of(request.law)})
      for (const ScalerKey& one : *keys) {
        names.push_back(one.name);
        if (one.name == key) found = &one;
      }
    if (!found)
      fail_input(at, "'" + shown_text(key) + "' is no key of " + text.substr(0, colon),
                 suggestion(key, names));
    const bool is_time = key.ends_with("period") || key.ends_with("window");
    const double number =
        is_time ? parse_span(value, at).si() : plain_number(value).value_or(found->least - 1.0);
    if (!(number >= found->least && number <= found->most))
      fail_input(
          at, key + " is '" + shown_text(value) + "'",
          "write a number from " + nine_digits(found->least) + " to " + nine_digits(found->most));
    found->set(request, number);
  }
  if (request.least > request.most)
    fail_input(
        at, "min is " + std::to_string(request.least) + " and max " + std::to_string(request.most),
        "raise max");
  // Between its thresholds a fleet rests. Where they meet, each decision calls for the other.
  if (request.law == ScalingLaw::wva && request.down >= request.up)
    fail_input(at,
               "down=" + nine_digits(request.down) + " is not below up=" + nine_digits(request.up) +
                   ": the fleet would oscillate",
               "leave a gap between them, such as up=0.55,down=0.40");
  return request;
}

// Returns the law and those of its parameters that differ from their defaults.
std::string scaler_text(const ScalerRequest& request) {
  const ScalerRequest usual = parse_scaler(name(request.law), {"", ""});
  std::string keys;
  const auto add = [&](const char* key, auto value, auto of_usual) {
    if (value == of_usual) return;
    keys += (keys.empty() ? ":" : ",") + std::string{key} + "=" +
            nine_digits(static_cast<double>(value));
  };
  if (request.by_mean) keys = ":signal=mean";
  add("up", request.up, usual.up);
  add("down", request.down, usual.down);
  add("alpha", request.alpha, usual.alpha);
  add("cap", request.cap, usual.cap);
  add("kv", request.kv, usual.kv);
  add("queue", request.queue, usual.queue);
  add("capacity", request.capacity, usual.capacity);
  add("min", request.least, usual.least);
  add("max", request.most, usual.most);
  const Grants &grants = request.grants, &by = usual.grants;
  add("up-by", grants.up_by, by.up_by);
  add("up-share", grants.up_share, by.up_share);
  add("down-by", grants.down_by, by.down_by);
  const auto add_time = [&](const char* key, Seconds value, Seconds of_usual) {
    if (value != of_usual)
      keys += (keys.empty() ? ":" : ",") + std::string{key} + "=" + nine_digits(value.si()) + "s";
  };
  add_time("up-period", grants.up_period, by.up_period);
  add_time("up-window", grants.up_window, by.up_window);
  add_time("down-period", grants.down_period, by.down_period);
  add_time("down-window", grants.down_window, by.down_window);
  return name(request.law) + keys;
}

namespace {

class Fixed final : public ScalingPolicy {
 public:
  Wish wish(const ScalingSignals& seen) override { return {seen.asked, "fixed"}; }
};

}  // namespace

std::unique_ptr<ScalingPolicy> make_policy(const ScalerRequest& request, const LoadCurve& curve,
                                           Seconds start) {
  switch (request.law) {
    case ScalingLaw::fixed:
      return std::make_unique<Fixed>();
    case ScalingLaw::oracle:
      return make_oracle(curve, request.capacity, start);
    case ScalingLaw::wva:
      return make_wva(request);
    case ScalingLaw::hpa:
      return make_hpa(request);
  }
  return nullptr;
}

}  // namespace orrery
