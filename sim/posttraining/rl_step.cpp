#include "sim/posttraining/rl_step.hpp"

#include <algorithm>
#include <cassert>
#include <limits>

#include "sim/core/number_text.hpp"
#include "sim/core/value_list.hpp"
#include "sim/layers/memory.hpp"
#include "sim/model/layer_pattern.hpp"
#include "sim/model/model.hpp"
#include "sim/training/estimate.hpp"

namespace orrery {
namespace {

// Tensors of a checkpoint, as engines load them: those of each expert are apart.
double tensors_of(const Model& model) {
  // Norms, products of attention and biases of a layer; an MLP or an expert has three products.
  constexpr double of_attention = 8.0, of_mlp = 3.0;
  double tensors = 3.0;
  for (int layer = 0; layer < model.layers; ++layer) {
    const auto place = static_cast<std::size_t>(layer);
    const Experts* experts = nullptr;
    if (model.pattern) {
      const Model& shape =
          model.pattern->shapes[static_cast<std::size_t>(model.pattern->shape_of[place])];
      if (shape.experts) experts = &*shape.experts;
    } else if (!model.layer_has_experts.empty() && model.layer_has_experts[place]) {
      experts = &*model.experts;
    }
    tensors += of_attention + of_mlp * (experts ? static_cast<double>(experts->count) + 1.0 : 1.0);
  }
  return tensors;
}

Bytes bytes_of(const Model& model, Dtype format) {
  return Bytes{static_cast<double>(count_parameters(model).total) * element_bytes(format)};
}

// "use --gpus 16 --pp 2" by the options that hold them: "add pp=2 to --training, with --gpus 16".
std::string as_training_keys(const std::string& remedy) {
  const std::vector<std::string> words = words_in(remedy);
  std::string keys, gpus;
  for (std::size_t i = 1; i + 1 < words.size(); i += 2) {
    if (words[i] == "--gpus")
      gpus = ", with --gpus " + words[i + 1];
    else
      keys += (keys.empty() ? "" : ",") + words[i].substr(2) + "=" + words[i + 1];
  }
  return "add " + keys + " to --training" + gpus;
}

void need_training_memory(const RlJob& job, const MemoryReport& memory, double most) {
  if (memory.peak() <= most * memory.capacity && memory.host_fits()) return;
  const std::string remedy = nearest_fit(job.fullest);
  fail_infeasible({"", "--training"}, shortfall_text(memory),
                  remedy.empty() ? "use more GPUs, or smaller micro-batches (train_tokens)"
                                 : as_training_keys(remedy));
}

// The most that a GPU needs in passes. They may have more tokens than training, but they keep no
// activations for a backward pass, and of logits a copy in 16 bits and one in fp32 without
// gradients.
Bytes peak_of_passes(const RlJob& job) {
  if (!job.old_logprobs && !job.reference && !job.critic) return {};
  constexpr double logit_bytes = 2.0 + 4.0;
  const Scenario& pass = job.fullest_pass;
  const MemoryReport memory = memory_of(pass);
  const double beyond = std::max(0.0, pass.software.logit_held_bytes - logit_bytes);
  const Bytes gradients{pass.plan.chunked_loss
                            ? 0.0
                            : beyond * static_cast<double>(pass.plan.seq) / pass.plan.cp *
                                  static_cast<double>(pass.padded_vocab / pass.plan.tp)};
  Bytes peak;
  for (std::size_t i = 0; i < memory.stages.size(); ++i) {
    const StageMemory& stage = memory.stages[i];
    const bool has_logits = i + 1 == memory.stages.size();
    const Bytes other = stage.other - (has_logits ? gradients : Bytes{});
    const Bytes needed = stage.peak() - stage.activations - stage.other + other;
    peak = std::max(peak, needed);
    if (needed > tolerated_share_of_memory * memory.capacity)
      fail_infeasible({"", "--pass_tokens"},
                      "log-probabilities of " + grouped(pass.plan.seq) + " tokens at a time need " +
                          gigabytes_text(needed) + " on each GPU (" + gigabytes_text(other) +
                          " of it logits and buffers), which has " +
                          gigabytes_text(memory.capacity),
                      "use fewer of them (pass_tokens, pass_samples), or larger tp or pp");
  }
  return peak;
}

// Shards of weights are whole only while a pass needs them. A shard is in 16 bits.
Bytes kept_weights(const RlJob& job, const StageMemory& stage) {
  const Plan& plan = job.training.plan;
  if (!plan.shards_weights()) return stage.weights;
  const double parameters = static_cast<double>(count_parameters(job.model).total);
  return Bytes{2.0 * parameters * plan.dp_replicate / static_cast<double>(job.train_gpus)};
}

class StepMaker {
 public:
  StepMaker(const RlJob& job, const TrainerHalf& trainer, const GeneratorHalf& generator)
      : trainer_{trainer}, generator_{generator} {
    step_.job = job;
    step_.training = trainer.training;
    if (generator.burst) step_.rollout = *generator.burst;
  }

  RlStep make() {
    const RlJob& job = step_.job;
    check_memory();
    const Dtype format = job.rollout.deployment.weights;
    step_.weights = bytes_of(job.model, format);
    const Seconds refit = transfer_time(job.model, format, job.transfer);
    if (!job.is_asynchronous()) {
      add(RlPhase::refit, refit);
      add(RlPhase::generation, step_.rollout.time, step_.rollout.busy);
    }
    // An asynchronous loop scores answers while the engine generates others.
    if (!job.is_asynchronous()) add(RlPhase::reward, job.request.reward, 0.0);
    if (job.old_logprobs) add(RlPhase::old_logprobs, trainer_.pass);
    if (job.reference) add(RlPhase::reference, trainer_.pass + swapped());
    if (job.critic) add(RlPhase::values, trainer_.pass);
    const Seconds training = static_cast<double>(job.optimizer_steps) *
                             (trainer_.training.step_time + job.framework.optimizer_step);
    add(RlPhase::training, training);
    if (job.critic) add(RlPhase::critic, training);
    add(RlPhase::moves, moved(), 0.0);
    add(RlPhase::loop, job.framework.loop + job.framework.loop_share * so_far(), 0.0);
    if (job.is_asynchronous()) {
      add(RlPhase::refit, refit);
      wait_for_samples(refit);
    }
    step_.time = so_far();
    return std::move(step_);
  }

 private:
  void add(RlPhase phase, Seconds time, double busy = 1.0) {
    if (time > Seconds{}) step_.phases.push_back({phase, time, busy});
  }

  Seconds so_far() const {
    Seconds sum;
    for (const RlPhaseTime& phase : step_.phases) sum += phase.time;
    return sum;
  }

  // Two pools at a time: the slower one decides. Engines that do not go on while weights arrive
  // lose that time.
  void wait_for_samples(Seconds refit) {
    const RlJob& job = step_.job;
    RlOverlap overlap;
    overlap.generation = *generator_.steady;
    overlap.trainer = so_far();
    const Seconds pool =
        overlap.generation.time + (job.request.in_flight_updates ? Seconds{} : refit);
    overlap.engine = pool;
    if (pool > overlap.trainer)
      step_.phases.insert(step_.phases.begin(), {RlPhase::generation, pool - overlap.trainer, 0.0});
    const Seconds step = std::max(pool, overlap.trainer);
    const auto prompts = static_cast<double>(job.generated_prompts());
    // What is not under way waits in the buffer, up to the staleness that is allowed.
    const double waiting = overlap.trainer > pool ? prompts * (job.request.max_staleness + 1) -
                                                        static_cast<double>(job.prompts_in_flight)
                                                  : 0.0;
    overlap.mean_age = std::min(overlap.generation.prompt_time / step + waiting / prompts,
                                static_cast<double>(job.request.max_staleness));
    step_.overlap = overlap;
  }

  void check_memory() {
    const RlJob& job = step_.job;
    RlMemory& memory = step_.memory;
    memory.capacity = trainer_.training.memory.capacity;
    memory.training = trainer_.peak;
    memory.rollout = job.rollout.deployment.kv_share * memory.capacity;
    if (!job.colocated) return;
    memory.left_by_trainer =
        models() * ((job.frees_weights ? Bytes{} : trainer_.kept_weights) +
                    (job.frees_optimizer ? Bytes{} : trainer_.stage.optimizer));
    if (job.keeps_reference()) memory.left_by_trainer += trainer_.kept_weights;
    memory.rollout += memory.left_by_trainer;
    if (memory.rollout > memory.capacity)
      fail_infeasible(
          {"", "--rollout"},
          "the engine takes " + gigabytes_text(memory.rollout - memory.left_by_trainer) +
              " of each GPU and the trainer leaves " + gigabytes_text(memory.left_by_trainer) +
              " there, but a GPU has " + gigabytes_text(memory.capacity),
          "use a smaller kv_share, or free_weights and free_optimizer");
  }

  // The critic is as large as the policy.
  double models() const { return step_.job.critic ? 2.0 : 1.0; }

  // The policy's weights leave the GPU and come back; the reference's come in between.
  Seconds swapped() const {
    const RlFramework& framework = step_.job.framework;
    // Adapters beside frozen weights are left out for the reference.
    if (!framework.swaps_reference || !step_.job.training.plan.trains_weights()) return {};
    return 3.0 * trainer_.stage.weights / framework.host_copies;
  }

  // What leaves a GPU for the rollout and comes back before training: copies to and from pages that
  // are pinned run at the link's rate. The engine's own weights wait in such pages meanwhile.
  Seconds moved() const {
    const RlJob& job = step_.job;
    if (!job.colocated) return {};
    const Bytes pinned =
        generator_.weights + (job.frees_weights ? models() * trainer_.stage.weights : Bytes{});
    const Bytes pageable = job.frees_optimizer ? models() * trainer_.stage.optimizer : Bytes{};
    return 2.0 * (pinned / job.system.gpu.host + pageable / job.framework.host_copies);
  }

  const TrainerHalf& trainer_;
  const GeneratorHalf& generator_;
  RlStep step_;
};

}  // namespace

TrainerHalf trainer_half(const RlJob& job, EstimateContext& context, double most_memory) {
  const MemoryReport fullest = memory_of(job.fullest);
  need_training_memory(job, fullest, most_memory);
  const MemoryReport mean = memory_of(job.training);
  TrainerHalf half;
  half.stage = mean.stages[static_cast<std::size_t>(mean.fullest_stage())];
  half.kept_weights = kept_weights(job, half.stage);
  half.peak = std::max(fullest.peak(), peak_of_passes(job));
  if (job.keeps_reference()) half.peak += half.kept_weights;
  // A critic has the policy's size. Its weights stay in the GPU; its optimizer's state does, too,
  // unless it waits in the host while the policy is trained.
  if (job.critic)
    half.peak += half.kept_weights + (job.frees_optimizer ? Bytes{} : half.stage.optimizer);
  if (half.peak > most_memory * fullest.capacity)
    fail_infeasible({"", "--training"},
                    std::string{"the policy"} + (job.keeps_reference() ? ", a reference" : "") +
                        (job.critic ? " and a critic of its size" : "") + " need " +
                        gigabytes_text(half.peak) + " on each GPU, which has " +
                        gigabytes_text(fullest.capacity),
                    "use more GPUs, or larger tp, pp or zero");
  half.pass = forward_time(job.pass, context);
  half.training = estimate(job.training, context, {.most_memory = 1e9}).result;
  return half;
}

GeneratorHalf generator_half(const RlJob& job, std::shared_ptr<const ServingKernels> kernels) {
  ServingSetup setup = job.rollout;
  const int replicas = setup.deployment.replicas;
  const bool is_steady = job.is_asynchronous() && !job.whole_batches;
  if (is_steady) setup.deployment.replicas = replayed_replicas(replicas, job.prompts_in_flight);
  const double parts = static_cast<double>(replicas) / setup.deployment.replicas;
  const PricedServing rollout{std::move(setup), std::move(kernels)};
  GeneratorHalf half;
  half.weights = rollout.kv.memory.weights;
  const Place at{"--rollout", ""};
  if (is_steady) {
    half.steady = steady_rollout(rollout, job.generated, job.request.samples, job.prompts_in_flight,
                                 job.routing, at, parts);
    return half;
  }
  half.burst = replay_rollout(rollout, job.generated, job.request.samples, job.routing, at);
  if (job.is_asynchronous()) {
    half.steady = rollouts_in_turn(*half.burst, job.prompts_in_flight);
    half.burst.reset();
  }
  return half;
}

Seconds transfer_time(const Model& model, Dtype format, const WeightTransfer& way) {
  return way.time(tensors_of(model), bytes_of(model, format));
}

const std::string& phase_text(RlPhase phase) {
  static const std::vector<std::string> texts{"weights to the engine",
                                              "generation",
                                              "rewards",
                                              "log-probabilities",
                                              "reference",
                                              "values",
                                              "training",
                                              "critic",
                                              "copies to the host",
                                              "loop"};
  return texts[static_cast<std::size_t>(phase)];
}

Seconds RlStep::time_of(RlPhase phase) const {
  Seconds sum;
  for (const RlPhaseTime& one : phases)
    if (one.phase == phase) sum += one.time;
  return sum;
}

double RlStep::samples_per_s() const { return static_cast<double>(job.samples.size()) / time.si(); }

double RlStep::tokens_per_s_per_gpu() const {
  return static_cast<double>(job.statistics.tokens) / time.si() / job.gpus;
}

RlStep rl_step(const RlJob& job, const TrainerHalf& trainer, const GeneratorHalf& generator) {
  return StepMaker{job, trainer, generator}.make();
}

RlStep rl_step(const RlJob& job) {
  EstimateContext context{job.system};
  const TrainerHalf trainer = trainer_half(job, context);
  return rl_step(job, trainer, generator_half(job));
}

Seconds forward_time(const Scenario& scenario, EstimateContext& context) {
  assert(scenario.plan.vpp == 1 && scenario.plan.copies() == 1);
  Scenario forward = scenario;
  Plan& plan = forward.plan;
  plan.schedule = &gpipe();
  plan.ep_overlap = false;
  plan.recompute = {};
  plan.offload_layers = 0;
  plan.offload_modules = {};
  if (plan.zero < 3) plan.zero = 0;
  Detail detail;
  detail.most_memory = std::numeric_limits<double>::infinity();
  const Estimate step = estimate(forward, context, detail);
  Seconds end;
  for (int id = 0; id < step.step.graph.size(); ++id) {
    const TaskId task{id};
    if (step.step.graph.task(task).stream != Stream::compute) continue;
    if (step.step.label(task).what == Label::What::forward)
      end = std::max(end, Seconds{step.timeline.of(task).finish.seconds()});
  }
  return end;
}

}  // namespace orrery
