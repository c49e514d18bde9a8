#include "sim/formats/megatron/priced_otherwise.hpp"

#include <algorithm>

namespace orrery {
namespace {

// Begins of arguments that change nothing that is simulated.
constexpr std::string_view inactive[] = {"adam_",
                                         "apply_layernorm",
                                         "async_",
                                         "attention_softmax_in_fp32",
                                         "auto_detect",
                                         "bert",
                                         "calculate_per_token",
                                         "check_",
                                         "ckpt_",
                                         "clip_grad",
                                         "cuda_device",
                                         "data_args",
                                         "data_cache",
                                         "data_parallel_random",
                                         "data_path",
                                         "dataloader",
                                         "decoupled",
                                         "deterministic",
                                         "disable_bf16",
                                         "disable_gloo",
                                         "disable_straggler",
                                         "dist_",
                                         "distributed_",
                                         "empty_unused",
                                         "enable_experimental",
                                         "enable_ft",
                                         "enable_gpt_oss",
                                         "encoder_seq",
                                         "end_weight",
                                         "eod_mask",
                                         "eval_",
                                         "exit_",
                                         "export_",
                                         "finetune",
                                         "fp8_amax",
                                         "glu_linear_offset",
                                         "grpo_",
                                         "high_priority",
                                         "hysteresis",
                                         "inference",
                                         "init_",
                                         "initial_loss",
                                         "kv_channels",
                                         "langrl",
                                         "load",
                                         "log_",
                                         "logging",
                                         "loss_scale",
                                         "lr",
                                         "manual_gc",
                                         "master",
                                         "max_restarts",
                                         "merge_file",
                                         "min_loss_scale",
                                         "min_lr",
                                         "mmap",
                                         "mock_data",
                                         "modelopt",
                                         "moe_aux_loss",
                                         "moe_grouped_gemm",
                                         "moe_per_layer",
                                         "moe_permute_fusion",
                                         "moe_router_bias",
                                         "moe_router_dtype",
                                         "moe_router_force",
                                         "moe_router_fusion",
                                         "moe_router_load_balancing",
                                         "moe_router_pre_softmax",
                                         "moe_router_score",
                                         "moe_router_topk_scaling",
                                         "moe_z_loss",
                                         "mscale",
                                         "mtp_loss",
                                         "no_check",
                                         "no_create",
                                         "no_initialization",
                                         "no_load",
                                         "no_mmap",
                                         "no_position_embedding",
                                         "no_save",
                                         "no_use_tokenizer",
                                         "node_rank",
                                         "non_persistent",
                                         "norm_epsilon",
                                         "num_dataset",
                                         "num_workers",
                                         "override_",
                                         "per_split",
                                         "perform_initialization",
                                         "phase_transition",
                                         "pretrained_checkpoint",
                                         "profile",
                                         "rdzv",
                                         "record_memory",
                                         "rerun",
                                         "reset_",
                                         "rl_",
                                         "rope_scaling",
                                         "rope_type",
                                         "rotary_",
                                         "save",
                                         "seed",
                                         "sft",
                                         "special_tokens",
                                         "split",
                                         "start_weight",
                                         "straggler",
                                         "suggested",
                                         "te_rng",
                                         "tee",
                                         "tensorboard",
                                         "test_data",
                                         "test_mode",
                                         "tiktoken",
                                         "timing",
                                         "tokenizer",
                                         "train_",
                                         "use_checkpoint",
                                         "use_dist_ckpt",
                                         "use_mcore",
                                         "use_persistent",
                                         "use_pytorch_profiler",
                                         "use_rope",
                                         "valid_",
                                         "vocab_file",
                                         "wandb",
                                         "weight_decay"};

struct Difference {
  const char* argument;
  std::string_view what;
};
constexpr const char* batch_grows =
    "lets the batch grow; priced is a step of the largest (orrery run knows all)";
constexpr Difference differences[] = {
    {"activation_func_fp8_input_store",
     "keeps activations' inputs in fp8, which are counted in 16 bits"},
    {"fine_grained_activation_offloading",
     "moves activations to the host, which are counted on the GPU"},
    {"modelopt_enabled", "may quantise or distil (ModelOpt), of which nothing is priced"},
    {"optimizer_cpu_offload",
     "moves the optimizer's state to the host, which is counted on the GPU"},
    {"overlap_param_gather_with_optimizer_step",
     "gathers weights beside the optimizer; priced is a gather after it"},
    {"perform_rl_step", "generates text between steps (RL); priced are its training steps"},
    {"rampup_batch_size", batch_grows},
    {"step_batch_size_schedule", batch_grows},
};

// Transformer Engine keeps a weight in fp8 for both directions from the first micro-batch on.
void tell_weights(const MegatronArguments& run, std::vector<std::string>& told) {
  const bool fp8 = run.has("fp8");
  if (fp8 && !run.flag("fp8_param_gather"))
    told.push_back(
        "without --fp8-param-gather the layers' weights are kept in fp8, once for each direction, "
        "beside 16 bits: 2 bytes a parameter more than are counted");
}

}  // namespace

std::vector<std::string> priced_otherwise(const MegatronArguments& run) {
  std::vector<std::string> told;
  for (const Difference& difference : differences) {
    const auto* value = run.find(difference.argument);
    if (value && value->text() != "none" && run.flag(difference.argument))
      told.push_back(value->name + " " + std::string{difference.what});
  }
  tell_weights(run, told);
  return told;
}

bool changes_nothing(std::string_view name) {
  return name == "optimizer" ||
         std::any_of(std::begin(inactive), std::end(inactive),
                     [&](std::string_view begin) { return name.starts_with(begin); });
}

}  // namespace orrery
