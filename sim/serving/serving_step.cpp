#include "sim/serving/serving_step.hpp"

#include <cmath>
#include <utility>

#include "sim/core/number_text.hpp"

namespace orrery {
namespace {

// Blocks that the requests of an iteration hold. Decodes have contexts of their mean.
std::int64_t held_blocks(const Iteration& iteration, const KvCapacity& kv, int step_tokens) {
  std::int64_t held = 0;
  if (iteration.decodes > 0) {
    const std::int64_t mean = iteration.context / iteration.decodes;
    const std::int64_t longer = iteration.context % iteration.decodes;
    held = longer * kv.blocks_of(mean + 1, step_tokens) +
           (iteration.decodes - longer) * kv.blocks_of(mean, step_tokens);
  }
  for (const PrefillChunk& chunk : iteration.chunks)
    held += kv.blocks_of(chunk.tokens + chunk.cached, chunk.tokens);
  return held;
}

// An iteration's own requests must fit: the longest one, and all together.
void need_memory(const ServingSetup& setup, const Iteration& iteration, const KvCapacity& kv,
                 const Place& at) {
  const Deployment& plan = setup.deployment;
  const std::int64_t longest = longest_of(iteration);
  const std::int64_t requests =
      iteration.decodes + static_cast<std::int64_t>(iteration.chunks.size());
  const auto suffices = [&](const KvCapacity& other) {
    return held_blocks(iteration, other, plan.step_tokens()) <= other.blocks() &&
           (other.state_slots == 0 || requests <= other.state_slots);
  };
  need_length(plan, longest, at);
  need_kv(setup.model, setup.system, plan, setup.engine, longest, at, suffices);
  if (suffices(kv)) return;
  if (kv.state_slots > 0 && requests > kv.state_slots)
    fail_infeasible(at / "step",
                    "the pool holds the states of " + plural(kv.state_slots, "request") +
                        ", and the iteration has " + grouped(requests),
                    plan.state_ratio > 0.0
                        ? "use fewer requests, a larger --state_ratio, or more GPUs a replica"
                        : "use fewer requests, or --max_seqs " + grouped(requests));
  const std::int64_t missing = held_blocks(iteration, kv, plan.step_tokens()) - kv.blocks();
  const std::string change =
      kv_remedy(setup.model, setup.system, plan, setup.engine, longest, at, suffices);
  fail_infeasible(at / "step",
                  "the KV cache holds " + grouped(kv.tokens) + " tokens, " +
                      grouped(missing * kv.block / kv.groups.all()) +
                      " fewer than this iteration's",
                  "use fewer or shorter requests; " +
                      (change.empty() ? "more GPUs a replica hold more" : change));
}

// Batches take turns in a pipeline: with each of its stages busy, one takes times.decode().
double decode_rate(const PricedServing& priced, const Iteration& iteration, Seconds alone) {
  const Deployment& plan = priced.setup.deployment;
  const Seconds each =
      plan.pp == 1 ? alone : priced.times.decode(iteration.decodes, iteration.context).first;
  const double batches = static_cast<double>(plan.replicas) * plan.dp * plan.pp;
  const double tokens = plan.speculation ? plan.speculation->a_step() : 1.0;
  return batches * tokens * static_cast<double>(iteration.decodes) / each.si();
}

}  // namespace

std::int64_t longest_of(const Iteration& iteration) {
  std::int64_t longest =
      iteration.decodes > 0 ? (iteration.context + iteration.decodes - 1) / iteration.decodes : 1;
  for (const PrefillChunk& chunk : iteration.chunks)
    longest = std::max(longest, chunk.tokens + chunk.cached);
  return longest;
}

ServingSetup make_serving_setup(const std::string& model, const std::string& system,
                                const std::string& engine, const DeploymentRequest& request,
                                int gpus, const Place& at) {
  return make_serving_setup(read_model(model, at / "model"), system, engine, request, gpus, at);
}

ServingSetup make_serving_setup(const Model& model, const std::string& system,
                                const std::string& engine, const DeploymentRequest& request,
                                int gpus, const Place& at) {
  ServingSetup setup{
      model, read_system(system, at / "system"), read_serving_engine(engine, at / "engine"), {}};
  setup.deployment = make_deployment(setup.model, setup.system, setup.engine, request, gpus, at);
  return setup;
}

std::vector<std::string> batch_notes(const ServingSetup& setup, const Iteration& iteration) {
  const Deployment& plan = setup.deployment;
  std::vector<std::string> notes;
  if (const std::int64_t most = batch_limit(setup.engine, plan); iteration.decodes > most)
    notes.push_back(plural(iteration.decodes, "decode") + " are more than the " + grouped(most) +
                    " requests of an iteration (max_seqs): the engine would take turns");
  if (iteration.tokens() > plan.budget)
    notes.push_back(plural(iteration.tokens(), "token") + " are more than the " +
                    grouped(plan.budget) +
                    " of an iteration (budget): the engine would take turns");
  return notes;
}

ServingStep serving_step(const ServingSetup& setup, const Iteration& iteration, const Place& at) {
  const PricedServing priced{setup};
  need_memory(setup, iteration, priced.kv, at);
  ServingStep step{setup, iteration, priced.prices.price(iteration), priced.kv, 0.0, {}, {}};
  step.measured_gpu = priced.prices.kernels().measured_gpu();
  step.tables = priced.prices.kernels().used();
  if (iteration.chunks.empty()) step.tokens_per_s = decode_rate(priced, iteration, step.price.step);
  return step;
}

namespace {

std::int64_t whole(double value) { return std::llround(value); }

}  // namespace

StepCosts step_costs(const IterationPrices& prices, const ServingSetup& setup) {
  StepCosts costs;
  costs.dense = [&](double tokens) { return prices.dense(whole(tokens)); };
  if (setup.model.experts && setup.deployment.dp > 1)
    costs.shared = [&](double tokens) {
      Seconds time;
      for (const IterationPart& part : prices.price({0, 0, {{whole(tokens), 0}}, 0}).parts)
        if (part.op == "experts") time += part.time;
      return time;
    };
  costs.decode_attention = [&](double requests, double context) {
    return prices.decode_attention(whole(requests), whole(context)) +
           prices.draft_attention(whole(requests), whole(context));
  };
  if (setup.deployment.speculation) {
    costs.step_tokens = setup.deployment.step_tokens();
    costs.progress = setup.deployment.speculation->a_step();
    costs.draft = [&](double requests) { return prices.draft(whole(requests)); };
  }
  costs.prefill_attention = [&](double tokens, double cached) {
    return prices.prefill_attention({whole(tokens), whole(cached)});
  };
  if (has_joint_prompts(setup.model))
    costs.together = [&](double prompts, double tokens, double cached) {
      return prices.together(whole(prompts), {whole(tokens), whole(cached)});
    };
  costs.head = [&](double rows) { return prices.head(whole(rows)); };
  costs.host = [&](double requests) { return prices.host(whole(requests)); };
  costs.gap = [&](double requests) { return prices.gap(whole(requests)); };
  costs.launch = [&](double tokens, bool prompts) { return prices.eager(whole(tokens), prompts); };
  if (!setup.deployment.graph_sizes.empty())
    costs.padded = [&](std::int64_t requests) { return setup.deployment.padded(requests); };
  costs.host_hidden = hides_host(setup.model, setup.engine, setup.deployment);
  costs.stages = setup.deployment.pp;
  costs.longest_stage = prices.longest_stage();
  costs.last_stage = prices.last_stage();
  costs.planning = [&](double requests) { return prices.planning(whole(requests)); };
  costs.hop = [&](double tokens) { return prices.hop(whole(tokens)); };
  return costs;
}

PricedServing::PricedServing(ServingSetup of, std::shared_ptr<const ServingKernels> kernels)
    : setup{std::move(of)},
      kv{kv_capacity(setup.model, setup.system, setup.deployment, setup.engine)},
      prices{setup.model, setup.system, setup.deployment, setup.engine, std::move(kernels)},
      times{step_costs(prices, setup)} {}

}  // namespace orrery
