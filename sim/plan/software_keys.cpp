#include "sim/plan/software_keys.hpp"

#include <algorithm>

#include "sim/core/catalog.hpp"
#include "sim/core/object_reader.hpp"
#include "sim/plan/scenario.hpp"

namespace orrery {
namespace {

EagerKernels read_eager(const JsonValue& json) {
  using Part = bool EagerKernels::*;
  const Part parts[] = {&EagerKernels::rms_norm, &EagerKernels::rotary,
                        &EagerKernels::scaled_rotary, &EagerKernels::gated_activation};
  EagerKernels eager;
  for (const JsonValue& element : json.sourced().elements())
    eager.*parts[choice<std::size_t>(
               element, {"rms_norm", "rotary", "scaled_rotary", "gated_activation"})] = true;
  return eager;
}

// Only software that shards weights says how.
bool shards_weights(const JsonValue& file, const Software& so_far) {
  return so_far.zero == 3 || file.has("unshard_bytes");
}
bool says_shard_unit(const JsonValue& file, const Software&) { return file.has("shard_unit"); }

std::vector<SoftwareKey> all_software_keys() {
  using S = Software;
  using Host = ExpertLayerHost;
  const auto yes = truth();
  const auto duration = quantity(&JsonValue::duration);
  const auto on_host = [&](const char* name, Seconds Host::*part) {
    return optional(within(&S::expert_layer_host, figure(name, part, duration)));
  };
  const auto figures = [](const std::string& name, auto read) {  // Each with a source of its own.
    return optional(SoftwareKey{name, read});
  };
  std::vector<SoftwareKey> keys{
      figure("dtype", &S::dtype, format_of(FormatUse::products)),
      figure("sequence_parallel", &S::sequence_parallel, yes),
      figure("zero", &S::zero, whole(0, 3)),
      figure("fused_attention", &S::fused_attention, yes),
      optional(figure("attention_library", &S::attention_library, one_of<AttentionLibrary>())),
      optional(figure("deterministic", &S::deterministic, yes)),
      figure("dropout", &S::dropout, yes),
      figure("fused_bias_gradients", &S::fused_bias_gradients, yes),
      figure("scatter_gather", &S::scatter_gather, yes),
      figure("early_recompute_stop", &S::early_recompute_stop, yes),
      figure("selective_recompute", &S::selective_recompute,
             one_of<SelectiveRecompute>({"core_attention", "alternate_products"})),
      figure("microbatches_are_stages", &S::microbatches_are_stages, yes),
      figure("overlap_tp_gradients", &S::overlap_tp_gradients, yes),
      figure("tp_hidden", &S::tp_hidden, real(0.0, 1.0)),
      figure("tp_overlap", &S::tp_overlap, yes),
      figure("overlap_pp", &S::overlap_pp, yes),
      figure("overlap_dp", &S::overlap_dp, yes),
      optional(figure("overlap_dp_sharded", &S::overlap_dp_sharded, yes)),
      optional(figure("reduces_to_all", &S::reduces_to_all, yes)),
      optional(figure("gather_calls", &S::gather_calls, real(0.0, 1000.0))),
      optional(figure("bucket_size", &S::bucket_size, quantity(&JsonValue::bytes))),
      optional(figure("bucket_copy_bytes", &S::bucket_copy_bytes, real(0.0, 8.0))),
      figure("accumulate_bytes", &S::accumulate_bytes, real(0.0, 100.0)),
      figure("logit_forward_bytes", &S::logit_forward_bytes, real(0.0, 200.0)),
      figure("logit_backward_bytes", &S::logit_backward_bytes, real(0.0, 200.0)),
      figure("logit_held_bytes", &S::logit_held_bytes, real(2.0, 40.0)),
      optional(figure("recomputes_logits", &S::recomputes_logits, yes)),
      figure("optimizer_bytes", &S::optimizer_bytes, real(0.0, 200.0)),
      optional(figure("loss_scaling_bytes", &S::loss_scaling_bytes, real(0.0, 200.0))),
      figure("gradient_pass_bytes", &S::gradient_pass_bytes, real(0.0, 100.0)),
      figure("permute_efficiency", &S::permute_efficiency, real(0.01, 1.0)),
      figures("eager_kernels",
              [](Software& s, const JsonValue& v) { s.eager_kernels = read_eager(v); }),
      optional(figure("norm_forward_efficiency", &S::norm_forward_efficiency, real(0.01, 2))),
      optional(figure("norm_backward_efficiency", &S::norm_backward_efficiency, real(0.01, 2))),
      optional(figure("fused_experts", &S::fused_experts, yes)),
      optional(figure("grouped_experts", &S::grouped_experts, yes)),
      optional(figure("stashes_experts", &S::stashes_experts, yes)),
      optional(figure("fused_projections", &S::fused_projections, yes)),
      optional(figure("gathers_inputs_again", &S::gathers_inputs_again, yes)),
      optional(figure("keeps_packed_qkv", &S::keeps_packed_qkv, yes)),
      figure("quantise_bytes", &S::quantise_bytes, real(0.0, 100.0)),
      optional(figure("keeps_quantised_inputs", &S::keeps_quantised_inputs, yes)),
      optional(figure("keeps_quantised_activations", &S::keeps_quantised_activations, yes)),
      figures("fp8_scaling",
              [](Software& s, const JsonValue& v) { s.fp8_scaling = read_fp8_scaling(v); }),
      where(shards_weights, figure("weight_bytes", &S::weight_bytes, real(0.5, 8.0))),
      where(shards_weights, figure("unshard_bytes", &S::unshard_bytes, real(0.0, 100.0))),
      where(shards_weights, figure("reduce_copy_bytes", &S::reduce_copy_bytes, real(0.0, 100.0))),
      where(says_shard_unit,
            figure("shard_unit", &S::shards_by_tensor, one_of<bool>({"layer", "tensor"}))),
      where(says_shard_unit, figure("shard_calls", &S::shard_calls, real(0.0, 1000.0))),
      where(says_shard_unit, figure("live_parameters", &S::live_parameters, real(0.0, 1e15))),
      figures("fp32",
              [](Software& s, const JsonValue& v) {
                s.fp32 = read_fp32_training(v, s.unshard_bytes > 0.0 || s.reduce_copy_bytes > 0.0);
              }),
      optional(figure("sums_copies_once", &S::sums_copies_once, yes)),
      optional(figure("replicates_keys", &S::replicates_keys, yes)),
      figure("gradient_bytes", &S::gradient_bytes, real(1.0, 8.0)),
      figure("main_gradient_bytes", &S::main_gradient_bytes, real(1.0, 8.0)),
      optional(figure("host_adam", &S::host_adam, real(0.01, 1.0))),
      figure("gemm_efficiency", &S::gemm_efficiency, real(0.01, 2.0)),
      figure("attention_efficiency", &S::attention_efficiency, real(0.01, 2.0)),
      figure("batched_gemm_efficiency", &S::batched_gemm_efficiency, real(0.01, 1.0)),
      optional(figure("fused_adapters", &S::fused_adapters, yes)),
      optional(figure("loss_wait", &S::loss_wait, duration)),
      optional(figure("adapter_wait", &S::adapter_wait, duration)),
      optional(figure("dequantise_efficiency", &S::dequantise_efficiency, real(0.01, 1.0))),
      figure("kernel_overhead", &S::kernel_overhead, duration),
      figure("host_launch", &S::host_launch, duration),
      on_host("host_attention", &Host::attention),
      on_host("host_latent_attention", &Host::latent_attention),
      on_host("host_router", &Host::router),
      on_host("host_exchange", &Host::exchange),
      on_host("host_expert", &Host::expert),
      on_host("host_shared_experts", &Host::shared_experts),
      optional(figure("overlapped_host", &S::overlapped_host, real(1, 10))),
      optional(figure("cuda_graphs", &S::cuda_graphs, one_of<CudaGraphs>())),
      optional(figure("frees_outputs", &S::frees_outputs, yes)),
      optional(figure("optimizer_post_validation", &S::optimizer_post_validation, yes)),
      optional(figure("wait_time", &S::wait_time, duration)),
      optional(figure("optimizers_gather_all", &S::optimizers_gather_all, yes)),
      optional(figure("interleaved_from", &S::interleaved_from, whole(2, 1 << 20))),
      figures("support", [](Software& s, const JsonValue& v) { s.support = read_support(v); }),
  };
  for (const Dtype dtype : formats_for(FormatUse::products))
    if (has_scale_blocks(dtype))
      keys.push_back(figures(name(dtype) + "_gemm_efficiency", [=](S& s, const JsonValue& v) {
        s.block_gemm_efficiency[dtype] = v.sourced().number(0.01, 4);
      }));
  return keys;
}

}  // namespace

const std::vector<SoftwareKey>& software_keys() {
  static const std::vector<SoftwareKey> keys = all_software_keys();
  return keys;
}

Fp8Scaling read_fp8_scaling(const JsonValue& json) {
  using F = Fp8Scaling;
  static const std::vector<Field<F>> fields{
      figure("granularity", &F::by_rows, one_of<bool>({"tensor", "row"})),
      where([](const JsonValue&, const F& so_far) { return so_far.by_rows; },
            figure("columns_bytes", &F::columns_bytes, real(0.0, 100.0))),
      figure("gemm_efficiency", &F::gemm_efficiency, real(0.01, 2.0)),
      figure("forward_weight_bytes", &F::forward_weight_bytes, real(0.0, 100.0)),
      figure("backward_weight_bytes", &F::backward_weight_bytes, real(0.0, 100.0))};
  return object(fields).read(json);
}

Fp32Training read_fp32_training(const JsonValue& json, bool shards) {
  using F = Fp32Training;
  const auto bytes = real(0.0, 200.0);
  std::vector<Field<F>> fields{figure("fused_attention", &F::fused_attention, truth()),
                               figure("logit_forward_bytes", &F::logit_forward_bytes, bytes),
                               figure("logit_backward_bytes", &F::logit_backward_bytes, bytes),
                               figure("logit_held_bytes", &F::logit_held_bytes, bytes)};
  if (shards) {
    fields.push_back(figure("unshard_bytes", &F::unshard_bytes, bytes));
    fields.push_back(figure("reduce_copy_bytes", &F::reduce_copy_bytes, bytes));
  }
  return object(fields).read(json);
}

namespace {

// Number of figures that differ or that only one has; sources do not count.
int differences(const Software& one, const Software& other) {
  const auto value = [](const Software& software, const std::string& key) {
    const auto figure = software.document ? software.document->find(key) : std::nullopt;
    return figure && figure->is_object() ? figure->find("value") : std::nullopt;
  };
  return static_cast<int>(std::count_if(
      software_keys().begin(), software_keys().end(),
      [&](const SoftwareKey& key) { return value(one, key.name) != value(other, key.name); }));
}

// True if the plan is refused only for lack of support by the software.
bool is_for_want_of_support(const Model& model, const System& system, Software software,
                            const PlanRequest& request, int gpus) {
  software.support.clear();
  if (!software.fp32) software.fp32.emplace();
  software.interleaved_from = 2;
  return std::holds_alternative<SettledPlan>(try_plan(model, system, software, request, gpus));
}

// The names of those that could do it in place of "another software", if there are any.
std::string with_names(std::string remedy, const std::vector<std::string>& able) {
  const std::string unnamed = ", or another software";
  const std::size_t at = remedy.find(unnamed);
  if (at == remedy.npos) return remedy;
  const std::size_t shown = std::min<std::size_t>(3, able.size());
  std::string names;
  for (std::size_t i = 0; i < shown; ++i)
    names += (i == 0 ? ", or software=" : i + 1 == shown ? " or " : ", ") + able[i];
  return remedy.replace(at, unnamed.size(), names);
}

}  // namespace

std::string default_software(const PlanRequest& request, const System& system) {
  const bool is_volta = system.gpu.architecture == Architecture::volta;
  return is_volta && request.dtype.value_or(Dtype::fp16) == Dtype::fp16 ? "megatron-2021"
                                                                        : "megatron-core";
}

std::vector<Software> software_near(const Software& like) {
  std::vector<std::pair<int, Software>> others;
  for (const std::string& name : list_catalog("workloads/software")) {
    if (name == like.name) continue;
    Software other = read_software(name, {});
    const int distance = differences(like, other);
    others.emplace_back(distance, std::move(other));
  }
  std::stable_sort(others.begin(), others.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Software> sorted;
  for (auto& [distance, software] : others) sorted.push_back(std::move(software));
  return sorted;
}

Scenario make_scenario(const Model& model, const System& system, const PlanRequest& request,
                       int gpus, const Place& at) {
  const Software software =
      read_software(request.software.empty() ? default_software(request, system) : request.software,
                    at / "software");
  std::vector<Software> others;
  const auto near = [&]() -> const std::vector<Software>& {
    return others = software_near(software);
  };
  return make_scenario(model, system, software, near, request, gpus, at);
}

Scenario make_scenario(const Model& model, const System& system, const Software& software,
                       const std::function<const std::vector<Software>&()>& near,
                       const PlanRequest& request, int gpus, const Place& at) {
  const bool requested = !request.software.empty();
  const OrRefused<SettledPlan> settled = try_plan(model, system, software, request, gpus);
  if (std::holds_alternative<SettledPlan>(settled))
    return make_scenario(model, system, software, request, gpus, at);
  Refused no = std::get<Refused>(settled);
  if (!is_for_want_of_support(model, system, software, request, gpus)) throw no.error(at);

  // Unrequested values keep those of the default software.
  PlanRequest usual = request;
  if (!usual.mbs && !software.microbatches_are_stages) usual.mbs = 1;
  std::vector<std::string> able;
  for (const Software& other : near()) {
    const PlanRequest& tried = requested ? request : usual;
    if (std::holds_alternative<Refused>(try_plan(model, system, other, tried, gpus))) continue;
    if (!requested) {
      Scenario scenario = make_scenario(model, system, other, usual, gpus, at);
      scenario.why_software =
          "software " + other.name + " is taken, as no software is named and " + no.problem;
      return scenario;
    }
    // The default software is named first.
    able.insert(other.name == default_software(request, system) ? able.begin() : able.end(),
                other.name);
  }
  no.remedy = with_names(no.remedy, able);
  throw no.error(at);
}

}  // namespace orrery
