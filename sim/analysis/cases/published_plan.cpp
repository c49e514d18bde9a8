#include "sim/analysis/cases/published_plan.hpp"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <tuple>

#include "sim/base/text/catalog.hpp"
#include "sim/base/text/choice.hpp"

namespace orrery {
namespace {

const std::string shelf = "workloads/publications";

std::string named(const JsonValue& object, const char* key) {
  const auto found = object.find(key);
  return found ? found->text() : std::string{};
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::optional<JsonValue> rule_of(const TrainingCase& of) {
  const JsonValue table = JsonValue::read_file(find_in_catalog(shelf, "software", {}));
  require_schema(table, "orrery.publications/1");
  const std::string model = named(of.model, "name");
  for (const JsonValue& rule : table.at("rules").elements()) {
    rule.allow_only({"title_contains", "framework", "id_contains", "model_contains",
                     "system_starts", "dtype", "software", "plan", "recipes", "source"});
    const auto holds = [&](const char* key, auto test) {
      const auto wanted = rule.find(key);
      return !wanted || test(wanted->text());
    };
    const auto has_in = [](const std::string& text) {
      return [&text](const std::string& part) { return contains(text, part); };
    };
    const auto is = [&](const char* key) {
      return [text = named(of.plan, key)](const std::string& wanted) { return text == wanted; };
    };
    if (holds("title_contains", has_in(of.title)) && holds("id_contains", has_in(of.id)) &&
        holds("model_contains", has_in(model)) &&
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

// Which of the releases in a file of recipes, counted from the first; an unknown one is the last.
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
  /// How many lie between `release` and those of a recipe; below zero: the recipe is older.
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
  return contains(named(of.model, "name"), recipe.at("model").text()) &&
         recipe.at("system").text() == of.system &&
         std::any_of(formats.begin(), formats.end(), [&](const JsonValue& format) {
           return format.text() == named(of.plan, "dtype");
         });
}

// How many keys of a recipe's layout the case does not have as printed.
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

}  // namespace

PublishedPlan published_plan(const TrainingCase& training_case) {
  const auto rule = rule_of(training_case);
  if (!rule) return {};
  PublishedPlan published{named(*rule, "software"), {}};
  if (const auto plan = rule->find("plan")) published.plans.push_back(*plan);
  if (const auto recipes = rule->find("recipes")) {
    const JsonValue file = JsonValue::read_file(find_in_catalog(shelf, recipes->text(), {}));
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
