#include "sim/analysis/serve/serving_run.hpp"

#include <algorithm>
#include <cmath>

namespace orrery {
namespace {

std::int64_t whole(double value) { return std::llround(value); }

Scheduling scheduling_of(SchedulerKind kind) {
  switch (kind) {
    case SchedulerKind::vllm:
      return Scheduling::vllm;
    case SchedulerKind::sglang:
      return Scheduling::sglang;
    case SchedulerKind::trtllm:
      return Scheduling::trtllm;
    case SchedulerKind::static_batch:
      break;
  }
  return Scheduling::static_batches;
}

// Copies of attention meet at the experts; without experts they are replicas. TensorRT-LLM is taken
// to give all of them prompts in the same iterations, so that one copy is like the next:
// AttentionDpConfig.enable_balance (tensorrt_llm/llmapi/llm_args.py), which is off unless set, as
// it is in all of InferenceX's scripts (benchmarks/single_node/fixed_seq_len/*_trt.sh). Batches
// that take turns in a pipeline are not held together.
bool goes_in_step(const ServingSetup& setup) {
  return setup.model.experts && setup.deployment.dp > 1 && setup.deployment.pp == 1 &&
         setup.engine.scheduler != SchedulerKind::trtllm;
}

// Of a batch of one copy of attention: those of a pipeline share its memory and its requests.
ReplicaShape replica_shape(const ServingSetup& setup, const ServingLoad& load,
                           const KvCapacity& kv) {
  const Deployment& plan = setup.deployment;
  ReplicaShape shape;
  shape.rules.scheduling = scheduling_of(setup.engine.scheduler);
  shape.rules.budget = plan.budget;
  shape.rules.most_requests = std::max<std::int64_t>(1, plan.max_seqs / plan.pp);
  shape.rules.chunked = plan.chunked;
  shape.kv = {kv.tokens / plan.pp, plan.block, load.prefix_cache};
  if (load.over_network) shape.client = setup.engine.client;
  if (load.slo) shape.slo = *load.slo;
  shape.unfolded = load.unfolded;
  shape.stages = plan.pp;
  shape.copies = goes_in_step(setup) ? plan.dp : 1;
  shape.first_counted = load.first_counted;
  return shape;
}

double per_second(double amount, Seconds span) {
  return span > Seconds{} ? amount / span.si() : 0.0;
}

}  // namespace

StepLaw step_law(const IterationPrices& prices, const ServingSetup& setup) {
  StepLaw law;
  law.dense = [&](double tokens) { return prices.dense(whole(tokens)); };
  if (setup.model.experts && setup.deployment.dp > 1)
    law.shared = [&](double tokens) {
      Seconds time;
      for (const IterationPart& part : prices.price({0, 0, {{whole(tokens), 0}}, 0}).parts)
        if (part.op == "experts" || part.op == "exchange") time += part.time;
      return time;
    };
  law.decode_attention = [&](double requests, double context) {
    return prices.decode_attention(whole(requests), whole(context));
  };
  law.prefill_attention = [&](double tokens, double cached) {
    return prices.prefill_attention({whole(tokens), whole(cached)});
  };
  law.head = [&](double rows) { return prices.head(whole(rows)); };
  law.host = [&](double requests) { return prices.host(whole(requests)); };
  law.gap = [&](double requests) { return prices.gap(whole(requests)); };
  law.launch = [&](double tokens) { return prices.eager(whole(tokens)); };
  law.host_hidden = setup.engine.host.hidden;
  law.stages = setup.deployment.pp;
  law.longest_stage = prices.longest_stage();
  law.hop = [&](double tokens) { return prices.hop(whole(tokens)); };
  return law;
}

ServingRun serve_requests(const ServingSetup& setup, const ServingLoad& load, const Place& at) {
  ServingRun run{setup, kv_capacity(setup.model, setup.system, setup.deployment, setup.engine), {}};
  const Deployment& plan = setup.deployment;
  std::int64_t longest = 1;
  for (const Request& request : load.list.requests)
    longest = std::max<std::int64_t>(longest,
                                     std::int64_t{request.prompt_tokens} + request.output_tokens);
  need_kv(setup.model, setup.system, plan, setup.engine, longest, at);
  ReplayShape shape;
  shape.replica = replica_shape(setup, load, run.kv);
  refuse_what_never_fits(load.list, shape.replica.kv, at);
  shape.replicas = static_cast<std::uint32_t>(plan.replicas * plan.dp * plan.pp);
  shape.routing = load.routing;
  shape.clients = load.clients;
  shape.seed = load.seed;
  shape.workers = load.workers;
  shape.keeps_times = load.keeps_times;
  const IterationPrices prices{setup.model, setup.system, setup.deployment, setup.engine};
  run.replay = replay_requests(load.list, shape, step_law(prices, setup));
  const std::vector<Request>& requests = load.list.requests;
  run.open = load.clients == 0 && requests.front().arrival < requests.back().arrival;
  run.saturated = run.open && run.replay.counts.saturated();
  return run;
}

Seconds ServingRun::span() const {
  const ReplayTotals& totals = replay.counts.totals;
  return totals.end - totals.first_arrival;
}

double ServingRun::requests_per_s() const {
  return per_second(static_cast<double>(replay.counts.totals.finished), span());
}

double ServingRun::output_tokens_per_s() const {
  return per_second(static_cast<double>(replay.counts.totals.output_tokens), span());
}

double ServingRun::total_tokens_per_s() const {
  const ReplayTotals& totals = replay.counts.totals;
  return per_second(static_cast<double>(totals.output_tokens + totals.prompt_tokens), span());
}

double ServingRun::interactivity() const {
  const LatencyHistogram& tpot = replay.counts.tpot;
  return tpot.count() > 0 ? 1.0 / tpot.percentile(0.5).si() : 0.0;
}

double ServingRun::slo_share() const {
  const ReplayTotals& totals = replay.counts.totals;
  return totals.finished > 0
             ? static_cast<double>(totals.within_slo) / static_cast<double>(totals.finished)
             : 0.0;
}

}  // namespace orrery
