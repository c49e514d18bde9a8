#include "sim/plan/scenario.hpp"

#include <algorithm>
#include <numeric>

#include "sim/core/value_list.hpp"
#include "sim/model/layer_pattern.hpp"
#include "sim/plan/parameter_formats.hpp"
#include "sim/plan/plan_keys.hpp"

namespace orrery {
namespace {

// Ranks are numbered in 32 bits. The largest announced clusters have some 10^6 GPUs.
constexpr std::int64_t largest_cluster = 1 << 24;

std::string text(std::int64_t value) { return std::to_string(value); }

// "1, 2, 4" : the divisors of `whole` nearest to `wish`.
std::string divisors_near(std::int64_t whole, std::int64_t wish) {
  std::int64_t below = 0;
  std::int64_t above = 0;
  for (std::int64_t d = wish; d >= 1 && !below; --d)
    if (whole % d == 0) below = d;
  for (std::int64_t d = wish + 1; d <= whole && !above && d < wish + 100000; ++d)
    if (whole % d == 0) above = d;
  if (below && above) return text(below) + " or " + text(above);
  return text(below ? below : above);
}

MaybeRefused check_divides(std::int64_t whole, const std::string& whole_name, std::int64_t part,
                           const std::string& key) {
  if (whole % part == 0) return {};
  return infeasible(
      key,
      key + "=" + text(part) + " does not divide the model's " + text(whole) + " " + whole_name,
      "use " + key + "=" + divisors_near(whole, part));
}

MaybeRefused check_tensor_parallel(const Model& model, int tp) {
  if (model.pattern) {
    for (const Model& shape : model.pattern->shapes)
      if (auto no = check_tensor_parallel(shape, tp)) return no;
    return {};
  }
  if (model.mixer) {
    const StateWork work = *model.mixer->work(model.hidden, 1);
    if (auto no = check_divides(work.heads, "heads of " + model.mixer->kind(), tp, "tp")) return no;
    if (work.groups % tp != 0 && tp % work.groups != 0)
      return infeasible("tp",
                        "tp=" + text(tp) + " neither divides the " + text(work.groups) +
                            " groups of " + model.mixer->kind() + " nor is a multiple of them",
                        "use tp=" + divisors_near(work.groups, tp));
  }
  if (auto no = check_divides(model.heads, "attention heads", tp, "tp")) return no;
  if (auto no = check_divides(model.ffn, "MLP channels", tp, "tp")) return no;
  if (model.kv_heads > 0 && model.kv_heads % tp != 0 && tp % model.kv_heads != 0)
    return infeasible("tp",
                      "tp=" + text(tp) + " neither divides the model's " + text(model.kv_heads) +
                          " key/value heads nor is a multiple of them",
                      "use tp=" + divisors_near(model.kv_heads, tp));
  return {};
}

// "use tp=4 or 8": the nearest numbers that all layers and the GPUs allow.
std::string other_tensor_ranks(const Model& model, const Plan& plan, int gpus) {
  const auto works = [&](std::int64_t tp) {
    const std::int64_t replica = tp * plan.pp * plan.cp;
    return (gpus == 0 || (replica <= gpus && gpus % replica == 0)) &&
           !check_tensor_parallel(model, static_cast<int>(tp));
  };
  std::vector<std::string> near;
  for (std::int64_t tp = plan.tp - 1; tp >= 1 && near.empty(); --tp)
    if (works(tp)) near.push_back(text(tp));
  const std::int64_t most = std::min<std::int64_t>(4 * std::int64_t{plan.tp}, 4096);
  const std::size_t below = near.size();
  for (std::int64_t tp = plan.tp + 1; tp <= most && near.size() == below; ++tp)
    if (works(tp)) near.push_back(text(tp));
  if (near.empty()) return "use another number of GPUs, or tp=1";
  return "use tp=" + joined(near, " or ");
}

MaybeRefused derive_dp(Plan& plan, const PlanRequest& request, int gpus) {
  const std::int64_t replica = std::int64_t{request.tp} * request.pp * request.cp;
  const auto product = [&] {
    return "tp x pp x cp = " + text(request.tp) + " x " + text(request.pp) + " x " +
           text(request.cp) + " = " + text(replica);
  };
  if (gpus == 0) {
    if (!request.dp)
      return contradiction("", "neither gpus nor dp is given", "add --gpus N (dp follows from it)");
    // Divided, not multiplied: the product of four degrees may not fit in 64 bits.
    if (*request.dp > largest_cluster / replica)
      return infeasible("dp",
                        product() + " times dp=" + text(*request.dp) + " are more than " +
                            text(largest_cluster) + " GPUs",
                        "use fewer ranks");
    plan.dp = *request.dp;
    return {};
  }
  if (replica > gpus)
    return infeasible("", product() + " ranks need more than the " + text(gpus) + " GPUs given",
                      "lower tp or pp, or use --gpus " + text(replica));
  if (gpus % replica != 0)
    return infeasible("", product() + " does not divide the " + text(gpus) + " GPUs given",
                      "use --gpus " + text(gpus / replica * replica) + " or --gpus " +
                          text((gpus / replica + 1) * replica));
  const int dp = static_cast<int>(gpus / replica);
  if (request.dp && *request.dp != dp)
    return contradiction("dp",
                         "dp=" + text(*request.dp) + " contradicts " + text(gpus) + " GPUs / (" +
                             product() + ") = " + text(dp),
                         "leave dp out, or use --gpus " + text(replica * *request.dp));
  plan.dp = dp;
  return {};
}

MaybeRefused derive_microbatches(Plan& plan) {
  const std::int64_t step = plan.mbs * plan.dp;
  if (plan.gbs % step != 0)
    return infeasible("gbs",
                      "gbs=" + text(plan.gbs) + " is not a multiple of mbs x dp = " +
                          text(plan.mbs) + " x " + text(plan.dp) + " = " + text(step),
                      plan.gbs < step ? "use gbs=" + text(step)
                                      : "use gbs=" + text(plan.gbs / step * step) +
                                            " or gbs=" + text((plan.gbs / step + 1) * step));
  const std::int64_t microbatches = plan.gbs / step;
  if (microbatches * plan.virtual_stages() > 10'000'000)
    return infeasible("gbs",
                      text(microbatches) + " micro-batches on " + text(plan.virtual_stages()) +
                          " virtual stages are more than 10 million passes",
                      "lower gbs or raise mbs");
  plan.microbatches = static_cast<int>(microbatches);
  return {};
}

// The smallest local batch from the plan's on that has whole multiples of `part` and divides what a
// replica has of a step.
std::string other_local_batch(const Plan& plan, std::int64_t part) {
  const std::int64_t all = plan.gbs / plan.dp;
  for (std::int64_t local = (plan.local_batch + part - 1) / part * part; local < all; local += part)
    if (all % local == 0) return "use local_batch=" + text(local);
  return "leave local_batch out";
}

// Behind each local batch of a replica the pipeline drains (PyTorch's pipeline schedules run one).
// One stage has nothing to drain.
MaybeRefused check_local_batch(const Plan& plan) {
  if (plan.local_batch == 0 || plan.pp == 1) return {};
  const std::int64_t all = plan.gbs / plan.dp;
  const auto no = [&](const std::string& problem) {
    return infeasible("local_batch", "local_batch=" + text(plan.local_batch) + problem,
                      other_local_batch(plan, plan.mbs));
  };
  if (plan.local_batch % plan.mbs != 0) return no(" is not a multiple of mbs=" + text(plan.mbs));
  if (all % plan.local_batch != 0)
    return no(" does not divide the " + text(all) + " sequences of a replica, gbs / dp");
  return {};
}

MaybeRefused derive_microbatch(Plan& plan, const PlanRequest& request, const Software& software) {
  plan.mbs = request.mbs.value_or(1);
  if (request.mbs || !software.microbatches_are_stages) return {};
  const std::int64_t passes = std::int64_t{plan.dp} * plan.pp;
  if (plan.gbs % passes != 0)
    return infeasible("gbs",
                      "gbs=" + text(plan.gbs) + " is not a multiple of dp x pp = " + text(passes) +
                          ": software '" + software.name +
                          "' makes as many micro-batches as stages",
                      "use gbs=" + text((plan.gbs / passes + 1) * passes) + ", or give --mbs");
  plan.mbs = plan.gbs / passes;
  return {};
}

MaybeRefused derive_schedule(Plan& plan, const PlanRequest& request) {
  plan.schedule = request.schedule.value_or(&default_schedule(plan.vpp));
  const bool drains = plan.microbatches_of_round() < plan.microbatches;
  if (drains && (plan.copies() > 1 || plan.schedule->own_pipeline()))
    return infeasible("local_batch",
                      "schedule=" + plan.schedule->name() + " has its own order of a whole step",
                      "leave local_batch out, or use schedule=1f1b");
  const auto no =
      plan.schedule->refuses({plan.pp, plan.vpp, plan.microbatches_of_round(), plan.mbs * plan.dp});
  if (no && no->key == "gbs" && drains)
    return infeasible("local_batch",
                      "local_batch=" + text(plan.local_batch) + " makes " +
                          text(plan.microbatches_of_round()) + " micro-batches: " + no->problem,
                      other_local_batch(plan, plan.mbs * plan.pp));
  if (no)
    return Refused{no->contradiction ? Error::Kind::bad_input : Error::Kind::infeasible, no->key,
                   no->problem, no->remedy};
  // With one stage and one chunk, the interleaved schedule is 1F1B.
  if (plan.pp == 1 && plan.schedule == &interleaved()) plan.schedule = &one_f_one_b();
  return {};
}

// Weight gradients in passes of their own need what is computed again for the inputs' gradients a
// second time, and whole gradients until the last of them.
MaybeRefused check_split_backward(const Plan& plan) {
  if (!plan.splits_backward()) return {};
  if (plan.zero >= 2)
    return infeasible("zero",
                      "schedule=" + plan.schedule->name() +
                          " puts weight gradients off, which zero=" + text(plan.zero) +
                          " reduces in every backward pass",
                      "use zero=0 or zero=1");
  const bool again = plan.schedule->recomputes_for_weights();
  if (again && plan.recompute.kind != Recompute::full) return {};
  const bool scores_alone =
      plan.recompute == Recompute::selective &&
      (plan.recompute.modules.empty() ||
       plan.recompute.modules == std::set<RecomputeModule>{RecomputeModule::core_attn});
  if (plan.recompute == Recompute::none || scores_alone) return {};
  return infeasible(
      "recompute",
      "schedule=" + plan.schedule->name() +
          " puts weight gradients off, which need what would be computed again",
      again ? "use --recompute selective or none" : "use --recompute none or selective:core_attn");
}

// "use cp=4": the largest degree below the plan's that divides `heads`, the GPUs and the sequence.
std::string other_context_ranks(std::int64_t heads, const Plan& plan) {
  const std::int64_t ranks = std::int64_t{plan.cp} * plan.dp;
  for (std::int64_t cp = plan.cp - 1; cp > 1; --cp)
    if (heads % cp == 0 && ranks % cp == 0 && plan.seq % (2 * cp) == 0) return "use cp=" + text(cp);
  return "use cp=1";
}

// Each rank has two of 2 cp parts of a sequence, the i-th and the i-th from the end, so that all
// have as much to do under a causal mask (Megatron-LM, get_batch_on_this_cp_rank).
MaybeRefused check_context_parallel(const Model& model, const Plan& plan, const Software& software,
                                    const Gpu& gpu) {
  if (plan.cp == 1) return {};
  if (model.pattern) {
    for (const Model& shape : model.pattern->shapes)
      if (auto no = check_context_parallel(shape, plan, software, gpu)) return no;
    return {};
  }
  if (model.mixer) {
    const std::int64_t heads = model.mixer->work(model.hidden, plan.tp)->scan.heads;
    if (heads % plan.cp != 0)
      return infeasible("cp",
                        "cp=" + text(plan.cp) + " does not divide the " + text(heads) +
                            " heads of " + model.mixer->kind() + " on a tensor-parallel rank",
                        other_context_ranks(heads, plan));
  }
  if (model.heads == 0) return {};
  const std::int64_t parts = 2 * std::int64_t{plan.cp};
  if (plan.seq % parts != 0)
    return infeasible(
        "cp",
        "cp=" + text(plan.cp) + " needs 2 cp = " + text(parts) + " to divide seq=" + text(plan.seq),
        "use another cp or seq");
  if (!plan.fused_attention)
    return infeasible("cp", "context parallelism needs fused attention",
                      fuses_attention(gpu) ? "use --attention flash, or cp=1" : "use cp=1");
  // Transformer Engine (attn_forward_func_with_cp) asserts the same: a window needs keys that a
  // rank has together.
  const auto& local = model.layer_is_local;
  if (plan.cp_comm == ContextExchange::p2p && model.window < plan.seq &&
      std::find(local.begin(), local.end(), true) != local.end())
    return infeasible(
        "cp_comm",
        "a ring of keys and values has no windows, but layers of the model attend to " +
            text(model.window) + " of " + text(plan.seq) + " tokens",
        "use cp_comm=all_gather or cp_comm=a2a");
  if (plan.cp_comm != ContextExchange::a2a) return {};
  const std::int64_t keys = std::max<std::int64_t>(1, model.kv_heads / plan.tp);
  const std::int64_t queries = model.heads / plan.tp;
  const bool divides = keys % plan.cp == 0;
  const bool is_shared = software.replicates_keys && plan.cp % keys == 0;
  if (queries % plan.cp == 0 && (divides || is_shared)) return {};
  const bool of_queries = software.replicates_keys && queries % plan.cp != 0;
  const std::string other = supports(software, "cp_comm", "all_gather")
                                ? "use cp_comm=all_gather, or another cp"
                                : "use another cp";
  return infeasible("cp_comm",
                    "cp_comm=a2a needs cp=" + text(plan.cp) + " to divide the " +
                        text(of_queries ? queries : keys) + (of_queries ? "" : " key/value") +
                        " heads of a tensor-parallel rank" +
                        (software.replicates_keys && !of_queries ? ", or these to divide cp" : ""),
                    other);
}

// The number of expert ranks nearest to `wish` that divides both the experts and a stage's ranks.
std::string expert_ranks_near(std::int64_t experts, std::int64_t ranks, std::int64_t wish) {
  return divisors_near(std::gcd(experts, ranks), wish);
}

MaybeRefused check_experts(const Model& model, const Plan& plan) {
  if (!model.experts) return {};
  const Experts& experts = *model.experts;
  const std::int64_t ranks = std::int64_t{plan.tp} * plan.cp * plan.dp;
  if (auto no = check_divides(experts.ffn, "channels of an expert", plan.etp, "etp")) return no;
  if (auto no = check_divides(experts.shared_ffn, "channels of the shared experts", plan.tp, "tp"))
    return no;
  if (ranks % plan.etp != 0)
    return infeasible("etp",
                      "etp=" + text(plan.etp) + " does not divide the " + text(ranks) +
                          " ranks of a pipeline stage (tp x cp x dp)",
                      "use etp=" + divisors_near(ranks, plan.etp));
  const std::int64_t left = ranks / plan.etp;
  if (experts.count % plan.ep != 0)
    return infeasible(
        "ep",
        "ep=" + text(plan.ep) + " does not divide the model's " + text(experts.count) + " experts",
        "use ep=" + expert_ranks_near(experts.count, left, plan.ep));
  if (left % plan.ep != 0)
    return infeasible("ep",
                      "ep=" + text(plan.ep) + (plan.etp > 1 ? " x etp=" + text(plan.etp) : "") +
                          " does not divide the " + text(ranks) +
                          " ranks of a pipeline stage (tp x cp x dp)",
                      "use ep=" + expert_ranks_near(experts.count, left, plan.ep));
  if (plan.tp > 1 && !plan.sp)
    return infeasible("sp",
                      "experts with tp=" + text(plan.tp) +
                          " need sequence parallelism, as each rank sends tokens of its own",
                      "use --sp true");
  return {};
}

// Conditions for overlapping dispatch and combine, as in Megatron-LM (transformer_config.py).
MaybeRefused check_expert_overlap(const Model& model, const Plan& plan) {
  if (plan.delay_wgrad && !plan.ep_overlap)
    return contradiction("delay_wgrad", "weight gradients wait for idle time of ep_overlap alone",
                         "add --ep_overlap true, or leave delay_wgrad out");
  if (!plan.shared_expert_overlap && !plan.ep_overlap) return {};
  const Pairing pairing = plan.schedule->pairing(plan.pp, plan.vpp);
  const char* key = pairing == Pairing::by_itself ? "schedule"
                    : plan.ep_overlap             ? "ep_overlap"
                                                  : "shared_expert_overlap";
  if (plan.ep == 1)
    return infeasible(key, "there is no dispatch to hide with ep=1", "use ep=2 or more");
  const bool flexible = plan.ep_overlap && copies_on_arrival(plan.moe_dispatcher);
  if (plan.moe_dispatcher != ExpertDispatcher::all_to_all && !flexible)
    return infeasible(key, "nothing can overlap with the dispatcher " + name(plan.moe_dispatcher),
                      std::string{"use --moe_dispatcher alltoall"} +
                          (plan.ep_overlap ? ", deepep or hybridep" : ""));
  if (plan.shared_expert_overlap && plan.ep_overlap)
    return contradiction("shared_expert_overlap",
                         "with ep_overlap other kernels overlap with dispatch and combine already",
                         "leave one of the two out");
  if (plan.shared_expert_overlap && model.experts->shared_ffn == 0)
    return infeasible(key, "the model has no shared experts", "leave shared_expert_overlap out");
  if (!plan.ep_overlap) return {};
  if (plan.recompute.kind == Recompute::full)
    return infeasible(key,
                      "full recomputation dispatches and combines again, with nothing to overlap",
                      "use --recompute selective or none");
  if (pairing == Pairing::none)
    return infeasible(key,
                      "a forward and a backward pass that do not wait for each other are found in "
                      "interleaved schedules, and in 1f1b of one stage",
                      plan.pp > 1 ? "use --vpp 2 or more" : "use --schedule 1f1b");
  return {};
}

// The last stage also has the prediction layers and their heads: the others are filled first, and
// it takes what is left (Megatron-Bridge, recipes/deepseek/deepseek_v3.py,
// set_deepseek_v3_pipeline_model_parallel_layout).
std::vector<int> split_before_prediction(int layers, int stages) {
  const int each = (layers + stages - 1) / stages;
  if (layers <= each * (stages - 2)) return {};
  std::vector<int> split;
  for (int left = layers; static_cast<int>(split.size()) < stages; left -= split.back())
    split.push_back(std::min(each, left));
  return split;
}

// A chunk may be the embedding or the head alone, as in split_layers().
MaybeRefused check_stage_layers(const Model& model, const Plan& plan) {
  if (!plan.layers.chosen()) return {};
  const std::vector<int>& of = plan.layers.of;
  const std::string remedy = "write " + text(plan.virtual_stages()) + " numbers that make " +
                             text(model.layers) + ", or leave layers out";
  if (std::ssize(of) != plan.virtual_stages())
    return contradiction("layers",
                         "layers are said of " + text(std::ssize(of)) +
                             " virtual stages, but pp x vpp = " + text(plan.virtual_stages()),
                         remedy);
  const std::int64_t sum = std::accumulate(of.begin(), of.end(), std::int64_t{0});
  if (sum != model.layers)
    return contradiction(
        "layers",
        "the stages have " + text(sum) + " layers, but the model has " + text(model.layers),
        remedy);
  if (of.size() > 2 && std::find(of.begin() + 1, of.end() - 1, 0) != of.end() - 1)
    return infeasible("layers", "a stage between the first and the last has no layer", remedy);
  return {};
}

// A ring, unless the software has another exchange alone.
ContextExchange usual_exchange(const Software& software) {
  for (const ContextExchange one :
       {ContextExchange::p2p, ContextExchange::a2a, ContextExchange::all_gather})
    if (supports(software, "cp_comm", name(one))) return one;
  return ContextExchange::p2p;
}

// What the request says and else the software does, of all keys for which that is enough.
void settle(Plan& plan, const PlanRequest& request, const Software& software) {
  static_cast<PlanChoices&>(plan) = request;
  plan.zero = request.zero.value_or(software.zero);
  plan.dtype = request.dtype.value_or(software.dtype);
  plan.fused_attention = request.fused_attention.value_or(software.fused_attention);
  plan.cp_comm = request.cp_comm ? *request.cp_comm : usual_exchange(software);
  plan.dp_overlap = request.dp_overlap.value_or(software.overlap_dp);
  plan.cuda_graphs = request.cuda_graphs.value_or(software.cuda_graphs);
  plan.base_format = request.base_format.value_or(usual_base_format(plan.finetune));
}

// Kinds of layers that are read and counted, but whose training has no prices yet.
MaybeRefused refuse_layers(const Model& model) {
  if (!model.pattern) return {};
  const LayerPattern& pattern = *model.pattern;
  const auto no = [](const std::string& what, const std::string& remedy) {
    return infeasible("model", what, remedy);
  };
  if (pattern.streams > 1)
    return no("training has no prices of hyper-connections with " + text(pattern.streams) +
                  " residual streams yet",
              "orrery check --model shows its sizes");
  for (const Model& shape : pattern.shapes) {
    if (shape.mixer && !shape.mixer->work(shape.hidden, 1))
      return no(
          "training has no prices yet of such " + shape.mixer->kind() + " layers as the model has",
          // DeepSeek-V3.2 got its index when DeepSeek-V3.1 was trained on (its report).
          shape.mixer->kind() == "latent_attention"
              ? "train it with dense attention, as before an index is added: in its config.json "
                "write \"model_type\": \"deepseek_v3\" and leave out the keys index_n_heads, "
                "index_head_dim and index_topk, or use --model deepseek-v3"
              : "orrery check --model shows their sizes");
    if (shape.experts && *shape.experts != *model.experts)
      return no("training has prices of layers whose experts are alike, and the model's are not",
                "orrery check --model shows their sizes");
  }
  return {};
}

// Degrees and features that are read and counted but not simulated yet.
MaybeRefused refuse_what_is_not_modelled(const Model& model, const Software& software,
                                         const PlanRequest& request) {
  if (!model.experts && request.routing != "uniform")
    return infeasible("routing", "routing needs a model with experts", "leave routing out");
  if (software.shards_by_tensor && request.zero.value_or(software.zero) == 3 &&
      (model.experts || model.prediction_layers > 0 || model.pattern))
    return infeasible("zero",
                      "software '" + software.name +
                          "' shards weights tensor by tensor, which is known for layers with "
                          "neither experts nor predictions of later tokens",
                      "use zero=0 to 2, or a software that shards by layer");
  if (auto no = refuse_layers(model)) return *no;
  if (model.parallel_residual && (model.experts || model.latent))
    return infeasible("model",
                      "parallel blocks are modelled for layers with neither experts nor latent "
                      "attention",
                      "set parallel_residual to false");
  if (!model.experts && (request.ep > 1 || request.etp > 1))
    return infeasible(request.ep > 1 ? "ep" : "etp",
                      "expert parallelism needs a model with experts", "leave ep and etp out");
  if (!model.experts && (request.ep_overlap || request.shared_expert_overlap))
    return infeasible(request.ep_overlap ? "ep_overlap" : "shared_expert_overlap",
                      "it hides dispatch and combine, and the model has no experts",
                      "leave it out");
  return {};
}

}  // namespace

OrRefused<SettledPlan> try_plan(const Model& model, const System& system, const Software& software,
                                const PlanRequest& request, int gpus) {
  if (auto no = refuse_what_is_not_modelled(model, software, request)) return *no;
  SettledPlan settled;
  Plan& plan = settled.plan;
  settle(plan, request, software);
  if (!request.dp_overlap && plan.zero >= 1 && !software.overlap_dp_sharded)
    plan.dp_overlap = false;
  plan.software = software.name;
  plan.vpp = request.vpp.value_or(request.schedule ? (*request.schedule)->default_vpp(plan.pp) : 1);
  plan.experts = model.experts.has_value();
  if (auto no = check_tensor_parallel(model, plan.tp)) {
    no->remedy = other_tensor_ranks(model, plan, gpus);
    return *no;
  }
  // Before any product of pp and vpp is formed: both together may not fit in an int.
  const std::int64_t chunks = std::int64_t{plan.pp} * plan.vpp;
  const auto all_chunks = [&] {
    return "pp x vpp = " + text(plan.pp) + " x " + text(plan.vpp) + " = " + text(chunks) +
           " chunks";
  };
  // A chunk may be the embedding or the head alone (split_layers).
  if (chunks > model.layers + 2)
    return infeasible("pp", text(model.layers) + " layers do not fill " + all_chunks(),
                      "use pp x vpp = " + text(model.layers) + " or less");
  if (auto no = derive_dp(plan, request, gpus)) return *no;
  if (system.max_gpus > 0 && plan.gpus() > system.max_gpus)
    return infeasible(gpus ? "gpus" : "dp",
                      text(plan.gpus()) + " GPUs are more than the " + text(system.max_gpus) +
                          " of system '" + system.name + "'",
                      "use --gpus " + text(system.max_gpus));
  if (!request.gbs)
    return contradiction("", "the key 'gbs' is missing", "add --gbs N, sequences in a step");
  plan.gbs = *request.gbs;
  if (auto no = derive_microbatch(plan, request, software)) return *no;
  plan.seq = request.seq.value_or(default_sequence(model));
  if (plan.seq <= 0)
    return contradiction("", "neither the plan nor the model says how long a sequence is",
                         "add --seq N");
  if (plan.mbs * plan.seq > (std::int64_t{1} << 31))
    return infeasible("mbs",
                      text(plan.mbs) + " sequences of " + text(plan.seq) +
                          " tokens are more than any GPU can hold",
                      "lower mbs or seq");
  if (auto no = derive_microbatches(plan)) return *no;
  if (auto no = check_local_batch(plan)) return *no;
  if (auto no = derive_schedule(plan, request)) return *no;
  // DualPipe runs a forward and a backward pass of the two directions together.
  if (plan.schedule->pairing(plan.pp, plan.vpp) == Pairing::by_itself && plan.ep > 1)
    plan.ep_overlap = true;
  if (plan.recompute == Recompute::selective &&
      (model.latent || model.experts || model.parallel_residual || model.pattern) &&
      software.selective_recompute == SelectiveRecompute::alternate_products)
    return infeasible("recompute",
                      "software '" + software.name +
                          "' recomputes every other product of a layer, which is known for layers "
                          "with neither experts, latent attention nor parallel blocks",
                      "use recompute=full or recompute=none");
  if (auto no = check_split_backward(plan)) return *no;
  if (request.reshard && plan.zero != 3)
    return contradiction("reshard", "reshard is of sharded weights, but zero=" + text(plan.zero),
                         "use zero=3, or leave reshard out");
  plan.reshard = plan.shards_weights() && request.reshard.value_or(plan.default_reshard());
  if (plan.ep_overlap && (plan.reshard || plan.shards_gradients()))
    return infeasible("ep_overlap",
                      "it joins the passes of two micro-batches, in each of which zero=" +
                          text(plan.zero) + " gathers weights or reduces gradients",
                      "leave ep_overlap out, or use zero=0 or zero=1");
  plan.sp = request.sp.value_or(software.sequence_parallel) && plan.tp > 1;
  if (plan.sp && plan.seq / plan.cp % plan.tp != 0)
    return infeasible("sp",
                      "sequence parallelism needs tp=" + text(plan.tp) + " to divide seq" +
                          (plan.cp > 1 ? " / cp=" : "=") + text(plan.seq / plan.cp),
                      "use --sp false or another seq");
  if (auto no = system.gpu.lacks(plan.dtype)) return *no;
  if (auto no = settle_attention(plan, request, system.gpu)) return *no;
  if (auto no = settle_fp32(plan, request, software)) return *no;
  if (auto no = refuse_formats(plan)) return *no;
  if (auto no = refuse_finetuning(plan, request, model)) return *no;
  if (auto no = refuse_activations(model, plan)) return *no;
  if (auto no = check_context_parallel(model, plan, software, system.gpu)) return *no;
  if (auto no = check_experts(model, plan)) return *no;
  if (auto no = refuse_copies_of_shards(plan)) return *no;
  if (auto no = refuse_offloading_to_host(plan, system, software)) return *no;
  if (auto no = check_expert_overlap(model, plan)) return *no;
  if (request.tp_overlap.value_or(false) && !software.overlaps_tp())
    return infeasible("tp_overlap", "the software '" + software.name + "' has no tp_overlap=true",
                      "use tp_overlap=false, or another software");
  const bool tp_overlap = request.tp_overlap.value_or(software.tp_overlap);
  plan.overlap_tp_gradients = tp_overlap && software.overlap_tp_gradients;
  // Traffic is pipelined into GEMMs by reads and writes over NVLink: user buffers of Transformer
  // Engine (its issue 1071 and pull request 1470), symmetric memory of PyTorch.
  const bool has_nvlink = system.domains_hold_groups(plan.tp, plan.gpus());
  plan.tp_hidden = tp_overlap && has_nvlink ? software.tp_hidden : 0.0;
  if (request.tp_overlap.value_or(false) && !plan.tp_overlap())
    return infeasible("tp_overlap",
                      "its kernels send over NVLink, and groups of tp=" + text(plan.tp) +
                          " leave domains of " + text(system.nvlink_domain) + " GPUs",
                      "use tp_overlap=false, or a smaller tp");
  if (auto no = check_support(software, plan)) return *no;

  if (auto no = check_stage_layers(model, plan)) return *no;
  settled.layers_of = plan.layers.chosen() ? plan.layers.of
                      : model.prediction_layers > 0
                          ? split_before_prediction(model.layers, plan.virtual_stages())
                          : split_layers(model.layers, plan.virtual_stages());
  if (settled.layers_of.empty())
    return infeasible("pp", text(model.layers) + " layers do not divide into " + all_chunks(),
                      "use pp x vpp = " + divisors_near(model.layers, plan.virtual_stages()));
  return settled;
}

Scenario scenario_of(const Model& model, const System& system, const Software& software,
                     const SettledPlan& settled) {
  const std::int64_t multiple = 128 * std::int64_t{settled.plan.tp};
  Scenario scenario{model,
                    filled_evenly(system, settled.plan.gpus()),
                    captured(settled.plan.cuda_graphs, software),
                    settled.plan,
                    settled.layers_of,
                    (model.vocab + multiple - 1) / multiple * multiple};
  set_formats(scenario.plan, scenario.system.gpu, scenario.software);
  if (settled.plan.cuda_graphs != CudaGraphs::none || !has_formats_of_files(settled.plan))
    scenario.software_without_plan = std::make_shared<const Software>(software);
  return scenario;
}

Scenario make_scenario(const Model& model, const System& system, const Software& software,
                       const PlanRequest& request, int gpus, const Place& at) {
  const OrRefused<SettledPlan> settled = try_plan(model, system, software, request, gpus);
  if (const auto* no = std::get_if<Refused>(&settled)) throw no->error(at);
  Scenario scenario = scenario_of(model, system, software, std::get<SettledPlan>(settled));
  scenario.guessed_sequence = !request.seq && guesses_sequence(model);
  return scenario;
}

Scenario make_scenario(const Scenario& like, const PlanRequest& request, int gpus,
                       const Place& at) {
  return make_scenario(like.model, like.system, software_as_read(like), request, gpus, at);
}

const Software& software_as_read(const Scenario& scenario) {
  return scenario.software_without_plan ? *scenario.software_without_plan : scenario.software;
}

std::string plan_of_a_replica(const Scenario& scenario) {
  static const std::vector<std::string> of_all_replicas{"dp", "gbs", "dp_replicate",
                                                        "software_stands_in"};
  const Model& model = scenario.model;
  // Not its name or vocabulary, which differ between files that describe one model.
  std::string plan = scenario.system.name;
  for (const std::int64_t size :
       {std::int64_t{model.layers}, model.hidden, model.ffn, model.heads, model.kv_heads,
        model.experts ? std::int64_t{model.experts->count} : std::int64_t{0}})
    plan += " " + text(size);
  for (const PlanKey& key : plan_keys())
    if (key.has_value(scenario.plan) && std::find(of_all_replicas.begin(), of_all_replicas.end(),
                                                  key.name) == of_all_replicas.end())
      plan += " " + key.name + "=" + key.text(scenario.plan);
  return plan;
}

}  // namespace orrery
