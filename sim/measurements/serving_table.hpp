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
  /// How it is called in answers: "gemm of vllm 0.19.0".
  std::string title() const { return op + " of " + engine + " " + version; }
};

/// Sizes of a row of `op`, in order, the one that its file's times run along last; empty: there is
/// no such op.
///
///     gemm               n k m                       y[m,n] = x[m,k] w[k,n]
///     decode_attention   batch heads kv_heads head_dim window context     window 0: all
///     prefill_attention  batch heads kv_heads head_dim seq
///     latent_decode      batch heads context         the core of multi-head latent attention
///     latent_prefill     batch heads seq
///     latent_pre, latent_post  heads tokens          its absorbed up-projections
///     experts            hidden inter topk experts moe_tp moe_ep tokens
///     all_reduce         gpus elements               elements of 16 bits
std::vector<std::string> serving_table_columns(const std::string& op);

/// A file's table. Errors (bad_input): another schema, op or column, a size that is none, a time
/// out of [0.01 us, 1e9 us], with its place.
ServingTable parse_serving_table(const JsonValue& json);

/// The table `name` ("gemm-fp8-vllm") of `gpu`, or nothing where there is none.
std::optional<ServingTable> read_serving_table(const std::string& gpu, const std::string& name);

/// Whether any inference kernel of `gpu` was measured.
bool has_serving_tables(const std::string& gpu);
/// `gpu`, or the one whose kernels stand in for its own (calibration/data/serving_stand_ins.json);
/// "" where nobody's do.
std::string gpu_of_serving_tables(const std::string& gpu);
/// The same of one table: of "h100-sxm" and "experts-mxfp4-vllm" "h200-sxm".
std::string gpu_of_serving_table(const std::string& gpu, const std::string& name);
/// Whose table of this name holds larger groups of GPUs than that of `gpu`, which reach each other
/// as those do; "" where nobody's does.
std::string gpu_of_larger_groups(const std::string& gpu, const std::string& name);

}  // namespace orrery
