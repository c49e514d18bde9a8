// The kernels of an iteration: the private half of IterationPrices.
#include <algorithm>
#include <array>
#include <cmath>

#include "sim/serving/iteration_prices.hpp"

namespace orrery {
namespace {

// Small kernels read and write 16-bit tensors at 1/1.3 of the memory's bandwidth (copies reach 0.75
// to 0.85 of it: calibration/kernel_facts.json).
constexpr double small_kernel_traffic = 1.3;

// Bytes per hidden element and kernel of an engine that fuses nothing: some four tensors.
constexpr double small_kernel_bytes = 8.0;

constexpr double activation_bytes = 2.0;  // Bytes of one activation.

// Dispatch and combine of copies of attention each take a start, and a rate over NVLink inferred on
// published wide expert parallelism (DeepEP's table of H800, NVIDIA's sweeps of GB200 NVL72). No
// link carries more than it can.
constexpr Seconds exchange_start = microseconds(8);
BytesPerSecond exchange_rate(const System& system) {
  const double nvlink = system.gpu.architecture >= Architecture::blackwell ? 700e9 : 400e9;
  return std::min(BytesPerSecond{nvlink}, system.scale_up);
}

// Kernels with a window were measured at 128 tokens alone. A longer window is priced as attention
// to as many tokens.
constexpr std::int64_t longest_measured_window = 256;

// The tables of experts are of gated ones, with three products: two have as many weights as gated
// experts of two thirds of the width.
std::int64_t gated_width(const Model& model) {
  return model.gated ? model.experts->ffn : std::max<std::int64_t>(1, model.experts->ffn * 2 / 3);
}

// Channels of a key head in the cache: half of its key and value.
std::int64_t cached_width(const Model& model) { return (model.head_dim + value_width(model)) / 2; }

// Engines whose kernels need no graph launch none (trtllm-2024).
bool launches_graphs(const ServingEngine& engine) { return engine.host.eager_layer > Seconds{}; }

// Adds the parts of a kind of layers to those of others: one for each op.
void add_parts(std::vector<IterationPart> from, std::vector<IterationPart>& to) {
  for (IterationPart& part : from) {
    const auto found = std::ranges::find(to, part.op, &IterationPart::op);
    if (found == to.end()) {
      to.push_back(std::move(part));
      continue;
    }
    found->count += part.count;
    found->time += part.time;
    found->tag = std::max(found->tag, part.tag);
    found->bytes += part.bytes;
    found->flop += part.flop;
  }
}

}  // namespace

IterationPart IterationPrices::product(const std::string& op, int count, Dtype format,
                                       std::int64_t n, std::int64_t k, std::int64_t m) const {
  const KernelTime one = kernels_->gemm(format, n, k, m);
  const std::array<std::int64_t, 3> sizes{n, k, m};
  const KernelWork work = kernel_work("gemm", {format, Dtype::bf16}, sizes);
  return {op,
          count,
          static_cast<double>(count) * one.time,
          one.tag,
          static_cast<double>(count) * work.bytes,
          static_cast<double>(count) * work.flop,
          peak_of(system_.gpu, format, {})};
}

// Of all layers: those at both ends of the model may have 16 bits.
void IterationPrices::products(const std::string& op, const ServedLayers& of, int layers,
                               Dtype format, std::int64_t n, std::int64_t k, std::int64_t m,
                               std::vector<IterationPart>& parts) const {
  const int wide = is_narrow(format) ? of.wide : 0;
  if (layers > wide) parts.push_back(product(op, layers - wide, format, n, k, m));
  if (wide > 0) parts.push_back(product(op + "_16bit", wide, Dtype::bf16, n, k, m));
}

void IterationPrices::attention_products(const ServedLayers& of, std::int64_t m,
                                         std::vector<IterationPart>& parts) const {
  const Model& model = of.shape;
  const std::int64_t heads = model.heads / plan_.tp;
  const int layers = of.layers;
  const Dtype format = plan_.attention;
  if (!model.latent) {
    const std::int64_t kv_heads = std::max<std::int64_t>(1, model.kv_heads / plan_.tp);
    const std::int64_t queries = (model.output_gate ? 2 : 1) * heads * model.head_dim;
    const std::int64_t values = model.values_are_keys ? 0 : kv_heads * value_width(model);
    products("gemm.qkv", of, layers, format, queries + kv_heads * model.head_dim + values,
             model.hidden, m, parts);
    products("gemm.out", of, layers, format, model.hidden, heads * value_width(model), m, parts);
    return;
  }
  const LatentAttention& latent = *model.latent;
  const std::int64_t query = latent.nope_dim + latent.rope_dim;
  const std::int64_t down = latent.q_rank + latent.kv_rank + latent.rope_dim;
  const std::int64_t in = latent.q_rank > 0 ? latent.q_rank : model.hidden;
  parts.push_back(product("gemm.latent_down", layers, format, down, model.hidden, m));
  parts.push_back(product("gemm.queries", layers, format, heads * query, in, m));
  // Decoding multiplies queries and results instead of keys and values; a prompt's tokens have as
  // many operations the other way round.
  const KernelTime absorbed = kernels_->latent_products(heads, m);
  const std::array<std::int64_t, 2> sizes{heads, m};
  const KernelWork work = kernel_work("latent_pre", {}, sizes);
  parts.push_back({"gemm.latent_up", 2 * layers, static_cast<double>(layers) * absorbed.time,
                   absorbed.tag, static_cast<double>(2 * layers) * work.bytes,
                   static_cast<double>(2 * layers) * work.flop, system_.gpu.peak_16bit});
  if (model.output_gate)
    parts.push_back(product("gemm.gate", layers, format, heads * latent.v_dim, model.hidden, m));
  parts.push_back(product("gemm.out", layers, format, model.hidden, heads * latent.v_dim, m));
}

// Products of a mixer with a state. Small ones, of decays and time steps, are in 16 bits.
void IterationPrices::state_products(const ServedLayers& of, std::int64_t m,
                                     std::vector<IterationPart>& parts) const {
  const StateWork& work = *of.state;
  products("gemm.mixer_in", of, of.layers, plan_.attention, work.input_width(), of.shape.hidden, m,
           parts);
  for (const WeightMatrix& matrix : work.inner)
    parts.push_back(product("gemm.mixer_up", of.layers, Dtype::bf16, matrix.out, matrix.in, m));
  products("gemm.mixer_out", of, of.layers, plan_.attention, of.shape.hidden, work.output, m,
           parts);
}

void IterationPrices::mlp_products(const ServedLayers& of, std::int64_t m,
                                   std::vector<IterationPart>& parts) const {
  const Model& model = of.shape;
  const auto mlp = [&](const std::string& op, int layers, std::int64_t ffn, int ranks) {
    const std::int64_t width = std::max<std::int64_t>(1, ffn / ranks);
    products(op + "_up", of, layers, plan_.weights, (model.gated ? 2 : 1) * width, model.hidden, m,
             parts);
    products(op + "_down", of, layers, plan_.weights, model.hidden, width, m, parts);
  };
  if (of.dense > 0) mlp("gemm.mlp", of.dense, model.ffn, plan_.tp);
  if (of.experts == 0) return;
  if (model.experts->shared_ffn > 0)
    mlp("gemm.shared", of.experts, model.experts->shared_ffn, plan_.tp);
  if (const std::int64_t latent = model.experts->latent; latent > 0) {
    // Every rank projects all of its tokens to the channels of the experts and back.
    products("gemm.experts_in", of, of.experts, Dtype::bf16, latent, model.hidden, m, parts);
    products("gemm.experts_out", of, of.experts, Dtype::bf16, model.hidden, latent, m, parts);
  }
}

// Where copies of attention share each expert, or without NVLink, for which there are no kernels
// that send each token to its experts: all ranks get all tokens, and add up the results of each
// one's experts (vllm/config/parallel.py: all2all_backend is allgather_reducescatter;
// tensorrt_llm/_torch/modules/fused_moe/fused_moe_cutlass.py: allgather, reducescatter_or_allreduce
// where alltoall is off).
IterationPart IterationPrices::gathered_exchange(const ServedLayers& of, std::int64_t m) const {
  const auto layers = static_cast<double>(of.experts);
  const double values =
      static_cast<double>(m * plan_.dp * of.shape.experts->channels(of.shape.hidden));
  const double sent = engine_.dispatches_quantised
                          ? std::min(activation_bytes, element_bytes(plan_.experts))
                          : activation_bytes;
  const auto ranks = static_cast<int>(plan_.stage_gpus());
  const bool graph = launches_graphs(engine_) && in_graph(m, false);
  const Bytes out{sent * values}, back{activation_bytes * values};
  const KernelTime gathered = reduce_.by_nccl(CollectiveKind::all_gather, ranks, out, graph);
  const KernelTime added = reduce_.by_nccl(CollectiveKind::reduce_scatter, ranks, back, graph);
  const double others = (ranks - 1.0) / ranks;
  return {"exchange",
          2 * of.experts,
          layers * (gathered.time + added.time),
          std::max(gathered.tag, added.tag),
          (others * layers) * (out + back),
          {},
          {}};
}

void IterationPrices::router(const ServedLayers& of, std::vector<IterationPart>& parts) const {
  if (engine_.small.router > Seconds{})
    parts.push_back({"router",
                     of.experts,
                     static_cast<double>(of.experts) * engine_.small.router,
                     Tag::interpolated,
                     {},
                     {},
                     {}});
}

// The exchange of the fullest rank, which has plan_.fullest_experts() times the mean one's tokens.
void IterationPrices::set_exchange() {
  Experts experts = *model_.experts;
  const auto ranks = static_cast<int>(plan_.stage_gpus());
  // Ranks that do not fill whole domains count as if they lay evenly in more of them.
  int per_domain = std::min(ranks, system_.nvlink_domain);
  while (ranks % per_domain != 0) --per_domain;
  const int domains = ranks / per_domain;
  if (plan_.redundant_experts > 0) {
    experts.count += plan_.redundant_experts;
    // DeepSeek's EPLB keeps a group's copies in its node where nodes divide the groups (README.md
    // of deepseek-ai/EPLB, hierarchical load balancing); else they lie anywhere.
    if (experts.groups % domains != 0 || experts.count % experts.groups != 0)
      experts.groups = experts.groups_per_token = 1;
  }
  exchange_.group = {ranks, domains, per_domain};
  exchange_.hidden = experts.channels(model_.hidden);
  exchange_.experts = experts.count;
  exchange_.top_k = experts.per_token;
  exchange_.dispatched = is_narrow(plan_.experts) ? Dtype::fp8 : Dtype::bf16;
  load_of_a_token_ = uniform_exchange(experts, ranks, per_domain, 1.0);
  const double fullest = plan_.fullest_experts();
  for (ExchangeLoad::Ports* ports :
       {&load_of_a_token_.direct, &load_of_a_token_.rails, &load_of_a_token_.once}) {
    ports->scale_up *= fullest;
    ports->network *= fullest;
  }
  load_of_a_token_.received *= fullest;
}

// The kernels of DeepEP send tokens to the ranks of their experts and bring the results back: the
// low-latency ones with products of masked rows serve decodes, the normal ones with products of
// contiguous rows serve prompts. The faster of the two counts, as engines choose by phase.
void IterationPrices::dispatched_experts(const ServedLayers& of, std::int64_t m,
                                         std::vector<IterationPart>& parts) const {
  const auto layers = static_cast<double>(of.experts);
  const auto tokens = static_cast<double>(m * plan_.dp);
  const std::array<std::int64_t, 7> sizes{of.shape.experts->channels(of.shape.hidden),
                                          gated_width(of.shape),
                                          exchange_.top_k,
                                          exchange_.experts,
                                          plan_.moe_tp,
                                          plan_.ep,
                                          std::llround(plan_.fullest_experts() * tokens)};
  const ExchangeLoad load = (tokens / exchange_.group.ranks) * load_of_a_token_;

  struct Way {
    KernelTime products;
    ExchangeCost exchange;
    Seconds time() const {
      return products.time + exchange.dispatch.time() + exchange.combine.time();
    }
  };
  const ExpertExchange exchange{reduce_.collectives()};
  const auto way = [&](ExpertDispatcher dispatcher, bool in_graph) {
    return Way{kernels_->dispatched_experts(plan_.experts, sizes, in_graph),
               exchange(dispatcher, exchange_, load)};
  };
  const Way masked = way(ExpertDispatcher::deepep_low_latency, true);
  const Way contiguous = way(ExpertDispatcher::deepep, false);
  const auto& [products, cost] = masked.time() < contiguous.time() ? masked : contiguous;
  const KernelWork work = kernel_work("dispatched_experts", {plan_.experts, Dtype::bf16}, sizes);
  parts.push_back({"experts", of.experts, layers * products.time, products.tag, layers * work.bytes,
                   layers * work.flop, peak_of(system_.gpu, plan_.experts, {})});
  router(of, parts);
  const auto bytes = [](const CollectiveCost& one) {
    return one.scale_up_bytes + one.network_bytes;
  };
  parts.push_back({"exchange",
                   2 * of.experts,
                   layers * (cost.dispatch.time() + cost.combine.time()),
                   std::max(cost.dispatch.tag, cost.combine.tag),
                   layers * (bytes(cost.dispatch) + bytes(cost.combine)),
                   {},
                   {}});
}

void IterationPrices::expert_layers(const ServedLayers& of, std::int64_t m,
                                    std::vector<IterationPart>& parts) const {
  if (of.experts == 0) return;
  if (plan_.dispatches) return dispatched_experts(of, m, parts);
  const Experts& experts = *of.shape.experts;
  const std::int64_t channels = experts.channels(of.shape.hidden);
  const auto layers = static_cast<double>(of.experts);
  const std::array<std::int64_t, 7> sizes{channels,      gated_width(of.shape), experts.per_token,
                                          experts.count, plan_.moe_tp,          plan_.ep,
                                          m * plan_.dp};
  const KernelTime one = plan_.trtllm_gen ? kernels_->trtllm_gen_experts(plan_.experts, sizes)
                                          : kernels_->experts(plan_.experts, sizes);
  const KernelWork work = kernel_work("experts", {plan_.experts, Dtype::bf16}, sizes);
  parts.push_back({"experts", of.experts, layers * one.time, one.tag, layers * work.bytes,
                   layers * work.flop, peak_of(system_.gpu, plan_.experts, {})});
  router(of, parts);
  if (plan_.dp == 1) return;
  if (plan_.moe_tp > 1 || system_.wiring == NodeWiring::pcie)
    return parts.push_back(gathered_exchange(of, m));
  const auto reached = static_cast<double>(std::min<std::int64_t>(experts.per_token, plan_.ep));
  const Bytes bytes{2.0 * static_cast<double>(m * channels) * reached};
  const Seconds each = exchange_start + bytes / exchange_rate(system_);
  parts.push_back({"exchange",
                   2 * of.experts,
                   2.0 * layers * each,
                   Tag::default_value,
                   2.0 * layers * bytes,
                   {},
                   {}});
}

// Traffic for one token between the products of all layers in an engine that fuses its kernels,
// however many they are: two norms with their residual, the rotation and the write to the cache,
// and the activation of MLPs (that of experts is in their tables).
Bytes IterationPrices::bytes_between_products(const ServedLayers& of) const {
  const Model& model = of.shape;
  const double tp = plan_.tp;
  const auto hidden = static_cast<double>(model.hidden);
  // Two tensors read and two written for each part of a layer; mixing of streams has the residual.
  const double parts =
      static_cast<int>(has_mixer(model)) + static_cast<int>(has_feed_forward(model));
  const double norms = parts * (of.has_streams ? 2.0 : 2.0 + 2.0) * hidden;
  const double heads = static_cast<double>(model.heads) / tp;
  double turned = 0.0, attended = 0.0;
  if (of.module) {  // It has what lies between its products.
  } else if (model.latent) {
    const LatentAttention& latent = *model.latent;
    turned = heads * static_cast<double>(latent.rope_dim) +
             static_cast<double>(latent.kv_rank + latent.rope_dim);
    attended = heads * static_cast<double>(latent.v_dim) + static_cast<double>(latent.q_rank);
  } else {
    const double kv_heads =
        model.heads == 0 ? 0.0 : std::max(1.0, static_cast<double>(model.kv_heads) / tp);
    turned = (heads + 2.0 * kv_heads) * static_cast<double>(model.head_dim);
    attended = heads * static_cast<double>(value_width(model));
  }
  if (model.output_gate) turned += 1.5 * attended;
  if (of.state) {
    // The gate of the scan's output: two tensors read, one written.
    turned += 1.5 * static_cast<double>(of.state->gated);
    attended += static_cast<double>(of.state->output);
  }
  const double dense = of.dense * static_cast<double>(model.ffn) / tp;
  const double shared =
      of.experts > 0 ? of.experts * static_cast<double>(model.experts->shared_ffn) / tp : 0.0;
  // Rotated tensors are read and written; a gated MLP reads two and writes their product.
  const double between =
      of.layers * (norms + 2.0 * turned) + (model.gated ? 3.0 : 2.0) * (dense + shared);
  // Inputs of products are read in 16 bits and written in fewer.
  const double by_attention =
      has_mixer(model) && !of.module ? of.layers * (hidden + attended) : 0.0;
  const double by_mlps = dense + shared + (of.dense + (shared > 0.0 ? of.experts : 0)) * hidden;
  const auto quantised = [&](Dtype format) {
    const bool apart = std::ranges::count(engine_.small.quantises_apart, format) > 0;
    return apart ? activation_bytes + element_bytes(format) : 0.0;
  };
  return Bytes{activation_bytes * between + quantised(plan_.attention) * by_attention +
               quantised(plan_.weights) * by_mlps};
}

void IterationPrices::mix_streams(const ServedLayers& of, std::int64_t tokens,
                                  std::vector<IterationPart>& parts) const {
  const ServingKernels::Priced one = kernels_->streams(of.shape.hidden, tokens);
  const auto layers = static_cast<double>(of.layers);
  parts.push_back({"streams", of.layers, layers * one.time.time, one.time.tag,
                   layers * one.work.bytes, layers * one.work.flop, system_.gpu.peak_16bit});
}

void IterationPrices::between_products(const ServedLayers& of, std::int64_t m,
                                       std::vector<IterationPart>& parts) const {
  const Model& model = of.shape;
  const double count = engine_.small.count * of.whole_layers();
  const Bytes a_token = engine_.small.fused
                            ? bytes_between_products(of)
                            : Bytes{count * small_kernel_bytes * static_cast<double>(model.hidden)};
  const Bytes moved = static_cast<double>(m) * a_token;
  Seconds time =
      count * engine_.small.each + small_kernel_traffic * (moved / system_.gpu.memory_bandwidth);
  if (of.state) time += static_cast<double>(of.layers) * engine_.small.states;
  if (count > 0.0)
    parts.push_back(
        {"small", static_cast<int>(std::lround(count)), time, Tag::interpolated, moved, {}, {}});
  if (plan_.tp == 1) return;
  const bool graph = launches_graphs(engine_) && in_graph(m, false);
  const auto all_reduce = [&](int sums, std::int64_t elements) {
    const KernelTime one = reduce_(plan_.tp, elements, graph);
    const std::array<std::int64_t, 2> sizes{plan_.tp, elements};
    parts.push_back({"all_reduce",
                     sums,
                     static_cast<double>(sums) * one.time,
                     one.tag,
                     static_cast<double>(sums) * kernel_work("all_reduce", {}, sizes).bytes,
                     {},
                     {}});
  };
  // One inside of mixers whose ranks make the scan's inputs together.
  if (of.state && of.state->summed > 0) all_reduce(of.layers, m * of.state->summed);
  // One all-reduce follows the mixer and one the MLP or the experts, unless the exchange returns
  // the results of experts to copies of attention.
  const int after_mlp = plan_.dp > 1 ? of.dense : of.dense + of.experts;
  const int mixers =
      static_cast<int>(of.has_attention() || of.module) + static_cast<int>(of.state.has_value());
  const int after_mixer = mixers * of.layers;
  const int sums = model.parallel_residual ? of.layers : after_mixer + after_mlp;
  if (sums > 0) all_reduce(sums, m * model.hidden);
}

// Two halves of the tokens that take turns: the exchange of one runs beside the products of the
// other, and what is longer than they are is seen. Attention over the cache, which does not depend
// on the tokens alone, is not counted on to hide it.
std::vector<IterationPart> IterationPrices::dense_parts(std::int64_t tokens) const {
  if (!plan_.two_batch || !plan_.dispatches || tokens < 2) return undivided_parts(tokens);
  std::vector<IterationPart> parts = undivided_parts((tokens + 1) / 2);
  Seconds others;
  for (IterationPart& part : parts) {
    part.count *= 2;
    part.time = 2.0 * part.time;
    part.bytes = 2.0 * part.bytes;
    part.flop = 2.0 * part.flop;
    if (part.op != "exchange") others += part.time;
  }
  for (IterationPart& part : parts)
    if (part.op == "exchange") part.time = std::max(Seconds{}, part.time - others);
  return parts;
}

std::vector<IterationPart> IterationPrices::undivided_parts(std::int64_t tokens) const {
  std::vector<IterationPart> parts;
  for (const ServedLayers& of : layers_) {
    std::vector<IterationPart> own;
    if (of.has_attention()) attention_products(of, tokens, own);
    if (of.state) state_products(of, tokens, own);
    mlp_products(of, tokens, own);
    expert_layers(of, tokens, own);
    between_products(of, tokens, own);
    if (of.has_streams) mix_streams(of, tokens, own);
    add_parts(std::move(own), parts);
  }
  return parts;
}

IterationPart IterationPrices::decode_attention_of(const ServedLayers& of, std::int64_t window,
                                                   int count, std::int64_t requests,
                                                   std::int64_t mean) const {
  const Model& model = of.shape;
  const std::int64_t heads = model.heads / plan_.tp;
  const auto layers = static_cast<double>(count);
  if (model.latent) {
    const KernelTime one = kernels_->latent_decode(plan_.kv, requests, heads, mean);
    const std::array<std::int64_t, 3> sizes{requests, heads, mean};
    const KernelWork work = kernel_work("latent_decode", {Dtype::bf16, plan_.kv}, sizes);
    return {"decode_attention",    count,
            layers * one.time,     one.tag,
            layers * work.bytes,   layers * work.flop,
            system_.gpu.peak_16bit};
  }
  const std::int64_t kv_heads = std::max<std::int64_t>(1, model.kv_heads / plan_.tp);
  const bool by_kernel = window > 0 && window <= longest_measured_window;
  const std::int64_t seen = window > 0 ? std::min(window, mean) : mean;
  const std::array<std::int64_t, 6> sizes{requests,
                                          heads,
                                          kv_heads,
                                          cached_width(model),
                                          by_kernel ? window : 0,
                                          by_kernel ? mean : seen};
  const KernelTime one = kernels_->decode_attention(plan_.kv, sizes);
  const KernelWork work = kernel_work("decode_attention", {Dtype::bf16, plan_.kv}, sizes);
  return {window > 0 ? "decode_attention.window" : "decode_attention",
          count,
          layers * one.time,
          one.tag,
          layers * work.bytes,
          layers * work.flop,
          system_.gpu.peak_16bit};
}

// A step of each request's state, and of the convolution before it.
void IterationPrices::decode_states(const ServedLayers& of, std::int64_t requests,
                                    std::vector<IterationPart>& parts) const {
  const StateWork& work = *of.state;
  const auto layers = static_cast<double>(of.layers);
  const auto add = [&](const char* op, const ServingKernels::Priced& one) {
    parts.push_back({op, of.layers, layers * one.time.time, one.time.tag, layers * one.work.bytes,
                     layers * one.work.flop, FlopPerSecond{}});
  };
  if (work.taps > 0) add("convolution_step", kernels_->convolution_step(work.convolved, requests));
  if (work.scan.kind != ScanKind::none)
    add("state_step", kernels_->state_step(work.scan, plan_.states, requests));
}

std::vector<IterationPart> IterationPrices::decode_parts(std::int64_t requests,
                                                         std::int64_t context) const {
  const std::int64_t mean = std::max<std::int64_t>(1, (context + requests / 2) / requests);
  std::vector<IterationPart> parts;
  for (const ServedLayers& of : layers_) {
    std::vector<IterationPart> own;
    for (const auto& [window, count] : of.windows)
      own.push_back(decode_attention_of(of, window, count, requests, mean));
    if (of.state) decode_states(of, requests, own);
    if (of.module) own.push_back(module_part(of, requests, 1, mean));
    add_parts(std::move(own), parts);
  }
  return parts;
}

// With its projections, so that it stands in no other part.
IterationPart IterationPrices::module_part(const ServedLayers& of, std::int64_t requests,
                                           std::int64_t tokens, std::int64_t context) const {
  const auto layers = static_cast<double>(of.layers);
  const ServingKernels::Priced one =
      kernels_->attention_module(plan_.attention, plan_.kv, of.shape.hidden, *of.module,
                                 of.module->heads / plan_.tp, requests, tokens, context);
  return {tokens == 1 ? "decode_attention.module" : "prefill_attention.module",
          of.layers,
          layers * one.time.time,
          one.time.tag,
          layers * one.work.bytes,
          layers * one.work.flop,
          system_.gpu.peak_16bit};
}

AttentionFloor IterationPrices::least_decode_attention() const {
  const Seconds start = kernels_->cold_attention(Bytes{});
  AttentionFloor floor;
  for (const ServedLayers& of : layers_) {
    const Model& model = of.shape;
    // Bytes that one request with `context` cached tokens reads.
    const auto bytes = [&](std::int64_t context) {
      if (model.latent)
        return kernel_work("latent_decode", {Dtype::bf16, plan_.kv},
                           std::array<std::int64_t, 3>{1, model.heads / plan_.tp, context})
            .bytes;
      return kernel_work(
                 "decode_attention", {Dtype::bf16, plan_.kv},
                 std::array<std::int64_t, 6>{1, model.heads / plan_.tp,
                                             std::max<std::int64_t>(1, model.kv_heads / plan_.tp),
                                             cached_width(model), 0, context})
          .bytes;
    };
    for (const auto& [window, count] : of.windows) {
      const Seconds a_token = kernels_->cold_attention(bytes(2) - bytes(1)) - start;
      const double layers = engine_.gpu_slowdown * count;
      floor.an_iteration += layers * start;
      if (window == 0 || model.latent) floor.a_token += layers * a_token;
    }
  }
  return floor;
}

IterationPart IterationPrices::prefill_attention_of(const ServedLayers& of, std::int64_t window,
                                                    int count, const PrefillChunk& chunk) const {
  const Model& model = of.shape;
  const std::int64_t heads = model.heads / plan_.tp;
  const std::int64_t kv_heads = std::max<std::int64_t>(1, model.kv_heads / plan_.tp);
  const auto q = static_cast<double>(chunk.tokens), p = static_cast<double>(chunk.cached);
  // A query sees no more keys than the window has.
  const auto cached =
      window > 0 ? std::clamp<std::int64_t>(window - chunk.tokens, 0, chunk.cached) : chunk.cached;
  KernelTime one = model.latent
                       ? kernels_->latent_prefill(plan_.kv, heads, chunk.tokens, cached)
                       : kernels_->prefill_attention(plan_.kv, heads, kv_heads, cached_width(model),
                                                     chunk.tokens, cached);
  const double keys = q * (q / 2.0 + p);
  double seen = keys;
  if (window > 0 && chunk.tokens > window) {
    // The first window of queries sees a triangle, the others a band.
    const auto w = static_cast<double>(window);
    seen = w * q - w * w / 2.0;
    one = {(seen / (q * q / 2.0)) * one.time, Tag::default_value};
  }
  const auto width = static_cast<double>(model.head_dim + value_width(model));
  const auto layers = static_cast<double>(count);
  // Queries and results of the new tokens, keys and values of theirs and of those in the cache.
  // Latent attention expands the latter to as many heads.
  const auto behind = static_cast<double>(cached);
  const double keys_moved = model.latent ? activation_bytes * static_cast<double>(heads)
                                         : element_bytes(plan_.kv) * static_cast<double>(kv_heads);
  const Bytes moved{
      width * (activation_bytes * static_cast<double>(heads) * q + keys_moved * (q + behind))};
  return {window > 0 ? "prefill_attention.window" : "prefill_attention",
          count,
          layers * one.time,
          one.tag,
          layers * moved,
          Flop{layers * 2.0 * static_cast<double>(heads) * width * seen},
          system_.gpu.peak_16bit};
}

std::vector<IterationPart> IterationPrices::prefill_parts(const PrefillChunk& chunk) const {
  std::vector<IterationPart> parts;
  for (const ServedLayers& of : layers_) {
    std::vector<IterationPart> own;
    for (const auto& [window, count] : of.windows)
      own.push_back(prefill_attention_of(of, window, count, chunk));
    add_parts(std::move(own), parts);
  }
  return parts;
}

std::vector<IterationPart> IterationPrices::joint_parts(std::int64_t prompts,
                                                        const PrefillChunk& chunk) const {
  std::vector<IterationPart> parts;
  for (const ServedLayers& of : layers_) {
    std::vector<IterationPart> own;
    if (of.module)
      own.push_back(module_part(of, prompts, chunk.tokens, chunk.cached + chunk.tokens));
    if (of.state) {
      const StateWork& work = *of.state;
      const auto layers = static_cast<double>(of.layers);
      const auto add = [&](const char* op, const ServingKernels::Priced& one) {
        own.push_back({op, of.layers, layers * one.time.time, one.time.tag, layers * one.work.bytes,
                       layers * one.work.flop, system_.gpu.peak_16bit});
      };
      if (work.taps > 0)
        add("convolution", kernels_->convolution(work.convolved, prompts, chunk.tokens));
      if (work.scan.kind != ScanKind::none)
        add("scan", kernels_->scan(work.scan, prompts, chunk.tokens));
    }
    add_parts(std::move(own), parts);
  }
  return parts;
}

std::vector<IterationPart> IterationPrices::head_parts(std::int64_t rows) const {
  const std::int64_t words = (model_.vocab + plan_.tp - 1) / plan_.tp;
  IterationPart sampling{"sampling", 1, {}, Tag::interpolated, {}, {}, {}};
  sampling.time =
      engine_.small.sampling + static_cast<double>(rows) * engine_.small.sampling_per_request;
  // No engine quantises the head.
  return {product("gemm.head", 1, Dtype::bf16, words, model_.hidden, rows), sampling};
}

}  // namespace orrery
