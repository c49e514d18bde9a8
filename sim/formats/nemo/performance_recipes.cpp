#include "sim/formats/nemo/performance_recipes.hpp"

#include <algorithm>
#include <vector>

#include "sim/core/catalog.hpp"
#include "sim/core/choice.hpp"
#include "sim/core/nearest.hpp"

namespace orrery {
namespace {

constexpr std::int64_t most_gpus = 1 << 24;

// Narrows `recipes` to those that say `word` under `key`. Errors: none does.
void keep(std::vector<JsonValue>& recipes, const std::string& key, const std::string& word,
          const std::string& what, const Place& place) {
  const auto said = [&](const JsonValue& recipe) {
    const auto value = recipe.find(key);
    return value ? value->text() : std::string{};
  };
  std::vector<std::string> known;
  for (const JsonValue& recipe : recipes)
    if (std::find(known.begin(), known.end(), said(recipe)) == known.end())
      known.push_back(said(recipe));
  if (std::find(known.begin(), known.end(), word) == known.end())
    fail_input(place, what + " '" + shown_text(word) + "', for which no recipe is known",
               "import the configuration that the run prints, or: " + suggestion(word, known));
  std::erase_if(recipes, [&](const JsonValue& recipe) { return said(recipe) != word; });
}

}  // namespace

PerformanceRecipe performance_recipe(const PerformanceQuestion& question, const Place& place) {
  const JsonValue table =
      JsonValue::read_file(find_in_catalog("workloads/recipes", "megatron-bridge", place));
  require_schema(table, "orrery.recipes/1");
  std::vector<JsonValue> recipes = table.at("recipes").elements();
  keep(recipes, "recipe", question.recipe, "starts the recipe", place);
  keep(recipes, "gpu", question.gpu, "starts it on the GPU", place);
  keep(recipes, "dtype", question.dtype, "starts it in", place);
  keep(recipes, "variant", question.variant, "starts its variant", place);
  const auto gpus_of = [](const JsonValue& recipe) {
    return recipe.at("gpus").integer(1, most_gpus);
  };
  const auto closer = [&](const JsonValue& a, const JsonValue& b) {
    const bool is_a = gpus_of(a) == question.gpus, is_b = gpus_of(b) == question.gpus;
    return is_a != is_b ? is_b : gpus_of(a) < gpus_of(b);
  };
  const JsonValue& chosen = *std::max_element(recipes.begin(), recipes.end(), closer);
  return {table.at("models").at(question.recipe).text(), gpus_of(chosen), chosen.at("settings"),
          table.at("layouts").find(question.recipe)};
}

}  // namespace orrery
