#include "sim/model/layer_pattern.hpp"

#include <algorithm>

namespace orrery {
namespace {

std::int64_t matrices_of(bool gated) { return gated ? 3 : 2; }

std::int64_t mlp(std::int64_t channels, std::int64_t width, bool gated, bool bias) {
  if (width == 0) return 0;
  const std::int64_t biases = bias ? (matrices_of(gated) - 1) * width + channels : 0;
  return matrices_of(gated) * channels * width + biases;
}

// A stream mixing (arXiv 2512.24880, section 4): each of a layer's two sites projects all streams
// to 4 + 4 + 16 weights, with as many biases and three scales.
std::int64_t stream_site(std::int64_t streams, std::int64_t hidden) {
  const std::int64_t weights = streams * streams + 2 * streams;
  return weights * streams * hidden + weights + 3;
}

FeedForward parse_ffn(const JsonValue& json) {
  ObjectReader reader{json,
                      {"width", "gated", "bias", "experts", "top_k", "moe_ffn", "shared_expert_ffn",
                       "shared_gate", "latent", "latent_norm", "expert_groups", "groups_per_token",
                       "correction_bias", "extra_norms"}};
  FeedForward ffn;
  const auto integer = [&](const char* key, std::int64_t absent, std::int64_t least,
                           std::int64_t most) {
    std::int64_t value = absent;
    reader.optional(key, [&](const JsonValue& written) { value = written.integer(least, most); });
    return value;
  };
  const auto flag = [&](const char* key, bool absent) {
    bool value = absent;
    reader.optional(key, [&](const JsonValue& written) { value = written.boolean(); });
    return value;
  };
  ffn.width = integer("width", 0, 0, max_width);
  ffn.gated = flag("gated", true);
  ffn.bias = flag("bias", false);
  ffn.extra_norms = integer("extra_norms", 0, 0, 8);
  if (const std::int64_t count = integer("experts", 0, 0, max_experts); count > 0) {
    Experts& experts = ffn.experts.emplace();
    experts.count = count;
    experts.per_token = integer("top_k", 0, 1, max_experts);
    experts.ffn = integer("moe_ffn", 0, 1, max_width);
    experts.shared_ffn = integer("shared_expert_ffn", 0, 0, max_width);
    experts.groups = integer("expert_groups", 1, 1, max_experts);
    experts.groups_per_token = integer("groups_per_token", 1, 1, max_experts);
    experts.correction_bias = flag("correction_bias", false);
    experts.shared_gate = flag("shared_gate", false);
    experts.latent = integer("latent", 0, 0, max_width);
    experts.latent_norm = flag("latent_norm", false);
    reader.check([&] {
      if (experts.per_token == 0 || experts.ffn == 0)
        json.fail("has experts, but not how many a token visits and how wide they are",
                  "add top_k and moe_ffn");
      if (experts.per_token > count)
        json.fail("a token cannot visit " + std::to_string(experts.per_token) + " of " +
                      std::to_string(count) + " experts",
                  "lower top_k");
      if (const std::string no = fault_of_groups(experts); !no.empty())
        json.fail(no,
                  "the groups must be equal, and those that a token reaches hold enough experts");
    });
  } else {
    reader.check([&] {
      if (ffn.width == 0) json.fail("has neither a width nor experts", "add one of them");
    });
  }
  reader.raise();
  return ffn;
}

template <class Named>
int place_of(const std::vector<Named>& all, const std::string& name, const JsonValue& word) {
  if (name == "none") return -1;
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Named& one) { return one.name == name; });
  if (found == all.end())
    word.fail("names '" + shown_text(name) + "', which is not described",
              "write one of the names under mixers and ffns, or none");
  return static_cast<int>(found - all.begin());
}

LayerPattern::Layer parse_layer(const LayerPattern& pattern, const JsonValue& word) {
  const std::string text = word.text();
  const std::size_t plus = text.find('+');
  if (plus == text.npos)
    word.fail("'" + shown_text(text) + "' is no layer", "write a mixer + a feed-forward part");
  const LayerPattern::Layer layer{place_of(pattern.mixers, text.substr(0, plus), word),
                                  place_of(pattern.ffns, text.substr(plus + 1), word)};
  if (layer.mixer < 0 && layer.ffn < 0) word.fail("is an empty layer", "leave it out");
  return layer;
}

}  // namespace

std::int64_t FeedForward::parameters(std::int64_t hidden, bool active) const {
  std::int64_t count = mlp(hidden, width, gated, bias) + extra_norms * hidden;
  if (!experts) return count;
  const std::int64_t routed = active ? experts->per_token : experts->count;
  count += routed * mlp(experts->channels(hidden), experts->ffn, gated, bias) +
           mlp(hidden, experts->shared_ffn, gated, bias) + hidden * experts->count;
  if (experts->correction_bias) count += experts->count;
  if (bias) count += experts->count;  // The router's.
  if (experts->shared_gate) count += hidden;
  count += 2 * hidden * experts->latent;
  if (experts->latent_norm) count += experts->latent;
  return count;
}

const Mixer* LayerPattern::mixer_of(int layer) const {
  const int place = layers.at(static_cast<std::size_t>(layer)).mixer;
  return place < 0 ? nullptr : mixers[static_cast<std::size_t>(place)].mixer.get();
}

const FeedForward* LayerPattern::ffn_of(int layer) const {
  const int place = layers.at(static_cast<std::size_t>(layer)).ffn;
  return place < 0 ? nullptr : &ffns[static_cast<std::size_t>(place)].ffn;
}

std::vector<LayerPattern::Layer> LayerPattern::kinds() const {
  std::vector<Layer> found;
  for (const Layer& layer : layers)
    if (std::find(found.begin(), found.end(), layer) == found.end()) found.push_back(layer);
  return found;
}

bool LayerPattern::has_several_kinds() const {
  return std::any_of(layers.begin(), layers.end(),
                     [&](const Layer& layer) { return layer != layers.front(); });
}

std::string LayerPattern::name_of(const Layer& layer) const {
  const auto name = [](const auto& all, int place) {
    return place < 0 ? std::string{"none"} : all[static_cast<std::size_t>(place)].name;
  };
  return name(mixers, layer.mixer) + "+" + name(ffns, layer.ffn);
}

std::string LayerPattern::short_name_of(const Layer& layer) const {
  const auto name = [](const auto& all, int place) {
    return all[static_cast<std::size_t>(place)].name;
  };
  if (layer.ffn < 0) return name(mixers, layer.mixer);
  if (layer.mixer < 0) return name(ffns, layer.ffn);
  return name_of(layer);
}

namespace {

// A name stands between pluses in patterns, and in reports.
void check_name(const JsonValue& table, const std::string& name) {
  const bool plain = std::all_of(name.begin(), name.end(),
                                 [](unsigned char c) { return c > 0x20 && c != 0x7f && c != '+'; });
  if (name.empty() || name == "none" || !plain)
    table.fail("describes '" + shown_text(name) + "', which no pattern can name",
               "use another name than none, without blanks and pluses");
}

}  // namespace

LayerPattern parse_layer_pattern(const JsonValue& json) {
  LayerPattern pattern;
  if (const auto mixers = json.find("mixers"))
    for (const std::string& name : mixers->keys()) {
      check_name(*mixers, name);
      pattern.mixers.push_back({name, parse_mixer(mixers->at(name))});
    }
  if (const auto ffns = json.find("ffns"))
    for (const std::string& name : ffns->keys()) {
      check_name(*ffns, name);
      pattern.ffns.push_back({name, parse_ffn(ffns->at(name))});
    }
  if (const auto streams = json.find("streams")) pattern.streams = streams->integer(1, 16);
  const JsonValue runs = json.at("pattern");
  for (const JsonValue& run : runs.elements()) {
    const std::vector<JsonValue> parts = run.elements();
    if (parts.size() != 2) run.fail("is no run of layers", "write [repeats, [\"mixer+ffn\", ...]]");
    const std::int64_t repeats = parts[0].integer(1, max_layers);
    std::vector<LayerPattern::Layer> layers;
    for (const JsonValue& word : parts[1].elements()) layers.push_back(parse_layer(pattern, word));
    if (static_cast<std::int64_t>(layers.size()) * repeats +
            static_cast<std::int64_t>(pattern.layers.size()) >
        max_layers)
      run.fail("makes more than " + std::to_string(max_layers) + " layers", "check the repeats");
    for (std::int64_t i = 0; i < repeats; ++i)
      pattern.layers.insert(pattern.layers.end(), layers.begin(), layers.end());
  }
  if (const auto prediction = json.find("prediction"))
    for (const JsonValue& word : prediction->elements())
      pattern.prediction.push_back(parse_layer(pattern, word));
  if (pattern.layers.empty()) runs.fail("has no layers", "write [repeats, [\"mixer+ffn\", ...]]");
  return pattern;
}

namespace {

// The model as if all layers were of this kind.
Model shape_of_kind(const Model& model, const LayerPattern& pattern,
                    const LayerPattern::Layer& layer) {
  Model shape = model;
  shape.pattern = nullptr;
  shape.document.reset();
  shape.layers = 1;
  shape.norms_per_layer =
      pattern.norms_of_part * ((layer.mixer >= 0 ? 1 : 0) + (layer.ffn >= 0 ? 1 : 0));
  if (layer.mixer >= 0) {
    const MixerPointer& mixer = pattern.mixers[static_cast<std::size_t>(layer.mixer)].mixer;
    if (!mixer->describe(shape)) shape.mixer = mixer;
  }
  if (layer.ffn < 0) return shape;
  const FeedForward& ffn = pattern.ffns[static_cast<std::size_t>(layer.ffn)].ffn;
  shape.gated = ffn.gated;
  shape.mlp_bias = ffn.bias;
  shape.norms_per_layer += static_cast<int>(ffn.extra_norms);
  shape.experts = ffn.experts;
  // An MLP beside experts reads their input and adds to their output, as a shared expert does.
  if (shape.experts)
    shape.experts->shared_ffn += ffn.width;
  else
    shape.ffn = ffn.width;
  shape.layer_has_experts = {shape.experts.has_value()};
  return shape;
}

}  // namespace

void describe_layers(Model& model) {
  if (!model.pattern) return;
  auto pattern = std::make_shared<LayerPattern>(*model.pattern);
  if (pattern->prediction.empty()) pattern->prediction = {pattern->layers.back()};
  std::vector<LayerPattern::Layer> kinds = pattern->kinds();
  if (model.prediction_layers > 0)
    for (const LayerPattern::Layer& layer : pattern->prediction)
      if (std::find(kinds.begin(), kinds.end(), layer) == kinds.end()) kinds.push_back(layer);
  pattern->shapes.clear();
  for (const LayerPattern::Layer& kind : kinds)
    pattern->shapes.push_back(shape_of_kind(model, *pattern, kind));
  pattern->kind_of_shape = kinds;
  const auto place_of_kind = [&](const LayerPattern::Layer& layer) {
    return static_cast<int>(std::find(kinds.begin(), kinds.end(), layer) - kinds.begin());
  };
  pattern->shape_of.clear();
  pattern->prediction_shapes.clear();
  model.layer_has_experts.clear();
  for (const LayerPattern::Layer& layer : pattern->layers) {
    pattern->shape_of.push_back(place_of_kind(layer));
    const auto& experts =
        pattern->shapes[static_cast<std::size_t>(pattern->shape_of.back())].experts;
    model.layer_has_experts.push_back(experts.has_value());
    if (experts && !model.experts) model.experts = experts;
  }
  if (model.prediction_layers > 0)
    for (const LayerPattern::Layer& layer : pattern->prediction)
      pattern->prediction_shapes.push_back(place_of_kind(layer));
  if (!model.experts) model.layer_has_experts.clear();
  model.pattern = std::move(pattern);
}

std::int64_t layer_parameters(const Model& model, const LayerPattern::Layer& layer, bool active) {
  const LayerPattern& pattern = *model.pattern;
  const std::int64_t hidden = model.hidden;
  std::int64_t count = 0;
  const std::int64_t norms = pattern.norms_of_part * norm_parameters(model, hidden);
  if (layer.mixer >= 0)
    count +=
        pattern.mixers[static_cast<std::size_t>(layer.mixer)].mixer->parameters(hidden) + norms;
  if (layer.ffn >= 0)
    count +=
        pattern.ffns[static_cast<std::size_t>(layer.ffn)].ffn.parameters(hidden, active) + norms;
  return count + layer_stream_parameters(pattern, hidden);
}

double approximate_parameters(const LayerPattern& pattern, std::int64_t hidden) {
  const auto real = [](std::int64_t n) { return static_cast<double>(n); };
  double sum = 0.0;
  for (const LayerPattern::Layer& layer : pattern.layers) {
    if (layer.mixer >= 0)
      for (const WeightMatrix& matrix :
           pattern.mixers[static_cast<std::size_t>(layer.mixer)].mixer->matrices(hidden))
        sum += real(matrix.in) * real(matrix.out);
    if (layer.ffn < 0) continue;
    const FeedForward& ffn = pattern.ffns[static_cast<std::size_t>(layer.ffn)].ffn;
    double width = real(ffn.width);
    if (const auto& experts = ffn.experts)
      width += real(experts->count) * real(experts->ffn) + real(experts->shared_ffn);
    sum += 3.0 * width * real(std::max(hidden, ffn.experts ? ffn.experts->latent : 0));
  }
  return sum;
}

KeptBytes kept_bytes(const LayerPattern& pattern, std::int64_t hidden) {
  KeptBytes sum;
  for (const LayerPattern::Layer& layer : pattern.layers)
    if (layer.mixer >= 0)
      sum += pattern.mixers[static_cast<std::size_t>(layer.mixer)].mixer->kept(hidden);
  return sum;
}

std::int64_t layer_stream_parameters(const LayerPattern& pattern, std::int64_t hidden) {
  return pattern.streams > 1 ? 2 * stream_site(pattern.streams, hidden) : 0;
}

std::int64_t head_stream_parameters(const LayerPattern& pattern, std::int64_t hidden) {
  // One weight a stream from all of them, a bias each and a scale.
  const std::int64_t s = pattern.streams;
  return s > 1 ? s * s * hidden + s + 1 : 0;
}

}  // namespace orrery
