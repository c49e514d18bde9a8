#include "sim/validation/training_case.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <tuple>

#include "sim/core/catalog.hpp"
#include "sim/core/object_reader.hpp"
#include "sim/plan/plan_keys.hpp"
#include "sim/plan/stage_layers.hpp"

namespace orrery {
namespace {

// Facts about how a run was made that have no key in a plan: published_plan() reads the framework,
// and the others do not change the step.
const std::vector<std::string> not_of_the_plan{"framework", "compile"};

// The sizes of the case's model, which may be a name of the catalog.
JsonValue described_model(const JsonValue& model) {
  if (model.is_object()) return model;
  return JsonValue::read_file(find_in_catalog("workloads/models", model.text(), model.place()));
}

}  // namespace

std::vector<TrainingCase> read_training_cases(const JsonValue& json) {
  std::vector<TrainingCase> cases;
  for (const JsonValue& entry : json.elements()) {
    entry.allow_only(
        {"id", "source", "system", "gpus", "model", "plan", "measured", "peers", "notes"});
    TrainingCase one{entry.at("id").text(),
                     entry.at("source").at("title").text(),
                     entry.at("source").at("locator").text(),
                     entry.at("system").text(),
                     static_cast<int>(entry.at("gpus").integer(1, 1 << 24)),
                     described_model(entry.at("model")),
                     entry.at("plan"),
                     {},
                     {},
                     {},
                     {},
                     {}};
    const JsonValue measured = entry.at("measured");
    if (const auto time = measured.find("step_time_s"))
      one.step_time = Seconds{time->number(1e-6, 1e6)};
    else if (const auto rate = measured.find("tokens_per_s_per_gpu"))
      one.tokens_rate = rate->number(1e-3, 1e9);
    if (const auto memory = measured.find("peak_memory_bytes"))
      one.peak_memory = Bytes{memory->number(1.0, 1e15)};
    if (const auto stage = measured.find("peak_memory_stage"))
      one.peak_memory_stage = static_cast<int>(stage->integer(0, 1 << 20));
    if (const auto peers = entry.find("peers"))
      for (const std::string& peer : peers->keys())
        one.peers[peer] = Seconds{peers->at(peer).number(1e-6, 1e6)};
    cases.push_back(std::move(one));
  }
  return cases;
}

Scenario scenario_of(const TrainingCase& as_written) {
  const TrainingCase training_case = as_published(as_written);
  PlanRequest request;
  const PublishedPlan published = published_plan(training_case);
  for (const JsonValue& plan : published.plans) read_plan(request, plan);
  for (const std::string& key : training_case.plan.keys()) {
    if (key == "ep_dispatcher") {  // The MoE model zoo's spelling.
      request.moe_dispatcher = choice<int>(training_case.plan.at(key), {"A2A", "DeepEP"}) == 1
                                   ? ExpertDispatcher::deepep
                                   : ExpertDispatcher::all_to_all;
      continue;
    }
    if (std::find(not_of_the_plan.begin(), not_of_the_plan.end(), key) != not_of_the_plan.end())
      continue;
    if (const auto value = training_case.plan.find(key)) set_plan_key(request, key, *value);
  }
  const auto software = training_case.plan.find("software");
  request.software = software ? software->text() : published.software;
  // Megatron Core's default (ModelParallelConfig.expert_tensor_parallel_size), unless a run's
  // command line sets it.
  const auto framework = training_case.plan.find("framework");
  if (framework && framework->text() == "NeMo/Megatron" && request.ep > 1 &&
      !training_case.plan.has("etp"))
    request.etp = request.tp;
  const Place at = training_case.plan.place();
  const Model model = parse_model(training_case.model);
  // A case's model is the run's own, with sequences as long as the run's.
  if (!request.seq) request.seq = model.max_sequence;
  return make_scenario(model, read_system(relative_to_file(training_case.system, at), at), request,
                       training_case.gpus, at);
}

namespace {

const std::string folder = "workloads/publications";

std::string text_at(const JsonValue& object, const char* key) {
  const auto found = object.find(key);
  return found ? found->text() : std::string{};
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

bool has_stages(const TrainingCase& of) {
  const auto stages = of.plan.find("pp");
  return stages && stages->integer(1, 1 << 20) > 1;
}

std::optional<JsonValue> rule_of(const TrainingCase& of) {
  const JsonValue table = JsonValue::read_file(find_in_catalog(folder, "software", {}));
  require_schema(table, "orrery.publications/1");
  const std::string model = text_at(of.model, "name");
  for (const JsonValue& rule : table.at("rules").elements()) {
    rule.allow_only({"title_contains", "framework", "id_contains", "id_ends", "model_contains",
                     "experts", "pipeline", "system_starts", "dtype", "software", "model", "plan",
                     "corrected", "peak_memory_stage", "recipes", "source"});
    const auto holds = [&](const char* key, auto test) {
      const auto wanted = rule.find(key);
      return !wanted || test(wanted->text());
    };
    const auto has_in = [](const std::string& text) {
      return [&text](const std::string& part) { return contains(text, part); };
    };
    const auto is = [&](const char* key) {
      return [text = text_at(of.plan, key)](const std::string& wanted) { return text == wanted; };
    };
    if (holds("title_contains", has_in(of.title)) && holds("id_contains", has_in(of.id)) &&
        holds("id_ends", [&](const std::string& end) { return of.id.ends_with(end); }) &&
        holds("model_contains", has_in(model)) &&
        (!rule.has("pipeline") || rule.at("pipeline").boolean() == has_stages(of)) &&
        (!rule.has("experts") || rule.at("experts").boolean() == of.model.has("experts")) &&
        holds("system_starts",
              [&](const std::string& part) { return of.system.starts_with(part); }) &&
        holds("framework", is("framework")) && holds("dtype", is("dtype")))
      return rule;
  }
  return std::nullopt;
}

// "... release 26.04.01, Pre-Training, line 228"
std::string release_in(const std::string& locator) {
  const std::string word = "release ";
  const std::size_t begin = locator.find(word);
  if (begin == std::string::npos) return "";
  const std::size_t from = begin + word.size();
  return locator.substr(from, locator.find_first_of(", ", from) - from);
}

// The releases in a file of recipes, numbered from the first; an unknown one is the last.
class Releases {
 public:
  explicit Releases(const JsonValue& file) {
    for (const JsonValue& release : file.at("releases").elements())
      names_.push_back(release.text());
  }
  int of(const std::string& name) const {
    const auto found = std::find(names_.begin(), names_.end(), name);
    return static_cast<int>(std::min(found, names_.end() - 1) - names_.begin());
  }
  /// Releases between `release` and those of a recipe; below zero: the recipe is older.
  int distance(const JsonValue& recipe, int release) const {
    const int from = of(recipe.at("from").text());
    const int to = of(recipe.at("to").text());
    return from > release ? from - release : std::min(to - release, 0);
  }

 private:
  std::vector<std::string> names_;
};

bool is_for(const JsonValue& recipe, const TrainingCase& of) {
  const auto formats = recipe.at("dtypes").elements();
  return contains(text_at(of.model, "name"), recipe.at("model").text()) &&
         recipe.at("system").text() == of.system &&
         std::any_of(formats.begin(), formats.end(), [&](const JsonValue& format) {
           return format.text() == text_at(of.plan, "dtype");
         });
}

// Keys of a recipe's layout that differ from the printed case.
int differences(const JsonValue& recipe, const TrainingCase& of) {
  const JsonValue layout = recipe.at("layout");
  int count = 0;
  for (const std::string& key : layout.keys()) {
    if (key == "gpus") continue;  // Runs were also made on more of them.
    const auto printed = of.plan.find(key);
    const std::int64_t wanted = layout.at(key).integer(1, 1 << 30);
    count += (printed ? printed->integer(1, 1 << 30) : 1) != wanted;
  }
  return count;
}

std::optional<JsonValue> recipe_of(const TrainingCase& of, const JsonValue& file) {
  const Releases releases{file};
  const int own = releases.of(release_in(of.locator));
  std::optional<JsonValue> best;
  std::tuple<bool, int, int> least;
  for (const JsonValue& recipe : file.at("recipes").elements()) {
    recipe.allow_only({"model", "system", "dtypes", "from", "to", "layout", "software", "plan"});
    if (!is_for(recipe, of)) continue;
    const int other = differences(recipe, of);
    const int away = releases.distance(recipe, own);
    const std::tuple key{other > 0 || away < 0, std::abs(away), other};
    if (best && key >= least) continue;
    least = key;
    best = recipe;
  }
  return best;
}

// Words for chunks: one per layer, or as few as interleaving takes.
constexpr const char* each_layer = "max (each layer a chunk)";
constexpr const char* fewest = "least";
// Layers that stages do not divide; and stages cut by weights.
constexpr const char* more_first = "more in the first stages";
constexpr const char* by_nanotron = "as nanotron cuts them";

std::int64_t chunks(const std::string& word, std::int64_t layers, std::int64_t stages) {
  const std::int64_t most = (layers + stages - 1) / stages;
  if (word == each_layer) return most;
  for (std::int64_t few = 2; few < most; ++few)
    if (most % few == 0) return few;
  return most;
}

// "4x12+3x4": of 60 layers on 16 stages.
std::string split_of(std::int64_t layers, std::int64_t stages) {
  const std::int64_t each = layers / stages, more = layers % stages;
  return std::to_string(each + 1) + "x" + std::to_string(more) + "+" + std::to_string(each) + "x" +
         std::to_string(stages - more);
}

JsonValue number_value(std::int64_t number) { return JsonValue::parse(std::to_string(number), ""); }

// Words in place of numbers, which depend on layers and stages.
void count_out(TrainingCase& one) {
  constexpr std::int64_t most = 1 << 20;
  const auto stages = one.plan.find("pp");
  const auto layers = one.model.find("layers");
  if (!stages || !layers || !layers->is_number()) return;
  const std::int64_t p = stages->integer(1, most), n = layers->integer(1, most);
  const auto vpp = one.plan.find("vpp");
  if (vpp && vpp->is_string() && (vpp->text() == each_layer || vpp->text() == fewest))
    one.plan = one.plan.with("vpp", number_value(chunks(vpp->text(), n, p)));
  const auto split = one.plan.find("layers");
  if (!split || !split->is_string()) return;
  std::string text;
  if (split->text() == more_first)
    text = n % p == 0 ? std::to_string(n / p) + "x" + std::to_string(p) : split_of(n, p);
  else if (split->text() == by_nanotron && p > 1 && p <= n)
    text = stage_layers_text({nanotron_stages(parse_model(one.model), static_cast<int>(p))});
  else if (split->text() == by_nanotron)
    text = std::to_string(n) + "x1";
  if (!text.empty()) one.plan = one.plan.with("layers", JsonValue::parse(json_quoted(text), ""));
}

}  // namespace

TrainingCase as_published(TrainingCase one) {
  if (const auto rule = rule_of(one)) {
    if (const auto model = rule->find("model"))
      for (const std::string& key : model->keys())
        if (!one.model.has(key)) one.model = one.model.with(key, model->at(key));
    if (const auto plan = rule->find("corrected"))
      for (const std::string& key : plan->keys()) one.plan = one.plan.with(key, plan->at(key));
    const auto stage = rule->find("peak_memory_stage");
    if (stage && !one.peak_memory_stage)
      one.peak_memory_stage = static_cast<int>(stage->integer(0, 1 << 20));
  }
  count_out(one);
  return one;
}

PublishedPlan published_plan(const TrainingCase& training_case) {
  const auto rule = rule_of(training_case);
  if (!rule) return {};
  PublishedPlan published{text_at(*rule, "software"), {}};
  if (const auto plan = rule->find("plan")) published.plans.push_back(*plan);
  if (const auto recipes = rule->find("recipes")) {
    const JsonValue file = JsonValue::read_file(find_in_catalog(folder, recipes->text(), {}));
    require_schema(file, "orrery.published_recipes/1");
    if (published.software.empty()) published.software = file.at("software").text();
    if (const auto recipe = recipe_of(training_case, file)) {
      published.plans.push_back(recipe->at("plan"));
      if (const auto other = recipe->find("software")) published.software = other->text();
    }
  }
  return published;
}

}  // namespace orrery
