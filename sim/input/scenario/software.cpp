#include "sim/input/scenario/software.hpp"

#include "sim/base/text/catalog.hpp"
#include "sim/base/text/choice.hpp"

namespace orrery {

namespace {

Fp8Scaling read_fp8_scaling(const JsonValue& json) {
  json.allow_only({"granularity", "columns_bytes", "gemm_efficiency", "forward_weight_bytes",
                   "backward_weight_bytes"});
  const auto number = [&](const char* key, double low, double high) {
    return json.at(key).sourced().number(low, high);
  };
  Fp8Scaling scaling;
  scaling.by_rows = choice<int>(json.at("granularity").sourced(), {"tensor", "row"}) == 1;
  if (scaling.by_rows) scaling.columns_bytes = number("columns_bytes", 0.0, 100.0);
  scaling.gemm_efficiency = number("gemm_efficiency", 0.01, 2.0);
  scaling.forward_weight_bytes = number("forward_weight_bytes", 0.0, 100.0);
  scaling.backward_weight_bytes = number("backward_weight_bytes", 0.0, 100.0);
  return scaling;
}

}  // namespace

Software read_software(const std::string& word, const Place& at) {
  const JsonValue json = JsonValue::read_file(find_in_catalog("workloads/software", word, at));
  require_schema(json, "orrery.software/1");
  json.allow_only({"schema",
                   "name",
                   "title",
                   "source",
                   "dtype",
                   "sequence_parallel",
                   "zero",
                   "fused_attention",
                   "dropout",
                   "fused_bias_gradients",
                   "scatter_gather",
                   "early_recompute_stop",
                   "selective_recompute",
                   "microbatches_are_stages",
                   "overlap_tp_gradients",
                   "tp_hidden",
                   "tp_overlap",
                   "overlap_pp",
                   "overlap_dp",
                   "accumulate_bytes",
                   "logit_forward_bytes",
                   "logit_backward_bytes",
                   "logit_held_bytes",
                   "optimizer_bytes",
                   "gradient_pass_bytes",
                   "permute_efficiency",
                   "fused_experts",
                   "stashes_experts",
                   "fused_projections",
                   "gathers_inputs_again",
                   "quantise_bytes",
                   "fp8_scaling",
                   "weight_bytes",
                   "unshard_bytes",
                   "reduce_copy_bytes",
                   "shard_unit",
                   "shard_calls",
                   "live_parameters",
                   "gradient_bytes",
                   "main_gradient_bytes",
                   "gemm_efficiency",
                   "attention_efficiency",
                   "batched_gemm_efficiency",
                   "kernel_overhead",
                   "host_launch",
                   "host_attention",
                   "host_router",
                   "host_exchange",
                   "host_expert",
                   "frees_outputs",
                   "optimizer_post_validation",
                   "optimizers_gather_all",
                   "support",
                   "interleaved_from"});
  const auto flag = [&](const char* key) { return json.at(key).sourced().boolean(); };
  const auto number = [&](const char* key, double low, double high) {
    return json.at(key).sourced().number(low, high);
  };
  Software software;
  software.name = required_text(json, "name");
  software.title = required_text(json, "title");
  required_text(json, "source");
  software.dtype = choice<Dtype>(json.at("dtype").sourced(), dtype_names());
  software.sequence_parallel = flag("sequence_parallel");
  software.zero = static_cast<int>(json.at("zero").sourced().integer(0, 3));
  software.fused_attention = flag("fused_attention");
  software.dropout = flag("dropout");
  software.fused_bias_gradients = flag("fused_bias_gradients");
  software.scatter_gather = flag("scatter_gather");
  software.early_recompute_stop = flag("early_recompute_stop");
  software.selective_recompute = choice<SelectiveRecompute>(
      json.at("selective_recompute").sourced(), {"core_attention", "alternate_products"});
  software.microbatches_are_stages = flag("microbatches_are_stages");
  software.overlap_tp_gradients = flag("overlap_tp_gradients");
  software.tp_hidden = number("tp_hidden", 0.0, 1.0);
  software.tp_overlap = flag("tp_overlap");
  software.overlap_pp = flag("overlap_pp");
  software.overlap_dp = flag("overlap_dp");
  software.accumulate_bytes = number("accumulate_bytes", 0.0, 100.0);
  software.logit_forward_bytes = number("logit_forward_bytes", 0.0, 200.0);
  software.logit_backward_bytes = number("logit_backward_bytes", 0.0, 200.0);
  software.logit_held_bytes = number("logit_held_bytes", 2.0, 40.0);
  software.optimizer_bytes = number("optimizer_bytes", 0.0, 200.0);
  software.gradient_pass_bytes = number("gradient_pass_bytes", 0.0, 100.0);
  software.permute_efficiency = number("permute_efficiency", 0.01, 1.0);
  if (json.has("fused_experts")) software.fused_experts = flag("fused_experts");
  if (json.has("stashes_experts")) software.stashes_experts = flag("stashes_experts");
  if (json.has("fused_projections")) software.fused_projections = flag("fused_projections");
  if (json.has("gathers_inputs_again"))
    software.gathers_inputs_again = flag("gathers_inputs_again");
  software.quantise_bytes = number("quantise_bytes", 0.0, 100.0);
  if (const auto scaling = json.find("fp8_scaling"))
    software.fp8_scaling = read_fp8_scaling(*scaling);
  // Only software that shards weights says how.
  if (software.zero == 3 || json.has("unshard_bytes")) {
    software.weight_bytes = number("weight_bytes", 0.5, 8.0);
    software.unshard_bytes = number("unshard_bytes", 0.0, 100.0);
    software.reduce_copy_bytes = number("reduce_copy_bytes", 0.0, 100.0);
  }
  if (json.has("shard_unit")) {
    const JsonValue unit = json.at("shard_unit").sourced();
    software.shards_by_tensor = choice<int>(unit, {"layer", "tensor"}) == 1;
    software.shard_calls = number("shard_calls", 0.0, 1000.0);
    software.live_parameters = number("live_parameters", 0.0, 1e15);
  }
  software.gradient_bytes = number("gradient_bytes", 1.0, 8.0);
  software.main_gradient_bytes = number("main_gradient_bytes", 1.0, 8.0);
  software.gemm_efficiency = number("gemm_efficiency", 0.01, 2.0);
  software.attention_efficiency = number("attention_efficiency", 0.01, 2.0);
  software.batched_gemm_efficiency = number("batched_gemm_efficiency", 0.01, 1.0);
  software.kernel_overhead = json.at("kernel_overhead").sourced().duration();
  software.host_launch = json.at("host_launch").sourced().duration();
  const auto host = [&](const char* key) {
    return json.has(key) ? json.at(key).sourced().duration() : Seconds{};
  };
  software.expert_layer_host = {host("host_attention"), host("host_router"), host("host_exchange"),
                                host("host_expert")};
  if (json.has("frees_outputs")) software.frees_outputs = flag("frees_outputs");
  if (json.has("optimizer_post_validation"))
    software.optimizer_post_validation = flag("optimizer_post_validation");
  if (json.has("optimizers_gather_all"))
    software.optimizers_gather_all = flag("optimizers_gather_all");
  if (json.has("interleaved_from"))
    software.interleaved_from =
        static_cast<int>(json.at("interleaved_from").sourced().integer(2, 1 << 20));
  if (const auto support = json.find("support")) software.support = read_support(*support);
  return software;
}

}  // namespace orrery
