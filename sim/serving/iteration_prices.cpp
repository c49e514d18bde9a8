#include "sim/serving/iteration_prices.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

#include "sim/model/layer_pattern.hpp"

namespace orrery {
namespace {

// Smaller tensors never go to NCCL if the engine has a kernel: custom all-reduces of vLLM and
// SGLang take up to 8 MB (csrc/custom_all_reduce.cuh).
constexpr std::int64_t own_kernel_elements = 4 << 20;

// Links of the machines on which engines' all-reduces were measured (aiconfigurator,
// systems/*.yaml: node.intra_node_bw; calibration/data/serving/*/all_reduce-*.json).
struct MeasuredLinks {
  std::string_view gpu;
  bool nvlink;
  BytesPerSecond bandwidth;
};
constexpr std::array<MeasuredLinks, 9> measured_links{
    {{"a100-sxm-80gb", true, BytesPerSecond{300e9}},
     {"h100-sxm", true, BytesPerSecond{450e9}},
     {"h200-sxm", true, BytesPerSecond{450e9}},
     {"b200-sxm", true, BytesPerSecond{900e9}},
     {"b300-sxm", true, BytesPerSecond{900e9}},
     {"gb200", true, BytesPerSecond{900e9}},
     {"gb300", true, BytesPerSecond{900e9}},
     {"l40s", false, BytesPerSecond{32e9}},
     {"rtx-pro-6000-blackwell", false, BytesPerSecond{64e9}}}};

bool has_measured_links(const System& system, const std::string& measured_gpu) {
  return std::ranges::any_of(measured_links, [&](const MeasuredLinks& links) {
    return links.gpu == measured_gpu && links.nvlink == (system.wiring != NodeWiring::pcie) &&
           std::abs(system.scale_up / links.bandwidth - 1.0) < 0.01;
  });
}

}  // namespace

GroupReduce::GroupReduce(const System& system, const ServingKernels& kernels)
    : system_{system},
      kernels_{&kernels},
      has_measured_links_{has_measured_links(system, kernels.measured_gpu())} {}

const CollectiveTime& GroupReduce::collectives() const {
  if (!nccl_) nccl_ = std::make_shared<CollectiveTime>(system_);
  return *nccl_;
}

// In a CUDA graph NCCL posts what the NICs have to do from a host function, which each collective
// between nodes waits for (NCCL 2.21 to 2.28, src/enqueue.cc, ncclLaunchPrepare:
// hostStreamPlanCallback; NVIDIA in nccl issue 1805). nccl-tests, by which collectives are priced,
// launches without a graph. Inferred on DeepSeek-R1 over 16 H100s, which has 122 all-reduces a
// token (tests/validation/inference/tenstorrent.json). Mistral 7B over two nodes with EFA, on which
// it was not inferred, is met within 12 % at four loads (efa.json). Such a function delays a graph
// by 52 to 85 us on GB200 (meta-pytorch/torchcomms, pull request 3646).
constexpr Seconds host_node = microseconds(96);

KernelTime GroupReduce::by_nccl(CollectiveKind kind, int gpus, Bytes tensor, bool in_graph) const {
  const int domain = std::min(gpus, system_.nvlink_domain);
  const int domains = (gpus + domain - 1) / domain;
  const CollectiveCost cost = collectives()(kind, tensor, {gpus, domains, gpus / domains});
  const bool over_nodes = gpus > std::max(system_.nvlink_domain, system_.gpus_per_node);
  if (over_nodes && in_graph)
    return {cost.time() + host_node, std::max(cost.tag, Tag::interpolated)};
  return {cost.time(), cost.tag};
}

KernelTime GroupReduce::operator()(int gpus, std::int64_t elements, bool in_graph) const {
  if (gpus == 1 || elements == 0) return {Seconds{}, Tag::measured};
  const Bytes tensor{2.0 * static_cast<double>(elements)};
  const auto nccls = [&] { return by_nccl(CollectiveKind::all_reduce, gpus, tensor, in_graph); };
  if (gpus > system_.nvlink_domain || !has_measured_links_) return nccls();
  const auto own = kernels_->all_reduce(gpus, elements);
  if (!own) return nccls();
  if (elements <= own_kernel_elements) return *own;
  const KernelTime nccl = nccls();
  return nccl.time < own->time ? nccl : *own;
}

namespace {

// Prices are exact to here, and beyond at so many points an octave, as dense as the tables' rows.
constexpr std::int64_t exact_tokens = 64;
constexpr double dense_points = 16.0;
constexpr double context_points = 8.0;

// Cost of a pipeline's transfer without its bytes: two launches and a semaphore between processes;
// inferred on published pipelines of TensorRT-LLM over PCIe.
constexpr Seconds hop_start = microseconds(25);

// Interpolates at `value` between the prices of the two nearest of `points` an octave.
template <class Price>
Seconds between_points(double value, double points, Price price) {
  const double place = std::log2(value) * points;
  const double below = std::floor(place + 1e-9);
  const double share = std::max(0.0, place - below);
  const Seconds low = price(std::exp2(below / points));
  if (share < 1e-9) return low;
  const Seconds high = price(std::exp2((below + 1.0) / points));
  return (1.0 - share) * low + share * high;
}

std::int64_t rounded(double value) { return std::max<std::int64_t>(1, std::llround(value)); }

}  // namespace

Bound bound_of(const IterationPart& part, BytesPerSecond bandwidth) {
  if (part.op == "all_reduce" || part.op == "exchange" || part.op == "hop") return Bound::network;
  const double each = 1.0 / std::max(1, part.count);
  return bound_of(KernelRoofs{each * part.flop, each * part.bytes, part.peak, bandwidth},
                  each * part.time);
}

std::int64_t Iteration::tokens() const {
  std::int64_t sum = decodes;
  for (const PrefillChunk& chunk : chunks) sum += chunk.tokens;
  return sum;
}

PrefillChunk Iteration::mean_chunk() const {
  const auto prompts = static_cast<std::int64_t>(chunks.size());
  assert(prompts > 0);
  PrefillChunk sum;
  for (const PrefillChunk& chunk : chunks) {
    sum.tokens += chunk.tokens;
    sum.cached += chunk.cached;
  }
  return {std::max<std::int64_t>(1, sum.tokens / prompts), sum.cached / prompts};
}

Seconds total(const std::vector<IterationPart>& parts) {
  Seconds sum;
  for (const IterationPart& part : parts) sum += part.time;
  return sum;
}

IterationPrices::IterationPrices(const Model& model, const System& system,
                                 const Deployment& deployment, const ServingEngine& engine,
                                 std::shared_ptr<const ServingKernels> kernels)
    : model_{model},
      system_{system},
      plan_{deployment},
      engine_{engine},
      kernels_{kernels ? std::move(kernels)
                       : std::make_shared<const ServingKernels>(system.gpu, engine)},
      reduce_{system, *kernels_},
      layers_{served_layers(model_, plan_)},
      whole_layers_{whole_layers(model_)} {
  if (plan_.dispatches) set_exchange();
  if (!plan_.drafter) return;
  Deployment drafts = plan_;
  drafts.speculation.reset();
  drafts.drafter.reset();
  drafts.pp = 1;
  if (!plan_.drafter->experts) {
    drafts.dp = drafts.ep = drafts.moe_tp = 1;
    drafts.dispatches = false;
  }
  // Heads trained for a model are kept in 16 bits.
  drafts.ends_16bit = 0;
  if (plan_.speculation->method == DraftMethod::eagle)
    drafts.weights = drafts.attention = Dtype::bf16;
  drafter_ =
      std::make_unique<const IterationPrices>(*plan_.drafter, system, drafts, engine, kernels_);
}

Seconds IterationPrices::draft(std::int64_t requests) const {
  if (!plan_.speculation || requests == 0) return {};
  const auto tokens = static_cast<double>(plan_.speculation->tokens);
  if (!drafter_) return {};
  return tokens * (drafter_->dense(requests) + drafter_->head(requests) + engine_.draft_host);
}

Seconds IterationPrices::draft_attention(std::int64_t requests, std::int64_t context) const {
  if (!drafter_ || requests == 0) return {};
  return static_cast<double>(plan_.speculation->tokens) *
         drafter_->decode_attention(requests, context);
}

Seconds IterationPrices::dense(std::int64_t tokens) const {
  assert(tokens > 0);
  const auto exactly = [&](std::int64_t m) {
    const auto [place, fresh] = known_dense_.try_emplace(m);
    if (fresh) place->second = engine_.gpu_slowdown * total(dense_parts(m));
    return place->second;
  };
  if (tokens <= exact_tokens) return exactly(tokens);
  return between_points(static_cast<double>(tokens), dense_points,
                        [&](double m) { return exactly(rounded(m)); });
}

Seconds IterationPrices::decode_attention(std::int64_t requests, std::int64_t context) const {
  if (requests == 0) return {};
  const double mean = std::max(1.0, static_cast<double>(context) / static_cast<double>(requests));
  return between_points(mean, context_points, [&](double tokens) {
    const std::pair key{requests, rounded(tokens)};
    const auto [place, fresh] = known_decode_.try_emplace(key);
    if (fresh)
      place->second = engine_.gpu_slowdown * total(decode_parts(requests, requests * key.second));
    return place->second;
  });
}

Seconds IterationPrices::prefill_attention(const PrefillChunk& chunk) const {
  return engine_.gpu_slowdown * total(prefill_parts(chunk));
}

Seconds IterationPrices::together(std::int64_t prompts, const PrefillChunk& chunk) const {
  return engine_.gpu_slowdown * total(joint_parts(prompts, chunk));
}

Seconds IterationPrices::head(std::int64_t rows) const {
  if (rows == 0) return {};
  const auto [place, fresh] = known_head_.try_emplace(rows);
  if (fresh) place->second = engine_.gpu_slowdown * total(head_parts(rows));
  return place->second;
}

Seconds IterationPrices::host(std::int64_t requests) const {
  const IterationHost& host = engine_.host;
  return host.base + whole_layers_ * host.per_layer +
         static_cast<double>(requests) * host.per_request;
}

Seconds IterationPrices::gap(std::int64_t requests) const {
  return engine_.host.gap + static_cast<double>(requests) * engine_.host.gap_per_request;
}

bool IterationPrices::in_graph(std::int64_t tokens, bool prompts) const {
  if (plan_.graph_sizes.empty()) return tokens <= engine_.host.largest_graph;
  return !prompts && tokens <= plan_.graph_sizes.back() * plan_.step_tokens();
}

Seconds IterationPrices::eager(std::int64_t tokens, bool prompts) const {
  if (in_graph(tokens, prompts)) return {};
  Seconds states;
  for (const ServedLayers& of : layers_) {
    if (!of.state) continue;
    const bool space = of.state->scan.kind == ScanKind::state_space;
    states += static_cast<double>(of.layers) *
              (engine_.host.eager_states + (space ? engine_.host.eager_state_space : Seconds{}));
  }
  return whole_layers_ * engine_.host.eager_layer + states;
}

double IterationPrices::longest_stage() const {
  return std::ceil(static_cast<double>(model_.layers) / plan_.pp) / model_.layers;
}

double IterationPrices::last_stage() const {
  return std::floor(static_cast<double>(model_.layers) / plan_.pp) / model_.layers;
}

Seconds IterationPrices::planning(std::int64_t requests) const {
  return static_cast<double>(requests) * engine_.pipeline.planning_per_request;
}

Seconds IterationPrices::hop(std::int64_t tokens) const {
  if (plan_.pp == 1) return {};
  // Neighbouring stages are adjacent: they share a domain that holds the whole replica.
  const bool inside = plan_.replica_gpus() <= system_.nvlink_domain;
  const BytesPerSecond link = inside ? system_.scale_up : system_.network_efficiency * system_.nic;
  const std::int64_t streams = model_.pattern ? model_.pattern->streams : 1;
  const Bytes bytes{2.0 * static_cast<double>(tokens * streams * model_.hidden)};
  return hop_start + bytes / link;
}

IterationPrice IterationPrices::price(const Iteration& iteration) const {
  IterationPrice price;
  const auto add = [&](std::vector<IterationPart> parts) {
    for (IterationPart& part : parts) {
      part.time = engine_.gpu_slowdown * part.time;
      price.parts.push_back(std::move(part));
    }
  };
  const bool prompts = !iteration.chunks.empty();
  // Requests without effect fill the graph of a step.
  const std::int64_t decodes = prompts ? iteration.decodes : plan_.padded(iteration.decodes);
  const std::int64_t drafted = decodes * (plan_.step_tokens() - 1);
  const std::int64_t unused = decodes - iteration.decodes;
  const std::int64_t tokens = iteration.tokens() + unused + drafted;
  assert(tokens > 0);
  add(dense_parts(tokens));
  if (iteration.decodes > 0) add(decode_parts(iteration.decodes, iteration.context));
  for (const PrefillChunk& chunk : iteration.chunks) add(prefill_parts(chunk));
  if (const auto prompts = static_cast<std::int64_t>(iteration.chunks.size()); prompts > 0)
    add(joint_parts(prompts, iteration.mean_chunk()));
  if (iteration.heads > 0) add(head_parts(iteration.heads + unused + drafted));
  if (drafter_ && iteration.decodes > 0)
    price.parts.push_back(
        {"draft",
         plan_.speculation->tokens,
         draft(iteration.decodes) + draft_attention(iteration.decodes, iteration.context),
         Tag::interpolated,
         {},
         {},
         {}});
  if (plan_.pp > 1) {
    const auto hops = plan_.pp - 1;
    price.parts.push_back(
        {"hop", hops, static_cast<double>(hops) * hop(tokens), Tag::default_value, {}, {}, {}});
  }
  price.eager = eager(tokens, prompts);
  price.gpu = std::max(total(price.parts), price.eager);
  const std::int64_t requests =
      iteration.decodes + static_cast<std::int64_t>(iteration.chunks.size());
  price.host = host(requests);
  price.gap = gap(requests);
  price.step = (hides_host(model_, engine_, plan_) ? std::max(price.gpu, price.host)
                                                   : price.gpu + price.host) +
               price.gap;

  std::map<Bound, Seconds> by_bound;
  for (const IterationPart& part : price.parts)
    by_bound[bound_of(part, system_.gpu.memory_bandwidth)] += part.time;
  const bool waits = price.eager > total(price.parts) || price.host > price.gpu;
  const auto longest =
      std::max_element(by_bound.begin(), by_bound.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  price.bound = waits ? Bound::host : longest->first;
  return price;
}

}  // namespace orrery
