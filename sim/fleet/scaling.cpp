#include "sim/fleet/scaling.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <type_traits>

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

// One key of a law, in the part of a ScalerRequest that the pointers to members name.
struct ScalerKey {
  const char* name;
  double least, most;
  void (*read)(ScalerRequest&, const ScalerKey&, const std::string& value, const Place& at);
  std::string (*text)(const ScalerRequest&);
};

template <class Value>
void read_value(Value& into, const ScalerKey& key, const std::string& text, const Place& at) {
  if constexpr (std::is_enum_v<Value>) {
    into = choice<Value>(text, at, "is no " + std::string{key.name});
  } else {
    constexpr bool is_time = std::is_same_v<Value, Seconds>;
    const double number =
        is_time ? parse_span(text, at).si() : plain_number(text).value_or(key.least - 1.0);
    if (!(number >= key.least && number <= key.most) ||
        (std::is_same_v<Value, int> && number != std::floor(number)))
      fail_input(at, std::string{key.name} + " is '" + shown_text(text) + "'",
                 "write a " + std::string{is_time ? "time of seconds" : "number"} + " from " +
                     nine_digits(key.least) + " to " + nine_digits(key.most));
    into = static_cast<Value>(number);
  }
}

template <class Value>
std::string value_text(const Value& value) {
  if constexpr (std::is_enum_v<Value>)
    return name(value);
  else if constexpr (std::is_same_v<Value, Seconds>)
    return nine_digits(value.si()) + "s";
  else
    return nine_digits(static_cast<double>(value));
}

template <auto part, auto member>
ScalerKey key(const char* name, double least = 0.0, double most = 0.0) {
  return {name, least, most,
          [](ScalerRequest& request, const ScalerKey& of, const std::string& text,
             const Place& at) { read_value((request.*part).*member, of, text, at); },
          [](const ScalerRequest& request) { return value_text((request.*part).*member); }};
}
template <auto member>
ScalerKey bound(const char* name) {
  return {name, 1, 1 << 16,
          [](ScalerRequest& request, const ScalerKey& of, const std::string& text,
             const Place& at) { read_value(request.*member, of, text, at); },
          [](const ScalerRequest& request) { return value_text(request.*member); }};
}

const std::vector<ScalerKey>& keys_of(ScalingLaw law) {
  using R = ScalerRequest;
  constexpr double day = 86400, many = 1 << 16;
  static const std::vector<ScalerKey> grants{
      key<&R::grants, &Grants::up_by>("up-by", 1, many),
      key<&R::grants, &Grants::up_share>("up-share", 0, 100),
      key<&R::grants, &Grants::up_period>("up-period", 1, day),
      key<&R::grants, &Grants::up_window>("up-window", 0, day),
      key<&R::grants, &Grants::down_by>("down-by", 1, many),
      key<&R::grants, &Grants::down_period>("down-period", 1, day),
      key<&R::grants, &Grants::down_window>("down-window", 0, day)};
  static const std::vector<ScalerKey> bounds{bound<&R::least>("min"), bound<&R::most>("max")};
  const auto with = [](std::vector<ScalerKey> own, bool has_grants) {
    own.insert(own.end(), bounds.begin(), bounds.end());
    if (has_grants) own.insert(own.end(), grants.begin(), grants.end());
    return own;
  };
  static const std::vector<ScalerKey> of_law[] = {
      {},
      with({key<&R::oracle, &OracleLaw::capacity>("capacity", 1e-3, 1e6)}, false),
      with({key<&R::wva, &WvaLaw::signal>("signal"), key<&R::wva, &WvaLaw::up>("up", 0.01, 10),
            key<&R::wva, &WvaLaw::down>("down", 0, 10),
            key<&R::wva, &WvaLaw::alpha>("alpha", 0.001, 1),
            key<&R::wva, &WvaLaw::cap>("cap", 0.1, 1000)},
           true),
      with({key<&R::hpa, &HpaLaw::kv>("kv", 0.01, 1),
            key<&R::hpa, &HpaLaw::queue>("queue", 0.01, 1e6)},
           true),
      with({key<&R::knative, &KnativeLaw::concurrency>("concurrency", 0.01, 1e6),
            key<&R::knative, &KnativeLaw::utilization>("utilization", 0.01, 1),
            key<&R::knative, &KnativeLaw::window>("window", 6, 3600),
            key<&R::knative, &KnativeLaw::panic_share>("panic-share", 0.01, 1),
            key<&R::knative, &KnativeLaw::panic_threshold>("panic-threshold", 1, 1000),
            key<&R::knative, &KnativeLaw::up_rate>("up-rate", 1.01, 1e6),
            key<&R::knative, &KnativeLaw::down_rate>("down-rate", 1.01, 1e6)},
           false),
      with({key<&R::planner, &PlannerLaw::target>("target"),
            key<&R::planner, &PlannerLaw::throughput>("throughput", 0, day),
            key<&R::planner, &PlannerLaw::load>("load", 0, day),
            key<&R::planner, &PlannerLaw::predict>("predict"),
            key<&R::planner, &PlannerLaw::sensitivity>("sensitivity", 0.01, 1)},
           false)};
  return of_law[static_cast<std::size_t>(law)];
}

// What a law has by itself. Kubernetes' defaults of grants are those of hpa, and llm-d's sample of
// WVA changes them.
ScalerRequest usual_of(ScalingLaw law) {
  ScalerRequest request;
  request.law = law;
  if (law == ScalingLaw::hpa)
    request.grants = {.up_window = Seconds{},
                      .down_window = Seconds{300.0},
                      .up_period = Seconds{15.0},
                      .down_by = 1 << 16,
                      .down_period = Seconds{15.0}};
  return request;
}

void need_sense(const ScalerRequest& request, const Place& at) {
  if (request.least > request.most)
    fail_input(
        at, "min is " + std::to_string(request.least) + " and max " + std::to_string(request.most),
        "raise max");
  // Between its thresholds a fleet rests. Where they meet, each decision calls for the other.
  const WvaLaw& wva = request.wva;
  if (request.law == ScalingLaw::wva && wva.down >= wva.up)
    fail_input(at,
               "down=" + nine_digits(wva.down) + " is not below up=" + nine_digits(wva.up) +
                   ": the fleet would oscillate",
               "leave a gap between them, such as up=0.55,down=0.40");
  if (request.law == ScalingLaw::planner && request.planner.throughput == Seconds{} &&
      request.planner.load == Seconds{})
    fail_input(at, "the planner neither forecasts nor looks at queues",
               "write throughput=180s or load=5s");
}

}  // namespace

ScalerRequest parse_scaler(const std::string& text, const Place& at) {
  const std::size_t colon = text.find(':');
  const auto law = choice<ScalingLaw>(text.substr(0, colon), at);
  ScalerRequest request = usual_of(law);
  if (colon == text.npos) return request;
  std::vector<std::string> names;
  for (const ScalerKey& one : keys_of(law)) names.emplace_back(one.name);
  std::set<std::string> given;
  if (names.empty()) fail_input(at, name(law) + " has no keys", "write " + name(law));
  for (const std::string& item : split_list(text.substr(colon + 1), at)) {
    const std::size_t equals = item.find('=');
    const std::string key = item.substr(0, equals);
    const auto found = std::find(names.begin(), names.end(), key);
    if (!given.insert(key).second)
      fail_input(at, "'" + shown_text(key) + "' is given twice", "keep one of them");
    if (found == names.end())
      fail_input(at, "'" + shown_text(key) + "' is no key of " + name(law), suggestion(key, names));
    const ScalerKey& of = keys_of(law)[static_cast<std::size_t>(found - names.begin())];
    of.read(request, of, equals == item.npos ? "" : item.substr(equals + 1), at);
  }
  need_sense(request, at);
  return request;
}

std::string scaler_text(const ScalerRequest& request) {
  const ScalerRequest usual = usual_of(request.law);
  std::string text;
  for (const ScalerKey& key : keys_of(request.law))
    if (const std::string value = key.text(request); value != key.text(usual))
      text += (text.empty() ? ":" : ",") + std::string{key.name} + "=" + value;
  return name(request.law) + text;
}

namespace {

class Fixed final : public ScalingPolicy {
 public:
  Wish wish(const ScalingSignals& seen) override { return {seen.asked, "fixed"}; }
};

}  // namespace

std::unique_ptr<ScalingPolicy> make_policy(const ScalerRequest& request, const LoadCurve& curve,
                                           Seconds start, const EngineProfile& profile) {
  switch (request.law) {
    case ScalingLaw::fixed:
      return std::make_unique<Fixed>();
    case ScalingLaw::oracle:
      return make_oracle(curve, request.oracle.capacity, start);
    case ScalingLaw::wva:
      return make_wva(request.wva);
    case ScalingLaw::hpa:
      return make_hpa(request.hpa);
    case ScalingLaw::knative:
      return make_knative(request.knative);
    case ScalingLaw::planner:
      return make_planner(request.planner, profile);
  }
  return nullptr;
}

}  // namespace orrery
