#include "sim/serving/serving_step.hpp"

#include "sim/core/number_text.hpp"
#include "sim/serving/priced_serving.hpp"

namespace orrery {
namespace {

// An iteration's own requests must fit, or it could not run: the longest one by its kind, and all
// together.
void need_memory(const ServingSetup& setup, const Iteration& iteration, const KvCapacity& kv,
                 const Place& at) {
  std::int64_t held = iteration.context;
  std::int64_t longest =
      iteration.decodes > 0 ? (iteration.context + iteration.decodes - 1) / iteration.decodes : 1;
  for (const PrefillChunk& chunk : iteration.chunks) {
    held += chunk.tokens + chunk.cached;
    longest = std::max(longest, chunk.tokens + chunk.cached);
  }
  need_kv(setup.model, setup.system, setup.deployment, setup.engine, longest, at);
  if (held > kv.tokens)
    fail_infeasible(at / "step",
                    "the KV cache holds " + grouped(kv.tokens) + " tokens, " +
                        grouped(held - kv.tokens) + " fewer than this iteration's",
                    "use fewer or shorter requests, --kv fp8, or more GPUs a replica");
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

ServingStep serving_step(const ServingSetup& setup, const Iteration& iteration, const Place& at) {
  const PricedServing priced{setup};
  need_memory(setup, iteration, priced.kv, at);
  ServingStep step{setup, iteration, priced.prices.price(iteration), priced.kv, 0.0, {}, {}};
  step.measured_gpu = priced.prices.kernels().measured_gpu();
  step.tables = priced.prices.kernels().used();
  if (iteration.chunks.empty()) step.tokens_per_s = decode_rate(priced, iteration, step.price.step);
  return step;
}

}  // namespace orrery
