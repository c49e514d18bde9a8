#include "sim/serving/kv_capacity.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "sim/core/number_text.hpp"
#include "sim/model/layer_pattern.hpp"
#include "sim/serving/kernel_roof.hpp"
#include "sim/serving/served_layers.hpp"

namespace orrery {
namespace {

constexpr double bytes_16_bit = 2.0;

std::int64_t stage_layers(const Model& model, const Deployment& plan) {
  return (model.layers + plan.pp - 1) / plan.pp;
}

// The model as if all layers were like this one.
const Model& shape_at(const Model& model, int layer) {
  if (!model.pattern) return model;
  const auto at = static_cast<std::size_t>(layer);
  return model.pattern->shapes[static_cast<std::size_t>(model.pattern->shape_of[at])];
}

bool has_experts(const Model& model, int layer) {
  return model.experts && (model.layer_has_experts.empty() ||
                           model.layer_has_experts[static_cast<std::size_t>(layer)]);
}

// Bytes of one expert's part on one rank. Kernels of mxfp4 read whole tiles, to which engines pad
// the weights when they load them:
//
//   Hopper     rows of 256 values, as inputs; scales are not padded     triton_kernels,
//              HopperMXValueLayout: 128 bytes along K
//   Blackwell  256 columns of both, with their scales                   vLLM and SGLang, mxfp4.py,
//   others     hidden 256, the MLP's 128                                create_weights: FlashInfer
//                                                                       and Marlin
//
// gpt-oss-120b loads 64.38 GiB (vLLM issue 33155, Triton) and 65.97 GiB (issue 23278, Marlin).
double expert_bytes(const Model& model, const Gpu& gpu, const Deployment& plan) {
  const double products = model.gated ? 3.0 : 2.0;
  const auto hidden = static_cast<double>(model.experts->channels(model.hidden));
  const double ffn = static_cast<double>(model.experts->ffn) / plan.moe_tp;
  if (plan.experts != Dtype::mxfp4) return element_bytes(plan.experts) * products * hidden * ffn;
  const auto padded = [](double size, double tile) { return std::ceil(size / tile) * tile; };
  if (gpu.architecture == Architecture::hopper) {
    const double values = (products - 1.0) * padded(hidden, 256) * ffn + hidden * padded(ffn, 256);
    const double scales = products * hidden * ffn;
    const double value_bytes = facts(Dtype::mxfp4).bits / 8.0;
    return value_bytes * values + (element_bytes(Dtype::mxfp4) - value_bytes) * scales;
  }
  const double tile = gpu.architecture == Architecture::blackwell ? 256 : 128;
  return element_bytes(Dtype::mxfp4) * products * padded(hidden, 256) * padded(ffn, tile);
}

// Parameters of a layer's mixer on one rank: of attention or of another one.
double mixer_parameters(const Model& model, const Deployment& plan, int layer) {
  const Model& shape = shape_at(model, layer);
  if (const auto module = shape.mixer ? shape.mixer->module(model.hidden) : std::nullopt) {
    const auto all = static_cast<double>(shape.mixer->parameters(model.hidden));
    const auto copied = static_cast<double>(module->copied);
    double own = copied + (all - copied) / plan.tp;
    // Key heads are copied where there are more ranks than heads.
    if (module->kv_heads > 0 && plan.tp > module->kv_heads)
      own += static_cast<double>(module->kv_parameters) *
             (1.0 / static_cast<double>(module->kv_heads) - 1.0 / plan.tp);
    return own;
  }
  std::int64_t with_state = 0, beside = 0;
  if (shape.mixer) {
    const StateWork work = *shape.mixer->work(model.hidden, plan.tp);
    with_state = work.vectors + model.hidden * (work.input_width() + work.output);
    for (const WeightMatrix& matrix : work.inner) with_state += matrix.in * matrix.out;
    beside = shape.mixer->parameters(model.hidden);
  }
  if (shape.heads == 0) return static_cast<double>(with_state);
  const auto attention = static_cast<double>(
      model.pattern ? model.pattern->mixer_of(layer)->parameters(model.hidden) - beside
                    : attention_parameters(model));
  double own = static_cast<double>(with_state) + attention / plan.tp;
  // Key heads are copied where there are more ranks than heads.
  if (!shape.latent && plan.tp > shape.kv_heads)
    own += static_cast<double>((shape.head_dim + (shape.values_are_keys ? 0 : value_width(shape))) *
                               shape.hidden) *
           (1.0 - static_cast<double>(shape.kv_heads) / plan.tp);
  if (shape.latent) {
    const LatentAttention& latent = *shape.latent;
    const auto whole =
        static_cast<double>(shape.hidden * (latent.q_rank + latent.kv_rank + latent.rope_dim));
    own += whole * (1.0 - 1.0 / plan.tp);  // The down-projections are on every rank.
  }
  return own;
}

// Weights of one layer on one rank.
Bytes layer_weights(const Model& model, const Gpu& gpu, const Deployment& plan, int layer) {
  const Model& shape = shape_at(model, layer);
  const bool wide = plan.is_16bit(layer, model.layers);
  const double linear = wide ? bytes_16_bit : element_bytes(plan.weights);
  double bytes =
      (wide ? bytes_16_bit : element_bytes(plan.attention)) * mixer_parameters(model, plan, layer);
  const double gates = shape.gated ? 3.0 : 2.0;
  constexpr double bytes_32_bit = 4.0;
  if (model.pattern)
    bytes +=
        bytes_32_bit * static_cast<double>(layer_stream_parameters(*model.pattern, model.hidden));
  if (!has_experts(model, layer))
    return Bytes{bytes + linear * gates * static_cast<double>(shape.hidden * shape.ffn) / plan.tp};
  const Experts& experts = *shape.experts;
  const auto hidden = static_cast<double>(shape.hidden);
  bytes += bytes_16_bit * hidden * static_cast<double>(experts.count);  // The router.
  bytes += bytes_16_bit * 2.0 * hidden * static_cast<double>(experts.latent);
  bytes += linear * gates * hidden * static_cast<double>(experts.shared_ffn) / plan.tp;
  bytes += expert_bytes(shape, gpu, plan) *
           static_cast<double>(experts.count + plan.redundant_experts) / plan.ep;
  return Bytes{bytes};
}

// Bytes of a token in the cache of one layer with attention, on one rank.
double token_of_layer(const Model& shape, const Deployment& plan) {
  const double value = element_bytes(plan.kv);
  if (shape.latent)
    return static_cast<double>(shape.latent->kv_rank + shape.latent->rope_dim) * value;
  const auto heads = static_cast<double>(std::max<std::int64_t>(1, shape.kv_heads / plan.tp));
  return heads * static_cast<double>(shape.head_dim + value_width(shape)) * value;
}

double token_of_layer(const AttentionModule& module, const Deployment& plan) {
  const double value = element_bytes(plan.kv);
  const double all = value > 1.0 ? value * module.values : module.narrow_bytes;
  if (module.kv_heads == 0) return module.bytes + all;
  const std::int64_t own = std::max<std::int64_t>(1, module.kv_heads / plan.tp);
  return module.bytes + all * static_cast<double>(own) / static_cast<double>(module.kv_heads);
}

// Bytes of a sequence in the states of one layer, on one rank: the scan's, and the last tokens'
// inputs of the convolution.
double states_of_layer(const StateWork& work, const Deployment& plan) {
  return static_cast<double>(work.scan.heads * work.scan.keys * work.scan.values) *
             element_bytes(plan.states) +
         bytes_16_bit *
             static_cast<double>(work.convolved * std::max<std::int64_t>(0, work.taps - 1));
}

// What all layers keep, on one rank.
struct Kept {
  std::int64_t attention = 0, states = 0;  ///< Layers of either kind.
  double whole = 0.0, windowed = 0.0;      ///< Bytes of a token where all or a window are kept.
  std::int64_t window = 0;
  double state = 0.0, largest_state = 0.0;  ///< Bytes of a sequence's states; of one layer's.
  double of_sequence = 0.0;                 ///< Bytes that modules keep of a sequence besides.
  double pooled = 0.0;             ///< Bytes of a token in the pool of windows, if there is one.
  std::int64_t pooled_window = 0;  ///< The window of that pool.
  std::int64_t chunk = 1;          ///< StateWork::chunk of all of them.

  /// Bytes of a token in a layer with attention.
  double token_of_layer() const { return (whole + windowed) / static_cast<double>(attention); }
};

// SGLang keeps entries that are not finished with the pages of windows, so many a page, where they
// summarise fewer tokens than a page has, and else for each request (python/sglang/srt/mem_cache/
// deepseek_v4_memory_pool.py). Other engines take whole blocks for both.
void keep_windows(const AttentionModule& module, int layers, const Deployment& plan, Kept& kept) {
  if (plan.window_ratio == 0.0) {
    kept.of_sequence += layers * module.of_sequence();
    return;
  }
  const bool in_pages = module.unfinished < module.window;
  kept.pooled += layers * module.window_bytes;
  if (in_pages)
    kept.pooled += layers * module.unfinished_bytes / static_cast<double>(module.window);
  else
    kept.of_sequence += layers * module.unfinished_bytes;
  kept.pooled_window = std::max(kept.pooled_window, module.window);
}

Kept kept_by(const Model& model, const Deployment& plan) {
  Kept kept;
  for (const ServedLayers& of : served_layers(model, plan)) {
    for (const auto& [window, count] : of.windows) {
      const bool frees = plan.frees_windows && window > 0;
      (frees ? kept.windowed : kept.whole) += count * token_of_layer(of.shape, plan);
      if (frees) kept.window = std::max(kept.window, window);
      kept.attention += count;
    }
    if (of.module) {
      kept.whole += of.layers * token_of_layer(*of.module, plan);
      kept.attention += of.layers;
      keep_windows(*of.module, of.layers, plan, kept);
    }
    if (!of.state) continue;
    const double one = states_of_layer(*of.state, plan);
    kept.states += of.layers;
    kept.state += of.layers * one;
    kept.largest_state = std::max(kept.largest_state, one);
    kept.chunk = std::lcm(kept.chunk, of.state->chunk);
  }
  return kept;
}

// The cache of all layers: groups of layers that share pages, and the bytes of a token in one.
struct AllottedLayers {
  KvGroups groups;
  double token = 0.0;
};

// As vLLM allots pages: groups are as large as the rarest kind of layers, and the last one of a
// kind is filled up. A page of attention holds a state as well, and each layer with states takes
// one for a request, and another one for each drafted token.
AllottedLayers allotted_layers(const Model& model, const Deployment& plan) {
  const Kept kept = kept_by(model, plan);
  if (plan.window_ratio > 0.0) return {{}, kept.whole + plan.window_ratio * kept.pooled};
  const bool in_pages = plan.state_pages && kept.states > 0;
  const double states = in_pages ? static_cast<double>(kept.states) * kept.token_of_layer() : 0.0;
  double group = kept.whole + kept.windowed;
  for (const double kind : {kept.whole, kept.windowed, states})
    if (kind > 0.0) group = std::min(group, kind);
  const auto groups_of = [&](double bytes) {
    return static_cast<std::int64_t>(std::ceil(bytes / group - 1e-9));
  };
  // Windows and unfinished entries of modules take whole blocks of each sequence.
  const double block = group * static_cast<double>(plan.block);
  const auto fixed = static_cast<std::int64_t>(std::ceil(kept.of_sequence / block));
  return {{groups_of(kept.whole), groups_of(kept.windowed), kept.window,
           groups_of(states) * plan.step_tokens() + fixed},
          group};
}

Bytes activations(const Model& model, const Deployment& plan, const ServingEngine& engine) {
  if (engine.memory.logit_bytes == 0.0) return {};
  const double logits = engine.memory.logit_bytes * static_cast<double>(plan.max_seqs) *
                        static_cast<double>(model.vocab);
  // A layer's tensors: residual, norm, queries and result, and the MLP's two or three.
  std::int64_t width = std::max(model.ffn, model.experts ? model.experts->ffn : 0);
  if (model.pattern)
    for (const Model& shape : model.pattern->shapes) width = std::max(width, shape.ffn);
  const double layer =
      bytes_16_bit * static_cast<double>(plan.budget) *
      (4.0 * static_cast<double>(model.hidden) + 3.0 * static_cast<double>(width) / plan.tp);
  return Bytes{std::max(logits, layer)};
}

}  // namespace

std::int64_t KvCapacity::blocks_of(std::int64_t tokens_each, std::int64_t at_once) const {
  return groups.blocks((tokens_each + block - 1) / block, groups.most_windowed(at_once, block));
}

std::int64_t KvCapacity::requests(std::int64_t tokens_each, std::int64_t at_once) const {
  const std::int64_t each = blocks_of(tokens_each, at_once);
  const std::int64_t held = each == 0 ? 0 : blocks() / each;
  return state_slots > 0 ? std::min(held, state_slots) : held;
}

std::int64_t KvCapacity::longest(std::int64_t at_once) const {
  return block * groups.longest(blocks(), groups.most_windowed(at_once, block));
}

std::int64_t at_once(const Deployment& plan) {
  return plan.chunked ? std::max<std::int64_t>(plan.budget, plan.step_tokens())
                      : KvGroups::unlimited;
}

Bytes rank_weights(const Model& model, const Gpu& gpu, const Deployment& plan) {
  const ParameterCount count = count_parameters(model);
  const auto embedding = static_cast<double>(count.embedding) / plan.tp;
  const auto head = static_cast<double>(count.head) / plan.tp;
  const auto per_stage = stage_layers(model, plan);
  Bytes most;
  for (int stage = 0; stage < plan.pp; ++stage) {
    Bytes sum;
    const auto first = static_cast<int>(stage * per_stage);
    const auto last = static_cast<int>(std::min<std::int64_t>(model.layers, first + per_stage));
    for (int layer = first; layer < last; ++layer) sum += layer_weights(model, gpu, plan, layer);
    if (stage == 0) sum += Bytes{bytes_16_bit * embedding};
    if (stage == plan.pp - 1) {
      // The last stage has a copy of a tied head, unless it is the first.
      const bool again = model.tied_embeddings && plan.pp > 1;
      sum += Bytes{bytes_16_bit * (again ? embedding : head)};
    }
    most = std::max(most, sum);
  }
  return most;
}

namespace {

// Weights of the draft model; a layer of the model itself shares its embedding and head.
Bytes draft_weights(const Gpu& gpu, const Deployment& plan) {
  if (!plan.drafter) return {};
  Deployment drafts = plan;
  drafts.pp = 1;
  drafts.ends_16bit = 0;
  if (plan.speculation->method == DraftMethod::draft)
    return rank_weights(*plan.drafter, gpu, drafts);
  if (plan.speculation->method == DraftMethod::eagle)
    drafts.weights = drafts.attention = Dtype::bf16;
  Bytes sum;
  for (int layer = 0; layer < plan.drafter->layers; ++layer)
    sum += layer_weights(*plan.drafter, gpu, drafts, layer);
  return sum;
}

}  // namespace

namespace {

// The part that the longest stage has of what all layers keep.
double in_a_stage(double bytes, const Model& model, const Deployment& plan) {
  return bytes * static_cast<double>(stage_layers(model, plan)) / model.layers;
}

// Bytes of a token in one GPU's cache of the layers that draft.
double drafting_bytes(const Deployment& plan) {
  if (!plan.drafter) return 0.0;
  Deployment drafts = plan;
  drafts.pp = 1;
  return kv_bytes_per_token(*plan.drafter, drafts);
}

}  // namespace

double kv_bytes_per_token(const Model& model, const Deployment& plan) {
  const AllottedLayers layers = allotted_layers(model, plan);
  return in_a_stage(static_cast<double>(layers.groups.all()) * layers.token, model, plan);
}

double kv_bytes_of_modules(const Model& model, const Deployment& plan, std::int64_t tokens) {
  double bytes = 0.0;
  for (const ServedLayers& of : served_layers(model, plan))
    if (of.module)
      bytes += of.layers * (of.module->of_sequence() +
                            static_cast<double>(tokens) * token_of_layer(*of.module, plan));
  return bytes;
}

Bytes states_of_request(const Model& model, const Deployment& plan) {
  return Bytes{in_a_stage(kept_by(model, plan).state * plan.step_tokens(), model, plan)};
}

std::int64_t block_for_states(const Model& model, const Deployment& plan) {
  const Kept kept = kept_by(model, plan);
  if (kept.states == 0) return plan.block;
  // vllm/model_executor/models/config.py, HybridAttentionMambaModelConfig: multiples of 16 tokens,
  // and of the chunk of a Mamba-2 scan, at whose ends it keeps states of prefixes.
  const auto step = static_cast<double>(std::lcm<std::int64_t>(16, kept.chunk));
  const double tokens = kept.largest_state / kept.token_of_layer();
  return std::max(plan.block, static_cast<std::int64_t>(step * std::ceil(tokens / step)));
}

Bytes kv_of_request(const Model& model, const Deployment& plan, std::int64_t tokens) {
  const auto in_blocks = [&](std::int64_t kept) {
    return static_cast<double>((kept + plan.block - 1) / plan.block * plan.block);
  };
  const auto [groups, token] = allotted_layers(model, plan);
  const auto of_groups = [&](std::int64_t count) {
    return in_a_stage(static_cast<double>(count) * token, model, plan);
  };
  double bytes = in_blocks(tokens) * (of_groups(groups.whole) + drafting_bytes(plan));
  if (groups.windowed > 0) {
    // A window need not begin where a block does.
    const std::int64_t kept = std::min(groups.window - 1 + plan.budget, tokens);
    bytes += in_blocks(kept + plan.block) * of_groups(groups.windowed);
  }
  return Bytes{bytes + static_cast<double>(plan.block) * of_groups(groups.states)};
}

std::int64_t longest_request(const Model& model, const Deployment& plan, Bytes cache) {
  std::int64_t fits = 0, too_long = std::int64_t{1} << 31;
  while (too_long - fits > 1) {
    const std::int64_t middle = (fits + too_long) / 2;
    (kv_of_request(model, plan, middle) <= cache ? fits : too_long) = middle;
  }
  return fits / plan.block * plan.block;
}

KvCapacity kv_capacity(const Model& model, const System& system, const Deployment& plan,
                       const ServingEngine& engine) {
  const MemoryRule& rule = engine.memory;
  KvCapacity kv;
  kv.block = plan.block;
  kv.groups = allotted_layers(model, plan).groups;
  kv.bytes_per_token = kv_bytes_per_token(model, plan) + drafting_bytes(plan);
  ServingMemory& memory = kv.memory;
  memory.total = system.gpu.memory;
  memory.weights = rank_weights(model, system.gpu, plan) + draft_weights(system.gpu, plan);
  memory.activations = activations(model, plan, engine);
  memory.reserve = plan.stage_gpus() > 1 ? rule.reserve_parallel : rule.reserve;
  const Bytes held = memory.weights + memory.activations + memory.reserve;
  memory.kv = rule.share_of_rest ? plan.kv_share * (memory.total - held)
                                 : plan.kv_share * memory.total - held;
  if (const Bytes states = states_of_request(model, plan);
      states > Bytes{} && !plan.state_pages && memory.kv > Bytes{}) {
    // SGLang shares what is left between both; others keep space for all requests of an iteration.
    const double ratio = plan.state_ratio;
    kv.state_slots = ratio > 0.0
                         ? static_cast<std::int64_t>(ratio / (1.0 + ratio) * (memory.kv / states))
                         : plan.max_seqs;
    memory.states = static_cast<double>(kv.state_slots) * states;
    memory.kv -= memory.states;
  }
  Kept kept;
  if (plan.window_ratio > 0.0) {
    kept = kept_by(model, plan);
    memory.states =
        Bytes{in_a_stage(static_cast<double>(plan.max_seqs) * kept.of_sequence, model, plan)};
    memory.kv -= memory.states;
  }
  if (memory.kv > Bytes{}) {
    const double per_block = kv.bytes_per_token * static_cast<double>(plan.block);
    kv.tokens = static_cast<std::int64_t>(memory.kv.si() / per_block) * plan.block;
    kv.windows = {static_cast<std::int64_t>(plan.window_ratio * static_cast<double>(kv.tokens)),
                  kept.pooled_window, at_once(plan)};
  }
  return kv;
}

namespace {

// True if the deployment holds a request of `tokens`, and the engine starts with its own length.
bool holds(const Model& model, const Deployment& plan, const ServingEngine& engine,
           const KvCapacity& kv, std::int64_t tokens) {
  return kv.requests(tokens, at_once(plan)) > 0 &&
         (plan.max_length == 0 || !engine.memory.holds_max_length ||
          kv_of_request(model, plan, plan.max_length) <= kv.memory.kv);
}

}  // namespace

std::string kv_remedy(const Model& model, const System& system, const Deployment& plan,
                      const ServingEngine& engine, std::int64_t tokens, const Place& at,
                      const CacheSuffices& suffices) {
  const bool of_pool = at.file.starts_with("--");
  std::int64_t gpus = plan.gpus();
  const auto fits = [&](const DeploymentRequest& changed) {
    try {
      const Deployment other =
          make_deployment(model, system, engine, changed, static_cast<int>(gpus), {});
      const KvCapacity kv = kv_capacity(model, system, other, engine);
      return holds(model, other, engine, kv, tokens) && (!suffices || suffices(kv));
    } catch (const Error&) {
      return false;
    }
  };
  const auto would_do = [&](const OptionTexts& options) {
    return options_text(options, at) + " would do";
  };
  const DeploymentRequest& request = plan.request;
  DeploymentRequest changed = request;
  // An engine without a share for states keeps those of all requests of an iteration.
  if (plan.window_ratio > 0.0 ||
      (has_states(model) && !plan.state_pages && plan.state_ratio == 0.0))
    for (std::int64_t fewer = plan.max_seqs / 2; fewer > 0; fewer /= 2) {
      changed.max_seqs = fewer;
      if (fits(changed)) return would_do({{"max_seqs", std::to_string(fewer)}});
    }
  changed = request;
  changed.kv_share = 0.95;
  if (plan.kv_share < 0.95 && fits(changed)) return would_do({{"kv_share", "0.95"}});
  changed = request;
  changed.kv = Dtype::fp8;
  // Both pools have the same.
  if (element_bytes(plan.kv) > 1.0 && !of_pool && fits(changed)) return would_do({{"kv", "fp8"}});
  changed = request;
  changed.weights = Dtype::fp8;
  OptionTexts options{{"weights", "fp8"}};
  for (const auto& [key, format] : {std::pair{"attention", &DeploymentRequest::attention},
                                    std::pair{"experts", &DeploymentRequest::experts}})
    if (request.*format) changed.*format = Dtype::fp8, options.emplace_back(key, "fp8");
  if (element_bytes(plan.weights) > 1.0) {
    if (fits(changed)) return would_do(options);
    changed.kv = Dtype::fp8;
    options.emplace_back("kv", "fp8");
    if (element_bytes(plan.kv) > 1.0 && !of_pool && fits(changed)) return would_do(options);
  }
  for (int factor = 2; factor * plan.tp <= 128; factor *= 2) {
    changed = request;
    changed.tp = factor * plan.tp;
    options = {{"tp", std::to_string(*changed.tp)}};
    if (request.ep && request.moe_tp) {
      changed.moe_tp = factor * plan.moe_tp;
      options.emplace_back("moe_tp", std::to_string(*changed.moe_tp));
    }
    const std::int64_t replica = factor * plan.replica_gpus();
    gpus = request.replicas ? replica * plan.replicas
                            : (plan.gpus() + replica - 1) / replica * replica;
    if (gpus != plan.gpus()) options.emplace(options.begin(), "gpus", std::to_string(gpus));
    if (fits(changed)) return would_do(options);
  }
  return "";
}

void need_length(const Deployment& plan, std::int64_t tokens, const Place& at) {
  if (plan.max_length == 0 || tokens <= plan.max_length) return;
  fail_infeasible(at / "max_length",
                  "is " + plural(plan.max_length, "token") + ", and a request has " +
                      grouped(tokens) + ": the server refuses it",
                  "ask for fewer tokens, or serve with --max_length " + std::to_string(tokens));
}

void need_kv(const Model& model, const System& system, const Deployment& plan,
             const ServingEngine& engine, std::int64_t tokens, const Place& at,
             const CacheSuffices& suffices) {
  const KvCapacity kv = kv_capacity(model, system, plan, engine);
  if (holds(model, plan, engine, kv, tokens)) return;
  const std::string change = kv_remedy(model, system, plan, engine, tokens, at, suffices);
  const std::string better =
      change.empty() ? "use more GPUs a replica (tp, pp), or GPUs with more memory" : change;
  const std::string of_requests = plan.window_ratio > 0.0
                                      ? "unfinished entries of " + plural(plan.max_seqs, "request")
                                      : "the states of " + plural(kv.state_slots, "request");
  const std::string states = kv.memory.states > Bytes{}
                                 ? ", " + gigabytes_text(kv.memory.states) + " for " + of_requests
                                 : "";
  if (kv.memory.kv <= Bytes{})
    fail_infeasible(at,
                    "does not fit: a GPU needs " + gigabytes_text(kv.memory.weights) +
                        " for weights" + states + " and " +
                        gigabytes_text(kv.memory.activations + kv.memory.reserve) +
                        " in addition, so that " + gigabytes_text(Bytes{} - kv.memory.kv) +
                        " are missing before any KV cache",
                    better);
  if (kv.requests(tokens, at_once(plan)) > 0) {
    const std::int64_t longest = longest_request(model, plan, kv.memory.kv);
    fail_infeasible(
        at / "max_length",
        "is " + plural(plan.max_length, "token") + ", a request of which needs " +
            gigabytes_text(kv_of_request(model, plan, plan.max_length)) + " of KV cache, and " +
            gigabytes_text(kv.memory.kv) + " are left: the engine does not start",
        (longest < tokens ? better
                          : "the largest that fits is " +
                                options_text({{"max_length", std::to_string(longest)}}, at) +
                                (change.empty() ? ", or " + better : "; " + change + ", too")));
  }
  const std::int64_t longest = kv.longest(at_once(plan));
  const std::string windows = longest > kv.tokens
                                  ? " tokens, whose longest request is " + grouped(longest) + ","
                                  : " tokens";
  fail_infeasible(at,
                  "the KV cache of " + grouped(kv.tokens) + windows +
                      " does not hold one request of " + grouped(tokens) + ": " +
                      grouped(tokens - longest) + " tokens are missing",
                  better);
}

std::string too_long_note(const Model& model, std::int64_t tokens) {
  return "a request of " + plural(tokens, "token") + " is longer than the model's " +
         grouped(model.max_sequence) + ", and engines refuse it";
}

std::vector<std::string> length_notes(const Model& model, const Deployment& plan,
                                      const ServingEngine& engine, const KvCapacity& kv,
                                      std::int64_t tokens) {
  const std::int64_t own = model.max_sequence;
  if (own == 0) return {};
  std::vector<std::string> notes;
  if (plan.max_length == 0 && tokens > own) notes.push_back(too_long_note(model, tokens));
  const std::int64_t longest = longest_request(model, plan, kv.memory.kv);
  if (plan.max_length == 0 && engine.memory.holds_max_length && longest < own)
    notes.push_back("the model's length of " + plural(own, "token") +
                    " does not fit in the KV cache: the engine starts only with --max-model-len " +
                    std::to_string(longest) + " or less");
  return notes;
}

}  // namespace orrery
