#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/field.hpp"
#include "sim/plan/plan.hpp"
#include "sim/plan/scenario.hpp"
#include "sim/posttraining/rl_framework.hpp"
#include "sim/posttraining/rl_samples.hpp"
#include "sim/serving/serving_step.hpp"

namespace orrery {

/// Ways to train a policy on its own answers.
enum class RlAlgorithm {
  grpo,  ///< Rewards of a prompt's samples compared with each other (arXiv 2402.03300).
  dapo,  ///< The same without a reference model (arXiv 2503.14476).
  ppo    ///< With a critic of the policy's size (arXiv 2203.02155).
};
template <>
inline const std::vector<std::string> enum_words<RlAlgorithm>{"grpo", "dapo", "ppo"};

/// What a job says of its loop; make_rl_job() has defaults for the rest.
struct RlRequest {
  /// Of answers of which a mean and a limit are known alone. The coefficient of variation, 0.8, is
  /// assumed: in the middle of what lengths of single steps have shown (0.5 to 1.1).
  static constexpr double usual_sigma = 0.7;

  RlAlgorithm algorithm = RlAlgorithm::grpo;
  std::int64_t prompts = 0, samples = 1;    ///< Prompts of a step, and samples of each.
  std::optional<std::int64_t> train_batch;  ///< Samples of an optimizer step; else all.
  std::int64_t epochs = 1;                  ///< Times that each sample is trained on.
  std::optional<LengthDistribution> prompt_length, response_length;
  std::optional<double> mean_response;  ///< In place of response_length.
  std::vector<Sample> lengths;          ///< Of a file, in place of both distributions.
  std::optional<std::int64_t> max_response, max_sample;
  std::optional<std::int64_t> train_tokens, pass_tokens;  ///< Of a micro-batch.
  std::optional<std::int64_t> micro_samples, pass_samples;
  std::optional<SamplePacking> packing;
  std::optional<SampleRouting> routing;
  std::optional<bool> async_engine, reference, old_logprobs;
  std::optional<bool> free_weights, free_optimizer;  ///< They leave the GPUs for a rollout.
  Seconds reward;                                    ///< Time of all rewards of a step.
  double oversampling = 1.0;        ///< Samples generated for each that is trained on.
  std::optional<int> rollout_gpus;  ///< GPUs of their own that generate; else all do both.
  /// Steps that the weights which began an answer may be behind those that train on it; 0: a step
  /// trains on answers of its own weights.
  int max_staleness = 0;
  std::optional<bool> whole_batches;              ///< See RlFramework.
  bool in_flight_updates = false;                 ///< Answers go on while new weights arrive.
  std::optional<std::int64_t> prompts_in_flight;  ///< Prompts that are answered at a time.
  std::optional<std::string> engine, transfer;
  std::uint64_t seed = 1;
  PlanRequest training;
  std::vector<std::string> training_keys;  ///< Those of `training` that are said.
  DeploymentRequest rollout;

  bool says(const std::string& key) const {
    return std::find(training_keys.begin(), training_keys.end(), key) != training_keys.end();
  }
};

/// Keys of a job, for options and files; `training` and `rollout` have keys of their own.
const std::vector<Field<RlRequest>>& rl_keys();

/// Reads the keys of an object of schema orrery.post/1 on top of `request`: those of rl_keys(),
/// "training" (keys of a plan) and "rollout" (keys of a deployment). `others`: keys that the caller
/// reads. Errors (bad_input): unknown keys, wrong values.
void read_rl_request(RlRequest& request, const JsonValue& json, std::vector<std::string> others);
/// The same without the schema, of an object within a file.
void read_rl_keys(RlRequest& request, const JsonValue& json, std::vector<std::string> others);
/// Reads "tp=4,pp=2", keys of the training plan. Errors likewise.
void parse_training_keys(const std::string& text, RlRequest& request, const Place& at);

/// The way that weights take: the request's, else the framework's. Errors (bad_input): unknown.
WeightTransfer transfer_of(const RlFramework& framework, const RlRequest& request, const Place& at);

/// A complete, checked job: what remains to be found out is whether it fits in memory.
struct RlJob {
  Model model;
  System system;
  RlFramework framework;
  RlRequest request;
  ServingSetup rollout;
  SampleRouting routing = SampleRouting::groups;
  WeightTransfer transfer;
  /// Plans of an optimizer step and of a pass for log-probabilities, each of the micro-batches that
  /// others wait for; and those of the largest micro-batches, for memory.
  Scenario training, pass, fullest, fullest_pass;
  MicroBatches batches, pass_batches;
  std::vector<Sample> samples;    ///< That are trained on.
  std::vector<Sample> generated;  ///< The same, or more with oversampling.
  SampleStatistics statistics;
  std::int64_t max_response = 0;
  std::int64_t optimizer_steps = 1;
  std::int64_t prompts_in_flight = 0;  ///< 0: a synchronous loop.
  bool whole_batches = false;          ///< An asynchronous loop generates batch by batch.
  bool colocated = true, reference = false, old_logprobs = true, critic = false;
  bool frees_weights = false, frees_optimizer = false;
  int gpus = 0, train_gpus = 0, rollout_gpus = 0;

  /// Prompts that a step generates answers to.
  std::int64_t generated_prompts() const { return std::ssize(generated) / request.samples; }
  /// A reference's weights stay in the GPUs of the trainer beside those of the policy.
  bool keeps_reference() const { return reference && framework.reference_stays && !frees_weights; }
  bool is_asynchronous() const { return request.max_staleness > 0; }
};

/// Fills in what is left open and checks it. `gpus`: all. `like`: another job with the same
/// lengths, whose samples are taken instead of drawing them again; null: they are drawn.
/// Errors: bad_input, a request contradicts itself or lacks a key; infeasible, its numbers do not
/// divide; those of make_scenario() and make_deployment().
RlJob make_rl_job(const Model& model, const System& system, const RlFramework& framework,
                  const RlRequest& request, int gpus, const Place& at, const RlJob* like = nullptr);

/// The same without its trainer, of which nothing is planned: for a rollout alone.
RlJob make_rl_generator(const Model& model, const System& system, const RlFramework& framework,
                        const RlRequest& request, int gpus, const Place& at,
                        const RlJob* like = nullptr);

}  // namespace orrery
