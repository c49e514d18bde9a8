#include "sim/formats/deepspeed/deepspeed_run.hpp"

#include <algorithm>

#include "sim/cluster/dtype.hpp"
#include "sim/core/json_value.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/value_list.hpp"
#include "sim/formats/deepspeed/trainer_files.hpp"
#include "sim/formats/recipe/adapter_settings.hpp"
#include "sim/formats/recipe/decisive_keys.hpp"
#include "sim/formats/recipe/recipe.hpp"

namespace orrery {
namespace {

// transformers/examples/pytorch, trl/examples/scripts and DeepSpeedExamples.
const WordPairs training_programs = words_by_meaning({
    {"an encoder", "mlm glue squad run_qa run_ner classif bert"},
    {"an encoder and a decoder", "t5 seq2seq translation summarization whisper"},
    {"images", "image vision _vlm _vit cifar"},
    {"pairs of texts that are compared", "dpo"},
    {"texts that are compared", "kto"},
    {"texts that are generated between steps", "ppo grpo rlhf"},
    {"a head for rewards", "reward"},
});

// Paths of settings.
const WordPairs settings = words_by_meaning({
    {"the training of a part of the weights", "unfrozen_parameters"},
    {"texts that are compared or generated between steps", "rl"},
    {"an image encoder", "vision_tower image_max_pixels"},
    {"texts that are generated between steps", "actor_model_name_or_path"},
    {"pairs of texts that are compared", "beta"},
    {"compression", "compression_training"},
});

}  // namespace

void refuse_unpriced_training(const TrainerFiles& files) {
  const std::string remedy = "import a run that trains all weights of a language model";
  for (const auto& [word, what] : training_programs)
    if (files.program.find(word) != std::string::npos)
      fail_input(files.trainer.place(),
                 "starts " + shown_text(files.program) + ": nothing prices " + what, remedy);
  const std::string kind = files.trainer.word("finetuning_type", "full");
  if (kind != "full" && kind != "lora")
    files.trainer.fail("finetuning_type",
                       "is '" + shown_text(kind) +
                           "': nothing prices the training of a part of "
                           "the weights",
                       "write full or lora");
  const std::string adapter = files.trainer.word("adapter", "none");
  if (adapter != "none" && adapter != "lora" && adapter != "qlora" && !adapter.empty())
    files.trainer.fail("adapter", "is '" + shown_text(adapter) + "', which nothing prices",
                       "write lora, qlora, or leave it out");
  if (const std::int64_t bits = files.trainer.number("quantization_bit", 4); bits != 4)
    files.trainer.fail("quantization_bit",
                       "is " + std::to_string(bits) + ", in which nothing prices frozen weights",
                       "write 4, or leave it out");
  if (files.trainer.flag("load_in_8bit", false))
    files.trainer.fail("load_in_8bit", "keeps weights of eight bits, which nothing prices",
                       "load them in 16 or 4 bits: --set load_in_8bit=false");
  const std::string stage = files.trainer.word("stage", "sft");
  if (stage != "sft" && stage != "pt")
    files.trainer.fail("stage", "is '" + shown_text(stage) + "', which nothing prices", remedy);
  for (const auto& [path, what] : settings) {
    for (const Settings* from : {&files.trainer, &files.engine})
      if (is_on(*from, path)) from->fail(path, "means " + what + ", which nothing prices", remedy);
  }
}

namespace {

// Names that training programs give the length of a sequence: run_clm.py, DeepSpeed-Chat, trl,
// FastChat, LLaMA-Factory, axolotl.
const std::string length =
    "max_seq_length|max_seq_len|block_size|model_max_length|cutoff_len|max_length|seq_length|"
    "max_source_length|max_len|sequence_len";
const std::string batch_size =
    "per_device_train_batch_size|per_gpu_train_batch_size|micro_batch_size";
const std::string model_name =
    "model_name_or_path|model_id|base_model|model_name|model_path|pretrained_model_name_or_path";

constexpr const char* of_documents =
    "ends attention with each document, whose lengths nothing says (--documents of `orrery "
    "estimate` "
    "does); assumed: sequences of one document";
constexpr PricedOtherwise trainer_differences[] = {
    {"sample_packing", of_documents},
    {"neat_packing", of_documents},
    {"auto_find_batch_size", "halves the batch until it fits; assumed: the one that is written"},
    {"torch_compile", "compiles the model; assumed: PyTorch's own kernels"},
    {"use_liger_kernel", "fuses norms and activations, too; assumed: PyTorch's own"},
    {"enable_liger_kernel", "fuses norms and activations, too; assumed: PyTorch's own"},
    {"fp8", "computes products in fp8"},
    {"full_determinism", "takes slower kernels, which are not priced"},
    {"sparse", "leaves out a part of attention; assumed: all of it"},
};
constexpr PricedOtherwise engine_differences[] = {
    {"zero_optimization.zero_quantized_weights", "gathers weights in 8 bits (ZeRO++)"},
    {"zero_optimization.zero_quantized_gradients", "reduces gradients in 4 bits (ZeRO++)"},
    {"zero_optimization.zero_hpz_partition_size",
     "keeps a copy of the weights in each node (ZeRO++)"},
    {"sparse_attention", "leaves out a part of attention; assumed: all of it"},
    {"compile.enabled", "compiles the model; assumed: PyTorch's own kernels"},
    {"activation_checkpointing.cpu_checkpointing", "moves activations to the host"},
    {"activation_checkpointing.partition_activations",
     "shards kept activations over tensor-parallel ranks"},
    {"progressive_layer_drop", "leaves out layers; assumed: all of them"},
    {"data_efficiency", "shortens sequences or leaves out tokens; assumed: all of them"},
    {"autotuning.enabled", "looks for its settings itself; assumed: those that are written"},
    {"curriculum_learning.enabled", "lets sequences grow; assumed: the longest"},
};

// They change neither time nor memory of a step, or other code reads them where they do.
const std::vector<std::string> harmless_arguments = words_in(R"(
    adam_ bnb_ cache chat_template config_name data ddp_ deepspeed disable_dropout disable_tqdm
    do_ early_stop enable_tensorboard end_lr double_quantization epoch eval export_quantization
    bf16_full_eval fp16_backend fp16_full_eval fp16_opt_level fp8_ fsdp_ fsdp_config.fsdp_
    infer_dtype dropout group_by_length half_precision_backend low_cpu_mem_usage optim_args
    optim_target_modules parallel_mode hub_ ignore_ include_ instruct label lang learning_rate
    load_best_model local_rank log lr max_eval max_grad_norm max_new_tokens max_prompt_length
    max_samples max_steps max_train metric model_revision neftune no_ num_epoch num_padding
    num_train num_warmup num_workers output overwrite packing pad_ padding per_device_eval
    plot_loss preprocess print_loss prompt push_to_hub remove_unused report_to resume response
    run_name save seed shuffle sft_only source_ split steps streaming target_ template
    tensorboard test text_column token train_file train_data train_on trust_remote use_auth
    use_fast validation val_ wandb_ special_tokens saves_per_epoch dataset eval_sample_packing
    lr_scheduler pretraining_dataset adapter fsdp_config.state_dict_type
    fsdp_config.auto_wrap_policy fsdp_config.transformer_layer_cls_to_wrap
    fsdp_config.cpu_ram_efficient_loading fsdp_config.sync_module_states
    fsdp_config.use_orig_params fsdp_config.limit_all_gathers fsdp_version
    experimental_skip_move_to_device version wandb warmup weight_decay lazy_ lora_ peft_
    quantization_device_map quantization_method quantization_type with_tracking)");
const std::vector<std::string> harmless_of_engine = words_in(R"(
    activation_checkpointing.contiguous_memory_optimization
    activation_checkpointing.number_checkpoints activation_checkpointing.profile
    activation_checkpointing.synchronize_checkpoint_boundary aio amp.opt_level autotuning bf16
    checkpoint comms_logger csv_monitor curriculum_learning. dump_state elasticity flops_profiler
    fp16 fp32_allreduce gradient_clipping gradient_predivide_factor memory_breakdown monitor
    optimizer.params prescale_gradients scheduler steps_per_print tensorboard
    wall_clock_breakdown wandb zero_allow_untested_optimizer zero_force_ds_cpu_optimizer
    zero_optimization.allgather_ zero_optimization.contiguous_gradients
    zero_optimization.elastic_checkpoint zero_optimization.ignore_unused_parameters
    zero_optimization.load_from_fp32_weights zero_optimization.memory_efficient_linear
    zero_optimization.offload_optimizer.buffer_ zero_optimization.offload_optimizer.fast_init
    zero_optimization.offload_optimizer.nvme_path zero_optimization.offload_optimizer.pin_memory
    zero_optimization.offload_optimizer.pipeline_ zero_optimization.offload_param.buffer_
    zero_optimization.offload_param.max_in_cpu zero_optimization.offload_param.nvme_path
    zero_optimization.offload_param.pin_memory zero_optimization.reduce_
    zero_optimization.round_robin_gradients zero_optimization.stage3_
    zero_optimization.sub_group_size)");
const std::vector<std::string> harmless_of_accelerate = words_in(R"(
    compute_environment debug deepspeed_config.deepspeed_ deepspeed_config.gradient_clipping
    deepspeed_config.zero3_ distributed_type downcast_bf16 dynamo_config enable_cpu_affinity
    fsdp_config.fsdp_auto_wrap_policy fsdp_config.fsdp_backward_prefetch
    fsdp_config.fsdp_backward_prefetch_policy fsdp_config.fsdp_cpu_ram_efficient_loading
    fsdp_config.fsdp_forward_prefetch fsdp_config.fsdp_min_num_params fsdp_config.fsdp_state_dict
    fsdp_config.fsdp_sync_module_states fsdp_config.fsdp_transformer_layer_cls_to_wrap
    fsdp_config.fsdp_use_orig_params fsdp_config.fsdp_version machine_rank main_ num_
    parallelism_config.parallelism_config_sp_attn
    rdzv_ same_network tpu_)");

const std::vector<std::string> harmless_of_adapter = words_in(R"(
    alpha_pattern auto_mapping base_model_name_or_path corda_config ensure_weight_tying eva_config
    fan_in_fan_out inference_mode init_lora_weights lora_alpha megatron_ revision runtime_config
    peft_version task_type trainable_token_indices use_rslora)");

class TrainerReader {
 public:
  TrainerReader(const TrainerFiles& files, const RecipeAnswers& answers, const Place& place)
      : t_{files.trainer},
        e_{files.engine},
        a_{files.accelerate},
        files_{files},
        answers_{answers},
        place_{place} {}

  ImportedRun read() {
    r_.notes = files_.notes;
    refuse_unpriced_training(files_);
    model();
    batch();
    sharding();
    precision();
    optimizer_state();
    adapters();
    loss();
    layers();
    software();
    rest();
    return written_plan(r_, place_);
  }

 private:
  void note(const Settings& from, const std::string& paths, const std::string& sentence) {
    r_.notes.push_back(from.name(paths) + " " + sentence);
  }

  // DeepSpeed's file leaves "auto" to the Trainer (transformers, integrations/deepspeed.py).
  bool says(const std::string& path) const {
    const SettingsTree* value = e_.find(path);
    return value && value->text != "auto";
  }

  void model() {
    r_.model = model_of_answer(answers_);
    const std::string name = t_.word(model_name, "");
    if (!r_.model) r_.model = model_by_name(name, answers_);
    if (r_.model) return;
    const std::string remedy = "give its shape: --model NAME or a config.json";
    if (name.empty()) fail_input(place_, "names no model (model_name_or_path)", remedy);
    t_.need_set(model_name, name, "NAME");
    t_.fail(model_name, "is " + shown_text(name) + ", a model that is not known", remedy);
  }

  void batch() {
    const std::string size = "train_micro_batch_size_per_gpu";
    const std::string steps = "gradient_accumulation_steps";
    r_.mbs = says(size) ? e_.number(size, 1) : t_.number(batch_size, is_axolotl() ? 1 : 8);
    const std::int64_t each = says(steps)
                                  ? e_.number(steps, 1)
                                  : t_.number(steps, a_.number("deepspeed_config." + steps, 1));
    r_.per_replica = product_of({r_.mbs, each});
    if (says("train_batch_size")) r_.gbs = e_.number("train_batch_size", 1);
    r_.seq = t_.number(length, 0);
    t_.find("pad_to_sequence_len");  // Every sequence counts at full length anyway.
    for (const std::string& other : split(length, "|")) t_.find(other);
    if (r_.seq == 0)
      fail_input(place_, "does not say how long its sequences are",
                 "give it: --set max_seq_length=N");
    r_.notes.push_back("every sequence counts as " + grouped(r_.seq) + " tokens long (" +
                       t_.name(length) + "); data that are not packed have fewer");
    r_.gpus = answers_.gpus ? answers_.gpus : files_.gpus;
    // accelerate counts the processes of all machines.
    if (!r_.gpus && a_.has("num_processes")) r_.gpus = a_.number("num_processes", 1);
  }

  bool is_engine() const {
    return !e_.file().empty() || t_.has("zero_stage") || a_.has("deepspeed_config");
  }

  void sharding() {
    const std::string stage = "zero_optimization.stage";
    const std::string own = "zero_stage", of_accelerate = "deepspeed_config.zero_stage";
    r_.zero = says(stage)             ? e_.number(stage, 0)
              : t_.has(own)           ? t_.number(own, 0)
              : a_.has(of_accelerate) ? a_.number(of_accelerate, 0)
                                      : 0;
    if (r_.zero < 0 || r_.zero > 3)
      fail_input(place_, "has ZeRO stage " + std::to_string(r_.zero), "write 0 to 3");
    // deepspeed/runtime/zero/config.py: overlap_comm is true with stage 3 unless given.
    r_.dp_overlap = !is_engine() || (says("zero_optimization.overlap_comm")
                                         ? e_.flag("zero_optimization.overlap_comm", false)
                                         : r_.zero == 3);
    if (!is_engine()) {
      fully_sharded();
    } else {
      host_optimizer();
      if (r_.zero == 3) host_weights();
    }
    copies_of_shards();
    r_.cp = e_.number("sequence_parallel_size", t_.number("sequence_parallel_size", 1));
    if (r_.cp > 1) r_.cp_comm = "a2a";  // Ulysses (arXiv 2309.14509).
    r_.tp = e_.number("tensor_parallel.autotp_size", 1);
    mesh();
    for (const char* depth : {"pipeline.stages", "pipeline_parallel_size"})
      if (e_.number(depth, 1) > 1)
        e_.fail(depth, "makes a pipeline of DeepSpeed's own, which is not read",
                "write the plan by hand (--pp of `orrery estimate`)");
  }

  // axolotl, utils/schemas/enums.py, RingAttnFunc: packed data gather all keys and values, as
  // Llama 3 did, and batches pass theirs round.
  std::string axolotl_exchange() {
    t_.find("heads_k_stride");  // Heads that are gathered at a time: the same bytes.
    const char* packed = t_.flag("sample_packing", false) ? "all_gather" : "p2p";
    const std::string given = t_.choice("ring_attn_func", {{"varlen_llama3", "all_gather"},
                                                           {"batch_ring", "p2p"},
                                                           {"batch_zigzag", "p2p"},
                                                           {"batch_stripe", "p2p"}});
    return t_.has("ring_attn_func") ? given : packed;
  }

  // accelerate, ParallelismConfig: dp_replicate x dp_shard x cp x sp x tp are all processes, and
  // FSDP shards over dp_shard x cp. axolotl (utils/schemas/config.py) has its own names for them.
  void mesh() {
    const auto path = [](const char* name) {
      return std::string{"parallelism_config.parallelism_config_"} + name;
    };
    const auto size = [&](const char* name, const char* of_axolotl) {
      const std::int64_t ranks = a_.number(path(name), 1);
      return is_axolotl() ? t_.number(of_axolotl, ranks) : ranks;
    };
    for (const char* how : {"sp_backend", "sp_seq_length", "sp_seq_length_is_variable"})
      a_.find(path(how));
    r_.tp = std::max(r_.tp, size("tp_size", "tensor_parallel_size"));
    if (const std::int64_t ranks = a_.number(path("sp_size"), 1); ranks > 1)
      r_.cp = ranks, r_.cp_comm = "a2a";
    // PyTorch, context_parallel: allgather, or alltoall, which passes keys and values round.
    std::string how =
        a_.choice(path("cp_comm_strategy"), {{"allgather", "all_gather"}, {"alltoall", "p2p"}});
    std::int64_t ranks = size("cp_size", "context_parallel_size");
    if (is_axolotl()) {
      ranks = t_.number("sequence_parallel_degree", ranks);
      how = axolotl_exchange();
    }
    if (ranks > 1) r_.cp = ranks, r_.cp_comm = how;
    const std::int64_t copies = size("dp_replicate_size", "dp_replicate_size");
    const std::int64_t shards = size("dp_shard_size", "dp_shard_size");
    if (shards > 1 && !is_engine() && r_.zero == 0)
      fail_input(place_,
                 "dp_shard_size shards weights over " + std::to_string(shards) +
                     " ranks, for which no fsdp is asked",
                 "write fsdp and fsdp_config beside it, or leave it out");
    if (copies == 1 || is_engine() || r_.zero == 0) return;
    if (shards == 1 && r_.cp == 1)
      r_.zero = 0;
    else
      r_.dp_replicate = copies;
  }

  // trl writes its adapters' sizes whether it trains them or not, LLaMA-Factory and axolotl say so
  // by their kind; adapter_config.json of PEFT is of a run that has some.
  bool has_adapters() const {
    const bool asked = t_.flag("use_peft|use_lora|lora_enable|use_peft_lora", false);
    const std::string kind = t_.word("adapter", "none");
    return asked || !files_.adapter.file().empty() || t_.number("lora_dim", 0) > 0 ||
           t_.word("finetuning_type", "full") == "lora" || kind == "lora" || kind == "qlora";
  }

  void adapters() {
    const bool four_bits = t_.flag("load_in_4bit", false) || t_.has("quantization_bit") ||
                           t_.word("adapter", "none") == "qlora";
    for (const char* path : {"lora_r", "lora_rank", "lora_alpha", "lora_target_modules",
                             "lora_target", "lora_dropout", "lora_target_linear"})
      t_.find(path);
    if (!has_adapters()) {
      if (four_bits)
        fail_input(place_, "keeps weights in four bits, which do not train, without adapters",
                   "add adapters, or leave the four bits out");
      return;
    }
    const bool factory = t_.has("finetuning_type");
    const Settings& from = files_.adapter.file().empty() ? t_ : files_.adapter;
    const std::string kind = files_.adapter.word("peft_type", "LORA");
    if (kind != "LORA")
      files_.adapter.fail("peft_type", "is '" + shown_text(kind) + "', which nothing prices",
                          "give the file of a LoRA");
    read_adapters(from,
                  {.rank = "lora_r|lora_rank|lora_dim|r",
                   .dropout = "lora_dropout",
                   .modules = "lora_target_modules|lora_target|target_modules",
                   .all_linear = "lora_target_linear",
                   .usual_rank = is_trl() ? 16 : 8,  // trl/trainer/model_config.py
                   .usual_dropout = is_trl() ? "0.05" : "0",
                   .usual_modules = factory ? "all" : ""},  // hparams/finetuning_args.py
                  four_bits, r_);
    const std::string method = t_.word("quantization_method", "bnb");
    if (method == "gptq" || method == "awq")
      r_.base_format = "int4";
    else if (method != "bnb" && method != "bitsandbytes")
      t_.fail("quantization_method", "is '" + shown_text(method) + "', which nothing prices",
              "write bnb or gptq");
    if (r_.offload_weights)
      fail_input(place_, "moves frozen weights to the host, which has no prices",
                 "keep them on the GPUs: --set fsdp_config.fsdp_offload_params=false, or no "
                 "offload_param");
    // Frozen weights have no optimizer, whose state would be their masters.
    if (r_.main_params == "none") r_.main_params = "fp32", r_.exp_avg = r_.exp_avg_sq = "fp32";
  }

  // Logits that are never whole: Liger Kernel of the Trainer, LLaMA-Factory and axolotl, and Cut
  // Cross Entropy of axolotl.
  void loss() {
    for (const char* key : {"use_liger_kernel", "enable_liger_kernel",
                            "liger_fused_linear_cross_entropy", "cut_cross_entropy"})
      r_.chunked_loss |= t_.flag(key, false);
  }

  // MiCS (arXiv 2205.00119), which is of ZeRO-3 (deepspeed/runtime/engine.py) and has no offloading
  // (runtime/zero/mics.py, allreduce_mics_shard_grads).
  void copies_of_shards() {
    const std::string path = "zero_optimization.mics_shard_size";
    const std::int64_t size = e_.number(path, 0);
    if (size <= 0 || r_.zero != 3 || !r_.gpus) return;
    if (*r_.gpus % size != 0)
      e_.fail(path, "does not divide " + grouped(*r_.gpus) + " GPUs", "write a divisor");
    r_.dp_replicate = *r_.gpus / size;
    if (r_.dp_replicate > 1 && r_.offload_optimizer > 0)
      e_.fail(path, "shards over a part of the replicas, with which DeepSpeed offloads nothing",
              "leave it out: --set " + path + "=null");
  }

  // deepspeed/runtime/zero/offload_config.py; `ratio` is ZeRO-Offload++'s share of the host.
  void host_optimizer() {
    const std::string path = "zero_optimization.offload_optimizer.";
    const std::string device =
        e_.word(path + "device", a_.word("deepspeed_config.offload_optimizer_device", "none"));
    const bool of_2020 = e_.flag("zero_optimization.cpu_offload", false);
    const std::string share = e_.word(path + "ratio", "1.0");
    if (r_.zero == 0 || (!of_2020 && device == "none")) return;
    if (!of_2020 && device != "cpu")
      refuse_decisive(path + "device", "is " + shown_text(device), e_.place_of(path + "device"));
    const auto percent = percent_of(share);
    if (!percent) e_.fail(path + "ratio", "is '" + shown_text(share) + "'", "write 0 to 1");
    r_.offload_optimizer = *percent;
  }

  // deepspeed/runtime/zero/offload_config.py.
  void host_weights() {
    const std::string path = "zero_optimization.offload_param.device";
    const std::string device =
        e_.word(path, a_.word("deepspeed_config.offload_param_device", "none"));
    const bool of_2020 = e_.flag("zero_optimization.cpu_offload_param", false);
    if (!of_2020 && device == "none") return;
    if (!of_2020 && device != "cpu")
      refuse_decisive(path, "is " + shown_text(device), e_.place_of(path));
    if (r_.offload_optimizer != 100)
      e_.fail(path, "keeps weights on the host without all of their optimizer, which has no prices",
              "add the optimizer: --set zero_optimization.offload_optimizer.device=cpu");
    r_.offload_weights = true;
  }

  // accelerate and Trainer: PyTorch's FSDP.
  void fully_sharded() {
    const std::vector<std::string> requested = t_.words("fsdp");
    const auto asks = [&](const char* word) {
      return std::find(requested.begin(), requested.end(), word) != requested.end();
    };
    if (asks("full_shard") || asks("hybrid_shard")) r_.zero = 3;
    if (asks("shard_grad_op") || asks("hybrid_shard_zero2")) r_.zero = 2;
    bool hybrid = asks("hybrid_shard") || asks("hybrid_shard_zero2");
    if (is_axolotl() && t_.has("fsdp_config")) {
      shards_of_axolotl();
    } else if (a_.has("fsdp_config") && a_.word("distributed_type", "FSDP") == "FSDP") {
      // FSDP2 has no strategy but a setting to reshard weights.
      const std::string strategy =
          a_.choice("fsdp_config.fsdp_sharding_strategy|fsdp_config.fsdp_reshard_after_forward",
                    {{"FULL_SHARD", "3"},
                     {"SHARD_GRAD_OP", "2"},
                     {"NO_SHARD", "0"},
                     {"HYBRID_SHARD", "3h"},
                     {"HYBRID_SHARD_ZERO2", "2h"},
                     {"true", "3"},
                     {"false", "3k"},
                     {"1", "3"},
                     {"2", "2"},
                     {"3", "0"},
                     {"4", "3h"},
                     {"5", "2h"}});
      r_.zero = strategy[0] - '0';
      hybrid = strategy.ends_with('h');
      r_.reshard = !strategy.ends_with('k');
    }
    // CPUOffload and CPUOffloadPolicy move weights and optimizer.
    const std::string offloads = "fsdp_config.fsdp_offload_params";
    const bool by_axolotl =
        is_axolotl() &&
        t_.flag("fsdp_config.fsdp_offload_params|fsdp_config.offload_params", false);
    const bool is_offloaded = asks("offload") || by_axolotl || a_.flag(offloads, false);
    if (is_offloaded && r_.zero == 2)
      refuse_decisive(asks("offload") ? "fsdp" : offloads,
                      "offloads weights that are kept whole after the forward pass",
                      asks("offload") ? t_.place_of("fsdp") : a_.place_of(offloads));
    r_.offload_weights = is_offloaded && r_.zero == 3;
    if (r_.offload_weights) r_.offload_optimizer = 100;
    if (hybrid) r_.dp_replicate = nodes();
  }

  // axolotl (utils/schemas/fsdp.py) takes accelerate's settings with their prefix and without.
  void shards_of_axolotl() {
    r_.zero = 3;
    const std::string strategy =
        t_.choice("fsdp_config.fsdp_sharding_strategy|fsdp_config.sharding_strategy",
                  {{"FULL_SHARD", "3"}, {"SHARD_GRAD_OP", "2"}, {"NO_SHARD", "0"}});
    r_.zero = strategy[0] - '0';
    r_.reshard =
        t_.flag("fsdp_config.fsdp_reshard_after_forward|fsdp_config.reshard_after_forward", true);
  }

  // Its names for the model and the length of a sequence.
  bool is_axolotl() const { return t_.has("base_model") && t_.has("sequence_len"); }

  // PyTorch, fsdp/_init_utils.py: hybrid sharding is over the GPUs of a node.
  std::int64_t nodes() const {
    const std::int64_t nodes = t_.number("num_machines", a_.number("num_machines", 0));
    if (nodes > 0) return nodes;
    fail_input(place_, "shards over the GPUs of a node, and does not say how many nodes there are",
               "give it: --set num_machines=N");
  }

  // trl/scripts/sft.py, also as `trl sft` or a module.
  bool is_trl() const {
    return files_.program == "trl sft" || files_.program == "sft.py" ||
           files_.program == "trl.scripts.sft";
  }

  // axolotl, utils/schemas/config.py: "auto" is bf16 where the GPU has it, "full" has no other
  // weights.
  bool says_bf16(bool otherwise) const {
    const std::string word = t_.word("bf16", "");
    return is_axolotl() && (word == "auto" || word == "full") ? true : t_.flag("bf16", otherwise);
  }

  void precision() {
    const std::string mixed = t_.word("mixed_precision", a_.word("mixed_precision", ""));
    const std::string chat = t_.word("dtype", t_.has("zero_stage") ? "fp16" : "");
    for (const char* of_trainer : {"bf16", "fp16"}) t_.find(of_trainer);
    // trl, trainer/sft_config.py: bf16 unless fp16 is asked for.
    const bool by_trl = is_trl() && !t_.flag("fp16", false);
    const bool bf16 = says("bf16.enabled") ? e_.flag("bf16.enabled", false)
                                           : says_bf16(mixed == "bf16" || chat == "bf16" ||
                                                       chat == "bfloat16" || by_trl);
    const bool fp16 = says("fp16.enabled")
                          ? e_.flag("fp16.enabled", false)
                          : t_.flag("fp16", mixed == "fp16" || chat == "fp16" || chat == "float16");
    if (mixed == "fp8")
      a_.fail("mixed_precision", "is fp8, which has no prices with Hugging Face's models",
              "write bf16: --set mixed_precision=bf16");
    // transformers, training_args.py: tf32 sets allow_tf32, which PyTorch leaves off.
    const bool tf32 = t_.flag("tf32", false);
    r_.dtype = bf16 ? "bf16" : fp16 ? "fp16" : tf32 ? "tf32" : "fp32";
    if (keeps_bf16()) {
      r_.dtype = r_.exp_avg = r_.exp_avg_sq = "bf16";
      r_.main_params = "none";
    } else if (!bf16 && !fp16)
      r_.notes.push_back("neither bf16 nor fp16 is given: it trains in fp32" +
                         std::string{tf32 ? ", and multiplies in tf32" : ""});
  }

  // Weights that are loaded in bf16 are what PyTorch's AdamW updates, with moments of their format
  // (torch/optim/adamw.py, zeros_like). DeepSpeed keeps masters of its own, and accelerate makes
  // FSDP's weights fp32 (accelerator.py, upcast_param).
  bool keeps_bf16() const {
    // axolotl loads weights in the format in which it computes (utils/config/__init__.py).
    const std::string loaded = t_.word("torch_dtype|model_dtype",
                                       is_axolotl() && r_.dtype == "bf16" ? "bfloat16" : "auto");
    const bool pure = t_.flag("pure_bf16", false);  // LLaMA-Factory, hparams/parser.py.
    if (pure && is_engine())
      t_.fail("pure_bf16", "is for PyTorch's own optimizer, and DeepSpeed keeps masters",
              "write bf16: --set pure_bf16=null --set bf16=true");
    // accelerate's mixed precision is off, so that FSDP leaves weights as they are.
    const bool full = is_axolotl() && t_.word("bf16", "") == "full" && !is_engine();
    return pure || full || (loaded == "bfloat16" && !is_engine() && r_.zero == 0);
  }

  // AdamW of PyTorch, apex, bitsandbytes and torchao with two states a parameter (transformers,
  // training_args.py, OptimizerNames; axolotl, utils/schemas/enums.py, CustomSupportedOptimizers).
  static bool is_adam(const std::string& name) {
    static const std::vector<std::string> known = words_in(
        "adam adamw adamw_torch adamw_torch_fused adamw_torch_xla adamw_torch_npu_fused adamw_hf "
        "adamw_apex_fused paged_adamw paged_adamw_32bit adamw_bnb_8bit adamw_8bit paged_adamw_8bit "
        "adamw_torch_8bit ao_adamw_8bit ao_adamw_fp8 optimi_adamw");
    return std::find(known.begin(), known.end(), name) != known.end();
  }

  void optimizer_state() {
    // transformers, trainer_optimizer.py: 8-bit AdamW of bitsandbytes or torchao.
    const std::string optimizer = t_.word("optim|optimizer", "adamw_torch");
    if (is_adam(optimizer) && optimizer.find("8bit") != optimizer.npos)
      r_.exp_avg = r_.exp_avg_sq = "int8";
    // bitsandbytes, optim/optimizer.py, init_state: fp32 whatever the weights are.
    if (is_adam(optimizer) && optimizer.find("32bit") != optimizer.npos)
      r_.exp_avg = r_.exp_avg_sq = "fp32";
    if (optimizer == "ao_adamw_fp8") r_.exp_avg = r_.exp_avg_sq = "fp8";
    // deepspeed/runtime/precision_config.py: masters and moments of ZeRO in bf16.
    if (!e_.flag("bf16.bf16_master_weights_and_grads", false)) return;
    r_.main_params = "bf16";
    if (e_.flag("bf16.bf16_optimizer_states", false)) r_.exp_avg = r_.exp_avg_sq = "bf16";
  }

  void layers() {
    // LLaMA-Factory, hparams/model_args.py: on unless it is disabled.
    const bool factory = t_.has("finetuning_type") || t_.has("cutoff_len");
    // trl, trainer/sft_config.py: on.
    const bool always = is_trl() || (factory && !t_.flag("disable_gradient_checkpointing", false));
    const bool recomputes =
        t_.flag("gradient_checkpointing",
                always || a_.flag("fsdp_config.fsdp_activation_checkpointing", false));
    r_.recompute = recomputes ? "full" : "none";
    t_.find("gradient_checkpointing_kwargs");
    const std::string how = t_.word("attn_implementation|attn_impl", "sdpa");
    const bool flash =
        t_.flag("use_flash_attn|use_flash_attention|use_flash_attention_2|flash_attention", true);
    // LLaMA-Factory, hparams/model_args.py: "disabled" is eager attention. axolotl's models have
    // PyTorch's fused attention unless eager_attention asks for none.
    const bool disabled = t_.word("flash_attn", "auto") == "disabled";
    const bool eager = t_.flag("eager_attention", false);
    t_.find("sdp_attention");
    const bool without_flash = !flash && !is_axolotl();
    r_.attention = how == "eager" || disabled || eager || without_flash ? "unfused" : "flash";
  }

  // Tensor-parallel ranks have no software of their own, nor has Ulysses without DeepSpeed.
  void software() {
    if (r_.tp > 1 || (r_.cp > 1 && !is_engine())) {
      r_.software = "megatron-core";
      if (is_wide(*format_named(r_.dtype, FormatUse::products))) r_.attention = "unfused";
      r_.notes.push_back(
          "the nearest software is megatron-core, which fuses more kernels than Hugging Face's "
          "models do");
      return;
    }
    r_.software = is_engine() ? "deepspeed" : "hf-trainer";
    if (r_.finetune != "full") return;  // Published adapter runs of both were on A100.
    r_.notes.push_back("the software " + r_.software +
                       " is described for Hopper and later; on A100 give --software composer-2023 "
                       "to `orrery estimate`");
  }

  void rest() {
    NcclSettings nccl = nccl_settings(files_.nccl, place_);
    r_.nccl_algo = nccl.nccl_algo;
    r_.nccl_proto = nccl.nccl_proto;
    for (std::string& sentence : nccl.notes) r_.notes.push_back(std::move(sentence));
    note_otherwise(t_, trainer_differences, r_.notes);
    note_otherwise(e_, engine_differences, r_.notes);
    const std::string optimizer = t_.word("optim|optimizer", "adamw_torch");
    if (!is_adam(optimizer))
      refuse_decisive(t_.name("optim|optimizer"), "is " + shown_text(optimizer),
                      t_.place_of("optim|optimizer"));
    const std::string own = e_.word("optimizer.type", "AdamW");
    if (own != "AdamW" && own != "Adam" && own != "auto")
      refuse_decisive("optimizer.type", "is " + shown_text(own), e_.place_of("optimizer.type"));
    e_.find("zero_optimization.stage3_gather_16bit_weights_on_model_save");
    note_unread(t_, harmless_arguments, r_.notes);
    note_unread(e_, harmless_of_engine, r_.notes);
    note_unread(a_, harmless_of_accelerate, r_.notes);
    note_unread(files_.adapter, harmless_of_adapter, r_.notes);
  }

  const Settings& t_;
  const Settings& e_;
  const Settings& a_;
  const TrainerFiles& files_;
  const RecipeAnswers& answers_;
  Place place_;
  Recipe r_;
};

}  // namespace

ImportedRun import_deepspeed_run(const std::vector<RecipeFile>& files,
                                 const RecipeAnswers& answers) {
  TrainerFiles all = read_trainer_files(files, answers);
  refuse_unpriced_training(all);  // A file that is missing does not matter before this.
  read_named_files(all, files.front().path, answers);
  return TrainerReader{all, answers, {files.front().path, ""}}.read();
}

}  // namespace orrery
