#include "sim/plan/parameter_formats.hpp"

#include <algorithm>

#include "sim/core/nearest.hpp"
#include "sim/model/layer_pattern.hpp"

namespace orrery {
namespace {

// Norm, clipping (read and written) and Adam's own reading of a gradient; Adam reads and writes
// masters and moments. In fp32 this is 4 x 4 + 2 x 4 + 2 x 8 = 40, which files for 16 bits include,
// in addition to casts and copies.
double update_bytes(double gradient, double masters, double moments) {
  return 4.0 * gradient + 2.0 * masters + 2.0 * moments;
}

double moments_of(const Plan& plan) {
  return element_bytes(plan.exp_avg) + element_bytes(plan.exp_avg_sq);
}

// Files count reading and writing an fp32 main gradient; the excess is a product's own gradient,
// which becomes `wider` times as large.
void hold_gradients_in(double bytes, double wider, Software& software) {
  constexpr double added_to_fp32 = 4.0 + 4.0;
  const double held = software.main_gradient_bytes;
  const double own = std::max(0.0, software.accumulate_bytes - added_to_fp32);
  if (software.accumulate_bytes > 0.0) software.accumulate_bytes = 2.0 * bytes + wider * own;
  software.gradient_pass_bytes *= bytes / held;
  software.main_gradient_bytes = bytes;
}

// Weights are their own masters, and gradients are never cast.
void hold_in_fp32(const Plan& plan, Software& software) {
  const Fp32Training& of = *software.fp32;
  hold_gradients_in(4.0, 2.0, software);
  software.held_weight_bytes = software.weight_bytes = software.gradient_bytes = 4.0;
  // Shards of weights are held in addition to gathered weights.
  software.state_bytes = moments_of(plan) + (plan.shards_weights() ? 4.0 : 0.0);
  software.optimizer_bytes = update_bytes(4.0, 4.0, moments_of(plan));
  software.unshard_bytes = of.unshard_bytes;
  software.reduce_copy_bytes = of.reduce_copy_bytes;
  software.logit_forward_bytes = of.logit_forward_bytes;
  software.logit_backward_bytes = of.logit_backward_bytes;
  software.logit_held_bytes = of.logit_held_bytes;
}

struct Masters {
  double held = 0.0;     // Bytes held in addition to the weight.
  double updated = 0.0;  // Bytes that Adam reads, and writes.
  double copied = 0.0;   // Bytes copied to the weight.
};

Masters masters_of(MainParams format) {
  switch (format) {
    case MainParams::fp32:
      break;
    case MainParams::remainders:  // Completes the weight's 16 bits in place (TE, fused_adam.py).
      return {2.0, 4.0, 0.0};
    case MainParams::bf16:
    case MainParams::fp16:
      return {2.0, 2.0, 2.0};
    case MainParams::none:
      return {0.0, 2.0, 0.0};
  }
  return {4.0, 4.0, 2.0};
}

void hold_state(const Plan& plan, Software& software) {
  const double moments = moments_of(plan);
  const Masters masters = masters_of(plan.main_params);
  software.state_bytes = masters.held + moments;
  if (plan.main_params == MainParams::fp32) {  // Only the moments differ from the file.
    software.optimizer_bytes += 2.0 * (moments - 8.0);
    return;
  }
  // Values updated in place, or copied by the same kernel, need no cast of their own.
  if (plan.shards_weights()) software.state_bytes += 2.0;  // Shards of the weights themselves.
  if (plan.main_params == MainParams::none) hold_gradients_in(2.0, 1.0, software);
  software.optimizer_bytes =
      update_bytes(software.main_gradient_bytes, masters.updated, moments) + masters.copied;
}

// Forward products and input gradients read a weight in different directions. Blackwell multiplies
// 8 bits in both (Transformer Engine, utils.py, is_non_tn_fp8_gemm_supported), but blocks with
// scales lie along one, so that both are kept, and they are made of what is gathered in 16 bits
// (Megatron Core, param_and_grad_buffer.py, reuse_grad_buf_for_mxfp8_param_ag).
void hold_weights_in_8_bits(const Plan& plan, const Gpu& gpu, Software& software) {
  const bool blocks = has_scale_blocks(plan.dtype);
  const bool both_ways = blocks || gpu.architecture < Architecture::blackwell;
  software.held_weight_bytes = element_bytes(plan.dtype) * (both_ways ? 2.0 : 1.0);
  if (!blocks) software.weight_bytes = element_bytes(plan.dtype);
}

}  // namespace

bool has_formats_of_files(const Plan& plan) {
  return !is_wide(plan.dtype) && plan.has_fp32_state() && !plan.fp8_params;
}

void set_formats(const Plan& plan, const Gpu& gpu, Software& software) {
  if (has_formats_of_files(plan)) return;
  if (is_wide(plan.dtype))
    hold_in_fp32(plan, software);
  else
    hold_state(plan, software);
  if (plan.fp8_params) hold_weights_in_8_bits(plan, gpu, software);
}

// Fused attention in 32 bits is not every software's, and DeepEP's kernels copy 16 bits and 8
// (deep_ep/buffer.py, dispatch).
MaybeRefused settle_fp32(Plan& plan, const PlanRequest& request, const Software& software) {
  if (!is_wide(plan.dtype)) return {};
  if (!software.fp32) return check_support(software, plan);
  if (copies_on_arrival(plan.moe_dispatcher) && plan.ep > 1)
    return infeasible("moe_dispatcher",
                      "moe_dispatcher=" + name(plan.moe_dispatcher) +
                          " sends 16 bits or 8, and dtype=" + name(plan.dtype),
                      "use moe_dispatcher=alltoall, or dtype=bf16");
  if (software.fp32->fused_attention || !plan.fused_attention) return {};
  if (request.fused_attention)
    return infeasible(
        "attention",
        "the software '" + software.name + "' has no fused attention in " + name(plan.dtype),
        "use attention=unfused, or dtype=bf16");
  plan.fused_attention = false;
  return {};
}

bool fuses_attention(const Gpu& gpu) { return gpu.architecture >= Architecture::ampere; }

MaybeRefused settle_attention(Plan& plan, const PlanRequest& request, const Gpu& gpu) {
  if (!plan.fused_attention || fuses_attention(gpu)) return {};
  if (request.fused_attention)
    return infeasible(
        "attention",
        "neither FlashAttention nor cuDNN has kernels of attention for the GPU '" + gpu.name + "'",
        "use attention=unfused");
  plan.fused_attention = false;
  return {};
}

MaybeRefused refuse_formats(const Plan& plan) {
  const std::string masters = "main_params=" + name(plan.main_params);
  const std::string remedy = "use main_params=fp32";
  if (is_wide(plan.dtype) && plan.main_params != MainParams::fp32)
    return infeasible("main_params",
                      masters + " says it of weights of 16 bits, and dtype=" + name(plan.dtype),
                      "leave it out, or use dtype=bf16");
  if (plan.main_params == MainParams::remainders && plan.dtype == Dtype::fp16)
    return infeasible("main_params",
                      masters + " completes bf16 weights: fp16 is no upper half of fp32", remedy);
  if (!plan.fp8_params) return {};
  if (facts(plan.dtype).bits != 8)
    return infeasible(
        "fp8_params",
        "weights are kept in 8 bits where products are, and dtype=" + name(plan.dtype),
        "use dtype=" + alternatives(names_of_products(8)) + ", or leave it out");
  if (plan.main_params == MainParams::remainders || plan.main_params == MainParams::none)
    return infeasible("main_params",
                      masters + " needs the 16 bits of a weight, which fp8_params does not keep",
                      remedy);
  if (plan.shards_gradients() || plan.shards_weights())
    return infeasible(
        "fp8_params",
        "shards of weights in 8 bits are not modelled, and zero=" + std::to_string(plan.zero),
        "use zero=1, or leave it out");
  return {};
}

namespace {

bool has_lora_target(const Model& model, LoraTarget target) {
  const bool of_mixer = target == LoraTarget::qkv || target == LoraTarget::proj;
  const auto has = [&](const Model& layer) {
    return of_mixer ? has_mixer(layer) : has_feed_forward(layer) || layer.experts.has_value();
  };
  if (!model.pattern) return has(model);
  return std::any_of(model.pattern->shapes.begin(), model.pattern->shapes.end(), has);
}

}  // namespace

MaybeRefused refuse_finetuning(const Plan& plan, const PlanRequest& request, const Model& model) {
  const std::string stated = "finetune=" + name(plan.finetune);
  const std::string format = "base_format=" + name(plan.base_format);
  if (plan.trains_weights()) {
    if (request.base_format && *request.base_format != BaseFormat::bf16)
      return contradiction("base_format",
                           format + " is of frozen weights, and " + stated + " trains all",
                           "use finetune=lora or qlora, or leave base_format out");
    return {};
  }
  for (const LoraTarget target : plan.lora_targets)
    if (!has_lora_target(model, target))
      return infeasible("lora_targets", "no layer of the model has '" + name(target) + "'",
                        "leave it out of lora_targets");
  if (plan.splits_backward())
    return infeasible("schedule",
                      "schedule=" + plan.schedule->name() +
                          " delays gradients of weights, which frozen ones do not have: " + stated,
                      "use schedule=1f1b");
  const bool four_bits = is_dequantised(plan.base_format);
  if (four_bits != (plan.finetune == Finetune::qlora))
    return contradiction("base_format",
                         stated + " and " + format +
                             " contradict each other: qlora keeps four "
                             "bits of a frozen weight, lora 8 or 16",
                         four_bits ? "use finetune=qlora" : "use base_format=nf4 or int4");
  if (is_wide(plan.dtype))
    return infeasible(
        "dtype", "frozen weights are stored in 16 bits or fewer, and dtype=" + name(plan.dtype),
        "use dtype=bf16");
  if (four_bits && is_narrow(plan.dtype))
    return infeasible(
        "dtype",
        "weights of four bits become 16 before a product reads them, and dtype=" + name(plan.dtype),
        "use dtype=bf16, or finetune=lora");
  if (plan.base_format == BaseFormat::fp8 && facts(plan.dtype).bits != 8)
    return infeasible("base_format",
                      format + " is read by products in 8 bits, and dtype=" + name(plan.dtype),
                      "use dtype=" + alternatives(names_of_products(8)) + ", or base_format=bf16");
  if (plan.fp8_params)
    return contradiction("fp8_params", "it is of weights that are trained, and " + stated,
                         "use base_format=fp8");
  if (four_bits && plan.tp > 1)
    return infeasible("tp",
                      "no software cuts weights of four bits for tensor parallelism: tp=" +
                          std::to_string(plan.tp),
                      "use tp=1 with zero=3 or more stages, or finetune=lora");
  if (!plan.offload_modules.empty() || plan.offload_weights)
    return infeasible(plan.offload_weights ? "offload_weights" : "offload_modules",
                      "it has no prices beside frozen weights: " + stated, "leave it out");
  return {};
}

MaybeRefused refuse_offloading_to_host(const Plan& plan, const System& system,
                                       const Software& software) {
  const auto no = [](const char* key, const std::string& problem, const std::string& remedy) {
    return infeasible(key, problem, remedy + ", or leave " + key + " out");
  };
  const std::string percent = "offload_optimizer=" + std::to_string(plan.offload_optimizer);
  if (plan.offload_weights) {
    if (plan.zero != 3)
      return no("offload_weights",
                "weights are in shards with zero=3, and zero=" + std::to_string(plan.zero),
                "use zero=3");
    if (!plan.shards_weights())
      return no("offload_weights", "one rank shards nothing", "use more GPUs");
    if (plan.offload_optimizer != 100)
      return no("offload_weights", "weights are where their optimizer is, and " + percent,
                "use offload_optimizer=100");
    if (plan.experts && plan.expert_shard_ranks() == 1)
      return no("offload_weights", "each rank has whole experts, which nothing gathers",
                "use a smaller ep");
  }
  if (plan.offload_optimizer == 0) return {};
  if (system.host_memory_bandwidth == BytesPerSecond{})
    return no("offload_optimizer",
              "the host updates at the speed of its memory, which the system '" + system.name +
                  "' does not say",
              "give a copy of it \"host_memory_bandwidth\" (topologies/README.md)");
  if (plan.main_params != MainParams::fp32)
    return no("offload_optimizer",
              "the host updates fp32 masters, and main_params=" + name(plan.main_params),
              "use main_params=fp32");
  // PyTorch's CPUOffload, whose shards of weights are the masters.
  if (plan.shards_weights() && !software.shards_by_tensor && !plan.offload_weights)
    return no("offload_optimizer",
              "with zero=3 the software '" + software.name + "' does not move the optimizer alone",
              supports(software, "offload_weights", "true")
                  ? "use offload_weights=true and offload_optimizer=100"
                  : "use zero=1");
  return {};
}

MaybeRefused refuse_copies_of_shards(const Plan& plan) {
  const int copies = plan.dp_replicate;
  if (copies == 1) return {};
  const std::string stated = "dp_replicate=" + std::to_string(copies);
  if (plan.zero == 0)
    return contradiction("dp_replicate", stated + " is of shards, and zero=0 shards nothing",
                         "use zero=1 to 3, or leave dp_replicate out");
  if (plan.copies() > 1)
    return infeasible("dp_replicate",
                      stated + " of what schedule=" + plan.schedule->name() +
                          " holds twice by itself has no prices",
                      "leave dp_replicate out, or use another schedule");
  if (plan.data_ranks() % copies != 0)
    return infeasible("dp_replicate",
                      stated + " does not divide dp x cp = " + std::to_string(plan.data_ranks()),
                      "use a divisor of it");
  if (plan.data_ranks() == copies)
    return infeasible("dp_replicate", stated + " leaves a rank for each copy, and nothing to shard",
                      "use zero=0, or a smaller dp_replicate");
  if (plan.experts && plan.expert_data_ranks() % copies != 0)
    return infeasible("dp_replicate",
                      stated + " does not divide the " + std::to_string(plan.expert_data_ranks()) +
                          " ranks that hold the same experts (tp cp dp / (ep etp))",
                      "use a divisor of it, or a smaller ep");
  return {};
}

}  // namespace orrery
