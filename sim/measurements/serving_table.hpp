#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/core/json_value.hpp"
#include "sim/core/units.hpp"

namespace orrery {

/// One table of inference kernels of one GPU and engine: calibration/data/serving/<gpu>/<name>.json
/// ("orrery.serving_kernels/1").
struct ServingTable {
  std::string gpu;
  std::string op;       ///< "gemm", "decode_attention", ...: serving_table_columns() has all.
  std::string weights;  ///< Format of a product's or an expert's weights; "": it has none.
  std::string kv;       ///< Format of the cache that attention reads.
  std::string engine;
  std::string version;
  std::string source;
  std::size_t width = 0;            ///< Sizes of a row.
  std::vector<std::int64_t> sizes;  ///< Row after row, as serving_table_columns() names them.
  std::vector<Seconds> times;       ///< One a row, without the launches that the file counts.

  std::size_t rows() const { return times.size(); }
  std::span<const std::int64_t> row(std::size_t i) const {
    return std::span{sizes}.subspan(i * width, width);
  }
  /// Its name in answers: "gemm of vllm 0.19.0".
  std::string title() const { return op + " of " + engine + " " + version; }
};

/// Names of the sizes of a row of `op`, in order, with the one that its file's times run along
/// last; empty if there is no such op.
///
///     gemm               n k m                       y[m,n] = x[m,k] w[k,n]
///     decode_attention   batch heads kv_heads head_dim window context     window 0: all
///     prefill_attention  batch heads kv_heads head_dim seq
///     latent_decode      batch heads context         the core of multi-head latent attention
///     latent_prefill     batch heads seq
///     latent_pre, latent_post  heads tokens          its absorbed up-projections
///     experts            hidden inter topk experts moe_tp moe_ep tokens
///     dispatched_prompts, dispatched_experts         as experts: of tokens that an all-to-all
///                        brought, in kernels for long prompts and in those of CUDA graphs, with
///                        every rank's share of the tokens even
///     delta_rule, channel_delta_rule, state_space    heads batch seq: scans of prompts of mixers
///                        with a state, of 128 x 128 a head (64 x 128 in state spaces)
///     delta_rule_step, channel_delta_rule_step       heads batch: of one token a request
///     convolution        channels batch seq          causal, over 4 tokens
///     convolution_step   channels batch
///     sparse_decode, sparse_decode_shared            hidden q_rank index_heads heads batch context
///     sparse_prefill, sparse_prefill_shared          the same with new tokens before the context:
///                        latent attention with a sparse index, projections included; shared: the
///                        choice is an earlier layer's
///     csa_decode, csa_prefill, hca_decode, hca_prefill   the same sizes: compressed attention,
///                        4 tokens an entry with an index, and 128 without (index_heads 1)
///     streams_pre, streams_post                      hidden tokens: four residual streams, mixed
///                        before and after both parts of a layer
///     all_reduce         gpus elements               elements of 16 bits
std::vector<std::string> serving_table_columns(const std::string& op);

/// Parses a file's table. Errors (bad_input): another schema, op or column, an invalid size, a time
/// out of [0.01 us, 1e9 us], with its place.
ServingTable parse_serving_table(const JsonValue& json);

/// The table `name` ("gemm-fp8-vllm") of `gpu`, or empty if there is none.
std::optional<ServingTable> read_serving_table(const std::string& gpu, const std::string& name);

/// Some inference kernel of `gpu` was measured.
bool has_serving_tables(const std::string& gpu);
/// The GPU whose inference kernels are used for `gpu`: itself or a proxy
/// (calibration/data/serving_stand_ins.json); "" if there is none.
std::string gpu_of_serving_tables(const std::string& gpu);
/// The same for one table: "h200-sxm" for "h100-sxm" and "experts-mxfp4-vllm".
std::string gpu_of_serving_table(const std::string& gpu, const std::string& name);
/// A GPU whose table of this name has larger groups than `gpu`'s, equally connected; else "".
std::string gpu_of_larger_groups(const std::string& gpu, const std::string& name);

}  // namespace orrery
