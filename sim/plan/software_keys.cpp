#include "sim/plan/software_keys.hpp"

#include <algorithm>
#include <tuple>
#include <type_traits>

#include "sim/core/catalog.hpp"
#include "sim/core/object_reader.hpp"
#include "sim/plan/scenario.hpp"

namespace orrery {
namespace {

using Reader = std::function<void(Software&, const JsonValue&)>;

Reader truth(bool Software::*member) {
  return [=](Software& s, const JsonValue& v) { s.*member = v.sourced().boolean(); };
}

template <class Of>
auto number(double Of::*member, double low, double high) {
  return [=](Of& of, const JsonValue& v) { of.*member = v.sourced().number(low, high); };
}

Reader whole(int Software::*member, int low, int high) {
  return [=](Software& s, const JsonValue& v) {
    s.*member = static_cast<int>(v.sourced().integer(low, high));
  };
}

Reader duration(Seconds Software::*member) {
  return [=](Software& s, const JsonValue& v) { s.*member = v.sourced().duration(); };
}
Reader duration(Seconds ExpertLayerHost::*member) {
  return [=](Software& s, const JsonValue& v) {
    s.expert_layer_host.*member = v.sourced().duration();
  };
}

// `names` are in the order of the enumerators; of a bool that of false is first.
template <class Enum>
Reader one_of(Enum Software::*member, const std::vector<std::string>& names) {
  return [=](Software& s, const JsonValue& v) { s.*member = choice<Enum>(v.sourced(), names); };
}

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
  constexpr bool optional = false;  // As the value of `required`.
  std::vector<SoftwareKey> keys{
      {"dtype",
       [](Software& s, const JsonValue& v) {
         s.dtype = read_format(v.sourced(), FormatUse::products);
       }},
      {"sequence_parallel", truth(&S::sequence_parallel)},
      {"zero", whole(&S::zero, 0, 3)},
      {"fused_attention", truth(&S::fused_attention)},
      {"attention_library",
       [](Software& s, const JsonValue& v) {
         s.attention_library = choice<AttentionLibrary>(v.sourced(), attention_library_names());
       },
       optional},
      {"deterministic", truth(&S::deterministic), optional},
      {"dropout", truth(&S::dropout)},
      {"fused_bias_gradients", truth(&S::fused_bias_gradients)},
      {"scatter_gather", truth(&S::scatter_gather)},
      {"early_recompute_stop", truth(&S::early_recompute_stop)},
      {"selective_recompute",
       one_of(&S::selective_recompute, {"core_attention", "alternate_products"})},
      {"microbatches_are_stages", truth(&S::microbatches_are_stages)},
      {"overlap_tp_gradients", truth(&S::overlap_tp_gradients)},
      {"tp_hidden", number(&S::tp_hidden, 0.0, 1.0)},
      {"tp_overlap", truth(&S::tp_overlap)},
      {"overlap_pp", truth(&S::overlap_pp)},
      {"overlap_dp", truth(&S::overlap_dp)},
      {"overlap_dp_sharded", truth(&S::overlap_dp_sharded), optional},
      {"reduces_to_all", truth(&S::reduces_to_all), optional},
      {"gather_calls", number(&S::gather_calls, 0.0, 1000.0), optional},
      {"bucket_size", [](Software& s, const JsonValue& v) { s.bucket_size = v.sourced().bytes(); },
       optional},
      {"bucket_copy_bytes", number(&S::bucket_copy_bytes, 0.0, 8.0), optional},
      {"accumulate_bytes", number(&S::accumulate_bytes, 0.0, 100.0)},
      {"logit_forward_bytes", number(&S::logit_forward_bytes, 0.0, 200.0)},
      {"logit_backward_bytes", number(&S::logit_backward_bytes, 0.0, 200.0)},
      {"logit_held_bytes", number(&S::logit_held_bytes, 2.0, 40.0)},
      {"optimizer_bytes", number(&S::optimizer_bytes, 0.0, 200.0)},
      {"loss_scaling_bytes", number(&S::loss_scaling_bytes, 0.0, 200.0), optional},
      {"gradient_pass_bytes", number(&S::gradient_pass_bytes, 0.0, 100.0)},
      {"permute_efficiency", number(&S::permute_efficiency, 0.01, 1.0)},
      {"eager_kernels", [](Software& s, const JsonValue& v) { s.eager_kernels = read_eager(v); },
       optional},
      {"norm_forward_efficiency", number(&S::norm_forward_efficiency, 0.01, 2), optional},
      {"norm_backward_efficiency", number(&S::norm_backward_efficiency, 0.01, 2), optional},
      {"fused_experts", truth(&S::fused_experts), optional},
      {"grouped_experts", truth(&S::grouped_experts), optional},
      {"stashes_experts", truth(&S::stashes_experts), optional},
      {"fused_projections", truth(&S::fused_projections), optional},
      {"gathers_inputs_again", truth(&S::gathers_inputs_again), optional},
      {"keeps_packed_qkv", truth(&S::keeps_packed_qkv), optional},
      {"quantise_bytes", number(&S::quantise_bytes, 0.0, 100.0)},
      {"keeps_quantised_inputs", truth(&S::keeps_quantised_inputs), optional},
      {"keeps_quantised_activations", truth(&S::keeps_quantised_activations), optional},
      {"fp8_scaling", [](Software& s, const JsonValue& v) { s.fp8_scaling = read_fp8_scaling(v); },
       optional},
      {"weight_bytes", number(&S::weight_bytes, 0.5, 8.0), true, shards_weights},
      {"unshard_bytes", number(&S::unshard_bytes, 0.0, 100.0), true, shards_weights},
      {"reduce_copy_bytes", number(&S::reduce_copy_bytes, 0.0, 100.0), true, shards_weights},
      {"shard_unit", one_of(&S::shards_by_tensor, {"layer", "tensor"}), true, says_shard_unit},
      {"shard_calls", number(&S::shard_calls, 0.0, 1000.0), true, says_shard_unit},
      {"live_parameters", number(&S::live_parameters, 0.0, 1e15), true, says_shard_unit},
      {"fp32",
       [](Software& s, const JsonValue& v) {
         s.fp32 = read_fp32_training(v, s.unshard_bytes > 0.0 || s.reduce_copy_bytes > 0.0);
       },
       optional},
      {"gradient_bytes", number(&S::gradient_bytes, 1.0, 8.0)},
      {"main_gradient_bytes", number(&S::main_gradient_bytes, 1.0, 8.0)},
      {"gemm_efficiency", number(&S::gemm_efficiency, 0.01, 2.0)},
      {"attention_efficiency", number(&S::attention_efficiency, 0.01, 2.0)},
      {"batched_gemm_efficiency", number(&S::batched_gemm_efficiency, 0.01, 1.0)},
      {"kernel_overhead", duration(&S::kernel_overhead)},
      {"host_launch", duration(&S::host_launch)},
      {"host_attention", duration(&Host::attention), optional},
      {"host_router", duration(&Host::router), optional},
      {"host_exchange", duration(&Host::exchange), optional},
      {"host_expert", duration(&Host::expert), optional},
      {"overlapped_host", number(&S::overlapped_host, 1, 10), optional},
      {"cuda_graphs", one_of(&S::cuda_graphs, cuda_graph_names()), optional},
      {"frees_outputs", truth(&S::frees_outputs), optional},
      {"optimizer_post_validation", truth(&S::optimizer_post_validation), optional},
      {"optimizers_gather_all", truth(&S::optimizers_gather_all), optional},
      {"interleaved_from", whole(&S::interleaved_from, 2, 1 << 20), optional},
      {"support", [](Software& s, const JsonValue& v) { s.support = read_support(v); }, optional},
  };
  for (const Dtype dtype : formats_for(FormatUse::products))
    if (has_scale_blocks(dtype))
      keys.push_back({name(dtype) + "_gemm_efficiency",
                      [dtype](Software& s, const JsonValue& v) {
                        s.block_gemm_efficiency[dtype] = v.sourced().number(0.01, 4);
                      },
                      optional});
  return keys;
}

}  // namespace

const std::vector<SoftwareKey>& software_keys() {
  static const std::vector<SoftwareKey> keys = all_software_keys();
  return keys;
}

Fp8Scaling read_fp8_scaling(const JsonValue& json) {
  using F = Fp8Scaling;
  using Reader8 = std::function<void(F&, const JsonValue&)>;
  static const std::vector<std::pair<std::string, Reader8>> numbers{
      {"columns_bytes", number(&F::columns_bytes, 0.0, 100.0)},
      {"gemm_efficiency", number(&F::gemm_efficiency, 0.01, 2.0)},
      {"forward_weight_bytes", number(&F::forward_weight_bytes, 0.0, 100.0)},
      {"backward_weight_bytes", number(&F::backward_weight_bytes, 0.0, 100.0)},
  };
  std::vector<std::string> names{"granularity"};
  for (const auto& [name, read] : numbers) names.push_back(name);
  json.allow_only(names);
  Fp8Scaling scaling;
  scaling.by_rows = choice<int>(json.at("granularity").sourced(), {"tensor", "row"}) == 1;
  for (const auto& [name, read] : numbers)
    if (scaling.by_rows || name != "columns_bytes") read(scaling, json.at(name));
  return scaling;
}

Fp32Training read_fp32_training(const JsonValue& json, bool shards) {
  using F = Fp32Training;
  using Figure = std::tuple<std::string, double F::*, bool>;
  static const std::vector<Figure> figures{
      {"logit_forward_bytes", &F::logit_forward_bytes, true},
      {"logit_backward_bytes", &F::logit_backward_bytes, true},
      {"logit_held_bytes", &F::logit_held_bytes, true},
      {"unshard_bytes", &F::unshard_bytes, false},
      {"reduce_copy_bytes", &F::reduce_copy_bytes, false},
  };
  std::vector<std::string> names{"fused_attention"};
  for (const auto& [name, member, always] : figures)
    if (always || shards) names.push_back(name);
  json.allow_only(names);
  Fp32Training training;
  training.fused_attention = json.at("fused_attention").sourced().boolean();
  for (const auto& [name, member, always] : figures)
    if (always || shards) training.*member = json.at(name).sourced().number(0.0, 200.0);
  return training;
}

namespace {

// Figures that one says and the other does not, or says otherwise; sources do not count.
int differences(const Software& one, const Software& other) {
  const auto value = [](const Software& software, const std::string& key) {
    const auto said = software.document ? software.document->find(key) : std::nullopt;
    return said && said->is_object() ? said->find("value") : std::nullopt;
  };
  return static_cast<int>(std::count_if(
      software_keys().begin(), software_keys().end(),
      [&](const SoftwareKey& key) { return value(one, key.name) != value(other, key.name); }));
}

// Whether nothing but what the software has is against the plan.
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
  const bool asked = !request.software.empty();
  const OrRefused<SettledPlan> settled = try_plan(model, system, software, request, gpus);
  if (std::holds_alternative<SettledPlan>(settled))
    return make_scenario(model, system, software, request, gpus, at);
  Refused no = std::get<Refused>(settled);
  if (!is_for_want_of_support(model, system, software, request, gpus)) throw no.error(at);

  // What the default leaves to the software is left as it was where nobody asked for another.
  PlanRequest usual = request;
  if (!usual.mbs && !software.microbatches_are_stages) usual.mbs = 1;
  std::vector<std::string> able;
  for (const Software& other : near()) {
    const PlanRequest& asked_of_it = asked ? request : usual;
    if (std::holds_alternative<Refused>(try_plan(model, system, other, asked_of_it, gpus)))
      continue;
    if (!asked) {
      Scenario scenario = make_scenario(model, system, other, usual, gpus, at);
      scenario.why_software =
          "software " + other.name + " is taken, as no software is named and " + no.problem;
      return scenario;
    }
    // The one that people know best is named first.
    able.insert(other.name == default_software(request, system) ? able.begin() : able.end(),
                other.name);
  }
  no.remedy = with_names(no.remedy, able);
  throw no.error(at);
}

}  // namespace orrery
