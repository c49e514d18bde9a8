#include "sim/formats/automodel/automodel_run.hpp"

#include <algorithm>

#include "sim/core/number_text.hpp"
#include "sim/core/text_file.hpp"
#include "sim/core/value_list.hpp"
#include "sim/formats/recipe/adapter_settings.hpp"
#include "sim/formats/recipe/decisive_keys.hpp"
#include "sim/formats/recipe/other_launchers.hpp"
#include "sim/formats/settings/settings_files.hpp"

namespace orrery {
namespace {

constexpr PricedOtherwise automodel_differences[] = {
    {"distributed.enable_compile|compile.enabled",
     "compiles the layers with torch.compile; assumed: kernels that are launched one by one"},
    {"model.num_nextn_predict_layers|model.config.num_nextn_predict_layers",
     "trains prediction modules; the model's own are priced"},
    {"model.freeze_embeddings|freeze_config", "freezes weights; assumed: all of them are trained"},
    {"dataset.packed_sequence_size|packed_sequence.packed_sequence_size",
     "packs documents, which do not see each other (--documents of `orrery estimate` says their "
     "lengths); assumed: attention over the whole sequence"},
};

// They change neither time nor memory of a step.
const std::vector<std::string> inactive_keys = words_in(R"(
    _ benchmark. checkpoint. ci. clip_grad_norm. comet. compile. dataloader. dataset. dist_env.
    distributed._target_ distributed.backend distributed.enable_fsdp2_prefetch
    distributed.fsdp2_ distributed.moe.ignore_router distributed.moe.wrap_outer_model
    distributed.patch_is_packed distributed.pipeline.dtype distributed.pipeline.patch_
    distributed.pipeline.pp_seq_len distributed.pipeline.scale_grads distributed.use_hf_tp_plan
    logging. loss_fn. lr_scheduler. mlflow. model._target_ model.attn_implementation
    model.backend._target_ model.backend.compile_attn model.backend.dispatcher_num_sms
    model.backend.enable_hf_state_dict_adapter model.backend.gate_precision
    model.backend.rope_fusion model.config._target_ model.config.trust_remote_code
    model.force_hf model.load_base_model model.mtp_ model.output_hidden_states
    model.trust_remote_code model.use_liger_kernel model.use_sdpa_patching nvtx
    optimizer.adam_w_mode optimizer.betas optimizer.bias_correction optimizer.eps
    optimizer.foreach optimizer.fused optimizer.lr optimizer.weight_decay packed_sequence.pack
    peft.alpha peft.dropout_position peft.lora_A_init peft.lora_dtype
    peft.use_triton
    packed_sequence.split parallelizer._target_ rng. seed step_scheduler.ckpt step_scheduler.gc
    step_scheduler.log step_scheduler.loss step_scheduler.max_steps step_scheduler.num_epochs
    step_scheduler.save step_scheduler.val tokenizer. tool_call_eval. validation_
    validation_dataloader. validation_dataset. wandb.)");

class AutomodelReader {
 public:
  AutomodelReader(const Settings& settings, const RecipeAnswers& answers)
      : s_{settings}, answers_{answers} {}

  ImportedRun read() {
    kind();
    sections();
    model();
    degrees();
    batch();
    pipeline();
    precision();
    shards();
    experts();
    r_.software = "automodel";
    note_otherwise(s_, automodel_differences, r_.notes);
    note_unread(s_, inactive_keys, r_.notes);
    return written_plan(r_, s_.place());
  }

 private:
  void note(const std::string& paths, const std::string& sentence) {
    r_.notes.push_back(s_.name(paths) + " " + sentence);
  }

  void kind() {
    const std::string named = s_.has("recipe._target_") ? "recipe._target_" : "recipe";
    const std::string recipe = s_.word(named, "TrainFinetuneRecipeForNextTokenPrediction");
    if (!recipe.ends_with("RecipeForNextTokenPrediction"))
      s_.fail(named, "is '" + shown_text(recipe) + "', which is not read",
              "give a recipe for next-token prediction of a language model");
    // components/_peft/lora.py, PeftConfig; components/quantization/qlora.py.
    const bool four_bits = is_on(s_, "quantization") && is_on(s_, "peft") &&
                           s_.flag("quantization.load_in_4bit", false);
    if (is_on(s_, "peft")) {
      const std::string kind =
          s_.word("peft._target_", "nemo_automodel.components._peft.lora.PeftConfig");
      if (!kind.ends_with("lora.PeftConfig"))
        s_.fail("peft._target_", "is '" + shown_text(kind) + "', which nothing prices",
                "write nemo_automodel.components._peft.lora.PeftConfig");
      read_adapters(s_,
                    {.rank = "peft.dim",
                     .dropout = "peft.dropout",
                     .modules = "peft.target_modules",
                     .all_linear = "peft.match_all_linear",
                     .usual_rank = 8,
                     .usual_dropout = "0",
                     .usual_modules = "*_proj",  // components/_peft/module_matcher.py
                     .section = "peft."},
                    four_bits, r_);
      if (four_bits) s_.names_below("quantization");
    }
    for (const char* path : {"quantization", "qat", "model.quantization_config"})
      if (!four_bits && is_on(s_, path) && s_.flag(std::string{path} + ".enabled", true))
        s_.fail(path, "quantises the weights, which nothing prices",
                "leave it out: --set " + std::string{path} + ".enabled=false");
  }

  // A scalar in the place of a section would hide all that the section decides.
  void sections() {
    for (const char* path : {"distributed", "distributed.pipeline", "distributed.moe", "model",
                             "model.backend", "step_scheduler", "dataset", "optimizer", "loss_fn"})
      if (const SettingsTree* found = s_.look(path);
          found && found->kind != SettingsTree::Kind::map && !switches_off(path, found->text))
        s_.fail(path, "is no section of settings", "write its settings below it");
  }

  // A count from 1 to what any plan has.
  std::int64_t count(const std::string& path, std::int64_t absent) const {
    return s_.count(path, absent, 1 << 20);
  }

  void model() {
    const std::string path =
        "model.pretrained_model_name_or_path|model.config.pretrained_model_name_or_path|"
        "model.config.name_or_path";
    r_.model = named_model(s_, path, answers_);
    s_.find(path);
    if (!answers_.model) refuse_model_sizes(s_, "model.config");
    s_.names_below("model.config");
    length();
  }

  // Packed and mock datasets state a length; datasets of questions and answers state none.
  void length() {
    const std::string own = "dataset.seq_len|dataset.seq_length";
    const std::string packed = "packed_sequence.packed_sequence_size|dataset.packed_sequence_size";
    const std::int64_t pack = s_.number(packed, 0);
    r_.seq = pack > 0 ? pack : s_.number(own, 0);
    s_.find(own);
    if (r_.seq <= 0)
      fail_input(s_.place(), "does not say how long a sequence is",
                 "give it: --set dataset.seq_len=4096");
  }

  // distributed/config.py, and recipes/_dist_setup.py: all ranks that are not dp are given.
  void degrees() {
    r_.tp = count("distributed.tp_size", 1);
    r_.pp = count("distributed.pp_size", 1);
    r_.cp = count("distributed.cp_size", 1);
    r_.ep = count("distributed.ep_size", 1);
    r_.etp = 1;
    r_.sp = s_.flag("distributed.sequence_parallel", false) && r_.tp > 1;
    r_.dp_replicate = count("distributed.dp_replicate_size", 1);
    const std::string dp = s_.word("distributed.dp_size", "none");
    if (dp != "none" && dp != "null") {
      r_.gpus = product_of({count("distributed.dp_size", 1), r_.tp, r_.pp, r_.cp});
      if (answers_.gpus && *answers_.gpus != *r_.gpus)
        s_.fail("distributed.dp_size", "means " + grouped(*r_.gpus) + " GPUs",
                "leave out --gpus, or set it to none: --set distributed.dp_size=none");
    }
    if (answers_.gpus) r_.gpus = answers_.gpus;
    const std::string checkpointing =
        "distributed.activation_checkpointing|parallelizer.activation_checkpointing";
    const std::string recomputed = s_.word(checkpointing, "false");
    if (recomputed == "full" || recomputed == "selective")
      r_.recompute = recomputed;
    else if (s_.flag(checkpointing, false))
      r_.recompute = "full";
    r_.tp_overlap = s_.flag("distributed.enable_async_tensor_parallel", false) && r_.sp;
    if (!r_.model->experts) r_.ep = 1;
  }

  void batch() {
    s_.required("step_scheduler.global_batch_size");
    r_.gbs = count("step_scheduler.global_batch_size", 1);
    local_ = count("step_scheduler.local_batch_size", 1);
    const std::int64_t of_pipeline =
        s_.number("distributed.pipeline.pp_microbatch_size|autopipeline.pp_microbatch_size", 1);
    r_.mbs = r_.pp > 1 ? of_pipeline : local_;
    r_.local_batch = local_;
    if (local_ % r_.mbs != 0)
      s_.fail("step_scheduler.local_batch_size",
              "is " + grouped(local_) + ", which " + grouped(r_.mbs) +
                  ", the size of a micro-batch, does not divide",
              "write a multiple");
  }

  // distributed/pipelining/functional.py: stages of so many layers, in whole rounds of the ranks.
  void pipeline() {
    const std::string at = "distributed.pipeline.";
    const std::string order = s_.word(at + "pp_schedule", "1f1b");
    const std::int64_t each =
        s_.has(at + "layers_per_stage") ? count(at + "layers_per_stage", 1) : 0;
    const std::string rounding =
        s_.choice(at + "round_virtual_stages_to_pp_multiple",
                  {{"", ""}, {"up", "up"}, {"down", "down"}, {"null", ""}, {"none", ""}});
    if (r_.pp <= 1) return;
    if (order == "interleaved1f1b" || order == "Interleaved1F1B")
      r_.schedule = "interleaved";
    else if (order != "1f1b" && order != "1F1B")
      s_.fail(at + "pp_schedule", "is '" + shown_text(order) + "', which is not modelled here",
              "write 1f1b or interleaved1f1b: --set " + at + "pp_schedule=1f1b");
    if (r_.schedule == "interleaved") {
      const std::int64_t layers = r_.model->layers;
      const std::int64_t stages = each > 0 ? (layers + each - 1) / each : 2 * r_.pp;
      if (stages % r_.pp != 0 && rounding.empty())
        s_.fail(at + "layers_per_stage",
                "makes " + grouped(stages) + " stages, which " + grouped(r_.pp) +
                    " ranks do not divide",
                "say how to round: --set " + at + "round_virtual_stages_to_pp_multiple=" +
                    ((stages + r_.pp - 1) / r_.pp * r_.pp > layers ? "down" : "up"));
      r_.vpp = std::max<std::int64_t>(
          1, rounding == "up" ? (stages + r_.pp - 1) / r_.pp : stages / r_.pp);
      if (r_.vpp == 1) r_.schedule = "1f1b";
    }
    uneven_stages();
  }

  // The first stages have one layer more where they do not divide (generate_hf_model_fqn_per_part).
  void uneven_stages() {
    const std::int64_t layers = r_.model->layers, stages = product_of({r_.pp, r_.vpp});
    if (layers % stages == 0 || stages > layers) return;
    for (std::int64_t stage = 0; stage < stages; ++stage)
      r_.layers.of.push_back(static_cast<int>(layers / stages + (stage < layers % stages)));
  }

  // By AutoModel's page on mixed precision, weights keep the format in which they are loaded, and
  // the moments of torch.optim's optimizers have the format of the weights.
  void precision() {
    const std::string format = s_.word("model.torch_dtype|model.config.torch_dtype", "bfloat16");
    const bool wide = format.ends_with("float32") || format == "fp32";
    if (!wide && !format.ends_with("bfloat16") && format != "bf16" && format != "auto")
      s_.fail("model.torch_dtype|model.config.torch_dtype",
              "is '" + shown_text(format) + "', which has no prices",
              "write bfloat16: --set model.torch_dtype=bfloat16");
    const std::string optimizer = s_.word("optimizer._target_", "torch.optim.AdamW");
    const bool of_te = optimizer.ends_with("FusedAdam");
    if (!of_te && !optimizer.ends_with(".Adam") && !optimizer.ends_with(".AdamW"))
      refuse_decisive("optimizer._target_", "is " + shown_text(optimizer),
                      s_.place_of("optimizer._target_"));
    const bool master = of_te && s_.flag("optimizer.master_weights", false);
    r_.main_params = wide || master ? "fp32" : "none";
    const auto moment = [&](const char* path) {
      const std::string said = s_.word(path, of_te || wide ? "float32" : "bfloat16");
      if (said.ends_with("float32")) return std::string{"fp32"};
      if (said.ends_with("float16") && !said.ends_with("bfloat16")) return std::string{"fp16"};
      if (!said.ends_with("bfloat16"))
        s_.fail(path, "is '" + shown_text(said) + "', which has no prices", "write float32");
      return std::string{"bf16"};
    };
    r_.exp_avg = moment("optimizer.exp_avg_dtype");
    r_.exp_avg_sq = moment("optimizer.exp_avg_sq_dtype");
    for (const char* path : {"optimizer.master_weight_dtype", "optimizer.store_param_remainders",
                             "optimizer.use_decoupled_grad"})
      s_.find(path);
    const std::string recipe = s_.word("model.backend.te_fp8.recipe", "");
    if (recipe == "mxfp8")
      r_.dtype = "mxfp8";
    else if (recipe == "current")
      r_.dtype = "fp8";
    else if (!recipe.empty())
      s_.fail("model.backend.te_fp8.recipe", "is '" + shown_text(recipe) + "', which has no prices",
              "write current or mxfp8: --set model.backend.te_fp8.recipe=current");
    s_.names_below("model.backend.te_fp8");
    s_.find("model.backend.te_fp8");
    if (is_on(s_, "fp8") && s_.flag("fp8.enabled", true)) r_.dtype = "fp8";
    s_.find("fp8");
    const std::string loss = s_.word("loss_fn._target_", "MaskedCrossEntropy");
    r_.chunked_loss = loss.ends_with("LinearCrossEntropy");
    if (loss.ends_with("MaskedCrossEntropy") && s_.flag("loss_fn.fp32_upcast", true))
      note("loss_fn.fp32_upcast",
           "casts logits to float32, two more bytes each to write and read again; assumed: "
           "bfloat16");
  }

  // moe/parallelizer.py and moe/fsdp_mixin.py for models with experts, distributed/config.py for
  // others: gathered weights stay on the rank, or are freed after their layer.
  void shards() {
    const std::string strategy = s_.word("distributed.strategy", "fsdp2");
    const std::string of_moe = "distributed.moe.reshard_after_forward";
    const bool optimized = s_.flag("model.backend.enable_fsdp_optimizations", false);
    const bool reshards = s_.flag(r_.model->experts ? of_moe + "|distributed.reshard_after_forward"
                                                    : "distributed.reshard_after_forward",
                                  r_.model->experts ? false : r_.pp == 1);
    if (strategy == "ddp")
      r_.zero = 0;
    else if (strategy == "megatron_fsdp" || reshards)
      r_.zero = 3;
    else
      r_.zero = optimized || r_.pp > 1 ? 1 : 2;
    if (strategy != "ddp" && strategy != "fsdp2" && strategy != "megatron_fsdp")
      s_.fail("distributed.strategy", "is '" + shown_text(strategy) + "', which is not read",
              "write fsdp2 or ddp: --set distributed.strategy=fsdp2");
    if (s_.flag("distributed.defer_fsdp_grad_sync", true) && r_.zero >= 2 && !r_.model->experts)
      note("distributed.defer_fsdp_grad_sync",
           "reduces gradients once a step; assumed: with each micro-batch");
    if (is_on(s_, "distributed.offload_policy"))
      refuse_decisive("distributed.offload_policy", "offloads weights to the host",
                      s_.place_of("distributed.offload_policy"));
    s_.find("distributed.mp_policy");
  }

  void experts() {
    const std::string how = "model.backend.dispatcher";
    const bool is_deep = s_.flag("model.backend.enable_deepep", true);  // Of older releases.
    const std::string dispatcher = s_.word(how, is_deep ? "deepep" : "torch");
    if (r_.model->experts && !s_.has(how) && !s_.has("model.backend.enable_deepep"))
      r_.notes.push_back(how +
                         " is not stated: DeepEP where it is installed, and else all ranks "
                         "gather all tokens (torch); assumed: deepep");
    for (const char* path : {"model.backend.attn", "model.backend.linear", "model.backend.rms_norm",
                             "model.backend.experts", "model.backend.rope"})
      s_.find(path);
    const bool forced = s_.flag("model.backend.fake_balanced_gate", false);
    const std::string noise = s_.word("model.backend.fake_gate_noise", "0");
    if (!percent_of(noise))
      s_.fail("model.backend.fake_gate_noise", "is '" + shown_text(noise) + "'",
              "write a share from 0 to 1");
    if (!r_.model->experts) return;
    // moe/experts.py: without a dispatcher the tokens of all ranks are gathered.
    if (dispatcher == "deepep" || dispatcher == "uccl_ep")
      r_.moe_dispatcher = "deepep";
    else if (dispatcher == "hybridep")
      r_.moe_dispatcher = "hybridep";
    else if (dispatcher == "torch")
      r_.moe_dispatcher = "allgather";
    else
      s_.fail(how, "is '" + shown_text(dispatcher) + "', which is not read",
              "write deepep, hybridep or torch: --set " + how + "=deepep");
    if (forced)
      r_.routing = noise.find_first_not_of("0.") != noise.npos ? "drawn-uniform" : "round-robin";
  }

  const Settings& s_;
  const RecipeAnswers& answers_;
  Recipe r_;
  std::int64_t local_ = 1;
};

}  // namespace

ImportedRun import_automodel_run(const std::string& text, const std::string& file,
                                 const RecipeAnswers& answers) {
  require_text(text, file, "a recipe of NeMo AutoModel");
  refuse_other_file(text, file, "automodel");
  Settings settings{read_yaml(text, file), file};
  take_answers(settings, answers);
  if (settings.names_below("step_scheduler").empty() || settings.names_below("model").empty())
    fail_input(settings.place(), "has no step_scheduler or no model",
               "give a recipe of NeMo AutoModel");
  return AutomodelReader{settings, answers}.read();
}

}  // namespace orrery
