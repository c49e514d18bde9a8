#pragma once

#include <optional>

#include "sim/model/mixer.hpp"
#include "sim/model/model.hpp"

namespace orrery {

/// The part of a layer behind the mixer: an MLP, experts, or both side by side (Gemma 4).
struct FeedForward {
  std::int64_t width = 0;  ///< Channels of the MLP, also of one beside experts; 0: none.
  bool gated = true;
  bool bias = false;
  std::optional<Experts> experts;
  std::int64_t extra_norms = 0;  ///< Beside those of the layer.

  /// `active`: with only the routed experts that a token visits.
  std::int64_t parameters(std::int64_t hidden, bool active) const;
};

/// The layers of a model: each has a mixer, a feed-forward part, or both, from a small table of
/// kinds. Names are those of the file, for messages and reports.
struct LayerPattern {
  struct Layer {
    int mixer = -1, ffn = -1;  ///< Places in the tables; -1: none.
    bool operator==(const Layer&) const = default;
  };
  struct NamedMixer {
    std::string name;
    MixerPointer mixer;
  };
  struct NamedFeedForward {
    std::string name;
    FeedForward ffn;
  };

  std::vector<NamedMixer> mixers;
  std::vector<NamedFeedForward> ffns;
  std::vector<Layer> layers;
  std::vector<Layer> prediction;  ///< Of a prediction module; empty: one like the last layer.
  /// Residual streams between layers (manifold-constrained hyper-connections, arXiv 2512.24880).
  std::int64_t streams = 1;
  int norms_of_part = 1;  ///< Norms of each mixer and each feed-forward part.

  /// Derived by describe_layers(): for each kind of layer a model all of whose layers are alike,
  /// and the place of each layer's shape.
  std::vector<Model> shapes;
  std::vector<Layer> kind_of_shape;  ///< One for each of `shapes`.
  std::vector<int> shape_of;
  std::vector<int> prediction_shapes;

  const Mixer* mixer_of(int layer) const;
  const FeedForward* ffn_of(int layer) const;
  /// Kinds of layers in the order in which they first occur.
  std::vector<Layer> kinds() const;
  bool has_several_kinds() const;
  /// name_of() without a part that the layer lacks: "mamba2", "full+mlp".
  std::string short_name_of(const Layer& layer) const;
  /// "gdn+moe"
  std::string name_of(const Layer& layer) const;
};

/// Reads "mixers", "ffns" and "pattern" of a model in this project's JSON. "pattern" is a list of
/// [repeats, ["mixer+ffn", ...]], in which "none" is no mixer or no feed-forward part. Errors
/// (bad_input): unknown names, more than max_layers.
LayerPattern parse_layer_pattern(const JsonValue& json);

/// Fills in `shapes` and `shape_of` of a model's pattern, and in the model itself the experts and
/// the layers that have them, if all experts are alike; nothing without a pattern.
void describe_layers(Model& model);

/// Parameters of one layer of a model with a pattern, with its norms and residual scheme.
std::int64_t layer_parameters(const Model& model, const LayerPattern::Layer& layer, bool active);

/// About as many parameters as the layers have: for limits, as the exact count may exceed 64 bits.
double approximate_parameters(const LayerPattern& pattern, std::int64_t hidden);

/// The sum over all layers of the memory that their mixers need for one sequence.
KeptBytes kept_bytes(const LayerPattern& pattern, std::int64_t hidden);

/// Parameters that mix the residual streams at both sites of a layer; 0 with one stream.
std::int64_t layer_stream_parameters(const LayerPattern& pattern, std::int64_t hidden);

/// Parameters of the residual streams' way into the output head; 0 with one stream.
std::int64_t head_stream_parameters(const LayerPattern& pattern, std::int64_t hidden);

}  // namespace orrery
