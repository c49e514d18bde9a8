#include "sim/moe/routing_plan.hpp"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "sim/core/catalog.hpp"
#include "sim/core/nearest.hpp"
#include "sim/core/object_reader.hpp"

namespace orrery {
namespace {

// Results are rounded to 2^-40 of themselves, as libms differ in the last bits.
double rounded(double x) {
  int exponent = 0;
  const double mantissa = std::frexp(x, &exponent);
  return std::ldexp(std::round(std::ldexp(mantissa, 40)), exponent - 40);
}

std::vector<double> weights(const Popularity& popularity, std::size_t count) {
  std::vector<double> weight(count, 1.0);
  const double p = popularity.parameter;
  for (std::size_t i = 0; i < count; ++i) {
    const double position = (static_cast<double>(i) + 0.5) / static_cast<double>(count);
    switch (popularity.kind) {
      case PopularityKind::uniform:
      case PopularityKind::in_turn:
      case PopularityKind::hot:
        break;
      case PopularityKind::zipf:
        weight[i] = rounded(std::pow(static_cast<double>(i + 1), -p));
        break;
      case PopularityKind::power_law: {
        // The quantile of 1 - position; at exponent 1 the density's integral is a logarithm.
        constexpr double widest = 1000.0;
        const double upper = 1.0 - position;
        weight[i] = rounded(
            std::abs(p - 1.0) < 1e-9
                ? std::pow(widest, upper)
                : std::pow(1.0 + upper * (std::pow(widest, 1.0 - p) - 1.0), 1.0 / (1.0 - p)));
        break;
      }
      case PopularityKind::spread:
        weight[i] = 1.0 + p * (1.0 - 2.0 * position);
        break;
    }
  }
  return weight;
}

}  // namespace

std::vector<double> visit_shares(const Popularity& popularity, const Experts& experts) {
  const auto count = static_cast<std::size_t>(experts.count);
  const auto k = static_cast<double>(experts.per_token);
  if (popularity.kind == PopularityKind::hot) {
    const double others = count > 1 ? (k - popularity.parameter) / static_cast<double>(count - 1)
                                    : popularity.parameter;
    std::vector<double> share(count, others);
    share[0] = popularity.parameter;
    return share;
  }
  // Shares are proportional to the weights, but at most 1; the others share the rest.
  std::vector<double> share = weights(popularity, count);
  double rest = 0.0;
  for (const double weight : share) rest += weight;
  double left = k;
  std::size_t full = 0;
  while (full < count && share[full] * left >= rest) {
    rest -= share[full];
    share[full++] = 1.0;
    left -= 1.0;
    if (left <= 0.0) break;
  }
  for (std::size_t i = full; i < count; ++i) share[i] = left > 0.0 ? share[i] * left / rest : 0.0;
  return share;
}

namespace {

constexpr const char* round_robin = "round-robin";

struct Shape {
  std::string name;
  PopularityKind kind;
  double least, most;  ///< Range of the parameter; a single value if both are equal.
  const char* meaning;
};

// The excess of a trained router's busiest expert over the mean (MaxVio): 0.52 if balanced by an
// auxiliary loss, 0.04 by a bias on the scores (Wang et al., Auxiliary-Loss-Free Load Balancing
// Strategy for Mixture-of-Experts, arXiv 2408.15664, table 2, 3B model).
const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all{
      {"uniform", PopularityKind::uniform, 0.0, 0.0, ""},
      {round_robin, PopularityKind::in_turn, 0.0, 0.0, ""},
      {"zipf", PopularityKind::zipf, 0.0, 10.0, "exponent"},
      {"hot", PopularityKind::hot, 0.0, 1.0, "share of the tokens"},
      {"power-law", PopularityKind::power_law, 0.0, 10.0, "exponent"},
      {"aux-loss", PopularityKind::spread, 0.52, 0.52, ""},
      {"bias", PopularityKind::spread, 0.04, 0.04, ""}};
  return all;
}

const Shape* find_shape(const std::string& name) {
  for (const Shape& shape : shapes())
    if (shape.name == name) return &shape;
  return nullptr;
}

void set_popularity(RoutingPlan& plan, const Shape& shape, double parameter) {
  plan.popularity = {shape.kind, shape.least == shape.most ? shape.least : parameter};
}

// Sets the popularity of a word like "zipf:1.2".
bool set_by_word(RoutingPlan& plan, const std::string& word, const Place& at) {
  const std::size_t colon = word.find(':');
  const Shape* shape = find_shape(word.substr(0, colon));
  if (!shape) return false;
  const bool wants = shape->least < shape->most;
  double parameter = 0.0;
  if (wants) {
    const char* end = word.data() + word.size();
    const char* begin = colon == word.npos ? end : word.data() + colon + 1;
    const auto [stop, error] = std::from_chars(begin, end, parameter);
    if (error != std::errc{} || stop != end ||
        !(parameter >= shape->least && parameter <= shape->most))
      fail_input(at, "'" + shown_text(word) + "' has no " + shape->meaning,
                 "write it like " + shape->name + (shape->most > 1.0 ? ":1.2" : ":0.9"));
  } else if (colon != word.npos) {
    fail_input(at, "'" + shown_text(word) + "': " + shape->name + " takes no number",
               "write " + shape->name);
  }
  plan.name = word;
  set_popularity(plan, *shape, parameter);
  plan.even = is_even(shape->kind);
  return true;
}

bool is_trace(const std::string& path) {
  return path.ends_with(".jsonl") || path.ends_with(".csv");
}

}  // namespace

bool is_even(PopularityKind kind) {
  return kind == PopularityKind::uniform || kind == PopularityKind::in_turn;
}

EvenChoice even_choice(const std::string& word) {
  return word == round_robin ? EvenChoice::in_turn : EvenChoice::any;
}

RoutingPlan parse_routing(const JsonValue& json, const TraceExpectation& expected) {
  require_schema(json, "orrery.routing/1");
  json.allow_only({"schema", "name", "title", "source", "popularity", "exponent", "share", "drawn",
                   "trace", "seed", "replicas", "capacity_factor", "pad_to_capacity",
                   "redundant_experts", "placement"});
  RoutingPlan plan;
  plan.name = required_text(json, "name");
  if (json.has("trace") == json.has("popularity"))
    json.fail("needs either 'popularity' or 'trace'", "keep one of them");
  if (const auto trace = json.find("trace")) {
    const std::filesystem::path path{trace->text()};
    // A file from elsewhere could otherwise expose lines of any file that its reader may read.
    if (!is_trace(path.string()) || path.has_root_path() ||
        std::find(path.begin(), path.end(), "..") != path.end())
      trace->fail("'" + shown_text(path.string()) + "' is no trace in the folder of this file",
                  "put a .jsonl or .csv file next to it or in a folder below");
    const auto trace_path = std::filesystem::path{json.place().file}.parent_path() / path;
    plan.trace = std::make_shared<const RoutingTrace>(read_trace(trace_path.string(), expected));
    plan.even = false;
  } else {
    const JsonValue word = json.at("popularity");
    const Shape* shape = find_shape(word.text());
    std::vector<std::string> names;
    for (const Shape& known : shapes()) names.push_back(known.name);
    if (!shape)
      word.fail("'" + shown_text(word.text()) + "' is unknown", suggestion(word.text(), names));
    if (shape->kind == PopularityKind::in_turn)
      word.fail("is a word of plans alone", "write --routing round-robin");
    const char* key = shape->kind == PopularityKind::hot ? "share" : "exponent";
    const bool wants = shape->least < shape->most;
    for (const char* other : {"share", "exponent"})
      if (json.has(other) && !(wants && other == std::string{key}))
        json.at(other).fail("means nothing for '" + shape->name + "'", "leave it out");
    set_popularity(plan, *shape, wants ? json.at(key).number(shape->least, shape->most) : 0.0);
    // An untrained or perfectly balanced router still samples each token's experts.
    const auto drawn = json.find("drawn");
    plan.even = shape->kind == PopularityKind::uniform && !(drawn && drawn->boolean());
    if (drawn && !drawn->boolean() && !plan.even)
      drawn->fail("only a uniform router can be even", "leave it out");
  }
  if (const auto seed = json.find("seed"))
    plan.seed = static_cast<std::uint64_t>(seed->integer(0, std::int64_t{1} << 53));
  if (const auto replicas = json.find("replicas"))
    plan.identical_replicas = choice<int>(*replicas, {"independent", "identical"}) == 1;
  if (const auto factor = json.find("capacity_factor"))
    plan.capacity_factor = factor->number(1e-3, 1e3);
  if (const auto pad = json.find("pad_to_capacity")) {
    plan.pad_to_capacity = pad->boolean();
    if (plan.pad_to_capacity && !plan.capacity_factor)
      pad->fail("there is no capacity to pad to", "give a capacity_factor");
  }
  if (const auto redundant = json.find("redundant_experts"))
    plan.redundant_experts = static_cast<int>(redundant->integer(0, 1 << 16));
  if (const auto placement = json.find("placement"))
    plan.balanced_placement = choice<int>(*placement, {"contiguous", "balanced"}) == 1;
  if (plan.redundant_experts > 0 && !plan.balanced_placement)
    json.at("redundant_experts").fail("are placed by load only", "add \"placement\": \"balanced\"");
  return plan;
}

RoutingPlan read_routing(const std::string& word, const Place& at,
                         const TraceExpectation& expected) {
  RoutingPlan plan;
  if (set_by_word(plan, word, at)) return plan;
  if (is_trace(word)) {
    plan.name = word;
    plan.trace = std::make_shared<const RoutingTrace>(read_trace(word, expected));
    plan.even = false;
    return plan;
  }
  return parse_routing(JsonValue::read_file(find_in_catalog("workloads/routing", word, at)),
                       expected);
}

}  // namespace orrery
