#include "sim/search/dimension.hpp"

#include <algorithm>

#include "sim/core/nearest.hpp"
#include "sim/core/text_file.hpp"
#include "sim/core/value_list.hpp"
#include "sim/model/layer_pattern.hpp"
#include "sim/plan/plan_keys.hpp"

namespace orrery {
namespace {

using Kind = PlanDimension::Kind;
using Values = std::vector<std::string>;

Values up_to(std::int64_t most) {
  Values values;
  for (std::int64_t n = 1; n <= most; ++n) values.push_back(std::to_string(n));
  return values;
}

// Chunks have a schedule of their own.
bool with_one_chunk(const Plan& plan) { return plan.pp > 1 && plan.vpp == 1; }

PlanDimension shape(const std::string& key, const Values& values, Kind kind,
                    const Values& mends = {}) {
  return {key, values, kind, plan_key(key).matters, mends};
}

PlanDimension setting(const PlanKey& key) {
  return {key.name, key.access.words, Kind::setting, key.matters};
}

}  // namespace

bool PlanDimension::first_divides() const {
  constexpr int most = 1 << 30;
  const auto first = plain_integer(values.front(), most);
  return values.size() == 1 ||
         (first && std::all_of(values.begin(), values.end(), [&](const auto& value) {
            return plain_integer(value, most).value_or(1) % *first == 0;
          }));
}

namespace {

// Ranks of tensor parallelism beyond this leave one without a head.
std::int64_t most_heads(const Model& model) {
  if (!model.pattern) return model.heads;
  std::int64_t most = 1;
  for (const Model& shape : model.pattern->shapes) {
    const auto work = shape.mixer ? shape.mixer->work(shape.hidden, 1) : std::nullopt;
    most = std::max({most, work ? work->heads : 1, shape.heads});
  }
  return most;
}

}  // namespace

std::vector<PlanDimension> plan_dimensions(const Model& model, int gpus, std::int64_t gbs) {
  const std::int64_t experts = model.experts ? model.experts->count : 1;
  std::vector<PlanDimension> dimensions{
      shape("tp", divisors(gpus, most_heads(model)), Kind::degree),
      shape("pp", divisors(gpus, model.layers), Kind::degree),
      // The more ranks share a sequence, the fewer replicas share the batch.
      shape("cp", {"1", "2", "4", "8", "16"}, Kind::degree, {"gbs", "dp", "dp_replicate"}),
      // Only what is exchanged, and not in one chunk of several stages, can be overlapped.
      shape("ep", divisors(experts, gpus), Kind::degree,
            {"ep_overlap", "shared_expert_overlap", "schedule"}),
      shape("vpp", up_to(std::min(model.layers, 250)), Kind::shape,
            {"ep_overlap", "shared_expert_overlap", "schedule", "layers"}),
      shape("mbs", divisors(gbs, gbs), Kind::shape),
  };
  for (const char* key : {"recompute", "sp", "tp_overlap", "zero", "dp_overlap"})
    dimensions.push_back(setting(plan_key(key)));
  dimensions.push_back({"schedule", schedules_of_one_chunk(), Kind::setting, with_one_chunk});
  const auto is_there = [&](const PlanKey& key) {
    return std::any_of(dimensions.begin(), dimensions.end(),
                       [&](const PlanDimension& known) { return known.key == key.name; });
  };
  for (const PlanKey& key : plan_keys())
    if (key.searched && !is_there(key)) dimensions.push_back(setting(key));
  // A ring of keys and values has no windows (make_scenario).
  const auto& local = model.layer_is_local;
  const auto& shapes = model.pattern ? model.pattern->shapes : std::vector<Model>{};
  if (std::find(local.begin(), local.end(), true) != local.end() ||
      std::any_of(shapes.begin(), shapes.end(), [](const Model& one) { return one.window > 0; }))
    dimensions.push_back(shape("cp_comm", {"all_gather"}, Kind::shape));
  return dimensions;
}

void keep_supported(std::vector<PlanDimension>& dimensions, const std::vector<Software>& software) {
  for (PlanDimension& dimension : dimensions) {
    Values left;
    for (const std::string& value : dimension.values)
      if (std::any_of(software.begin(), software.end(),
                      [&](const Software& one) { return supports(one, dimension.key, value); }))
        left.push_back(value);
    if (!left.empty()) dimension.values = left;  // Else make_scenario says what is missing.
  }
}

Fixed parse_fixed(const std::string& text, const std::vector<int>& gpus, std::int64_t most) {
  const Place place{"", "--fix"};
  const std::size_t sign = text.find('=');
  if (sign == text.npos || sign == 0 || sign + 1 == text.size())
    fail_input(place, "'" + text + "' fixes nothing", "write it like tp=8 or mbs=1,2");
  Fixed fixed{text.substr(0, sign), {}};
  fixed.values = parse_value_list(text.substr(sign + 1), place,
                                  {open_range_of(fixed.key), {gpus.begin(), gpus.end()}, most});
  Values keys;
  for (const PlanKey& key : plan_keys())
    if (key.name != "gbs") keys.push_back(key.name);
  if (std::find(keys.begin(), keys.end(), fixed.key) == keys.end())
    fail_input(place, "'" + fixed.key + "' is not a key that can be fixed",
               suggestion(fixed.key, keys));
  PlanRequest probe;  // Is each value one?
  for (const std::string& value : fixed.values) set_plan_flag(probe, fixed.key, value);
  return fixed;
}

std::vector<std::int64_t> parse_numbers(const std::string& text, const std::string& option,
                                        std::int64_t most) {
  const Place at{"", "--" + option};
  std::vector<std::int64_t> list;
  for (const std::string& value : parse_value_list(text, at, {open_range_of(option), {}, most})) {
    const std::int64_t number = value_of_flag(option, value).integer(1, std::int64_t{1} << 30);
    if (std::find(list.begin(), list.end(), number) != list.end())
      fail_input(at, "has the value '" + value + "' twice", "keep one of them");
    list.push_back(number);
  }
  return list;
}

void fix(std::vector<PlanDimension>& dimensions, const std::vector<Fixed>& fixed) {
  for (const Fixed& one : fixed) {
    const auto found =
        std::find_if(dimensions.begin(), dimensions.end(),
                     [&](const PlanDimension& dimension) { return dimension.key == one.key; });
    if (found == dimensions.end()) {
      // One value belongs to every plan; shapes are tried with it.
      dimensions.push_back(
          {one.key, one.values, one.values.size() == 1 ? Kind::degree : Kind::variant, nullptr});
    } else {
      found->values = one.values;
      // A fixed schedule also matters with one stage: GPipe keeps the activations of all
      // micro-batches.
      found->matters = one.key == "schedule" ? nullptr : plan_key(one.key).matters;
      found->fixed = true;
      if (found->is_shape())  // Rising, as PlanDimension says.
        std::sort(found->values.begin(), found->values.end(),
                  [](const std::string& a, const std::string& b) {
                    return std::make_pair(a.size(), a) < std::make_pair(b.size(), b);
                  });
    }
  }
}

std::vector<StageLayers> neighbour_splits(const Scenario& scenario) {
  const int stages = scenario.plan.virtual_stages();
  const int layers = static_cast<int>(scenario.model.layers);
  if (stages < 2) return {};
  std::vector<StageLayers> splits;
  const int least = std::max(1, layers / stages);
  for (int each = least; each <= least + 1; ++each) {
    const int ends = layers - each * (stages - 2);
    for (int first = std::max(0, each - 4); first <= each + 2; ++first) {
      const int last = ends - first;
      if (last < std::max(0, each - 4) || last > each + 2) continue;
      std::vector<int> split(static_cast<std::size_t>(stages), each);
      split.front() = first;
      split.back() = last;
      if (split == scenario.layers_of) continue;
      if (std::find(splits.begin(), splits.end(), StageLayers{split}) == splits.end())
        splits.push_back({split});
    }
  }
  return splits;
}

}  // namespace orrery
