#include "sim/serving/speculation.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/core/nearest.hpp"
#include "sim/core/value_list.hpp"
#include "sim/model/layer_pattern.hpp"

namespace orrery {
namespace {

constexpr int most_drafted = 16;
constexpr const char* example = "write it like mtp:2@0.7 or eagle3:3@0.66/0.39/0.24";

// Vocabulary of EAGLE-3's draft head: "draft_vocab_size" of its authors' checkpoints for Llama 3.1
// and 3.3 (huggingface.co/yuhuili, config.json).
constexpr std::int64_t eagle_words = 32'000;

// The layers of a pattern's prediction module, as a model of its own.
Model prediction_module(const Model& model, const Place& at) {
  auto pattern = std::make_shared<LayerPattern>(*model.pattern);
  pattern->layers = pattern->prediction;
  pattern->prediction.clear();
  Model module = model;
  module.layers = static_cast<int>(pattern->layers.size());
  module.prediction_layers = 0;
  module.experts.reset();  // What describe_layers() says again.
  module.layer_has_experts.clear();
  module.pattern = std::move(pattern);
  describe_layers(module);
  for (const Model& shape : module.pattern->shapes)
    if (shape.mixer && !shape.mixer->module(model.hidden))
      fail_infeasible(at, "serving has no prices yet of the layers that draft in " + model.name,
                      "use ngram");
  return module;
}

// Of a pattern, its first layer with attention to all tokens, or to some.
Model attention_layer(const Model& model, const Place& at) {
  const std::vector<Model>& shapes = model.pattern->shapes;
  const auto sees_all = [](const Model& shape) { return shape.heads > 0 && shape.window == 0; };
  auto found = std::ranges::find_if(shapes, sees_all);
  if (found == shapes.end())
    found = std::ranges::find_if(shapes, [](const Model& shape) { return shape.heads > 0; });
  if (found == shapes.end())
    fail_infeasible(at, "serving has no prices yet of layers that draft for " + model.name,
                    "use ngram");
  return *found;
}

Model one_layer(const Model& model) {
  Model layer = model;
  layer.layers = 1;
  layer.layer_is_local.clear();
  layer.layer_has_experts.clear();
  return layer;
}

}  // namespace

double Speculation::a_step() const {
  return std::accumulate(accepted.begin(), accepted.end(), 1.0);
}

int Speculation::most_a_step() const { return static_cast<int>(std::ceil(a_step())); }

Speculation parse_speculation(const std::string& text, const Place& at) {
  const std::vector<std::string> sides = split(text, "@");
  std::vector<std::string> words = split(sides.front(), ":");
  const bool names_model = words.size() == 3;
  if (sides.size() != 2 || words.size() < 2 || words.size() > 3)
    fail_input(at, "'" + text + "' says no drafts", example);
  Speculation speculation;
  speculation.method = choice<DraftMethod>(words.front(), at, "is no way to draft");
  if (names_model != (speculation.method == DraftMethod::draft))
    fail_input(
        at, names_model ? "only draft names a model" : "'" + text + "' names no model that drafts",
        names_model ? example : "write it like draft:llama3.1-8b:4@0.6");
  if (names_model) speculation.model = words[1];
  const std::string place = at.file + at.pointer;
  speculation.tokens =
      static_cast<int>(value_of_text(words.back(), place).integer(1, most_drafted));
  const auto positions = static_cast<std::size_t>(speculation.tokens);
  for (const std::string& rate : split(sides.back(), "/"))
    speculation.accepted.push_back(
        value_of_text(rate, place).number(0.0, 1.0 + static_cast<double>(speculation.tokens)));
  // Above 1 a single number is the mean length that is accepted, with the certain token.
  if (speculation.accepted.size() == 1 && speculation.accepted.front() > 1.0)
    speculation.accepted.front() =
        (speculation.accepted.front() - 1.0) / static_cast<double>(speculation.tokens);
  if (speculation.accepted.front() > 1.0)
    fail_input(at, "'" + text + "' accepts a token in more than all steps",
               "write rates of up to 1, or one mean length such as mtp:3@2.49");
  if (speculation.accepted.size() == 1)
    speculation.accepted.resize(positions, speculation.accepted.front());
  if (speculation.accepted.size() != positions)
    fail_input(at,
               "'" + text + "' has " + std::to_string(speculation.accepted.size()) + " rates for " +
                   std::to_string(positions) + " tokens",
               "write one for each, or their mean");
  if (!std::is_sorted(speculation.accepted.rbegin(), speculation.accepted.rend()))
    fail_input(at, "'" + text + "' accepts a token more often than the one before it",
               "write in how many of all steps each position is accepted");
  return speculation;
}

std::string speculation_text(const Speculation& of) {
  std::string text = name(of.method) + ":";
  if (!of.model.empty()) text += of.model + ":";
  text += std::to_string(of.tokens) + "@";
  const bool even = std::all_of(of.accepted.begin(), of.accepted.end(),
                                [&](double rate) { return rate == of.accepted.front(); });
  const std::size_t shown = even ? 1 : of.accepted.size();
  for (std::size_t i = 0; i < shown; ++i) {
    std::string rate = std::to_string(of.accepted[i]);
    rate.erase(rate.find_last_not_of('0') + 1);
    if (rate.back() == '.') rate.pop_back();
    text += (i > 0 ? "/" : "") + rate;
  }
  return text;
}

std::shared_ptr<const Model> drafting_model(const Model& model, const Speculation& speculation,
                                            const Place& at) {
  switch (speculation.method) {
    case DraftMethod::mtp: {
      if (model.prediction_layers == 0)
        fail_infeasible(at, model.name + " has no layer for further tokens",
                        "use eagle3, draft or ngram");
      if (model.pattern) return std::make_shared<const Model>(prediction_module(model, at));
      Model layer = one_layer(model);
      if (model.experts) layer.layer_has_experts = {true};
      return std::make_shared<const Model>(std::move(layer));
    }
    case DraftMethod::eagle: {
      // Its MLP is dense: that of a model with experts is as wide as those that a token visits.
      Model layer = one_layer(model.pattern ? attention_layer(model, at) : model);
      if (layer.experts) layer.ffn = layer.experts->per_token * layer.experts->ffn;
      layer.experts.reset();
      layer.window = 0;
      layer.vocab = std::min(layer.vocab, eagle_words);
      return std::make_shared<const Model>(std::move(layer));
    }
    case DraftMethod::draft: {
      auto draft = std::make_shared<const Model>(read_model(speculation.model, at));
      require_alike(*draft, "drafting", at);
      return draft;
    }
    case DraftMethod::ngram:
      break;
  }
  return nullptr;
}

}  // namespace orrery
