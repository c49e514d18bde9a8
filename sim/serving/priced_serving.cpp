#include "sim/serving/priced_serving.hpp"

#include <cmath>
#include <utility>

namespace orrery {
namespace {

std::int64_t whole(double value) { return std::llround(value); }

}  // namespace

StepLaw step_law(const IterationPrices& prices, const ServingSetup& setup) {
  StepLaw law;
  law.dense = [&](double tokens) { return prices.dense(whole(tokens)); };
  if (setup.model.experts && setup.deployment.dp > 1)
    law.shared = [&](double tokens) {
      Seconds time;
      for (const IterationPart& part : prices.price({0, 0, {{whole(tokens), 0}}, 0}).parts)
        if (part.op == "experts") time += part.time;
      return time;
    };
  law.decode_attention = [&](double requests, double context) {
    return prices.decode_attention(whole(requests), whole(context)) +
           prices.draft_attention(whole(requests), whole(context));
  };
  if (setup.deployment.speculation) {
    law.step_tokens = setup.deployment.step_tokens();
    law.progress = setup.deployment.speculation->a_step();
    law.draft = [&](double requests) { return prices.draft(whole(requests)); };
  }
  law.prefill_attention = [&](double tokens, double cached) {
    return prices.prefill_attention({whole(tokens), whole(cached)});
  };
  law.head = [&](double rows) { return prices.head(whole(rows)); };
  law.host = [&](double requests) { return prices.host(whole(requests)); };
  law.gap = [&](double requests) { return prices.gap(whole(requests)); };
  law.launch = [&](double tokens) { return prices.eager(whole(tokens)); };
  law.host_hidden = hides_host(setup.model, setup.engine, setup.deployment);
  law.stages = setup.deployment.pp;
  law.longest_stage = prices.longest_stage();
  law.last_stage = prices.last_stage();
  law.planning = [&](double requests) { return prices.planning(whole(requests)); };
  law.hop = [&](double tokens) { return prices.hop(whole(tokens)); };
  return law;
}

PricedServing::PricedServing(ServingSetup of, std::shared_ptr<const ServingKernels> kernels)
    : setup{std::move(of)},
      kv{kv_capacity(setup.model, setup.system, setup.deployment, setup.engine)},
      prices{setup.model, setup.system, setup.deployment, setup.engine, std::move(kernels)},
      times{step_law(prices, setup)} {}

}  // namespace orrery
