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
using Choices = PlanChoices;

bool with_tensor_ranks(const Plan& plan) { return plan.tp > 1; }
bool with_narrow_products(const Plan& plan) { return is_narrow(plan.dtype); }
bool with_stages(const Plan& plan) { return plan.pp > 1; }
bool with_copies(const Plan& plan) { return plan.has_copies() || plan.copies() > 1; }
bool with_data_ranks(const Plan& plan) { return plan.data_ranks() > 1; }
bool with_context_ranks(const Plan& plan) { return plan.cp > 1; }
bool with_expert_ranks(const Plan& plan) { return plan.ep > 1; }
// With one stage, schedules other than the default still decide memory: GPipe keeps the activations
// of all micro-batches.
bool with_passes_to_order(const Plan& plan) {
  return plan.pp > 1 || plan.schedule != &default_schedule(plan.vpp);
}
bool pairs_passes_anyway(const Plan& plan) {
  return plan.schedule->pairing(plan.pp, plan.vpp) == Pairing::by_itself;
}
bool with_adapters(const Plan& plan) { return !plan.trains_weights(); }
// Else the method says it.
bool with_another_base_format(const Plan& plan) {
  return with_adapters(plan) && plan.base_format != usual_base_format(plan.finetune);
}
bool with_sharded_weights(const Plan& plan) { return plan.shards_weights(); }

// Traits of a key beyond its name, help and members: PlanKey describes each.
template <class Member, class Value>
auto with(Member PlanKey::*member, Value value) {
  return [=](PlanKey& key) { key.*member = value; };
}
auto matters(PlanKey::Test test) { return with(&PlanKey::matters, test); }
auto follows(PlanKey::Test test) { return with(&PlanKey::follows, test); }
auto heading(const char* text) { return with(&PlanKey::heading, text); }
auto usual(const char* value) { return with(&PlanKey::usual, value); }
auto headed(PlanKey::Test test) { return with(&PlanKey::headed, test); }
auto megatron(const char* argument) { return with(&PlanKey::megatron, argument); }
template <class... Names>
auto other_names(Names... names) {
  return [=](PlanKey& key) { key.other_names = {names...}; };
}
const auto searched = with(&PlanKey::searched, true);
const auto divides = with(&PlanKey::range, OpenRange::divides);
const auto doubles = with(&PlanKey::range, OpenRange::doubles);

template <class... Traits>
PlanKey key(const char* name, PlanPart part, const std::string& help, const KeyAccess& access,
            Traits... traits) {
  PlanKey made{name, part, help, access};
  (traits(made), ...);
  return made;
}

Notation<std::string> nccl_names(std::string (*read)(const JsonValue&)) {
  return written<std::string>("any|NAME+NAME", read, std::identity{});
}

Notation<const Schedule*> some_schedule() {
  Notation<const Schedule*> notation = written<const Schedule*>(
      joined(schedule_names(), "|") + "|FILE",
      [](const JsonValue& v) { return &schedule_of_word(v.text(), v.place()); },
      [](const Schedule* schedule) { return schedule->name(); });
  notation.words = schedule_names();
  return notation;
}

Notation<RecomputeChoice> recomputation() {
  Notation<RecomputeChoice> notation = written<RecomputeChoice>(
      "none|selective[:PARTS]|full[:LAYERS]", read_recompute, recompute_text);
  notation.words = enum_words<Recompute>;
  return notation;
}

std::vector<PlanKey> all_plan_keys() {
  using enum PlanPart;
  // Far above any cluster, far below overflow: products of several of these fit in 64 bits.
  const auto degree = whole<int>(1, 1 << 20);
  const auto amount = whole<std::int64_t>(1, 1 << 30);
  const auto word = any_text();
  const auto moment = format_of(FormatUse::moments);
  return {
      key("tp", degrees, "tensor-parallel ranks", {degree, &Choices::tp}, searched, divides,
          megatron("tensor-model-parallel-size"),
          other_names("tensor-parallel", "tensor-parallel-size")),
      key("pp", degrees, "pipeline stages", {degree, &Choices::pp}, usual("1"), searched, divides,
          megatron("pipeline-model-parallel-size"),
          other_names("pipeline-parallel", "pipeline-parallel-size")),
      key("vpp", degrees,
          "virtual stages (chunks) a rank, for the interleaved schedule (then default 2)",
          {degree, &Request::vpp, &Plan::vpp}, matters(with_stages), usual("1"), searched),
      key("dp", degrees, "data-parallel replicas; derived from --gpus when left out",
          {degree, &Request::dp, &Plan::dp}, follows([](const Plan&) { return true; }), usual("1"),
          divides, other_names("data-parallel", "data-parallel-size")),
      key("cp", degrees, "context-parallel ranks, which share each sequence",
          {degree, &Choices::cp}, usual("1"), searched, divides, megatron("context-parallel-size"),
          other_names("context-parallel")),
      key("ep", degrees, "expert-parallel ranks", {degree, &Choices::ep}, usual("1"), searched,
          divides, megatron("expert-model-parallel-size"), other_names("expert-parallel")),
      key("etp", degrees, "tensor-parallel ranks of the experts", {degree, &Choices::etp},
          usual("1"), divides, megatron("expert-tensor-parallel-size")),
      key("mbs", batch, "sequences in a micro-batch (default: the software's, mostly 1)",
          {amount, &Request::mbs, &Plan::mbs}, searched, doubles, megatron("micro-batch-size"),
          other_names("micro-batch")),
      key("gbs", batch, "sequences in a step, over all replicas",
          {amount, &Request::gbs, &Plan::gbs}, heading("global batch {}"), doubles,
          megatron("global-batch-size"), other_names("batch-size", "batch")),
      key("seq", batch, "tokens in a sequence (default: as in the model's pre-training)",
          {amount, &Request::seq, &Plan::seq}, doubles, megatron("seq-length"),
          other_names("seq-len", "seqlen", "sequence-length")),
      key("documents", batch,
          "lengths of documents packed into sequences, each of which attends to itself alone; FILE "
          "has a length a line, M is the median and S the sigma",
          {written<Documents>("none|fixed:N|uniform:A,B|lognormal:M,S|FILE", read_documents,
                              [](const Documents& documents) { return documents.text; }),
           &Choices::documents},
          heading("documents of {} tokens"), usual("none")),
      key("schedule", schedule,
          "order of the passes on each stage; or a file, as `orrery schedule` prints it",
          {some_schedule(), &Request::schedule, &Plan::schedule}, matters(with_passes_to_order),
          searched),
      key("local_batch", schedule,
          "sequences of a replica behind which the pipeline drains; 0: all of a step",
          {whole<std::int64_t>(0, 1 << 30), &Choices::local_batch}, matters(with_stages),
          heading("drained behind local batches of {}"), usual("0"),
          other_names("local-batch-size")),
      key("layers", schedule, "layers of each virtual stage, as 11+12x14+11",
          {written<StageLayers>("even|N+N+...", read_stage_layers, stage_layers_text),
           &Choices::layers},
          matters(with_stages), heading("layers {}"), usual("even")),
      key("recompute", schedule,
          "activations computed again in the backward pass; PARTS as core_attn+mlp, LAYERS of each "
          "virtual stage",
          {recomputation(), &Choices::recompute}, heading("{} recompute"), usual("none"), searched,
          other_names("recompute-granularity")),
      key("offload_layers", schedule,
          "layers whose activations wait for the backward pass in the host's memory",
          {whole<int>(0, 1 << 20), &Choices::offload_layers}, heading("{} layers offloaded"),
          usual("0"), other_names("cpu-offloading-num-layers")),
      key("offload_modules", schedule,
          "parts of layers whose inputs wait in the host's memory, as core_attn+attn_proj, moe_act",
          {written<OffloadModules>("none|PART+PART", read_offload, offload_text),
           &Choices::offload_modules},
          heading("{} offloaded"), usual("none")),
      key("chunked_loss", schedule,
          "logits are never whole: the head and the loss run in chunks of tokens, as Liger's",
          {truth(), &Choices::chunked_loss}, heading("loss in chunks"), usual("false")),
      key("zero", sharding,
          "sharded over replicas: 1 optimizer state, 2 gradients, 3 weights (FSDP)",
          {whole<int>(0, 3), &Request::zero, &Plan::zero}, matters(with_copies), heading("ZeRO-{}"),
          usual("0"), searched, other_names("zero-stage")),
      key("dp_replicate", sharding,
          "copies of all shards; each is spread over as many replicas (HSDP)",
          {degree, &Choices::dp_replicate}, matters(with_data_ranks),
          heading("{} copies of its shards"), usual("1"), divides,
          megatron("num-distributed-optimizer-instances"),
          other_names("data-parallel-replicate-degree")),
      key("offload_optimizer", sharding,
          "percent of the optimizer's state that the host holds and updates",
          {whole<int>(0, 100), &Choices::offload_optimizer},
          heading("{} % of the optimizer on the host"), usual("0")),
      key("offload_weights", sharding, "zero 3: the host holds the shards of weights as well",
          {truth(), &Choices::offload_weights}, matters(with_sharded_weights),
          heading("weights on the host"), usual("false")),
      key("reshard", sharding, "zero 3: weights are gathered again for the backward pass",
          {truth(), &Request::reshard, &Plan::reshard},
          follows([](const Plan& plan) { return plan.reshard == plan.default_reshard(); }),
          with(&PlanKey::exists, with_sharded_weights),
          headed([](const Plan& plan) { return plan.reshard != plan.default_reshard(); })),
      key("sp", sharding, "sequence parallelism (default: the software's)",
          {truth(), &Request::sp, &Plan::sp}, matters(with_tensor_ranks),
          heading("sequence parallel"), usual("false"), searched, megatron("sequence-parallel")),
      key("dtype", precision, "format of the matrix multiplications",
          {format_of(FormatUse::products), &Request::dtype, &Plan::dtype}, heading("{}"),
          other_names("precision")),
      key("main_params", precision,
          "what the optimizer updates: fp32 masters, the lower 16 bits of them with bf16 "
          "weights, 16-bit masters, or the weights",
          {one_of<MainParams>(), &Choices::main_params}, heading("main params {}"), usual("fp32")),
      key("exp_avg", precision, "format of Adam's first moment", {moment, &Choices::exp_avg},
          heading("exp_avg {}"), usual("fp32"), other_names("exp-avg-dtype")),
      key("exp_avg_sq", precision, "format of Adam's second moment", {moment, &Choices::exp_avg_sq},
          heading("exp_avg_sq {}"), usual("fp32"), other_names("exp-avg-sq-dtype")),
      key("fp8_params", precision,
          "weights are kept and gathered in 8 bits, in " +
              alternatives(names_of_products(8), "and"),
          {truth(), &Choices::fp8_params}, heading("params in fp8"), usual("false"),
          other_names("fp8-param-gather")),
      key("fp8_activation_inputs", precision,
          "inputs of activations are kept in 8 bits for the backward pass",
          {truth(), &Choices::fp8_activation_inputs}, matters(with_narrow_products),
          heading("inputs of activations in 8 bits"), usual("false"),
          other_names("activation-func-fp8-input-store")),
      key("bf16_start_layers", precision,
          "number of first layers that multiply in bf16 while the others use dtype",
          {whole<int>(0, 1 << 20), &Choices::bf16_start_layers}, matters(with_narrow_products),
          heading("first {} layers in bf16"), usual("0"),
          other_names("num-layers-at-start-in-bf16")),
      key("bf16_end_layers", precision, "number of last layers that multiply in bf16",
          {whole<int>(0, 1 << 20), &Choices::bf16_end_layers}, matters(with_narrow_products),
          heading("last {} layers in bf16"), usual("0"), other_names("num-layers-at-end-in-bf16")),
      key("finetune", finetuning, "what is trained: all weights, or adapters beside frozen ones",
          {one_of<Finetune>(), &Choices::finetune}, heading("{}"), usual("full"),
          other_names("peft", "peft-scheme")),
      key("lora_rank", finetuning, "inner width of adapters",
          {whole<int>(1, 1 << 16), &Choices::lora_rank}, matters(with_adapters),
          with(&PlanKey::exists, with_adapters), heading("rank {}"), headed(with_adapters),
          other_names("lora-r", "lora-dim")),
      key("lora_targets", finetuning,
          "linear layers with an adapter: all-linear, or some of qkv+proj+fc1+fc2",
          {written<LoraTargets>("all-linear|PART+PART", read_lora_targets, lora_targets_text),
           &Choices::lora_targets},
          matters(with_adapters), with(&PlanKey::exists, with_adapters), heading("adapters on {}"),
          headed(with_adapters)),
      key("lora_dropout", finetuning, "the input of adapters is dropped out",
          {truth(), &Choices::lora_dropout}, matters(with_adapters),
          with(&PlanKey::exists, with_adapters), heading("dropout before adapters"),
          usual("false")),
      key("train_tables", finetuning, "the embedding and the head are trained beside adapters",
          {truth(), &Choices::train_tables}, matters(with_adapters),
          with(&PlanKey::exists, with_adapters), heading("embedding and head trained"),
          usual("false")),
      key("base_format", finetuning,
          "storage of the frozen weights of linear layers (default bf16, of qlora nf4)",
          {one_of<BaseFormat>(), &Request::base_format, &Plan::base_format}, matters(with_adapters),
          with(&PlanKey::exists, with_another_base_format), heading("base in {}"),
          headed(with_another_base_format)),
      key("attention", attention, "fused kernel, or the score matrix in memory",
          {one_of<bool>({"unfused", "flash"}), &Request::fused_attention, &Plan::fused_attention},
          heading("{} attention")),
      key("fp8_attention", attention, "products of queries, keys and values in 8 bits as well",
          {truth(), &Choices::fp8_attention}, heading("attention in fp8"), usual("false"),
          megatron("fp8-dot-product-attention")),
      key("cp_comm", attention, "how context-parallel ranks exchange keys and values",
          {one_of<ContextExchange>(), &Request::cp_comm, &Plan::cp_comm}, heading("{} attention"),
          headed(with_context_ranks)),
      key("routing", experts,
          "how tokens choose experts: uniform, round-robin, zipf:1, hot:0.9, ... or a file",
          {word, &Choices::routing}, heading("routing {}"), usual("uniform")),
      key("moe_dispatcher", experts, "how tokens reach their experts (default alltoall)",
          {one_of<ExpertDispatcher>(), &Choices::moe_dispatcher}, heading("{} dispatch"),
          headed(with_expert_ranks)),
      key("shared_expert_overlap", experts, "shared experts overlapped with dispatch and combine",
          {truth(), &Choices::shared_expert_overlap}, heading("shared experts overlapped"),
          usual("false"), megatron("moe-shared-expert-overlap")),
      key("ep_overlap", experts,
          "a micro-batch's dispatch and combine overlapped with the kernels of another",
          {truth(), &Choices::ep_overlap}, follows(pairs_passes_anyway),
          heading("overlapped with another micro-batch's kernels"), usual("false"),
          megatron("overlap-moe-expert-parallel-comm")),
      key("delay_wgrad", experts, "with ep_overlap: weight gradients wait for idle time",
          {truth(), &Choices::delay_wgrad}, heading("delayed weight gradients"), usual("false"),
          megatron("delay-wgrad-compute")),
      key("tp_overlap", overlap, "tensor-parallel traffic overlapped with GEMMs",
          {truth(), &Request::tp_overlap, &Plan::tp_overlap}, matters(with_tensor_ranks),
          heading("tp overlap"), usual("false"), searched, other_names("tp-comm-overlap")),
      key("dp_overlap", overlap, "gradient reduction overlapped with the backward pass",
          {truth(), &Request::dp_overlap, &Plan::dp_overlap}, matters(with_copies),
          heading("dp overlap"), usual("false"), searched, megatron("overlap-grad-reduce")),
      key("cuda_graphs", software, "what the host launches as CUDA graphs",
          {one_of<CudaGraphs>(), &Request::cuda_graphs, &Plan::cuda_graphs},
          heading("{} in CUDA graphs"), usual("none")),
      key("nccl_algo", software,
          "NCCL's algorithms, as NCCL_ALGO: Ring+Tree, ^NVLS, Ring;AllReduce:Tree",
          {nccl_names(read_nccl_algorithms), &Choices::nccl_algo}, heading("NCCL_ALGO {}"),
          usual("any"), other_names("nccl-algo")),
      key("nccl_proto", software, "NCCL's protocols, as NCCL_PROTO: LL+LL128, ^LL128",
          {nccl_names(read_nccl_protocols), &Choices::nccl_proto}, heading("NCCL_PROTO {}"),
          usual("any"), other_names("nccl-proto")),
      key("wait_for_others", software, "steps get longer as ranks of a large cluster wait",
          {truth(), &Choices::wait_for_others}, usual("true"),
          matters([](const Plan& plan) { return plan.gpus() > 64; }),
          heading("ranks do not wait for each other"),
          headed([](const Plan& plan) { return !plan.wait_for_others; })),
      key("software", software, "training framework and era; `orrery list software`",
          {word, &Choices::software}, heading("software {}")),
      key("software_stands_in", software,
          "another software runs, for which the named one stands in: ranges are wider",
          {truth(), &Choices::software_stands_in}, usual("false"),
          heading("the software stands in for another")),
  };
}

}  // namespace

const std::vector<PlanKey>& plan_keys() {
  static const std::vector<PlanKey> keys = all_plan_keys();
  return keys;
}

std::string PlanKey::text(const Plan& plan) const { return text_of(access.value(plan)); }

bool PlanKey::needs_listing(const Plan& plan) const {
  return has_value(plan) && (headed ? headed(plan) : can_change(plan)) && text(plan) != usual;
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
  if (const PlanKey* found = find_plan_key(key)) return found->access.setter(value)(plan);
  value.fail("'" + shown_text(key) + "' is not a key of a plan",
             suggestion(key, names_of(plan_keys())));
}

void set_plan_flag(PlanRequest& plan, const std::string& key, const std::string& text) {
  set_plan_key(plan, key, value_of_flag(key, text));
}

void read_plan(PlanRequest& plan, const JsonValue& json) {
  json.allow_only(names_of(plan_keys()));
  for (const std::string& key : json.keys())
    if (const auto value = json.find(key)) set_plan_key(plan, key, *value);
}

PlanRequest plan_again(const Plan& plan) {
  PlanRequest request;
  for (const PlanKey& key : plan_keys()) {
    const bool left_open = key.access.may_be_open && !key.can_change(plan);
    const bool by_itself = key.follows && key.follows(plan);
    if (key.has_value(plan) && !left_open && !by_itself) key.access.copy_value(request, plan);
  }
  return request;
}

}  // namespace orrery
