#include "sim/posttraining/rl_step.hpp"

#include <algorithm>

#include "sim/core/number_text.hpp"
#include "sim/core/value_list.hpp"
#include "sim/layers/memory.hpp"
#include "sim/model/layer_pattern.hpp"
#include "sim/model/model.hpp"
#include "sim/posttraining/forward_pass.hpp"
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

// "use --recompute full" as a key of the option that holds the plan.
std::string as_training_keys(const std::string& remedy) {
  std::string text;
  for (const std::string& word : words_in(remedy)) {
    if (word.starts_with("--"))
      text += (text.empty() ? "" : " ") + word.substr(2);
    else if (word == "use")
      text += "use";
    else
      text += "=" + word;
  }
  return text + " in the training plan";
}

class StepMaker {
 public:
  StepMaker(const RlJob& job, EstimateContext& context, const PricedServing& rollout)
      : context_{context}, rollout_{rollout} {
    step_.job = job;
  }

  RlStep make() {
    check_memory();
    const RlJob& job = step_.job;
    const Dtype format = rollout_.setup.deployment.weights;
    step_.weights = bytes_of(job.model, format);
    const Seconds refit = transfer_time(job.model, format, job.transfer);
    if (!job.is_asynchronous()) {
      add(RlPhase::refit, refit);
      generate();
    }
    if (job.request.reward > Seconds{}) add(RlPhase::reward, job.request.reward, 0.0);
    const Seconds pass = forward_time(job.pass, context_);
    if (job.old_logprobs) add(RlPhase::old_logprobs, pass);
    if (job.reference) add(RlPhase::reference, pass + swapped());
    if (job.critic) add(RlPhase::values, pass);
    train();
    add(RlPhase::moves, moved(), 0.0);
    const Seconds sum = so_far();
    add(RlPhase::loop, job.framework.loop + job.framework.loop_share * sum, 0.0);
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
    overlap.generation = steady_rollout(rollout_, job.generated, job.request.samples,
                                        job.prompts_in_flight, {"", ""});
    overlap.trainer = so_far();
    const Seconds pool =
        overlap.generation.time + (job.request.in_flight_updates ? Seconds{} : refit);
    if (pool > overlap.trainer)
      step_.phases.insert(step_.phases.begin(), {RlPhase::generation, pool - overlap.trainer, 0.0});
    const Seconds step = std::max(pool, overlap.trainer);
    const auto prompts = static_cast<double>(job.request.prompts);
    // What is not under way waits in the buffer, up to the staleness that is allowed.
    const double waiting = overlap.trainer > pool
                               ? prompts * (job.request.max_staleness + 1) - job.prompts_in_flight
                               : 0.0;
    overlap.mean_age = (overlap.generation.prompt_time / step) + waiting / prompts;
    overlap.mean_age =
        std::min(overlap.mean_age, static_cast<double>(job.request.max_staleness) + 1.0);
    step_.overlap = overlap;
  }

  void check_memory() {
    const RlJob& job = step_.job;
    const MemoryReport training = memory_of(job.fullest);
    const StageMemory& stage = training.stages[static_cast<std::size_t>(training.fullest_stage())];
    RlMemory& memory = step_.memory;
    memory.capacity = training.capacity;
    memory.training = training.peak();
    if (!training.fits()) {
      const std::string remedy = nearest_fit(job.fullest);
      fail_infeasible({"", "--training"}, shortfall_text(training),
                      remedy.empty() ? "use more GPUs, or smaller micro-batches (train_tokens)"
                                     : as_training_keys(remedy));
    }
    if (!job.colocated) {
      memory.rollout = rollout_.setup.deployment.kv_share * memory.capacity;
      return;
    }
    memory.left_by_trainer = (job.frees_weights ? Bytes{} : stage.weights) +
                             (job.frees_optimizer ? Bytes{} : stage.optimizer);
    memory.rollout = rollout_.setup.deployment.kv_share * memory.capacity + memory.left_by_trainer;
    if (memory.rollout > memory.capacity)
      fail_infeasible(
          {"", "--rollout"},
          "the engine takes " + gigabytes_text(memory.rollout - memory.left_by_trainer) +
              " of each GPU and the trainer leaves " + gigabytes_text(memory.left_by_trainer) +
              " there, but a GPU has " + gigabytes_text(memory.capacity),
          "use a smaller kv_share, or free_weights and free_optimizer");
  }

  void generate() {
    const RlJob& job = step_.job;
    step_.rollout =
        replay_rollout(rollout_, job.generated, job.request.samples, job.routing, {"", ""});
    add(RlPhase::generation, step_.rollout.time, step_.rollout.busy);
  }

  void train() {
    const RlJob& job = step_.job;
    step_.training = estimate(job.training, context_, {.most_memory = 1e9}).result;
    const Seconds all = static_cast<double>(job.optimizer_steps) *
                        (step_.training.step_time + job.framework.optimizer_step);
    add(RlPhase::training, all);
    if (job.critic) add(RlPhase::critic, all);
  }

  StageMemory fullest() const {
    const MemoryReport training = memory_of(step_.job.training);
    return training.stages[static_cast<std::size_t>(training.fullest_stage())];
  }

  // The policy's weights leave the GPU and come back; the reference's come in between.
  Seconds swapped() const {
    const RlFramework& framework = step_.job.framework;
    return framework.swaps_reference ? 3.0 * fullest().weights / framework.host_copies : Seconds{};
  }

  // What leaves a GPU for the rollout and comes back before training: copies to and from pages that
  // are pinned run at the link's rate. The engine's own weights wait in such pages meanwhile.
  Seconds moved() const {
    const RlJob& job = step_.job;
    if (!job.colocated) return {};
    const StageMemory stage = fullest();
    const Bytes pinned = rollout_.kv.memory.weights + (job.frees_weights ? stage.weights : Bytes{});
    return 2.0 * (pinned / job.system.gpu.host +
                  (job.frees_optimizer ? stage.optimizer : Bytes{}) / job.framework.host_copies);
  }

  EstimateContext& context_;
  const PricedServing& rollout_;
  RlStep step_;
};

}  // namespace

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

RlStep rl_step(const RlJob& job, EstimateContext& context, const PricedServing& rollout) {
  return StepMaker{job, context, rollout}.make();
}

RlStep rl_step(const RlJob& job) {
  EstimateContext context{job.system};
  const PricedServing rollout{job.rollout};
  return rl_step(job, context, rollout);
}

}  // namespace orrery
