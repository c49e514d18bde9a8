#include "sim/plan/plan_keys.hpp"

#include <algorithm>
#include <cassert>

#include "sim/core/nearest.hpp"
#include "sim/core/value_list.hpp"
#include "sim/nccl/nccl_selection.hpp"
#include "sim/pipeline/schedule_file.hpp"
#include "sim/plan/plan_values.hpp"

namespace orrery {
namespace {

using Request = PlanRequest;

bool with_tensor_ranks(const Plan& plan) { return plan.tp > 1; }
bool with_stages(const Plan& plan) { return plan.pp > 1; }
bool with_copies(const Plan& plan) { return plan.data_ranks() > 1; }
bool with_context_ranks(const Plan& plan) { return plan.cp > 1; }
bool with_expert_ranks(const Plan& plan) { return plan.ep > 1; }
bool pairs_passes_anyway(const Plan& plan) {
  return plan.schedule->pairing(plan.pp, plan.vpp) == Pairing::by_itself;
}
bool with_sharded_weights(const Plan& plan) { return plan.shards_weights(); }

Notation<std::string> nccl_names(std::string (*read)(const JsonValue&)) {
  return {KeyForm::word, "any|NAME+NAME", {}, read, [](const std::string& names) {
            return PlanValue{names};
          }};
}

Notation<Dtype> format_of(FormatUse use) {
  return {KeyForm::word, one_of<std::size_t>(format_names(use)).values, format_names(use),
          [=](const JsonValue& v) { return read_format(v, use); },
          [](Dtype dtype) { return PlanValue{name(dtype)}; }};
}

std::vector<PlanKey> all_plan_keys() {
  using enum PlanPart;
  // Far above any cluster, far below overflow: products of several of these fit in 64 bits.
  const auto degree = whole_number<int>(1, 1 << 20);
  const auto amount = whole_number<std::int64_t>(1, 1 << 30);
  const auto truth = true_or_false();
  const auto word = any_text();

  const auto training_format = format_of(FormatUse::products);
  const auto moment_format = format_of(FormatUse::moments);

  const Notation<const Schedule*> some_schedule{
      KeyForm::word, one_of<std::size_t>(schedule_names()).values + "|FILE", schedule_names(),
      [](const JsonValue& v) { return &schedule_of_word(v.text(), v.place()); },
      [](const Schedule* const& schedule) { return PlanValue{schedule->name()}; }};
  const Notation<RecomputeChoice> recomputation{
      KeyForm::word, "none|selective[:PARTS]|full[:LAYERS]", recompute_names(), read_recompute,
      [](const RecomputeChoice& choice) { return PlanValue{recompute_text(choice)}; }};

  const Notation<StageLayers> stage_layers{
      KeyForm::word, "even|N+N+...", {}, read_stage_layers, [](const StageLayers& layers) {
        return PlanValue{stage_layers_text(layers)};
      }};

  return {
      {.name = "tp",
       .part = degrees,
       .help = "tensor-parallel ranks",
       .access = taken(degree, &Request::tp, &Plan::tp),
       .searched = true,
       .megatron = "tensor-model-parallel-size",
       .elsewhere = {"tensor-parallel", "tensor-parallel-size"},
       .range = OpenRange::divides},
      {.name = "pp",
       .part = degrees,
       .help = "pipeline stages",
       .access = taken(degree, &Request::pp, &Plan::pp),
       .unsaid = "1",
       .searched = true,
       .megatron = "pipeline-model-parallel-size",
       .elsewhere = {"pipeline-parallel", "pipeline-parallel-size"},
       .range = OpenRange::divides},
      {.name = "vpp",
       .part = degrees,
       .help = "virtual stages (chunks) a rank, for the interleaved schedule (then default 2)",
       .access = derived(degree, &Request::vpp, &Plan::vpp),
       .matters = with_stages,
       .unsaid = "1",
       .searched = true},
      {.name = "dp",
       .part = degrees,
       .help = "data-parallel replicas; derived from --gpus when left out",
       .access = derived(degree, &Request::dp, &Plan::dp),
       .follows = [](const Plan&) { return true; },
       .unsaid = "1",
       .elsewhere = {"data-parallel", "data-parallel-size"},
       .range = OpenRange::divides},
      {.name = "cp",
       .part = degrees,
       .help = "context-parallel ranks, which share each sequence",
       .access = taken(degree, &Request::cp, &Plan::cp),
       .unsaid = "1",
       .searched = true,
       .megatron = "context-parallel-size",
       .elsewhere = {"context-parallel"},
       .range = OpenRange::divides},
      {.name = "ep",
       .part = degrees,
       .help = "expert-parallel ranks",
       .access = taken(degree, &Request::ep, &Plan::ep),
       .unsaid = "1",
       .searched = true,
       .megatron = "expert-model-parallel-size",
       .elsewhere = {"expert-parallel"},
       .range = OpenRange::divides},
      {.name = "etp",
       .part = degrees,
       .help = "tensor-parallel ranks of the experts",
       .access = taken(degree, &Request::etp, &Plan::etp),
       .unsaid = "1",
       .megatron = "expert-tensor-parallel-size",
       .range = OpenRange::divides},
      {.name = "mbs",
       .part = batch,
       .help = "sequences in a micro-batch (default: the software's, mostly 1)",
       .access = derived(amount, &Request::mbs, &Plan::mbs),
       .searched = true,
       .megatron = "micro-batch-size",
       .elsewhere = {"micro-batch"},
       .range = OpenRange::doubles},
      {.name = "gbs",
       .part = batch,
       .help = "sequences in a step, over all replicas",
       .access = derived(amount, &Request::gbs, &Plan::gbs),
       .heading = "global batch {}",
       .megatron = "global-batch-size",
       .elsewhere = {"batch-size", "batch"},
       .range = OpenRange::doubles},
      {.name = "seq",
       .part = batch,
       .help = "tokens in a sequence (default: as in the model's pre-training)",
       .access = derived(amount, &Request::seq, &Plan::seq),
       .megatron = "seq-length",
       .elsewhere = {"seq-len", "seqlen", "sequence-length"},
       .range = OpenRange::doubles},
      {.name = "schedule",
       .part = schedule,
       .help = "order of the passes on each stage; or a file, as `orrery schedule` prints it",
       .access = derived(some_schedule, &Request::schedule, &Plan::schedule),
       .matters = with_stages,
       .searched = true},
      {.name = "layers",
       .part = schedule,
       .help = "layers of each virtual stage, as 11+12x14+11",
       .access = taken(stage_layers, &Request::layers, &Plan::layers),
       .matters = with_stages,
       .heading = "layers {}",
       .unsaid = "even"},
      {.name = "recompute",
       .part = schedule,
       .help = "activations computed again in the backward pass; PARTS as core_attn+mlp, LAYERS of "
               "each virtual stage",
       .access = taken(recomputation, &Request::recompute, &Plan::recompute),
       .heading = "{} recompute",
       .unsaid = "none",
       .searched = true,
       .elsewhere = {"recompute-granularity"}},
      {.name = "offload_layers",
       .part = schedule,
       .help = "layers whose activations wait for the backward pass in the host's memory",
       .access =
           taken(whole_number<int>(0, 1 << 20), &Request::offload_layers, &Plan::offload_layers),
       .heading = "{} layers offloaded",
       .unsaid = "0",
       .elsewhere = {"cpu-offloading-num-layers"}},
      {.name = "zero",
       .part = sharding,
       .help = "sharded over replicas: 1 optimizer state, 2 gradients, 3 weights (FSDP)",
       .access = taken(whole_number<int>(0, 3), &Request::zero, &Plan::zero, &Software::zero),
       .matters = with_copies,
       .heading = "ZeRO-{}",
       .unsaid = "0",
       .told = [](const Plan& plan) { return plan.optimizer_shards() > 1; },
       .searched = true,
       .elsewhere = {"zero-stage"}},
      {.name = "dp_replicate",
       .part = sharding,
       .help = "copies of all shards; each is spread over as many replicas (HSDP)",
       .access = taken(degree, &Request::dp_replicate, &Plan::dp_replicate),
       .matters = with_copies,
       .heading = "{} copies of its shards",
       .unsaid = "1",
       .megatron = "num-distributed-optimizer-instances",
       .elsewhere = {"data-parallel-replicate-degree"},
       .range = OpenRange::divides},
      {.name = "reshard",
       .part = sharding,
       .help = "zero 3: weights are gathered again for the backward pass",
       .access = derived(truth, &Request::reshard, &Plan::reshard),
       .follows = [](const Plan& plan) { return plan.reshard == plan.usual_reshard(); },
       .exists = with_sharded_weights,
       .told = [](const Plan& plan) { return plan.reshard != plan.usual_reshard(); }},
      {.name = "sp",
       .part = sharding,
       .help = "sequence parallelism (default: the software's)",
       .access = derived(truth, &Request::sp, &Plan::sp),
       .matters = with_tensor_ranks,
       .heading = "sequence parallel",
       .unsaid = "false",
       .searched = true,
       .megatron = "sequence-parallel"},
      {.name = "dtype",
       .part = precision,
       .help = "format of the matrix multiplications",
       .access = taken(training_format, &Request::dtype, &Plan::dtype, &Software::dtype),
       .heading = "{}",
       .elsewhere = {"precision"}},
      {.name = "main_params",
       .part = precision,
       .help = "what the optimizer updates: fp32 masters, the lower 16 bits of them beside bf16 "
               "weights, 16-bit masters, or the weights",
       .access = taken(one_of<MainParams>(main_params_names()), &Request::main_params,
                       &Plan::main_params),
       .heading = "main params {}",
       .unsaid = "fp32"},
      {.name = "exp_avg",
       .part = precision,
       .help = "format of Adam's first moment",
       .access = taken(moment_format, &Request::exp_avg, &Plan::exp_avg),
       .heading = "exp_avg {}",
       .unsaid = "fp32",
       .elsewhere = {"exp-avg-dtype"}},
      {.name = "exp_avg_sq",
       .part = precision,
       .help = "format of Adam's second moment",
       .access = taken(moment_format, &Request::exp_avg_sq, &Plan::exp_avg_sq),
       .heading = "exp_avg_sq {}",
       .unsaid = "fp32",
       .elsewhere = {"exp-avg-sq-dtype"}},
      {.name = "fp8_params",
       .part = precision,
       .help = "weights are kept and gathered in 8 bits, in " +
               alternatives(names_of_products(8), "and"),
       .access = taken(truth, &Request::fp8_params, &Plan::fp8_params),
       .heading = "params in fp8",
       .unsaid = "false",
       .elsewhere = {"fp8-param-gather"}},
      {.name = "attention",
       .part = attention,
       .help = "fused kernel, or the score matrix in memory",
       .access = taken(one_of<bool>({"unfused", "flash"}), &Request::fused_attention,
                       &Plan::fused_attention, &Software::fused_attention),
       .heading = "{} attention"},
      {.name = "fp8_attention",
       .part = attention,
       .help = "products of queries, keys and values in 8 bits as well",
       .access = taken(truth, &Request::fp8_attention, &Plan::fp8_attention),
       .heading = "attention in fp8",
       .unsaid = "false",
       .megatron = "fp8-dot-product-attention"},
      {.name = "cp_comm",
       .part = attention,
       .help = "how context-parallel ranks meet others' keys and values",
       .access = taken(one_of<ContextExchange>(context_exchange_names()), &Request::cp_comm,
                       &Plan::cp_comm),
       .heading = "{} attention",
       .told = with_context_ranks},
      {.name = "routing",
       .part = experts,
       .help = "how tokens choose experts: uniform, zipf:1, hot:0.9, ... or a file",
       .access = taken(word, &Request::routing, &Plan::routing),
       .heading = "routing {}",
       .unsaid = "uniform"},
      {.name = "moe_dispatcher",
       .part = experts,
       .help = "how tokens reach their experts (default alltoall)",
       .access = taken(one_of<ExpertDispatcher>(expert_dispatcher_names()),
                       &Request::moe_dispatcher, &Plan::moe_dispatcher),
       .heading = "{} dispatch",
       .told = with_expert_ranks},
      {.name = "shared_expert_overlap",
       .part = experts,
       .help = "shared experts beside dispatch and combine",
       .access = taken(truth, &Request::shared_expert_overlap, &Plan::shared_expert_overlap),
       .heading = "shared experts beside it",
       .unsaid = "false",
       .megatron = "moe-shared-expert-overlap"},
      {.name = "ep_overlap",
       .part = experts,
       .help = "a micro-batch's dispatch and combine beside the kernels of another",
       .access = taken(truth, &Request::ep_overlap, &Plan::ep_overlap),
       .follows = pairs_passes_anyway,
       .heading = "beside another micro-batch's kernels",
       .unsaid = "false",
       .megatron = "overlap-moe-expert-parallel-comm"},
      {.name = "delay_wgrad",
       .part = experts,
       .help = "with ep_overlap: weight gradients wait for idle time",
       .access = taken(truth, &Request::delay_wgrad, &Plan::delay_wgrad),
       .heading = "delayed weight gradients",
       .unsaid = "false",
       .megatron = "delay-wgrad-compute"},
      {.name = "tp_overlap",
       .part = overlap,
       .help = "tensor-parallel traffic beside GEMMs",
       .access = derived(truth, &Request::tp_overlap, &Plan::tp_overlap),
       .matters = with_tensor_ranks,
       .heading = "tp overlap",
       .unsaid = "false",
       .searched = true,
       .elsewhere = {"tp-comm-overlap"}},
      {.name = "dp_overlap",
       .part = overlap,
       .help = "gradient reduction beside the backward pass",
       .access = taken(truth, &Request::dp_overlap, &Plan::dp_overlap, &Software::overlap_dp),
       .matters = with_copies,
       .heading = "dp overlap",
       .unsaid = "false",
       .searched = true,
       .megatron = "overlap-grad-reduce"},
      {.name = "cuda_graphs",
       .part = software,
       .help = "what the host launches as CUDA graphs",
       .access = taken(one_of<CudaGraphs>(cuda_graph_names()), &Request::cuda_graphs,
                       &Plan::cuda_graphs, &Software::cuda_graphs),
       .heading = "{} in CUDA graphs",
       .unsaid = "none"},
      {.name = "nccl_algo",
       .part = software,
       .help = "NCCL's algorithms, as NCCL_ALGO: Ring+Tree, ^NVLS, Ring;AllReduce:Tree",
       .access = taken(nccl_names(read_nccl_algorithms), &Request::nccl_algo, &Plan::nccl_algo),
       .heading = "NCCL_ALGO {}",
       .unsaid = "any",
       .elsewhere = {"nccl-algo"}},
      {.name = "nccl_proto",
       .part = software,
       .help = "NCCL's protocols, as NCCL_PROTO: LL+LL128, ^LL128",
       .access = taken(nccl_names(read_nccl_protocols), &Request::nccl_proto, &Plan::nccl_proto),
       .heading = "NCCL_PROTO {}",
       .unsaid = "any",
       .elsewhere = {"nccl-proto"}},
      {.name = "software",
       .part = software,
       .help = "training framework and era; `orrery list software`",
       .access = taken(word, &Request::software, &Plan::software),
       .heading = "software {}"},
  };
}

}  // namespace

const std::vector<PlanKey>& plan_keys() {
  static const std::vector<PlanKey> keys = all_plan_keys();
  return keys;
}

namespace {

const std::vector<std::string>& key_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const PlanKey& key : plan_keys()) list.push_back(key.name);
    return list;
  }();
  return names;
}

}  // namespace

std::string text_of(const PlanValue& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  if (const auto* truth = std::get_if<bool>(&value)) return *truth ? "true" : "false";
  return std::get<std::string>(value);
}

std::string PlanKey::text(const Plan& plan) const { return text_of(access.value(plan)); }

bool PlanKey::needs_saying(const Plan& plan) const {
  return has_value(plan) && (told ? told(plan) : can_change(plan)) && text(plan) != unsaid;
}

const PlanKey* find_plan_key(const std::string& name) {
  const auto found = std::find_if(plan_keys().begin(), plan_keys().end(),
                                  [&](const PlanKey& key) { return key.name == name; });
  return found == plan_keys().end() ? nullptr : &*found;
}

const PlanKey& plan_key(const std::string& name) {
  const PlanKey* found = find_plan_key(name);
  assert(found);
  return *found;
}

OpenRange open_range_of(const std::string& key) {
  const PlanKey* found = find_plan_key(key);
  return found ? found->range : key == "gpus" ? OpenRange::doubles : OpenRange::counts;
}

void set_plan_key(PlanRequest& plan, const std::string& key, const JsonValue& value) {
  if (const PlanKey* found = find_plan_key(key)) return found->access.ask(plan, value);
  value.fail("'" + shown_text(key) + "' is not a key of a plan", suggestion(key, key_names()));
}

void set_plan_flag(PlanRequest& plan, const std::string& key, const std::string& text) {
  set_plan_key(plan, key, value_of_flag(key, text));
}

void read_plan(PlanRequest& plan, const JsonValue& json) {
  json.allow_only(key_names());
  for (const std::string& key : json.keys())
    if (const auto value = json.find(key)) set_plan_key(plan, key, *value);
}

void settle(Plan& plan, const PlanRequest& request, const Software& software) {
  for (const PlanKey& key : plan_keys()) key.access.settle(plan, request, software);
}

PlanRequest plan_again(const Plan& plan) {
  PlanRequest request;
  for (const PlanKey& key : plan_keys()) {
    const bool left_open = key.access.may_be_open && !key.can_change(plan);
    const bool by_itself = key.follows && key.follows(plan);
    if (key.has_value(plan) && !left_open && !by_itself) key.access.ask_again(request, plan);
  }
  return request;
}

}  // namespace orrery
