#include "sim/analysis/serve/serving_step.hpp"

#include "sim/base/text/number_text.hpp"

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

}  // namespace

ServingSetup make_serving_setup(const std::string& model, const std::string& system,
                                const std::string& engine, const DeploymentRequest& request,
                                int gpus, const Place& at) {
  ServingSetup setup{read_model(model, at / "model"),
                     read_system(system, at / "system"),
                     read_serving_engine(engine, at / "engine"),
                     {}};
  setup.deployment = make_deployment(setup.model, setup.system, setup.engine, request, gpus, at);
  return setup;
}

ServingStep serving_step(const ServingSetup& setup, const Iteration& iteration, const Place& at) {
  const KvCapacity kv = kv_capacity(setup.model, setup.system, setup.deployment, setup.engine);
  need_memory(setup, iteration, kv, at);
  const IterationPrices prices{setup.model, setup.system, setup.deployment, setup.engine};
  ServingStep step{setup, iteration, prices.price(iteration), kv, {}, {}};
  step.measured_gpu = prices.kernels().measured_gpu();
  step.tables = prices.kernels().used();
  return step;
}

}  // namespace orrery
