#pragma once

#include <cstdint>
#include <functional>

#include "sim/serving/deployment.hpp"
#include "sim/serving/kv_cache.hpp"

namespace orrery {

/// Memory of one rank.
struct ServingMemory {
  Bytes total;        ///< Capacity as CUDA reports it.
  Bytes weights;      ///< Weights of the fullest rank.
  Bytes activations;  ///< Tensors of the largest iteration, if the engine counts them apart.
  Bytes reserve;      ///< Contexts, graphs, communicators.
  /// Pool of the states of mixers that keep one, or of unfinished entries of compressed attention;
  /// 0: they are in the cache.
  Bytes states;
  Bytes kv;  ///< Rest for keys and values; below 0: it misses as much.
};

/// The KV cache of one attention rank, which all its requests share.
struct KvCapacity {
  double bytes_per_token = 0.0;  ///< Bytes in one GPU: its layers and its share of the key heads.
  std::int64_t tokens = 0;       ///< Whole blocks; 0: none fits.
  std::int64_t block = 1;
  KvGroups groups;  ///< Each token of `tokens` is in all of them.
  /// Sequences whose states the pool holds; 0: there is no such pool.
  std::int64_t state_slots = 0;
  WindowPool windows;
  ServingMemory memory;

  std::int64_t blocks() const { return tokens / block * groups.all(); }
  /// Blocks of a request of `tokens_each` of which `at_once` are computed at once, and the requests
  /// that it holds together.
  std::int64_t blocks_of(std::int64_t tokens_each, std::int64_t at_once) const;
  std::int64_t requests(std::int64_t tokens_each, std::int64_t at_once) const;
  /// Tokens of the longest request that it holds.
  std::int64_t longest(std::int64_t at_once) const;
};

/// The most tokens of a prompt that the deployment computes at once.
std::int64_t at_once(const Deployment& deployment);

/// Bytes of the weights of the fullest rank: linear layers in the deployment's formats; embedding,
/// head, norms and biases in 16 bits; experts in mxfp4 padded as kernels of the GPU need them.
Bytes rank_weights(const Model& model, const Gpu& gpu, const Deployment& deployment);

/// Bytes of a sequence in all layers whose attention runs as a module, whatever the ranks.
double kv_bytes_of_modules(const Model& model, const Deployment& deployment, std::int64_t tokens);

/// Bytes of one request's states in a GPU, whatever its tokens: those of scans in the deployment's
/// format, and the inputs of convolutions. Each drafted token has states of its own
/// (docs/explanation/serving.md).
Bytes states_of_request(const Model& model, const Deployment& deployment);

/// Tokens of a block, raised until a page of a layer with attention holds the states of another
/// one, where the engine keeps both in the same pages.
std::int64_t block_for_states(const Model& model, const Deployment& deployment);

/// Bytes that a token takes in one GPU's cache:
///
///     layers / pp x 2 max(1, kv_heads / tp) head_dim B        latent attention: (512 + 64) B, not
///                                                              divided by tp
///
/// Where the engine frees what windows have left, layers are counted as vLLM allots them: kinds of
/// layers share pages in groups of equal size, so that the last group of a kind is filled up
/// (vllm/v1/core/kv_cache_utils.py).
double kv_bytes_per_token(const Model& model, const Deployment& deployment);

/// Memory that one request of `tokens` needs in a GPU, in whole blocks: layers with a window keep
/// it and an iteration's tokens (vllm/v1/kv_cache_interface.py, max_memory_usage_bytes).
Bytes kv_of_request(const Model& model, const Deployment& deployment, std::int64_t tokens);

/// Tokens of the longest request that a cache of so many bytes holds, in whole blocks.
std::int64_t longest_request(const Model& model, const Deployment& deployment, Bytes cache);

/// Applies the engine's MemoryRule to the GPU with the least left. Errors: none; a deployment that
/// does not fit has no tokens, and need_kv() says so.
KvCapacity kv_capacity(const Model& model, const System& system, const Deployment& deployment,
                       const ServingEngine& engine);

/// Refuses requests of `tokens` that are longer than the deployment's max_length (infeasible).
void need_length(const Deployment& deployment, std::int64_t tokens, const Place& at);

/// A further condition on a cache that a remedy leads to; empty: none.
using CacheSuffices = std::function<bool(const KvCapacity&)>;

/// The first of the usual changes under which a request of `tokens` fits: "--kv fp8 would do", with
/// options that replace or complete those of the deployment's request; "": none. Those of a pool
/// are keys: "tp=4".
std::string kv_remedy(const Model& model, const System& system, const Deployment& deployment,
                      const ServingEngine& engine, std::int64_t tokens, const Place& at,
                      const CacheSuffices& suffices = {});

/// Refuses a deployment that does not hold one request of `tokens`, or with whose max_length the
/// engine does not start (infeasible), with what is missing and the nearest change that would do.
void need_kv(const Model& model, const System& system, const Deployment& deployment,
             const ServingEngine& engine, std::int64_t tokens, const Place& at,
             const CacheSuffices& suffices = {});

/// What engines do about a request of so many tokens, more than the model's length: a sentence.
std::string too_long_note(const Model& model, std::int64_t tokens);

/// What engines do about lengths that nobody stated, a sentence each: requests of up to `tokens`
/// beyond the model's length, and a length of the model that does not fit in the cache.
std::vector<std::string> length_notes(const Model& model, const Deployment& deployment,
                                      const ServingEngine& engine, const KvCapacity& kv,
                                      std::int64_t tokens);

}  // namespace orrery
