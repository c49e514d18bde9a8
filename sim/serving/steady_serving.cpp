#include "sim/serving/steady_serving.hpp"

#include <algorithm>
#include <cmath>

namespace orrery {
namespace {

class SteadyStep {
 public:
  SteadyStep(const ServingSetup& setup, const IterationPrices& prices)
      : setup_{setup}, prices_{prices} {}

  /// `batches`: those of a pipeline that take turns.
  Seconds operator()(double batches, double decodes, double context,
                     std::vector<PrefillChunk> chunks) const {
    const std::int64_t requests = std::llround(decodes);
    Iteration iteration;
    iteration.decodes = requests;
    iteration.context = std::llround(decodes * context);
    iteration.chunks = std::move(chunks);
    const auto prompts = static_cast<std::int64_t>(iteration.chunks.size());
    const std::int64_t drafted = requests * (setup_.deployment.step_tokens() - 1);
    const std::int64_t tokens = std::max<std::int64_t>(1, iteration.tokens() + drafted);
    const Seconds head = prices_.head(std::max<std::int64_t>(1, requests + drafted + prompts)) +
                         prices_.draft(requests);
    Seconds layers = prices_.dense(tokens) + prices_.decode_attention(requests, iteration.context) +
                     prices_.draft_attention(requests, iteration.context);
    for (const PrefillChunk& chunk : iteration.chunks) layers += prices_.prefill_attention(chunk);
    if (prompts > 0) layers += prices_.together(prompts, iteration.mean_chunk());
    Seconds gpu = layers + head;
    if (const int stages = setup_.deployment.pp; stages > 1) {
      const Seconds between =
          prices_.hop(tokens) + prices_.planning(std::llround(batches * decodes) + prompts);
      const Seconds longest =
          std::max(prices_.longest_stage() * layers, prices_.last_stage() * layers + head);
      gpu = std::max(gpu + static_cast<double>(stages) * between, batches * (longest + between));
    }
    gpu = std::max(gpu, prices_.eager(tokens, prompts > 0));
    const Seconds host = prices_.host(requests + prompts);
    return (hides_host(setup_.model, setup_.engine, setup_.deployment) ? std::max(gpu, host)
                                                                       : gpu + host) +
           prices_.gap(requests + prompts);
  }

 private:
  const ServingSetup& setup_;
  const IterationPrices& prices_;
};

}  // namespace

SteadyState steady_state(const PricedServing& priced, const SteadyLoad& load, const Place& at) {
  const ServingSetup& setup = priced.setup;
  const Deployment& plan = setup.deployment;
  need_length(plan, load.input + load.output, at);
  need_kv(setup.model, setup.system, plan, setup.engine, load.input + load.output, at);
  const KvCapacity& kv = priced.kv;
  const auto input = static_cast<double>(load.input), output = static_cast<double>(load.output);
  const double context = input + output / 2.0;
  const auto budget = static_cast<double>(plan.budget);
  const double ranks = static_cast<double>(plan.replicas) * plan.dp;
  const double slots = static_cast<double>(load.concurrency) / ranks;
  std::int64_t all = kv.requests(std::llround(context), plan.step_tokens());
  if (kv.windows.tokens > 0) all = std::min(all, kv.windows.tokens / kv.windows.of(load.input));
  const auto held = static_cast<double>(std::max<std::int64_t>(1, all));

  SteadyState state;
  const double admitted =
      std::min(slots, static_cast<double>(plan.pp * batch_limit(setup.engine, plan)));
  state.kv_bound = held < admitted;
  const double together = std::max(1.0, std::min(admitted, held));
  const double batches = std::min<double>(plan.pp, together);  // Each on another stage.
  const double running = together / batches;
  state.running = running * batches;

  const SteadyStep step{setup, priced.prices};
  state.decode_step = step(batches, running, context, {});
  // Tokens of prompts that each step's output tokens need.
  const double a_step = plan.speculation ? plan.speculation->a_step() : 1.0;
  const double prompt_tokens = a_step * running * input / output;
  if (plan.mixed) {
    const double wanted = input * std::clamp(running / output, 1.0, std::max(1.0, budget / input));
    const double chunk = std::max(1.0, std::min(wanted, budget - running));
    const Seconds mixed = step(batches, running, context, {{std::llround(chunk), 0}});
    state.tpot = state.decode_step + prompt_tokens / chunk * (mixed - state.decode_step);
  } else {
    const double prompts = std::clamp(std::floor(budget / input), 1.0, running);
    const auto count = static_cast<std::size_t>(std::max(1.0, prompts));
    const std::vector<PrefillChunk> chunks(count, {load.input, 0});
    state.tpot = state.decode_step + prompt_tokens / (static_cast<double>(count) * input) *
                                         step(batches, 0.0, 0.0, chunks);
  }
  state.tpot = state.tpot / a_step;
  state.output_tokens_per_s = ranks * state.running / state.tpot.si();
  return state;
}

}  // namespace orrery
