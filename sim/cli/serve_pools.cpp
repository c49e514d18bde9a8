#include "sim/cli/serve_pools.hpp"

#include <iostream>

#include "sim/serving/pooled_serving.hpp"
#include "sim/serving/pools_text.hpp"

namespace orrery {
namespace {

const Place prefill_place{"--prefill", ""}, decode_place{"--decode", ""};
constexpr int most_gpus = 1 << 16;

int print_step(const TrafficOptions& traffic, const PricedPools& pools,
               const Iteration& iteration) {
  PooledStep step;
  Iteration prompts, decodes;
  prompts.chunks = iteration.chunks;
  prompts.heads = static_cast<std::int64_t>(iteration.chunks.size());
  decodes.decodes = decodes.heads = iteration.decodes;
  decodes.context = iteration.context;
  if (!prompts.chunks.empty())
    step.prefill = serving_step(pools.prefill->setup, prompts, prefill_place);
  if (decodes.decodes > 0) step.decode = serving_step(pools.decode->setup, decodes, decode_place);
  for (const PrefillChunk& chunk : prompts.chunks)
    step.transfers.push_back(isolated_transfer(pools, chunk.tokens + chunk.cached));
  step.sending = pools.plan.sending;
  if (step.decode)
    step.cost = token_cost(step.decode->tokens_per_s, static_cast<double>(pools.plan.decode.gpus()),
                           read_economics(pools.decode->setup.system, traffic.economics));
  std::cout << (traffic.json ? pooled_step_json(step) : pooled_step_text(step));
  return exit_ok;
}

}  // namespace

void add_pools(Options& options, PoolOptions& into) {
  options.group("Pools");
  options.add(
      "prefill", "LIST",
      "a pool of its own for prompts, with these keys: tp=4,replicas=2 (docs/guides/serve.md)",
      into.prefill);
  options.add("decode", "LIST", "the pool that goes on with them", into.decode);
  options.add("pools", "xPyD",
              "replicas of both: 2P1D; of a search all or only: deployments with pools, too",
              into.pools);
  options.add("kv-transfer", "whole|chunks|layers",
              "keys and values go when a prompt is computed, or each part of it, or each layer "
              "(default: as the engine does)",
              into.sending, parse_kv_sending);
  options.add("pools-apart", "the pools share no NVLink domain", into.apart);
}

std::optional<PoolsRequest> read_pools(const Options& options, const PoolOptions& pools,
                                       const DeploymentRequest& both) {
  if (!pools.prefill && !pools.decode && !pools.pools) {
    options.refuse({"kv-transfer", "pools-apart"}, "is for pools", "add --pools 1P1D");
    return std::nullopt;
  }
  PoolsRequest request{both, both, pools.sending, pools.apart};
  if (pools.pools) {
    if (both.replicas)
      fail_input(command_line / "replicas", "is said by --pools, too", "keep one of them");
    parse_pool_counts(*pools.pools, request, command_line / "pools");
  }
  const auto pool = [&](const std::optional<std::string>& keys, const Place& at,
                        DeploymentRequest& of) {
    if (!keys) return;
    const std::optional<int> counted = of.replicas;
    of.replicas.reset();
    parse_pool(*keys, of, at);
    if (pools.pools && of.replicas)
      fail_input(at, "says replicas, as --pools does", "keep one of them");
    if (!of.replicas) of.replicas = counted;
  };
  pool(pools.prefill, command_line / "prefill", request.prefill);
  pool(pools.decode, command_line / "decode", request.decode);
  return request;
}

int serve_pools(const Options& options, const DeploymentOptions& given,
                const TrafficOptions& traffic, const PoolsRequest& request,
                const std::optional<Iteration>& iteration) {
  const Stopwatch watch;
  const PricedPools pools = price_pools(named(given.model, "model"), named(given.system, "system"),
                                        named(given.engine, "engine"), request, command_line,
                                        prefill_place, decode_place);
  print_published_note(pools.prefill->setup.model,
                       request.prefill.weights ? request.decode : request.prefill);
  if (given.gpus) {
    const Place at = command_line / "gpus";
    const int gpus = parse_count(*given.gpus, at, 1, most_gpus);
    if (gpus != pools.plan.gpus())
      fail_input(at, "is not the " + std::to_string(pools.plan.gpus()) + " of the pools",
                 "leave it out, or give the pools other keys");
  }
  if (iteration) return print_step(traffic, pools, *iteration);
  const auto serve = [&](const ServingLoad& load) {
    need_prefixes(pools.plan.prefill, load, command_line);
    need_space(pools, longest_of(load.list), prefill_place, decode_place);
    return serve_pools(pools, load);
  };
  return serve_traffic(options, traffic,
                       {pools.prefill->setup.system, pools.plan.gpus(), 0, serve, watch});
}

}  // namespace orrery
