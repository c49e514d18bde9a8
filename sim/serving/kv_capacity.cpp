#include "sim/serving/kv_capacity.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "sim/core/number_text.hpp"
#include "sim/serving/kernel_roof.hpp"

namespace orrery {
namespace {

constexpr double bytes_16_bit = 2.0;

std::int64_t stage_layers(const Model& model, const Deployment& plan) {
  return (model.layers + plan.pp - 1) / plan.pp;
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
  const auto hidden = static_cast<double>(model.hidden);
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

// Weights of one layer on one rank.
Bytes layer_weights(const Model& model, const Gpu& gpu, const Deployment& plan, int layer) {
  const bool wide = plan.is_16bit(layer, model.layers);
  const double linear = wide ? bytes_16_bit : element_bytes(plan.weights);
  // Key heads are copied where there are more ranks than heads.
  const auto attention = static_cast<double>(attention_parameters(model));
  double own = attention / plan.tp;
  if (!model.latent && plan.tp > model.kv_heads)
    own += 2.0 * static_cast<double>(model.head_dim * model.hidden) *
           (1.0 - static_cast<double>(model.kv_heads) / plan.tp);
  if (model.latent) {
    const LatentAttention& latent = *model.latent;
    const auto whole =
        static_cast<double>(model.hidden * (latent.q_rank + latent.kv_rank + latent.rope_dim));
    own += whole * (1.0 - 1.0 / plan.tp);  // The down-projections are on every rank.
  }
  double bytes = (wide ? bytes_16_bit : element_bytes(plan.attention)) * own;
  const double gates = model.gated ? 3.0 : 2.0;
  if (!has_experts(model, layer))
    return Bytes{bytes + linear * gates * static_cast<double>(model.hidden * model.ffn) / plan.tp};
  const Experts& experts = *model.experts;
  const auto hidden = static_cast<double>(model.hidden);
  bytes += bytes_16_bit * hidden * static_cast<double>(experts.count);  // The router.
  bytes += linear * gates * hidden * static_cast<double>(experts.shared_ffn) / plan.tp;
  bytes += expert_bytes(model, gpu, plan) *
           static_cast<double>(experts.count + plan.redundant_experts) / plan.ep;
  return Bytes{bytes};
}

// Layers that pages are allotted for: groups as large as the rarer kind of layers, filled up.
struct AllottedLayers {
  KvGroups groups;
  std::int64_t in_group = 0;
};
AllottedLayers allotted_layers(const Model& model, const Deployment& plan) {
  if (!plan.frees_windows || model.layer_is_local.empty() || model.window == 0)
    return {{}, model.layers};
  const auto local = std::count(model.layer_is_local.begin(), model.layer_is_local.end(), true);
  const std::int64_t whole = model.layers - local;
  const std::int64_t group = whole == 0 || local == 0 ? model.layers : std::min(local, whole);
  const auto groups_of = [&](std::int64_t layers) { return (layers + group - 1) / group; };
  return {{groups_of(whole), groups_of(local), model.window}, group};
}

Bytes activations(const Model& model, const Deployment& plan, const ServingEngine& engine) {
  if (engine.memory.logit_bytes == 0.0) return {};
  const double logits = engine.memory.logit_bytes * static_cast<double>(plan.max_seqs) *
                        static_cast<double>(model.vocab);
  // A layer's tensors: residual, norm, queries and result, and the MLP's two or three.
  const std::int64_t width = std::max(model.ffn, model.experts ? model.experts->ffn : 0);
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
  return each == 0 ? 0 : blocks() / each;
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
  return layer_weights(*plan.drafter, gpu, drafts, 0);
}

}  // namespace

namespace {

// Bytes of a token in one GPU's cache if so many of the model's layers keep it.
double bytes_in_layers(const Model& model, const Deployment& plan, std::int64_t kept) {
  const double layers =
      static_cast<double>(kept) * static_cast<double>(stage_layers(model, plan)) / model.layers;
  const double value = element_bytes(plan.kv);
  if (model.latent)
    return layers * static_cast<double>(model.latent->kv_rank + model.latent->rope_dim) * value;
  const auto heads = static_cast<double>(std::max<std::int64_t>(1, model.kv_heads / plan.tp));
  return layers * 2.0 * heads * static_cast<double>(model.head_dim) * value;
}

// The same of the layers that draft.
double drafting_bytes(const Deployment& plan) {
  if (!plan.drafter) return 0.0;
  Deployment drafts = plan;
  drafts.pp = 1;
  return kv_bytes_per_token(*plan.drafter, drafts);
}

}  // namespace

double kv_bytes_per_token(const Model& model, const Deployment& plan) {
  const AllottedLayers layers = allotted_layers(model, plan);
  return bytes_in_layers(model, plan, layers.groups.all() * layers.in_group);
}

Bytes kv_of_request(const Model& model, const Deployment& plan, std::int64_t tokens) {
  const auto in_blocks = [&](std::int64_t kept) {
    return static_cast<double>((kept + plan.block - 1) / plan.block * plan.block);
  };
  const auto [groups, in_group] = allotted_layers(model, plan);
  double bytes = in_blocks(tokens) *
                 (bytes_in_layers(model, plan, groups.whole * in_group) + drafting_bytes(plan));
  if (groups.windowed > 0) {
    // A window need not begin where a block does.
    const std::int64_t kept = std::min(model.window - 1 + plan.budget, tokens);
    bytes +=
        in_blocks(kept + plan.block) * bytes_in_layers(model, plan, groups.windowed * in_group);
  }
  return Bytes{bytes};
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
  if (memory.kv > Bytes{}) {
    const double per_block = kv.bytes_per_token * static_cast<double>(plan.block);
    kv.tokens = static_cast<std::int64_t>(memory.kv.si() / per_block) * plan.block;
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
  if (kv.memory.kv <= Bytes{})
    fail_infeasible(
        at,
        "does not fit: a GPU needs " + gigabytes_text(kv.memory.weights) + " for weights and " +
            gigabytes_text(kv.memory.activations + kv.memory.reserve) + " in addition, so that " +
            gigabytes_text(Bytes{} - kv.memory.kv) + " are missing before any KV cache",
        better);
  if (kv.requests(tokens, at_once(plan)) > 0) {
    const std::int64_t longest = longest_request(model, plan, kv.memory.kv);
    fail_infeasible(
        at / "max_length",
        "is " + plural(plan.max_length, "token") + ", a request of which needs " +
            gigabytes_text(kv_of_request(model, plan, plan.max_length)) + " of KV cache, and " +
            gigabytes_text(kv.memory.kv) + " are left: the engine does not start",
        (longest < tokens ? better
                          : "the largest that fits is --max_length " + std::to_string(longest) +
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
