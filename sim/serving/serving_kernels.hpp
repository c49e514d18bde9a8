#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/cluster/dtype.hpp"
#include "sim/cluster/system.hpp"
#include "sim/kernels/kernel_time.hpp"
#include "sim/measurements/serving_table.hpp"
#include "sim/model/mixer.hpp"
#include "sim/serving/fitted_table.hpp"
#include "sim/serving/serving_engine.hpp"

namespace orrery {

/// Rows of the tables of training steps (calibration/data/kernels), as a table of serving: products
/// of 256 rows and more in `format`, or causal attention of whole prompts ("prefill_attention").
/// Empty if `gpu` has none. They were measured with TensorRT-LLM (docs/explanation/kernels.md).
std::optional<ServingTable> training_rows(const std::string& gpu, const std::string& op,
                                          Dtype format);

/// Times of an engine's kernels on one kind of GPU.
///
/// Tables  of the engine's own release line first; where they do not reach a shape, the nearest of
///         another engine and, for large products and long prompts, those of training steps. Read
///         when first asked for.
/// Floor   1.1 times the bytes over the memory's bandwidth, and 1.5 us (attention 2 us): some rows
///         were taken from a warm L2 and beat the memory, which no layer of a model can
///         (docs/explanation/serving.md).
/// Tag     measured: this row, of this GPU and engine. default: no table, or over two octaves
///         outside all rows.
class ServingKernels {
 public:
  ServingKernels(const Gpu& gpu, const ServingEngine& engine);

  /// The product y[m,n] = x[m,k] w[k,n].
  KernelTime gemm(Dtype format, std::int64_t n, std::int64_t k, std::int64_t m) const;
  /// `sizes` as serving_table_columns("decode_attention") names them.
  KernelTime decode_attention(Dtype kv, std::span<const std::int64_t> sizes) const;
  /// The table that a decode of these sizes is priced from; empty if there is none.
  std::optional<ServingTable> decode_table(Dtype kv, std::span<const std::int64_t> sizes) const;
  /// Lower bound of attention that reads `read` from the cache.
  Seconds cold_attention(Bytes read) const;
  /// Attention of `tokens` tokens behind `cached` ones: the whole prompt's efficiency at what is
  /// left of its work, 4 a d (q p + q^2 / 2) operations.
  KernelTime prefill_attention(Dtype kv, std::int64_t heads, std::int64_t kv_heads,
                               std::int64_t head_dim, std::int64_t tokens,
                               std::int64_t cached) const;
  KernelTime latent_decode(Dtype kv, std::int64_t requests, std::int64_t heads,
                           std::int64_t context) const;
  KernelTime latent_prefill(Dtype kv, std::int64_t heads, std::int64_t tokens,
                            std::int64_t cached) const;
  /// Both absorbed up-projections of a decode step.
  KernelTime latent_products(std::int64_t heads, std::int64_t tokens) const;
  /// `sizes` as serving_table_columns("experts") names them.
  KernelTime experts(Dtype format, std::span<const std::int64_t> sizes) const;
  /// The same by FlashInfer's TRTLLM-gen kernels of Blackwell, whose table is that of vLLM in
  /// nvfp4. Those of other formats take longer by what their weights and operations take.
  KernelTime trtllm_gen_experts(Dtype format, std::span<const std::int64_t> sizes) const;
  /// The same behind an all-to-all, of a rank with the mean one's share of `sizes`' tokens. Another
  /// format than those measured (fp8 in blocks; nvfp4) has the first one's efficiency.
  /// `in_graph`: the kernels of CUDA graphs, else those of long prompts, if the engine has others.
  KernelTime dispatched_experts(Dtype format, std::span<const std::int64_t> sizes,
                                bool in_graph) const;

  /// A kernel's time, and the work of the sizes that it is priced at.
  struct Priced {
    KernelTime time;
    KernelWork work;
  };
  /// A scan of the parts of `prompts` prompts, `tokens` each. Those of state spaces and fixed
  /// decays that no table has, and selective ones, take as long as prompt_scan_time() says.
  Priced scan(const Scan& scan, std::int64_t prompts, std::int64_t tokens) const;
  /// A step of `requests` states in this format: of other kinds, whose traffic is the same, as of
  /// the delta rule. An engine's tables are of its own format (`states`).
  Priced state_step(const Scan& scan, Dtype states, std::int64_t requests) const;
  /// Four residual streams, mixed before and after both parts of a layer.
  Priced streams(std::int64_t hidden, std::int64_t tokens) const;

  /// A module of attention, on a rank with so many heads: `requests`
  /// with `tokens` new ones each, of contexts of `context` tokens, those included. Decodes: 1
  /// token.
  Priced attention_module(Dtype weights, Dtype kv, std::int64_t hidden,
                          const AttentionModule& module, std::int64_t heads, std::int64_t requests,
                          std::int64_t tokens, std::int64_t context) const;
  Priced convolution(std::int64_t channels, std::int64_t prompts, std::int64_t tokens) const;
  Priced convolution_step(std::int64_t channels, std::int64_t requests) const;

  /// A custom all-reduce; empty if none was measured over so many GPUs.
  std::optional<KernelTime> all_reduce(int gpus, std::int64_t elements) const;

  /// The GPU whose tables are used: this one, a proxy, or "".
  const std::string& measured_gpu() const { return measured_; }
  const Gpu& gpu() const { return gpu_; }
  /// Titles of the tables used so far, in the order of their first use.
  std::vector<std::string> used() const { return used_; }

 private:
  // Tables of one op and format, the nearest engine's first, and the times computed before.
  using Sizes = std::array<std::int64_t, 7>;  // Padded with zeros.
  struct TableSet {
    std::vector<FittedTable> tables;
    std::map<Sizes, KernelTime> known;
  };
  TableSet& table_set(const std::string& op, const std::string& words,
                      const KernelFormats& formats) const;
  KernelTime price(const std::string& op, const std::string& words, const KernelFormats& formats,
                   std::span<const std::int64_t> sizes) const;
  KernelTime module_time(const std::string& op, const std::string& words,
                         const KernelFormats& formats, std::span<const std::int64_t> sizes) const;
  const TableSet& tables_of_larger_groups() const;
  const TableSet& tables_of_trtllm_gen() const;
  static const FittedTable* nearest(const TableSet& table_set, std::span<const std::int64_t> sizes);
  // `priced`: formats of what is priced, if the tables were measured with others.
  KernelTime fresh_price(const TableSet& table_set, const std::string& op,
                         const KernelFormats& formats, std::span<const std::int64_t> sizes,
                         std::optional<KernelFormats> priced = {}) const;
  KernelTime cold(const KernelTime& hot, Bytes bytes, Seconds least) const;

  Gpu gpu_;
  Gpu table_gpu_;  // The tables' GPU: gpu_ if they are its own.
  ServingEngine engine_;
  std::string measured_;
  mutable std::map<std::string, TableSet> table_sets_;
  mutable std::vector<std::string> used_;
};

}  // namespace orrery
