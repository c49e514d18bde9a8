#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "sim/model/mixer.hpp"
#include "sim/model/model.hpp"

namespace orrery {

struct Deployment;

/// Layers of a model that are alike, on one tensor-parallel rank.
struct ServedLayers {
  /// A model all of whose layers are like these: its sizes are those of one layer.
  Model shape;
  int layers = 0;
  int dense = 0, experts = 0;             ///< Those of them with an MLP, and with experts.
  std::map<std::int64_t, int> windows;    ///< Those with attention, by their window; 0: none.
  int wide = 0;                           ///< Those whose weights stay in 16 bits.
  std::optional<StateWork> state;         ///< The mixer that keeps a state; nothing: attention.
  std::optional<AttentionModule> module;  ///< Attention that runs as one kernel.
  bool has_streams = false;               ///< Several residual streams.

  bool has_attention() const { return !windows.empty(); }
  /// Shares of a whole layer: one that has only a mixer or only a feed-forward part counts half.
  double whole_layers() const;
};

/// The layers of `model` by kind, in the order of their first layer. A model whose layers differ in
/// windows and experts alone is of one kind. `tp` divides the sizes (need_priced_mixers()).
std::vector<ServedLayers> served_layers(const Model& model, const Deployment& plan);

/// Whole layers of a model: see ServedLayers::whole_layers().
double whole_layers(const Model& model);

/// Heads of attention, or of a mixer with a state, that tensor parallelism cuts.
struct CutHeads {
  std::string what;  ///< "heads", "heads of mamba2", ...
  std::int64_t heads = 0;
  /// Key heads or groups that several of them share: ranks have whole ones, or copies of one. 0:
  /// there are none such.
  std::int64_t shared = 0;
  std::string what_shared;  ///< "key heads", "groups of mamba2"
};
std::vector<CutHeads> cut_heads(const Model& model);
/// The widths of MLPs that tensor parallelism cuts, and those of queries outside latent attention.
std::vector<std::int64_t> mlp_widths(const Model& model);
std::vector<std::int64_t> query_widths(const Model& model);

/// Some attention is priced as a module with its projections.
bool has_attention_module(const Model& model);
/// Some attention keeps entries that stand for several tokens (CSA, HCA).
bool has_compressed_attention(const Model& model);

/// Some mixer has kernels that take several prompts at once: scans, modules of attention.
bool has_joint_prompts(const Model& model);

/// Some mixer keeps a state.
bool has_states(const Model& model);

/// Refuses models with layers that serving has no prices of (infeasible).
void need_priced_mixers(const Model& model, const Place& at);

}  // namespace orrery
