#include "sim/serving/kernel_roof.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <map>

namespace orrery {
namespace {

constexpr double elements_16_bit = 2.0;

// Tables of latent attention have these sizes: DeepSeek-V3, arXiv 2412.19437, section 4.2.
constexpr double latent_rank = 512.0, latent_rope = 64.0, latent_nope = 128.0, latent_value = 128.0;

// Starts of kernels that were measured in CUDA graphs: the time of the smallest rows, rounded. They
// only decide how much of a time is roofline and how much is interpolated.
const std::map<std::string, Seconds>& starts() {
  static const std::map<std::string, Seconds> all{{"gemm", microseconds(2)},
                                                  {"decode_attention", microseconds(3)},
                                                  {"prefill_attention", microseconds(6)},
                                                  {"latent_decode", microseconds(4)},
                                                  {"latent_prefill", microseconds(6)},
                                                  {"latent_pre", microseconds(3)},
                                                  {"latent_post", microseconds(3)},
                                                  {"experts", microseconds(8)},
                                                  {"dispatched_prompts", microseconds(8)},
                                                  {"dispatched_experts", microseconds(8)},
                                                  {"delta_rule", microseconds(12)},
                                                  {"channel_delta_rule", microseconds(12)},
                                                  {"state_space", microseconds(12)},
                                                  {"delta_rule_step", microseconds(4)},
                                                  {"channel_delta_rule_step", microseconds(4)},
                                                  {"convolution", microseconds(4)},
                                                  {"convolution_step", microseconds(2)},
                                                  {"csa_decode", microseconds(40)},
                                                  {"hca_decode", microseconds(30)},
                                                  {"csa_prefill", microseconds(50)},
                                                  {"hca_prefill", microseconds(40)},
                                                  {"msa_decode", microseconds(20)},
                                                  {"msa_prefill", microseconds(20)},
                                                  {"streams_pre", microseconds(17)},
                                                  {"streams_post", microseconds(6)},
                                                  {"sparse_decode", microseconds(30)},
                                                  {"sparse_decode_shared", microseconds(20)},
                                                  {"sparse_prefill", microseconds(600)},
                                                  {"sparse_prefill_shared", microseconds(400)},
                                                  {"all_reduce", microseconds(4)}};
  return all;
}

// States of the tables, and the chunk of tokens of their scans. A step of a delta rule multiplies
// each element of a state some seven times.
constexpr double state_keys = 128.0, state_bytes = 4.0, chunk = 64.0, step_operations = 7.0;

// Four residual streams, and the weights that each of them has of all channels: arXiv 2512.24880,
// section 4: 4 x 4 of the residual, 4 of the way in and 4 of the way out.
constexpr double streams = 4.0, stream_weights = 24.0;

// Values of a head of the tables.
double state_values(const std::string& op) { return op == "state_space" ? 64.0 : 128.0; }

// Queries, keys and values are read and the output is written, and so is the state of each sequence
// (docs/notes/hybrid-models.md has the products of a chunk).
KernelWork scan_work(const std::string& op, double heads, double batch, double seq) {
  const double values = state_values(op), tokens = batch * seq;
  const double products =
      op == "state_space" ? chunk * values + 2.0 * state_keys * values
                          : chunk * (3.0 * state_keys + 2.0 * values) + 3.0 * state_keys * values;
  const double moved = elements_16_bit * tokens * 2.0 * (state_keys + values) +
                       2.0 * state_bytes * batch * state_keys * values;
  return {Flop{2.0 * heads * tokens * products}, Bytes{heads * moved}};
}

KernelWork step_work(double heads, double batch, double bytes) {
  const double states = heads * batch * state_keys * state_values("delta_rule");
  return {Flop{step_operations * states}, Bytes{2.0 * bytes * states}};
}

// Sizes that the models of the tables share: DeepSeek-V3.2, arXiv 2512.02556. A head's query has
// 192 and 256 channels, its value 128 and 256: 192 on average.
constexpr double sparse_channels = 192.0, index_dim = 128.0, index_bytes = 132.0,
                 seen_most = 2048.0;

// The projections of new tokens, index scores of all cached ones, and attention to the chosen ones.
KernelWork sparse_work(const std::string& op, const KernelFormats& formats,
                       std::span<const std::int64_t> sizes) {
  const auto size = [&](std::size_t i) { return static_cast<double>(sizes[i]); };
  const double hidden = size(0), q_rank = size(1), index_heads = size(2), heads = size(3);
  const bool prompts = op.starts_with("sparse_prefill");
  const bool own_index = !op.ends_with("_shared");
  const double batch = size(4), news = prompts ? size(5) : 1.0, context = size(prompts ? 6 : 5);
  const double tokens = batch * news, mean = context - 0.5 * (news - 1.0);
  const double wide = latent_rank + latent_rope;
  double weights = hidden * (q_rank + wide) + heads * sparse_channels * (q_rank + hidden) +
                   heads * latent_rank * 2.0 * sparse_channels;
  if (own_index) weights += index_heads * (index_dim * q_rank + hidden) + hidden * index_dim;
  const double seen = std::min(seen_most, mean);
  const double core = 2.0 * heads * (wide + latent_rank) * seen;
  const double index = own_index ? 2.0 * index_heads * index_dim * mean : 0.0;
  const double kv = element_bytes(formats.kv) * wide;
  const double read =
      batch * ((own_index ? index_bytes * context : 0.0) + kv * (prompts ? context : seen));
  return {Flop{tokens * (2.0 * weights + core + index)},
          Bytes{element_bytes(formats.weights) * weights + read +
                elements_16_bit * 2.0 * tokens * hidden}};
}

// Sizes that both models of the tables share (DeepSeek-V4's config.json): heads of 512 channels,
// whose results are multiplied down to 1,024 for eight heads; a window of 128 tokens.
constexpr double compressed_dim = 512.0, heads_of_group = 8.0, group_rank = 1024.0,
                 window_tokens = 128.0, chosen_most = 512.0, entry_bytes = 584.0;

// The same of compressed attention. Entries are in fp8: 584 bytes.
KernelWork compressed_work(const std::string& op, const KernelFormats& formats,
                           std::span<const std::int64_t> sizes) {
  const auto size = [&](std::size_t i) { return static_cast<double>(sizes[i]); };
  const double hidden = size(0), q_rank = size(1), heads = size(3);
  const bool prompts = op.ends_with("_prefill"), with_index = op.starts_with("csa_");
  const double index_heads = with_index ? size(2) : 0.0;
  const double ratio = with_index ? 4.0 : 128.0, halves = with_index ? 2.0 : 1.0;
  const double batch = size(4), news = prompts ? size(5) : 1.0, context = size(prompts ? 6 : 5);
  const double tokens = batch * news, mean = std::max(1.0, context - 0.5 * (news - 1.0));
  double weights = hidden * (q_rank + compressed_dim * (1.0 + 2.0 * halves)) +
                   heads * compressed_dim * (q_rank + group_rank) +
                   heads / heads_of_group * group_rank * hidden;
  if (with_index)
    weights += index_heads * (index_dim * q_rank + hidden) + 2.0 * halves * hidden * index_dim;
  const double entries = mean / ratio;
  const double seen =
      std::min(window_tokens, mean) + (with_index ? std::min(chosen_most, entries) : entries);
  const double core = 4.0 * heads * compressed_dim * seen;
  const double index = 2.0 * index_heads * index_dim * entries;
  const double all = context / ratio;
  const double read = batch * ((with_index ? index_bytes * all : 0.0) +
                               entry_bytes * (prompts ? all + window_tokens : seen));
  return {Flop{tokens * (2.0 * weights + core + index)},
          Bytes{element_bytes(formats.weights) * weights + read +
                elements_16_bit * 2.0 * tokens * hidden}};
}

// Sizes of the tables' model (MiniMax-M3's config.json): heads of 128 channels, 16 of which share
// keys and values; an index chooses 16 blocks of 128 tokens beside a query's own.
constexpr double block_dim = 128.0, heads_of_key = 16.0, chosen_tokens = 17.0 * 128.0,
                 block_index_bytes = 256.0;

// The same of attention to blocks of tokens.
KernelWork block_work(const std::string& op, const KernelFormats& formats,
                      std::span<const std::int64_t> sizes) {
  const auto size = [&](std::size_t i) { return static_cast<double>(sizes[i]); };
  const double hidden = size(0), index_heads = size(2), heads = size(3);
  const bool prompts = op.ends_with("_prefill");
  const double batch = size(4), news = prompts ? size(5) : 1.0, context = size(prompts ? 6 : 5);
  const double tokens = batch * news, mean = std::max(1.0, context - 0.5 * (news - 1.0));
  const double keys = std::max(1.0, heads / heads_of_key);
  const double weights = hidden * block_dim * (2.0 * heads + 2.0 * keys + index_heads + 1.0);
  const double seen = std::min(chosen_tokens, mean);
  const double core = 4.0 * heads * block_dim * seen;
  const double index = 2.0 * index_heads * block_dim * mean;
  const double kv = element_bytes(formats.kv) * 2.0 * keys * block_dim;
  const double read = batch * (block_index_bytes * context + kv * (prompts ? context : seen));
  return {Flop{tokens * (2.0 * weights + core + index)},
          Bytes{element_bytes(formats.weights) * weights + read +
                elements_16_bit * 2.0 * tokens * hidden}};
}

// Each weight is read in its format and written in 16 bits.
double written_out_bytes(Dtype format) { return element_bytes(format) + elements_16_bit; }

KernelWork gemm_work(double n, double k, double m, Dtype format) {
  if (m > facts(format).fused_rows) {
    KernelWork work = gemm_work(n, k, m, Dtype::bf16);
    work.bytes += Bytes{written_out_bytes(format) * n * k};
    return work;
  }
  const double in = std::min(element_bytes(format), elements_16_bit);
  const double x = facts(format).weight_only ? elements_16_bit : in;
  return {Flop{2.0 * m * n * k}, Bytes{in * n * k + x * m * k + elements_16_bit * m * n}};
}

}  // namespace

bool is_of_experts(const std::string& op) {
  return op == "experts" || op == "dispatched_prompts" || op == "dispatched_experts";
}

bool is_module(const std::string& op) {
  return op.starts_with("sparse_") || op.starts_with("csa_") || op.starts_with("hca_") ||
         op.starts_with("msa_");
}

bool is_scan(const std::string& op) {
  return op == "delta_rule" || op == "channel_delta_rule" || op == "state_space";
}

double distinct_experts(std::int64_t experts, std::int64_t ep, std::int64_t per_token,
                        double tokens, double evenness) {
  const auto all = static_cast<double>(experts);
  const double held = all / static_cast<double>(ep);
  const double draws = evenness * tokens * static_cast<double>(per_token);
  const double visited = held * (1.0 - std::pow(1.0 - 1.0 / all, draws));
  // A token's own experts differ, and all of them are read.
  const double least = std::min(held, static_cast<double>(per_token) / static_cast<double>(ep));
  return std::clamp(visited, std::min(least, held), held);
}

KernelWork kernel_work(const std::string& op, const KernelFormats& formats,
                       std::span<const std::int64_t> sizes) {
  const auto size = [&](std::size_t i) { return static_cast<double>(sizes[i]); };
  const double kv = element_bytes(formats.kv);
  if (op == "gemm") return gemm_work(size(0), size(1), size(2), formats.weights);
  if (op == "decode_attention") {
    const double seen = sizes[4] > 0 ? std::min(size(4), size(5)) : size(5);
    const double flop = 4.0 * size(0) * size(1) * size(3) * seen;
    return {Flop{flop}, Bytes{2.0 * size(0) * size(2) * size(3) * seen * kv +
                              2.0 * elements_16_bit * size(0) * size(1) * size(3)}};
  }
  if (op == "prefill_attention")
    return {Flop{2.0 * size(0) * size(1) * size(3) * size(4) * size(4)},
            Bytes{elements_16_bit * 2.0 * size(0) * size(4) * size(3) * (size(1) + size(2))}};
  if (op == "latent_decode") {
    const double wide = latent_rank + latent_rope;
    return {Flop{2.0 * size(0) * size(2) * size(1) * (wide + latent_rank)},
            Bytes{size(0) * size(2) * wide * kv +
                  elements_16_bit * size(0) * size(1) * (wide + latent_rank)}};
  }
  if (op == "latent_prefill") {
    const double query = latent_nope + latent_rope;
    return {Flop{size(0) * size(1) * size(2) * size(2) * (query + latent_value)},
            Bytes{elements_16_bit * 2.0 * size(0) * size(1) * size(2) * (query + latent_value)}};
  }
  if (op == "latent_pre" || op == "latent_post")
    return {Flop{2.0 * size(1) * size(0) * latent_rank * latent_nope},
            Bytes{elements_16_bit * size(0) *
                  (latent_rank * latent_nope + size(1) * (latent_rank + latent_nope))}};
  if (is_of_experts(op)) {
    const double hidden = size(0), inter = size(1), per_token = size(2), tp = size(4), ep = size(5),
                 tokens = size(6);
    const double rows = tokens * per_token / ep;  // Rows of a rank's products.
    const double read = distinct_experts(sizes[3], sizes[5], sizes[2], tokens,
                                         op == "experts" ? power_law_evenness : 1.0);
    const double weights = 3.0 * hidden * inter / tp;
    const bool fused = std::isinf(facts(formats.weights).fused_rows);
    const double written =
        fused ? 0.0 : size(3) / ep * weights * written_out_bytes(formats.weights);
    return {Flop{2.0 * rows * weights},
            Bytes{read * weights * (fused ? element_bytes(formats.weights) : elements_16_bit) +
                  rows * hidden * 2.0 * elements_16_bit + written}};
  }
  if (op == "convolution" || op == "convolution_step") {
    const bool prompts = op == "convolution";
    const double tokens = prompts ? size(1) * size(2) : size(1);
    // A step reads and writes the inputs of the last three tokens as well.
    const double each = prompts ? 2.0 : 8.0;
    return {Flop{}, Bytes{elements_16_bit * each * size(0) * tokens}};
  }
  if (op.ends_with("_step")) return step_work(size(0), size(1), state_bytes);
  if (is_scan(op)) return scan_work(op, size(0), size(1), size(2));
  if (op == "streams_pre" || op == "streams_post") {
    const bool before = op == "streams_pre";
    const double channels = size(0) * size(1);
    return {Flop{before ? 2.0 * 2.0 * stream_weights * streams * channels : 0.0},
            Bytes{elements_16_bit * (before ? 20.0 : 36.0) * channels}};
  }
  if (op.starts_with("sparse_")) return sparse_work(op, formats, sizes);
  if (op.starts_with("msa_")) return block_work(op, formats, sizes);
  if (is_module(op)) return compressed_work(op, formats, sizes);
  assert(op == "all_reduce");
  const double gpus = size(0);
  return {Flop{}, Bytes{2.0 * (gpus - 1.0) / gpus * elements_16_bit * size(1)}};
}

MaybeRefused lacks_units(const Gpu& gpu, Dtype format) {
  if (gpu.*facts(format).peak > FlopPerSecond{}) return {};
  return infeasible(
      "weights", "the GPU '" + gpu.name + "' has no units for " + name(format),
      gpu.peak_fp8 > FlopPerSecond{} ? "use fp8, bf16 or int4" : "use bf16, fp16, int8 or int4");
}

FlopPerSecond peak_of(const Gpu& gpu, Dtype format, const Place& at) {
  if (const auto no = lacks_units(gpu, format)) fail_infeasible(at, no->problem, no->remedy);
  return gpu.*facts(format).peak;
}

Seconds kernel_roof(const std::string& op, const KernelWork& work, FlopPerSecond peak,
                    BytesPerSecond bandwidth) {
  const Seconds memory = work.bytes / bandwidth;
  const Seconds compute = peak == FlopPerSecond{} ? Seconds{} : work.flop / peak;
  return std::max(memory, compute) + starts().at(op);
}

}  // namespace orrery
