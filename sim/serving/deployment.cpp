#include "sim/serving/deployment.hpp"

#include <algorithm>
#include <cmath>

#include "sim/core/nearest.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/object_reader.hpp"
#include "sim/core/value_list.hpp"
#include "sim/serving/kernel_roof.hpp"
#include "sim/serving/kv_capacity.hpp"
#include "sim/serving/served_layers.hpp"

namespace orrery {
namespace {

void need_format(const Place& at, const ServingEngine& engine, const std::string& word,
                 const std::vector<std::string>& known, const std::string& why = "") {
  if (std::find(known.begin(), known.end(), word) == known.end())
    fail_infeasible(at, "the engine '" + engine.name + "' has no " + word + why,
                    known.empty() ? "leave it out" : "it has " + joined(known));
}

// vLLM gives GPUs below 70 GiB and A100 smaller batches (vllm/engine/arg_utils.py).
bool is_small(const Gpu& gpu) {
  return gpu.memory.si() < 70.0 * 1024 * 1024 * 1024 || gpu.name.starts_with("a100");
}

// The tokens of an iteration of one of `copies` of attention.
std::int64_t usual_budget(const EngineDefaults& usual, const Gpu& gpu, int copies) {
  const auto of_memory = std::find_if(usual.budget_by_memory.begin(), usual.budget_by_memory.end(),
                                      [&](const auto& one) { return gpu.memory < one.below; });
  const std::int64_t budget = of_memory != usual.budget_by_memory.end() ? of_memory->budget
                              : is_small(gpu)                           ? usual.small_gpu_budget
                                                                        : usual.budget;
  return usual.copies_share_budget ? std::max<std::int64_t>(1, budget / copies) : budget;
}

std::int64_t usual_max_seqs(const EngineDefaults& usual, const Model& model, const Gpu& gpu,
                            int copies) {
  if (usual.compressed_max_seqs > 0 && has_compressed_attention(model))
    return std::max<std::int64_t>(1, usual.compressed_max_seqs / copies);
  return is_small(gpu) ? usual.small_gpu_max_seqs : usual.max_seqs;
}

// Copies of attention share experts by expert parallelism (DeepSeek-V3, section 3.4).
void share_experts(const Model& model, const DeploymentRequest& request, Deployment& plan) {
  if (!model.experts) {
    plan.ep = request.ep.value_or(1);
    plan.moe_tp = request.moe_tp.value_or(1);
    return;
  }
  const auto stage = static_cast<int>(plan.stage_gpus());
  plan.ep = request.ep.value_or(request.moe_tp ? std::max(1, stage / *request.moe_tp)
                                : plan.dp > 1  ? stage
                                               : 1);
  plan.moe_tp = request.moe_tp.value_or(std::max(1, stage / plan.ep));
}

// Columns of a weight that are cut for tensor parallelism, and into how many.
struct CutColumns {
  const char* key;  ///< Of the deployment.
  const char* what;
  std::int64_t columns = 0;
  int ranks = 1;
};

// Formats in blocks of 128 x 128 are cut between blocks by engines that check it.
constexpr std::int64_t block_columns = 128;

std::vector<CutColumns> cuts_of_blocks(const Model& model, const ServingEngine& engine,
                                       const Deployment& plan) {
  std::vector<CutColumns> cuts;
  if (!engine.cuts_whole_blocks) return cuts;
  if (plan.weights == Dtype::fp8_block) {
    for (const std::int64_t ffn : mlp_widths(model))
      cuts.push_back({"tp", "columns of the MLP", ffn, plan.tp});
    if (model.experts && model.experts->shared_ffn > 0)
      cuts.push_back({"tp", "columns of the shared experts", model.experts->shared_ffn, plan.tp});
  }
  if (plan.attention == Dtype::fp8_block)
    for (const std::int64_t queries : query_widths(model))
      cuts.push_back({"tp", "columns of the queries", queries, plan.tp});
  if (model.experts && plan.experts == Dtype::fp8_block)
    cuts.push_back({"moe_tp", "columns of an expert", model.experts->ffn, plan.moe_tp});
  return cuts;
}

bool cuts_blocks(const CutColumns& cut) {
  return cut.ranks > 1 &&
         (cut.columns % cut.ranks != 0 || cut.columns / cut.ranks % block_columns != 0);
}

// Ranks have whole groups of heads, or copies of one.
bool shares_heads(const CutHeads& of, int tp) {
  return of.shared == 0 || of.shared % tp == 0 || tp % of.shared == 0;
}

bool shares_experts(const ServingEngine& engine, const Deployment& plan) {
  return !engine.experts_over_all || plan.ep == 1 || plan.ep == plan.stage_gpus();
}

bool shares_attention(const ServingEngine& engine, const Deployment& plan) {
  return !engine.attention_over_all || plan.dp == 1 || plan.tp == 1;
}

// The engine can cut the model so.
bool cuts(const Model& model, const ServingEngine& engine, const Deployment& plan) {
  if (!std::ranges::all_of(cut_heads(model), [&](const CutHeads& of) {
        return of.heads % plan.tp == 0 && shares_heads(of, plan.tp);
      }))
    return false;
  if (std::ranges::any_of(mlp_widths(model), [&](std::int64_t ffn) { return ffn % plan.tp != 0; }))
    return false;
  if (!model.experts) {
    if (plan.ep != 1 || plan.moe_tp != 1 || plan.dp != 1) return false;
  } else if (std::int64_t{plan.moe_tp} * plan.ep != plan.stage_gpus() ||
             (model.experts->count + plan.redundant_experts) % plan.ep != 0 ||
             model.experts->ffn % plan.moe_tp != 0 || !shares_experts(engine, plan) ||
             !shares_attention(engine, plan)) {
    return false;
  }
  return std::ranges::none_of(cuts_of_blocks(model, engine, plan), cuts_blocks);
}

// GPUs that whole replicas fill: as many as are there, but at least one.
std::int64_t filled_gpus(const DeploymentRequest& request, const Deployment& plan,
                         std::int64_t gpus) {
  const std::int64_t replica = plan.replica_gpus();
  return replica * request.replicas.value_or(std::max<std::int64_t>(1, gpus / replica));
}

OptionTexts with_gpus(OptionTexts options, std::int64_t filled, std::int64_t gpus) {
  if (filled != gpus) options.emplace_back("gpus", std::to_string(filled));
  return options;
}

// The largest tp below the plan's that cuts the model, with --gpus if replicas fix them.
OptionTexts smaller_tp(const Model& model, const ServingEngine& engine,
                       const DeploymentRequest& request, const Deployment& plan,
                       std::int64_t gpus) {
  for (Deployment smaller = plan; --smaller.tp >= 1;) {
    const std::int64_t replica = smaller.replica_gpus();
    const std::int64_t filled = request.replicas ? replica * *request.replicas : gpus;
    share_experts(model, request, smaller);
    if (filled % replica == 0 && cuts(model, engine, smaller))
      return with_gpus({{"tp", std::to_string(smaller.tp)}}, filled, gpus);
  }
  return {};
}

std::string use(const OptionTexts& options, const Place& at) {
  return options.empty() ? "leave out degrees" : "use " + options_text(options, at);
}

void need_divides(const Place& at, const std::string& what, std::int64_t whole, std::int64_t part,
                  const std::string& remedy) {
  if (whole % part != 0)
    fail_infeasible(
        at, std::to_string(whole) + " " + what + " cannot be cut into " + std::to_string(part),
        remedy);
}

void cut_attention(const Model& model, const ServingEngine& engine,
                   const DeploymentRequest& request, const Deployment& plan, int gpus,
                   const Place& at) {
  const std::string remedy = use(smaller_tp(model, engine, request, plan, gpus), at);
  for (const CutHeads& of : cut_heads(model))
    need_divides(at / "tp", of.what, of.heads, plan.tp, remedy);
  for (const std::int64_t ffn : mlp_widths(model))
    need_divides(at / "tp", "columns of the MLP", ffn, plan.tp, remedy);
  for (const CutHeads& of : cut_heads(model))
    if (!shares_heads(of, plan.tp))
      fail_infeasible(at / "tp",
                      std::to_string(of.shared) + " " + of.what_shared +
                          " cannot be cut or copied over " + std::to_string(plan.tp) + " ranks",
                      remedy);
}

// The nearest ep that shares the experts of a stage, copies of experts that fill its ranks, or a
// smaller tp.
OptionTexts other_ep(const Model& model, const ServingEngine& engine,
                     const DeploymentRequest& request, const Deployment& plan, int gpus) {
  const auto stage = static_cast<int>(plan.stage_gpus());
  std::optional<Deployment> nearest;
  Deployment other = plan;
  for (other.ep = 1; other.ep <= stage; ++other.ep) {
    other.moe_tp = stage / other.ep;
    if (cuts(model, engine, other) &&
        (!nearest || std::abs(other.ep - plan.ep) < std::abs(nearest->ep - plan.ep)))
      nearest = other;
  }
  if (!nearest && plan.dp > 1) {
    const std::int64_t count = model.experts->count;
    other = plan;
    other.redundant_experts = static_cast<int>((other.ep - count % other.ep) % other.ep);
    if (cuts(model, engine, other))
      return with_gpus(
          {{"eplb", "true"}, {"redundant_experts", std::to_string(other.redundant_experts)}},
          filled_gpus(request, plan, gpus), gpus);
  }
  if (!nearest) return smaller_tp(model, engine, request, plan, gpus);
  OptionTexts options{{"ep", std::to_string(nearest->ep)}};
  if (request.moe_tp) options.emplace_back("moe_tp", std::to_string(nearest->moe_tp));
  return with_gpus(options, filled_gpus(request, plan, gpus), gpus);
}

void cut_experts(const Model& model, const ServingEngine& engine, const DeploymentRequest& request,
                 const Deployment& plan, int gpus, const Place& at) {
  if (!model.experts) {
    if (plan.ep > 1 || plan.moe_tp > 1)
      fail_input(at / (plan.ep > 1 ? "ep" : "moe_tp"), "the model has no experts", "leave it out");
    if (plan.dp == 1) return;
    fail_input(at / "dp", "the model has no experts, so that copies of its attention share nothing",
               "use replicas");
  }
  const std::string remedy = use(other_ep(model, engine, request, plan, gpus), at);
  if (std::int64_t{plan.moe_tp} * plan.ep != plan.stage_gpus())
    fail_input(at / "ep",
               "moe_tp x ep (" + std::to_string(plan.moe_tp) + " x " + std::to_string(plan.ep) +
                   ") is not tp x dp (" + std::to_string(plan.tp) + " x " +
                   std::to_string(plan.dp) + ")",
               remedy);
  need_divides(at / "ep",
               plan.redundant_experts > 0 ? "experts, redundant ones included," : "experts",
               model.experts->count + plan.redundant_experts, plan.ep, remedy);
  need_divides(at / "moe_tp", "columns of an expert", model.experts->ffn, plan.moe_tp, remedy);
  if (!shares_attention(engine, plan))
    fail_infeasible(at / "dp",
                    "the engine '" + engine.name + "' copies attention on all " +
                        std::to_string(plan.tp * plan.dp) + " ranks of a stage or on none",
                    remedy);
  if (!shares_experts(engine, plan))
    fail_infeasible(at / "ep",
                    "the engine '" + engine.name + "' shares experts over all " +
                        std::to_string(plan.stage_gpus()) + " ranks of a stage or over none",
                    remedy);
}

void cut_blocks(const Model& model, const ServingEngine& engine, const DeploymentRequest& request,
                const Deployment& plan, int gpus, const Place& at) {
  for (const CutColumns& cut : cuts_of_blocks(model, engine, plan))
    if (cuts_blocks(cut))
      fail_infeasible(
          at / cut.key,
          std::to_string(cut.columns) + " " + cut.what + " over " + std::to_string(cut.ranks) +
              " ranks do not fall between fp8 blocks of " + std::to_string(block_columns) +
              ", which the engine '" + engine.name + "' needs",
          use(cut.key == std::string{"moe_tp"} ? other_ep(model, engine, request, plan, gpus)
                                               : smaller_tp(model, engine, request, plan, gpus),
              at));
}

// Derives unspecified degrees from the number of GPUs and the other degrees.
void settle_degrees(const Model& model, const System& system, const ServingEngine& engine,
                    const DeploymentRequest& request, int gpus, const Place& at, Deployment& plan) {
  plan.pp = request.pp.value_or(1);
  plan.dp = request.dp.value_or(1);
  plan.replicas = request.replicas.value_or(1);
  plan.redundant_experts = request.redundant_experts.value_or(0);
  const std::int64_t others = std::int64_t{plan.pp} * plan.dp * plan.replicas;
  if (!request.tp && gpus % others != 0)
    fail_infeasible({"", "--gpus"},
                    std::to_string(gpus) +
                        " GPUs cannot be shared by pp x dp x replicas = " + std::to_string(others),
                    "use a multiple of " + std::to_string(others));
  plan.tp = request.tp.value_or(static_cast<int>(gpus / others));
  share_experts(model, request, plan);
  cut_attention(model, engine, request, plan, gpus, at);
  cut_experts(model, engine, request, plan, gpus, at);
  cut_blocks(model, engine, request, plan, gpus, at);
  const std::int64_t replica = plan.replica_gpus();
  if (!request.replicas && gpus % replica != 0) {
    const std::int64_t filled = filled_gpus(request, plan, gpus);
    std::vector<std::string> ways;
    if (system.max_gpus == 0 || filled <= system.max_gpus)
      ways.push_back("--gpus " + std::to_string(filled));
    if (const OptionTexts tp = smaller_tp(model, engine, request, plan, gpus); !tp.empty())
      ways.push_back(options_text(tp, at));
    fail_infeasible(at / "tp",
                    "replicas of " + std::to_string(replica) + " GPUs (tp " +
                        std::to_string(plan.tp) + " x pp " + std::to_string(plan.pp) + " x dp " +
                        std::to_string(plan.dp) + ") do not fill " + std::to_string(gpus) + " GPUs",
                    ways.empty() ? "leave out degrees" : "use " + joined(ways, " or "));
  }
  if (!request.replicas) plan.replicas = static_cast<int>(gpus / replica);
  if (plan.gpus() != gpus)
    fail_input(at / "replicas",
               "tp x pp x dp x replicas is " + std::to_string(plan.gpus()) + ", not the " +
                   std::to_string(gpus) + " of --gpus",
               "use --gpus " + std::to_string(plan.gpus()));
}

void settle_formats(const Model& model, const System& system, const ServingEngine& engine,
                    const DeploymentRequest& request, const Place& at, Deployment& plan) {
  const CheckpointFormats stored = checkpoint_of(model, request);
  plan.weights = stored.weights;
  plan.attention = stored.attention;
  plan.experts = stored.experts;
  plan.ends_16bit = stored.ends_16bit;
  Dtype cached = engine.takes_kv_of_checkpoint ? stored.kv.value_or(Dtype::bf16) : Dtype::bf16;
  if (has_compressed_attention(model)) {
    cached = Dtype::fp8;  // Engines have kernels for such entries alone.
    if (request.kv.value_or(cached) != cached)
      fail_infeasible(at / "kv", "entries of compressed attention are in fp8", "use fp8");
  }
  plan.kv = request.kv.value_or(cached);
  if (plan.ends_16bit > 0 && model.experts)
    fail_input(at / "ends_16bit", "is for models without experts", "leave it out");
  if (2 * plan.ends_16bit > model.layers)
    fail_infeasible(at / "ends_16bit", "the model has " + std::to_string(model.layers) + " layers",
                    "use " + std::to_string(model.layers / 2));
  if (request.experts && !model.experts)
    fail_input(at / "experts", "the model has no experts", "leave it out");
  const auto why = [&](Dtype format, const std::optional<Dtype>& stated) {
    const bool is_published = !request.weights && !stated && is_narrow(format);
    return is_published ? ", in which " + model.name + " is published" : std::string{};
  };
  need_format(at / "weights", engine, name(plan.weights), engine.weights,
              why(plan.weights, request.weights));
  need_format(at / "attention", engine, name(plan.attention), engine.weights,
              why(plan.attention, request.attention));
  if (model.experts)
    need_format(at / "experts", engine, name(plan.experts), engine.experts,
                why(plan.experts, request.experts));
  need_format(at / "kv", engine, name(plan.kv), engine.kv);
  if (const auto no = lacks_units(system.gpu, plan.weights)) throw no->error(at);
  if (const auto no = lacks_units(system.gpu, plan.attention))
    fail_infeasible(at / "attention", no->problem, no->remedy);
  if (model.experts)
    if (const auto no = lacks_units(system.gpu, plan.experts))
      fail_infeasible(at / "experts", no->problem, no->remedy);
}

// Load balancing and overlapped halves are of experts behind an all-to-all.
void settle_dispatch(const Model& model, const ServingEngine& engine, const Place& at,
                     const Deployment& plan) {
  for (const auto& [key, is_on] :
       {std::pair{"eplb", plan.eplb}, std::pair{"redundant_experts", plan.redundant_experts > 0},
        std::pair{"two_batch", plan.two_batch}})
    if (is_on && !model.experts) fail_input(at / key, "the model has no experts", "leave it out");
  if (plan.eplb && (plan.dp == 1 || plan.ep == 1))
    fail_input(at / "eplb", "needs experts and attention over ranks (dp and ep above 1)",
               "leave it out, or add --dp and --ep");
  if (plan.redundant_experts > 0 && !plan.eplb)
    fail_input(at / "redundant_experts", "is for a balancer of experts", "add --eplb true");
  if (plan.prefill_delay > 0 && (!model.experts || plan.dp == 1))
    fail_input(at / "prefill_delay",
               "is for attention ranks that share experts: the model has none, or dp is 1",
               "leave it out, or add --dp");
  if (plan.prefill_delay > 0 && !engine.scheduler->delays_prompts)
    fail_infeasible(at / "prefill_delay",
                    "the engine '" + engine.name + "' begins a prompt as soon as its rank can",
                    "leave it out, or use " + schedulers_with(&SchedulerKind::delays_prompts));
  if (plan.prefill_delay > 0 && plan.pp > 1)
    fail_infeasible(at / "prefill_delay", "is not for stages of a pipeline",
                    "leave it out, or use pp 1");
  if (plan.two_batch && !plan.dispatches)
    fail_input(at / "two_batch",
               "hides the all-to-all of experts, which copies of attention (dp) have over more "
               "than " +
                   std::to_string(most_undispatched) + " ranks, or with --eplb true",
               "leave it out");
}

void settle_mixing(const ServingEngine& engine, const DeploymentRequest& request, const Place& at,
                   Deployment& plan) {
  const SchedulerKind& scheduler = *engine.scheduler;
  plan.mixed = request.mixed.value_or(scheduler.mixes);
  if (plan.mixed != scheduler.mixes && !scheduler.may_change_mixing)
    fail_infeasible(at / "mixed",
                    "the engine '" + engine.name + "' " +
                        (scheduler.mixes ? "always computes prompts with decodes"
                                         : "computes no prompts with decodes"),
                    "leave it out, or use " + schedulers_with(&SchedulerKind::may_change_mixing));
}

// On Blackwell FlashInfer has TRTLLM-gen kernels of experts, which engines take for some formats.
void settle_expert_kernels(const Model& model, const System& system, const ServingEngine& engine,
                           const DeploymentRequest& request, const Place& at, Deployment& plan) {
  const bool has_kernels =
      system.gpu.architecture >= Architecture::blackwell && system.gpu.nvlink > BytesPerSecond{};
  if (request.trtllm_gen.value_or(false)) {
    if (!model.experts) fail_input(at / "trtllm_gen", "the model has no experts", "leave it out");
    if (!has_kernels)
      fail_infeasible(at / "trtllm_gen",
                      "the GPU '" + system.gpu.name +
                          "' has no such kernels: they are of B200, "
                          "B300, GB200 and GB300",
                      "leave it out");
  }
  plan.trtllm_gen =
      has_kernels && model.experts &&
      request.trtllm_gen.value_or(std::ranges::count(engine.trtllm_gen, plan.experts) > 0);
}

// The windows of compressed attention, which may have a pool of their own.
void settle_windows(const Model& model, const ServingEngine& engine,
                    const DeploymentRequest& request, const Place& at, Deployment& plan) {
  const bool compressed = has_compressed_attention(model);
  if (request.window_ratio && !compressed)
    fail_input(at / "window_ratio", "is for compressed attention, as DeepSeek-V4 has",
               "leave it out");
  if (request.window_ratio && engine.memory.window_ratio == 0.0)
    fail_infeasible(at / "window_ratio",
                    "the engine '" + engine.name + "' has no pool for windows alone",
                    "leave it out, or use --engine sglang");
  if (compressed) plan.window_ratio = request.window_ratio.value_or(engine.memory.window_ratio);
}

// Graphs are for steps that the limits of a batch allow, the last one for the largest of them
// (tensorrt_llm/_torch/pyexecutor/model_engine.py, _filter_cuda_graph_batch_sizes).
void settle_graphs(const ServingEngine& engine, const DeploymentRequest& request, const Place& at,
                   Deployment& plan) {
  if (!request.graph_sizes) return;
  if (engine.scheduler->name != "trtllm")
    fail_infeasible(at / "graph_sizes",
                    "the engine '" + engine.name + "' has graphs at short distances",
                    "leave it out, or use trtllm");
  const std::vector<std::int64_t>& sizes = *request.graph_sizes;
  if (std::ranges::adjacent_find(sizes, std::greater_equal{}) != sizes.end() || sizes.empty())
    fail_input(at / "graph_sizes", "is not ascending", "write it like 1/2/4/8/16");
  const std::int64_t most =
      std::max<std::int64_t>(1, std::min(plan.max_seqs, plan.budget / plan.step_tokens()));
  for (const std::int64_t size : sizes)
    if (plan.graph_sizes.empty() || plan.graph_sizes.back() < most)
      plan.graph_sizes.push_back(std::min(size, most));
}

void need_receiving(const ServingEngine& engine, const Place& at, const Deployment& plan) {
  if (plan.receive_interval == 1) return;
  const Place here = at / "receive_interval";
  if (!engine.scheduler->skips_receiving)
    fail_infeasible(here, "the engine '" + engine.name + "' looks for requests in every step",
                    "leave it out, or use " + schedulers_with(&SchedulerKind::skips_receiving));
  if (plan.dp > 1 || plan.pp > 1)
    fail_infeasible(here, "is modelled for one attention rank and one stage",
                    "leave it out, or use dp 1 and pp 1");
}

// Mixers with a state: its format, and where the engine keeps it.
void settle_states(const Model& model, const ServingEngine& engine,
                   const DeploymentRequest& request, const Place& at, Deployment& plan) {
  if (!has_states(model)) {
    if (request.states || request.state_ratio)
      fail_input(at / (request.states ? "states" : "state_ratio"),
                 "the model has no mixer that keeps a state", "leave it out");
    return;
  }
  if (!engine.states)
    fail_infeasible(
        at / "model",
        "the engine '" + engine.name + "' serves no mixers with a state, as " + model.name + " has",
        "use --engine vllm, sglang or trtllm");
  plan.states = request.states.value_or(engine.states->of_checkpoint ? published_states(model)
                                                                     : engine.states->format);
  plan.state_pages = engine.states->in_pages;
  if (request.state_ratio && engine.states->ratio == 0.0)
    fail_infeasible(at / "state_ratio",
                    "the engine '" + engine.name + "' does not share its memory so",
                    "leave it out, or use --engine sglang");
  plan.state_ratio = request.state_ratio.value_or(engine.states->ratio);
  if (plan.has_kv_tiers())
    fail_infeasible(
        at / (plan.host_kv > Bytes{} ? "host_kv" : "kv_tiers"),
        "keeps keys and values alone, which are of no use without the states of " + model.name,
        "leave it out");
  if (plan.state_pages) plan.block = block_for_states(model, plan);
}

void settle_kv_tiers(const ServingEngine& engine, const DeploymentRequest& request, const Place& at,
                     Deployment& plan) {
  plan.host_kv = request.host_kv.value_or(Bytes{});
  plan.kv_tiers = request.kv_tiers.value_or(std::vector<KvTier>{});
  if (!plan.has_kv_tiers()) {
    for (const auto& [key, is_said] : {std::pair{"kv_prefetch", request.kv_prefetch.has_value()},
                                       {"kv_write", request.kv_write.has_value()}})
      if (is_said)
        fail_input(at / key, "is about memories behind the GPU's, of which there are none",
                   "add --host_kv or --kv_tiers, or leave it out");
    return;
  }
  if (!engine.host_kv)
    fail_infeasible(at / (plan.host_kv > Bytes{} ? "host_kv" : "kv_tiers"),
                    "the engine '" + engine.name + "' keeps no keys and values on the host",
                    "leave it out, or use " + schedulers_with(&SchedulerKind::continuous));
  if (plan.kv_tiers.empty() && request.kv_prefetch)
    fail_input(at / "kv_prefetch", "is about memories behind the host's, of which there are none",
               "add --kv_tiers, or leave it out");
  if (!engine.host_kv->fetches_at_arrival && request.kv_prefetch &&
      request.kv_prefetch->policy == KvPrefetch::best_effort)
    fail_infeasible(at / "kv_prefetch",
                    "is best-effort, and the engine '" + engine.name +
                        "' begins to read when it admits a request: nothing would ever have come",
                    "write wait or a time, or use --engine sglang");
  plan.kv_prefetch = request.kv_prefetch.value_or(
      KvFetching{engine.host_kv->prefetch, engine.host_kv->prefetch_limit,
                 engine.host_kv->prefetch_limit_per_token});
  plan.kv_write = request.kv_write.value_or(engine.host_kv->writing);
}

void settle_speculation(const Model& model, const ServingEngine& engine,
                        const Speculation& requested, const Place& at, Deployment& plan) {
  need_format(at / "speculate", engine, name(requested.method), engine.drafts);
  plan.speculation = requested;
  plan.drafter = drafting_model(model, requested, at / "speculate");
  if (plan.drafter)
    need_divides(at / "speculate", "heads of what drafts", plan.drafter->heads, plan.tp,
                 "use another --tp");
}

}  // namespace

double Deployment::fullest_experts() const {
  constexpr double with_balancer = 1.2, power_of_ranks = 0.2;
  return eplb ? with_balancer : std::pow(ep, power_of_ranks);
}

std::string options_text(const OptionTexts& options, const Place& at) {
  const bool of_pool = at.file.starts_with("--");
  std::string text;
  for (const auto& [key, value] : options)
    if (!of_pool)
      text += (text.empty() ? "--" : " --") + key + " " + value;
    else if (key != "gpus")
      text += (text.empty() ? "" : ",") + key + "=" + value;
  return text;
}

CheckpointFormats checkpoint_of(const Model& model, const DeploymentRequest& request) {
  CheckpointFormats formats;
  if (request.weights)
    formats.weights = formats.attention = formats.experts = *request.weights;
  else
    formats = published_formats(model);
  if (!model.experts) formats.experts = formats.weights;
  formats.attention = request.attention.value_or(formats.attention);
  formats.experts = request.experts.value_or(formats.experts);
  formats.ends_16bit = request.ends_16bit.value_or(formats.ends_16bit);
  return formats;
}

std::string published_note(const Model& model, const DeploymentRequest& request) {
  if (request.weights) return "";
  const CheckpointFormats formats = published_formats(model);
  std::vector<std::string> words{"weights " + name(formats.weights)};
  bool narrow = is_narrow(formats.weights);
  const auto add = [&](const char* what, Dtype format, bool stated) {
    if (stated || format == formats.weights) return;
    words.push_back(what + (" " + name(format)));
    narrow |= is_narrow(format);
  };
  add("attention", formats.attention, request.attention.has_value());
  if (model.experts) add("experts", formats.experts, request.experts.has_value());
  if (!narrow) return "";
  return model.name + " is served as it is published: " + joined(words) +
         " (its quantization_config); --weights bf16 says otherwise";
}

std::vector<std::string> unmeasured_notes(const System& system, const Model& model,
                                          const Deployment& plan) {
  std::vector<std::string> notes;
  if (has_compressed_attention(model))
    notes.push_back(
        "compressed attention is priced by measured modules, but sixteen published runs of "
        "DeepSeek-V4, by SGLang 0.5.15, had 0.68 to 1.25 times the predicted throughput, beyond "
        "the range");
  else if (has_attention_module(model))
    notes.push_back(
        "attention with an index is priced by measured modules, which scatter by more than they "
        "grow, and TensorRT-LLM's of MiniMax-M3 take four times as long with each doubling of a "
        "prompt; compare engines");
  if (!system.domains_hold_groups(plan.tp, plan.gpus()))
    notes.push_back("groups of tp=" + std::to_string(plan.tp) +
                    " leave their NVLink domain: what NCCL's all-reduces wait for the host in CUDA "
                    "graphs there, 96 us each, is known of two published runs; reports of February "
                    "2025, DeepSeek-R1 on 16 H100s, are 1.1 and 2.3 times as long a token");
  if (plan.ep > most_undispatched && !plan.dispatches)
    notes.push_back("experts over " + std::to_string(plan.ep) +
                    " ranks that all hold all tokens have the times of a router that loads one of "
                    "them most: prompts take several times less behind an all-to-all (--dp " +
                    std::to_string(plan.ep) + " --tp 1)");
  else if (plan.eplb && plan.redundant_experts == 0)
    notes.push_back(
        "the load that a balancer leaves was measured with copies of experts: without "
        "--redundant_experts their fullest rank may have more");
  else if (plan.dispatches && !plan.eplb)
    notes.push_back(
        "without a balancer of experts their fullest rank has " + fixed(plan.fullest_experts(), 1) +
        " times the mean one's tokens; --eplb true (--enable-eplb) places them by load");
  return notes;
}

Deployment make_deployment(const Model& model, const System& system, const ServingEngine& engine,
                           const DeploymentRequest& request, int gpus, const Place& at) {
  need_priced_mixers(model, at / "model");
  Deployment plan;
  plan.request = request;
  settle_formats(model, system, engine, request, at, plan);
  settle_degrees(model, system, engine, request, gpus, at, plan);
  if (system.max_gpus > 0 && gpus > system.max_gpus)
    fail_infeasible({"", "--gpus"}, system.name + " has " + std::to_string(system.max_gpus),
                    "use no more");
  if (plan.pp > model.layers)
    fail_infeasible(at / "pp",
                    "the model has " + std::to_string(model.layers) + " layers for " +
                        std::to_string(plan.pp) + " stages",
                    "use " + std::to_string(model.layers));
  const EngineDefaults& usual = engine.defaults;
  plan.budget = request.budget.value_or(usual_budget(usual, system.gpu, plan.dp));
  plan.max_seqs = request.max_seqs.value_or(usual_max_seqs(usual, model, system.gpu, plan.dp));
  plan.max_length = request.max_length.value_or(0);
  plan.block = request.block.value_or(usual.block);
  plan.eplb = request.eplb.value_or(false);
  plan.two_batch = request.two_batch.value_or(false);
  plan.prefill_delay = request.prefill_delay.value_or(0);
  plan.receive_interval = request.receive_interval.value_or(1);
  const bool wide =
      plan.ep > most_undispatched || plan.eplb || plan.stage_gpus() > system.nvlink_domain;
  plan.dispatches =
      plan.dp > 1 && plan.ep > 1 && plan.moe_tp == 1 && wide && system.wiring != NodeWiring::pcie;
  settle_dispatch(model, engine, at, plan);
  plan.frees_windows = engine.memory.frees_windows;
  plan.kv_share = request.kv_share.value_or(engine.memory.share);
  plan.chunked = request.chunked.value_or(usual.chunked);
  settle_mixing(engine, request, at, plan);
  settle_kv_tiers(engine, request, at, plan);
  if (request.speculate) settle_speculation(model, engine, *request.speculate, at, plan);
  settle_graphs(engine, request, at, plan);
  settle_windows(model, engine, request, at, plan);
  need_receiving(engine, at, plan);
  settle_states(model, engine, request, at, plan);
  settle_expert_kernels(model, system, engine, request, at, plan);
  return plan;
}

bool hides_host(const Model& model, const ServingEngine& engine, const Deployment& plan) {
  return plan.dp > 1 && model.experts ? engine.host.hidden_with_copies : engine.host.hidden;
}

std::int64_t Deployment::padded(std::int64_t requests) const {
  const auto size = std::ranges::lower_bound(graph_sizes, requests);
  return size == graph_sizes.end() ? requests : *size;
}

std::int64_t batch_limit(const ServingEngine& engine, const Deployment& plan) {
  if (engine.pipeline.limits_a_batch) return plan.max_seqs;
  return std::max<std::int64_t>(1, plan.max_seqs / plan.pp);
}

namespace {

std::string text_of(const JsonValue& value) {
  return value.is_string() ? value.text() : value.compact();
}

// "tp=4,replicas=2"
std::string pool_text(const JsonValue& pool) {
  DeploymentRequest checked;
  read_deployment(checked, pool);
  std::vector<std::string> words;
  for (const DeploymentKey& key : deployment_keys())
    if (pool.has(key.name)) words.push_back(key.name + "=" + text_of(pool.at(key.name)));
  if (words.empty()) pool.fail("has no keys", "write tp, replicas or others");
  return joined(words, ",");
}

// The allowed keys, in the order of the options that a file gives.
std::vector<std::string> known_words() {
  std::vector<std::string> words = names_of(deployment_keys());
  words.insert(words.begin(), {"schema", "model", "checkpoint", "engine", "system", "gpus"});
  words.insert(words.end(), {"prefill", "decode", "prefix_cache", "router"});
  return words;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> deployment_options_of(const JsonValue& file) {
  if (!file.is_object() || !file.has("schema") || file.at("schema").text() != "orrery.deployment/1")
    file.fail("is no deployment",
              "give a file of schema orrery.deployment/1, as orrery import "
              "server writes it");
  file.allow_only(known_words());
  if (file.has("prefill") != file.has("decode"))
    file.fail(file.has("prefill") ? "has prefill, but no decode" : "has decode, but no prefill",
              "say both pools");
  std::vector<std::pair<std::string, std::string>> options;
  for (const std::string& key : known_words()) {
    if (key == "schema" || !file.has(key)) continue;
    const JsonValue value = file.at(key);
    if (key == "model" && value.is_object())
      options.emplace_back(key, file.place().file);
    else if (key == "gpus")
      options.emplace_back(key, std::to_string(value.integer(1, 1 << 16)));
    else if (key == "prefill" || key == "decode")
      options.emplace_back(key, pool_text(value));
    else if (key == "prefix_cache")
      options.emplace_back("prefix-cache", value.boolean() ? "on" : "off");
    else
      options.emplace_back(key, text_of(value));
  }
  DeploymentRequest checked;
  for (const DeploymentKey& key : deployment_keys())
    if (file.has(key.name)) key.read(checked, file.at(key.name));
  return options;
}

std::vector<std::pair<std::string, std::string>> read_deployment_file(const std::string& path) {
  return deployment_options_of(JsonValue::read_file(path));
}

namespace {

// Limits far above any deployment, far below overflow: their products fit in 64 bits.
constexpr std::int64_t most_ranks = 1 << 10;
constexpr std::int64_t most_tokens = 1 << 30;
constexpr Bytes most_host_memory{1e15};

Bytes host_memory(const JsonValue& json) {
  if (!json.is_string()) json.fail("has no unit", "write it like 64GB, or none");
  if (json.text() == "none") return {};
  const Bytes size = json.bytes();
  if (size > most_host_memory) json.fail("is more than 1 PB", "write the memory of one host");
  return size;
}

KvFetching fetching_of(const JsonValue& json) {
  if (!json.is_string()) json.fail("has no unit", "write it like 500ms, or wait or best-effort");
  for (const KvPrefetch policy : {KvPrefetch::wait, KvPrefetch::best_effort})
    if (json.text() == name(policy)) return {policy, Seconds{}, Seconds{}};
  if (json.text().empty() || json.text().find_first_of("0123456789") != 0)
    json.fail("is '" + shown_text(json.text()) + "'",
              "write wait, best-effort or a time like 500ms");
  return {KvPrefetch::timeout, parse_duration(json.text(), json.place()), Seconds{}};
}

std::optional<Speculation> drafting(const JsonValue& json) {
  if (json.text() == "none") return std::nullopt;
  return parse_speculation(json.text(), json.place());
}

// Numbers between slashes: commas part the keys of a pool.
std::vector<std::int64_t> sizes_of(const JsonValue& json) {
  std::vector<std::int64_t> sizes;
  for (const std::string& word : split(json.text(), "/"))
    sizes.push_back(value_of_flag("graph_sizes", word).integer(1, most_tokens));
  return sizes;
}

std::vector<DeploymentKey> all_keys() {
  using D = DeploymentRequest;
  const auto ranks = whole(1, most_ranks), tokens = whole(1, most_tokens);
  const auto expert_ranks = whole(1, most_ranks * most_ranks);
  const auto weights = format_of(FormatUse::weights);
  const Notation<Bytes> host{Form::word, "SIZE", {}, host_memory};
  const Notation<std::vector<KvTier>> tiers{
      Form::word, "KIND:SIZE@RATE", {}, [](const JsonValue& json) {
        return parse_kv_tiers(json.text(), json.place());
      }};
  const Notation<KvFetching> fetching{Form::word, "POLICY", {}, fetching_of};
  const Notation<std::optional<Speculation>> method{Form::word, "METHOD:N@RATE", {}, drafting};
  return {
      field("tp", &D::tp, ranks,
            "tensor-parallel ranks of attention (default: all GPUs of a replica)"),
      field("pp", &D::pp, ranks, "pipeline stages (default 1)"),
      field("dp", &D::dp, ranks,
            "attention data-parallel ranks that share the experts (default 1)"),
      field("ep", &D::ep, expert_ranks,
            "ranks that share the experts (default 1, with dp tp x dp)"),
      field("moe_tp", &D::moe_tp, expert_ranks,
            "ranks that share each expert (default tp x dp / ep)"),
      field("trtllm_gen", &D::trtllm_gen, truth(),
            "experts by FlashInfer's TRTLLM-gen kernels of Blackwell: sglang's "
            "--moe-runner-backend flashinfer_trtllm (default: as the engine does)"),
      field("eplb", &D::eplb, truth(),
            "experts are placed by their load: vllm's and sglang's --enable-eplb (default false)"),
      field("redundant_experts", &D::redundant_experts, whole(0, 1 << 16),
            "replicas of experts that the load balancer adds to the model's own (default 0)"),
      field("two_batch", &D::two_batch, truth(),
            "halves of a batch hide each other's all-to-all: vllm's --enable-dbo, sglang's "
            "--enable-two-batch-overlap (default false)"),
      field("prefill_delay", &D::prefill_delay, whole(0, 1 << 20),
            "attention ranks begin prompts if all can and have room, or in this iteration since "
            "some could: sglang's --enable-prefill-delayer has 30 (default 0)"),
      field("receive_interval", &D::receive_interval, whole(1, 1 << 20),
            "decode steps from one look for new requests to the next: sglang's "
            "--scheduler-recv-interval (default 1)"),
      field("replicas", &D::replicas, whole(1, 1 << 20),
            "copies of all of it (default: as many as the GPUs hold)"),
      field("weights", &D::weights, weights,
            "format of the weights (default: as the model is published, else bf16)"),
      field("attention", &D::attention, weights,
            "format of attention's linear layers (default as weights)"),
      field("experts", &D::experts, weights, "format of the experts' weights (default as weights)"),
      field("ends_16bit", &D::ends_16bit, whole(0, 1 << 10),
            "so many of the first and of the last layers stay in 16 bits (default 0)"),
      field("kv", &D::kv, format_of(FormatUse::kv_cache), "format of the KV cache (default bf16)"),
      field("states", &D::states, format_of(FormatUse::states),
            "format of the states of linear attention and state spaces: --mamba-ssm-cache-dtype "
            "(default: the engine's)"),
      field("state_ratio", &D::state_ratio, real(0.001, 1000.0),
            "memory of the states over that of the KV cache, sglang's --mamba-full-memory-ratio "
            "(default: the engine's)"),
      field("window_ratio", &D::window_ratio, real(0.001, 1.0),
            "tokens in the pool of compressed attention's windows over those of the KV cache: "
            "sglang's --swa-full-tokens-ratio (default: the engine's)"),
      field("budget", &D::budget, tokens, "tokens of an iteration (default: the engine's)"),
      field("max_seqs", &D::max_seqs, tokens, "requests of an iteration (default: the engine's)"),
      field("graph_sizes", &D::graph_sizes,
            Notation<std::vector<std::int64_t>>{Form::word, "N/N/...", {}, sizes_of},
            "requests of the CUDA graphs to which steps without prompts are padded: "
            "cuda_graph_config of TensorRT-LLM with enable_padding (default: every size)"),
      field("max_length", &D::max_length, tokens,
            "tokens of a request at most, vllm's --max-model-len (default: not checked)"),
      field("kv_share", &D::kv_share, real(0.01, 1.0),
            "share of the memory, as the engine counts it (default: the engine's)"),
      field("block", &D::block, tokens, "tokens of a KV block (default: the engine's)"),
      field("chunked", &D::chunked, truth(),
            "prompts are prefilled in parts (default: as the engine does)"),
      field(
          "mixed", &D::mixed, truth(),
          "decodes continue during prompts, sglang's --enable-mixed-chunk (default: as the engine "
          "does)"),
      field("host_kv", &D::host_kv, host,
            "host memory of each GPU that keeps keys and values of prompts: 64GB (default none)"),
      field("kv_tiers", &D::kv_tiers, tiers,
            "memories behind the host's: nvme:4TB@7GB/s of each node, remote:1TB@20GB/s of all "
            "replicas, with a + between them (default none)"),
      field("kv_prefetch", &D::kv_prefetch, fetching,
            "prompts wait for all that these have (wait), for so long, or best-effort (default: as "
            "the engine does)"),
      field("kv_write", &D::kv_write, one_of<KvWriting>(),
            "blocks go to the host and behind it when computed (through) or when their space is "
            "needed (back; default: as the engine does)"),
      field("speculate", &D::speculate, method,
            "N drafted tokens a step, of which this share is accepted: mtp:2@0.7, or the mean "
            "tokens of a step above 1: mtp:3@2.49 "
            "(docs/guides/serve.md)")};
}

const DeploymentKey& key_named(const std::string& name, const Place& at) {
  for (const DeploymentKey& key : deployment_keys())
    if (key.name == name) return key;
  fail_input(at, "'" + shown_text(name) + "' is no key of a deployment",
             suggestion(name, names_of(deployment_keys())));
}

}  // namespace

std::vector<std::string> Deployment::tier_names() const {
  std::vector<std::string> names;
  if (host_kv > Bytes{}) names.emplace_back("host");
  for (const KvTier& tier : kv_tiers) names.push_back(name(tier.kind));
  return names;
}

std::string prefetch_text(const Deployment& plan) {
  const KvFetching& of = plan.kv_prefetch;
  if (of.policy != KvPrefetch::timeout) return name(of.policy);
  const std::string limit = nine_digits(of.limit.si() * 1e3) + "ms";
  if (of.limit_per_token == Seconds{}) return limit;
  return limit + " and " + nine_digits(of.limit_per_token.si() * 1e6) + "us a token";
}

const std::vector<DeploymentKey>& deployment_keys() {
  static const std::vector<DeploymentKey> keys = all_keys();
  return keys;
}

void set_deployment_flag(DeploymentRequest& request, const std::string& key,
                         const std::string& text) {
  key_named(key, {"", "--" + key}).read(request, value_of_flag(key, text));
}

void read_deployment(DeploymentRequest& request, const JsonValue& json) {
  for (const std::string& key : json.keys())
    key_named(key, json.place() / key).read(request, json.at(key));
}

}  // namespace orrery
