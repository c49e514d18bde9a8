#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/object_reader.hpp"

namespace orrery {

struct Model;

/// A matrix of weights that multiplies the channels of each token.
struct WeightMatrix {
  std::string name;
  std::int64_t in = 0, out = 0;
};

/// The memory that a mixer needs for one sequence in one layer, in bytes: keys, values and inputs
/// of convolutions in 16 bits, states in fp32.
struct KeptBytes {
  double per_token = 0.0;   ///< Grows with the context.
  std::int64_t states = 0;  ///< Of a sequence, whatever its length.
  double window = 0.0;      ///< Keys and values of a window that is full.

  KeptBytes& operator+=(const KeptBytes& other);
};

/// How a state passes over the tokens of a sequence, which decides the kernel.
enum class ScanKind {
  none,
  state_space,         ///< Mamba-2: a decay a head.
  delta_rule,          ///< Gated delta net.
  channel_delta_rule,  ///< KDA: a decay a channel.
  fixed_decay,         ///< Lightning attention: a decay a head that no input changes.
  selective,  ///< Mamba-1: a decay a channel and state; each channel is a head of one value.
};

/// A scan by one rank: each head has a state of `keys` x `values`.
struct Scan {
  ScanKind kind = ScanKind::none;
  std::int64_t heads = 0;
  std::int64_t keys = 0, values = 0;
};

/// The work of a mixer with a state on one tensor-parallel rank: products that read the layer's
/// input, a causal convolution, a scan, a gated norm, and a product whose sums are reduced.
struct StateWork {
  std::vector<std::int64_t> inputs;  ///< Widths of the products that read the input.
  std::vector<WeightMatrix> inner;   ///< Products that read outputs of those.
  /// Channels that the first inner product makes of the convolved ones: these are cut, so that
  /// tensor-parallel ranks add up its outputs, forward, and their gradients, backward. All inner
  /// products lie behind the convolution then, and context ranks cut the channels once more.
  /// 0: inner products read what every rank has.
  std::int64_t summed = 0;
  std::int64_t convolved = 0, taps = 0;  ///< Channels of the convolution.
  Scan scan;
  std::int64_t gated = 0;    ///< Channels that a gate scales, in a kernel of its own.
  std::int64_t output = 0;   ///< Channels that the last product reads.
  std::int64_t vectors = 0;  ///< Parameters outside of products.
  /// Tokens between those behind which an engine keeps states of prompts; 1: it may anywhere.
  std::int64_t chunk = 1;
  /// Activations of a token that the backward pass needs, without the inputs of products and the
  /// outputs of the first ones: channels in 16 bits, and bytes of other formats.
  std::int64_t kept_channels = 0;
  double kept_bytes = 0.0;
  /// The backward pass computes the convolution's output again, and does not keep it.
  bool convolves_again = false;
  /// Likewise the last inner product's output, and what the last product reads.
  bool gates_again = false;

  /// Channels of the products that read the input.
  std::int64_t input_width() const;
  /// Heads and groups of the whole mixer. The number of tensor-parallel ranks must divide the
  /// heads, and must divide the groups or be a multiple of them.
  std::int64_t heads = 0, groups = 0;
};

/// Attention that engines run, and benchmarks time, as one module with its projections.
struct AttentionModule {
  std::string decode, prefill;  ///< Ops of their tables (sim/measurements/serving_table.hpp).
  std::int64_t heads = 0;
  std::int64_t q_rank = 0;       ///< 1 stands for queries of one product.
  std::int64_t index_heads = 1;  ///< 1 stands for none as well.
  /// What a token has in the cache: values in the cache's format, or `narrow_bytes` where that has
  /// 8 bits; and bytes whose format engines fix.
  double values = 0.0, narrow_bytes = 0.0, bytes = 0.0;
  /// Key heads, over which ranks share `values` and `narrow_bytes`, and the parameters that make
  /// these; 0: all ranks have the same.
  std::int64_t kv_heads = 0, kv_parameters = 0;
  /// The last tokens that it sees whole, and bytes of each; and bytes of a sequence's entries that
  /// are not finished, which summarise up to `unfinished` tokens.
  std::int64_t window = 0;
  double window_bytes = 0.0;
  std::int64_t unfinished = 0;
  double unfinished_bytes = 0.0;
  std::int64_t copied = 0;        ///< Parameters that every tensor-parallel rank has.
  std::int64_t most_context = 0;  ///< Earlier tokens that it sees at most; 0: all.

  /// Bytes of a sequence, whatever its tokens.
  double of_sequence() const {
    return static_cast<double>(window) * window_bytes + unfinished_bytes;
  }
};

/// The part of a layer that mixes the tokens of a sequence: attention of some kind, a state space,
/// or a convolution. Sizes are those of the whole model. A kind is a file in sim/model/mixers.
class Mixer {
 public:
  virtual ~Mixer() = default;

  virtual std::string kind() const = 0;  ///< "gated_delta_net"
  /// Products with weights, in the order of a forward pass.
  virtual std::vector<WeightMatrix> matrices(std::int64_t hidden) const = 0;
  /// Parameters outside of matrices: norms, biases, convolutions, decays.
  virtual std::int64_t vectors(std::int64_t hidden) const = 0;
  virtual KeptBytes kept(std::int64_t hidden) const = 0;
  /// Writes its sizes into a model whose layers are alike, as attention that such models may have;
  /// false if they have none like it.
  virtual bool describe(Model& layer) const;
  /// Its work on one of `tp` tensor-parallel ranks. Nothing: it has no prices in training yet.
  virtual std::optional<StateWork> work(std::int64_t hidden, std::int64_t tp) const;

  /// Nothing: engines run it by kernels of which it consists.
  virtual std::optional<AttentionModule> module(std::int64_t hidden) const;

  std::int64_t parameters(std::int64_t hidden) const;
};

using MixerPointer = std::shared_ptr<const Mixer>;

/// A kind by the word under "kind" of its JSON object.
struct MixerKind {
  std::string word;
  MixerPointer (*parse)(const JsonValue& json);
};
const std::vector<MixerKind>& mixer_kinds();

/// Reads {"kind": ..., its sizes}. Errors (bad_input): unknown kinds and keys, sizes that do not go
/// together.
MixerPointer parse_mixer(const JsonValue& json);

/// Limit of a mixer's sizes, so that no product of three of them and a width exceeds 64 bits.
constexpr std::int64_t max_mixer_size = 100'000;

/// Keys of a mixer: whole numbers from 1, unless they say otherwise, and switches.
class MixerKeys {
 public:
  MixerKeys(const JsonValue& json, std::vector<std::string> known);

  std::int64_t size(const std::string& key);  ///< Required.
  std::int64_t size(const std::string& key, std::int64_t absent);
  std::int64_t tokens(const std::string& key);  ///< 0 where it is absent.
  bool flag(const std::string& key, bool absent = false);
  /// Errors: `whole` is no multiple of `part`; `text` says of what.
  void check_divides(std::int64_t part, std::int64_t whole, const std::string& text);
  void raise() { reader_.raise(); }

 private:
  ObjectReader reader_;
};

}  // namespace orrery
