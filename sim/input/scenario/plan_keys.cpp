#include "sim/input/scenario/plan_keys.hpp"

#include "sim/input/measured/nccl_selection.hpp"
#include "sim/input/scenario/cuda_graphs.hpp"
#include "sim/input/schedule/schedule_file.hpp"

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

std::vector<PlanKey> all_keys() {
  using enum PlanPart;
  // Far above any cluster, far below overflow: products of several of these fit in 64 bits.
  const auto degree = whole_number<int>(1, 1 << 20);
  const auto amount = whole_number<std::int64_t>(1, 1 << 30);
  const auto truth = true_or_false();
  const auto word = any_text();

  // In the order of Dtype. fp32 is left out: weights and activations are counted with 2 bytes.
  const auto training_format = one_of<Dtype>({"fp16", "bf16", "fp8", "mxfp8", "nvfp4"});

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
  static const std::vector<PlanKey> keys = all_keys();
  return keys;
}

}  // namespace orrery
