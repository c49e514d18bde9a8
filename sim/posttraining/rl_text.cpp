#include "sim/posttraining/rl_text.hpp"

#include <nlohmann/json.hpp>

#include "sim/core/number_text.hpp"
#include "sim/core/table.hpp"
#include "sim/serving/serving_json.hpp"
#include "sim/training/plan_heading.hpp"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

std::string seconds(Seconds time) { return fixed(time.si(), 1); }

std::string heading(const RlJob& job) {
  std::string text = job.model.name + " on " + plural(job.gpus, "GPU") + " of " + job.system.name +
                     ", " + name(job.request.algorithm) + ", " + job.framework.name + "\n";
  text += job.colocated ? "All GPUs generate and train by turns\n"
                        : plural(job.rollout_gpus, "GPU") + " generate, " +
                              std::to_string(job.train_gpus) + " train\n";
  const SampleStatistics& all = job.statistics;
  text += wrapped_words("",
                        grouped(job.request.prompts) + " prompts x " +
                            plural(job.request.samples, "sample") + ": answers of " +
                            fixed(all.mean_response, 0) + " tokens on average, the longest " +
                            grouped(all.longest_response) + ", " + percent(all.cut) + " cut at " +
                            grouped(job.max_response) + "; prompts of " + fixed(all.mean_prompt, 0),
                        text_columns);
  return text;
}

std::string plan_text(const RlJob& job) {
  const Deployment& rollout = job.rollout.deployment;
  return wrapped_words("Rollout   ",
                       job.rollout.engine.name + ", tp " + std::to_string(rollout.tp) +
                           (rollout.pp > 1 ? ", pp " + std::to_string(rollout.pp) : "") +
                           (rollout.dp > 1 ? ", dp " + std::to_string(rollout.dp) : "") +
                           (rollout.ep > 1 ? ", ep " + std::to_string(rollout.ep) : "") + ", " +
                           plural(rollout.replicas, "replica") + ", " + percent(rollout.kv_share) +
                           " of memory",
                       text_columns) +
         wrapped_words("Training  ",
                       job.training.software.name + ", " + brief_degrees(job.training.plan) + ", " +
                           plural(job.optimizer_steps, "optimizer step") + " of " +
                           grouped(job.batches.count) +
                           (job.batches.count > 1 ? " micro-batches" : " micro-batch") +
                           " a rank with " + grouped(job.training.plan.seq) + " tokens, " +
                           percent(job.batches.useful) + " of the work on samples",
                       text_columns);
}

std::string phases_text(const RlStep& step) {
  Table table{{{"phase", Align::left}, {"seconds"}, {"share"}, {"busy"}}};
  for (const RlPhaseTime& phase : step.phases)
    table.add_row({phase_text(phase.phase), seconds(phase.time), percent(phase.time / step.time),
                   phase.busy > 0.0 ? percent(phase.busy) : ""});
  table.add_row({"step", seconds(step.time)});
  return table.text();
}

std::string memory_text(const RlStep& step) {
  const RlMemory& memory = step.memory;
  return wrapped_words(
      "",
      "Memory of a GPU with " + gigabytes_text(memory.capacity) + ": training " +
          gigabytes_text(memory.training) + ", rollout " + gigabytes_text(memory.rollout) +
          (memory.left_by_trainer > Bytes{}
               ? " (of which the trainer leaves " + gigabytes_text(memory.left_by_trainer) + ")"
               : "") +
          (step.overlap ? ""
                        : "; a KV cache of " + grouped(step.rollout.run.kv.tokens) + " tokens, " +
                              percent(step.rollout.run.replay.counts.totals.kv_peak) +
                              " of it in use at the peak"),
      text_columns);
}

}  // namespace

std::string rl_step_text(const RlStep& step) {
  const RlJob& job = step.job;
  std::string text = heading(job) + plan_text(job) + "\n" + phases_text(step) + "\n";
  text += fixed(step.samples_per_s(), 2) + " samples a second, " +
          fixed(step.tokens_per_s_per_gpu(), 0) +
          " tokens a second and GPU (prompts and answers)\n";
  if (step.overlap) {
    const RlOverlap& both = *step.overlap;
    text += wrapped_words(
        "",
        "The pools need " + seconds(both.generation.time) + " s to generate and " +
            seconds(both.trainer) + " s to train a step: the " +
            (both.generation.time > both.trainer ? "trainer waits" : "engine waits") + ". " +
            fixed(both.generation.running, 0) + " samples run at a time, of " +
            fixed(both.generation.prompts_in_flight, 0) + " prompts under way; answers are " +
            fixed(both.mean_age, 1) + " steps old on average",
        text_columns);
    return text + memory_text(step);
  }
  text += wrapped_words("",
                        "Half of the answers have ended after " + seconds(step.rollout.half) +
                            " s of the rollout, nine tenths after " +
                            seconds(step.rollout.nine_tenths) + " s: the last tenth takes " +
                            percent(step.rollout.tail()) + " of it",
                        text_columns);
  return text + memory_text(step);
}

std::string rl_step_json(const RlStep& step) {
  const RlJob& job = step.job;
  Json phases = Json::array();
  for (const RlPhaseTime& phase : step.phases)
    phases.push_back({{"phase", name(phase.phase)},
                      {"seconds", rounded(phase.time.si())},
                      {"busy_share", rounded(phase.busy)}});
  const SampleStatistics& all = job.statistics;
  Json json{{"schema", "orrery.post-result/1"},
            {"model", job.model.name},
            {"system", job.system.name},
            {"gpus", job.gpus},
            {"framework", job.framework.name},
            {"algorithm", name(job.request.algorithm)},
            {"placement", job.colocated ? "colocated" : "disaggregated"},
            {"train_gpus", job.train_gpus},
            {"rollout_gpus", job.rollout_gpus},
            {"step_s", rounded(step.time.si())},
            {"samples_per_s", rounded(step.samples_per_s())},
            {"tokens_per_s_per_gpu", rounded(step.tokens_per_s_per_gpu())},
            {"phases", phases},
            {"samples",
             {{"count", job.samples.size()},
              {"prompt_mean", rounded(all.mean_prompt)},
              {"response_mean", rounded(all.mean_response)},
              {"response_longest", all.longest_response},
              {"cut_share", rounded(all.cut)}}},
            {"rollout",
             {{"engine", job.rollout.engine.name},
              {"half_ended_s", rounded(step.rollout.half.si())},
              {"nine_tenths_ended_s", rounded(step.rollout.nine_tenths.si())},
              {"tail_share", rounded(step.rollout.tail())},
              {"preemptions", step.rollout.run.replay.counts.totals.preemptions},
              {"kv_peak_share", rounded(step.rollout.run.replay.counts.totals.kv_peak)},
              {"deployment", deployment_json(job.rollout.deployment, job.model)}}},
            {"training",
             {{"optimizer_steps", job.optimizer_steps},
              {"micro_batches", job.batches.count},
              {"micro_batch_tokens", job.training.plan.seq},
              {"useful_share", rounded(job.batches.useful)},
              {"optimizer_step_s", rounded(step.training.step_time.si())}}},
            {"memory",
             {{"capacity_bytes", whole(step.memory.capacity)},
              {"training_bytes", whole(step.memory.training)},
              {"rollout_bytes", whole(step.memory.rollout)},
              {"left_by_trainer_bytes", whole(step.memory.left_by_trainer)}}},
            {"weights_bytes", whole(step.weights)}};
  if (step.overlap) {
    const RlOverlap& both = *step.overlap;
    json["overlap"] = {{"generation_s", rounded(both.generation.time.si())},
                       {"trainer_s", rounded(both.trainer.si())},
                       {"prompts_in_flight", rounded(both.generation.prompts_in_flight)},
                       {"running_samples", rounded(both.generation.running)},
                       {"slots_full", both.generation.slots_full},
                       {"mean_age_steps", rounded(both.mean_age)}};
  }
  return json.dump(2) + "\n";
}

}  // namespace orrery
