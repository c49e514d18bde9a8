#include "sim/cli/serve_pools.hpp"

#include <iostream>

#include "sim/cli/serve_traffic.hpp"
#include "sim/serving/pools_text.hpp"

namespace po = boost::program_options;

namespace orrery {
namespace {

const Place prefill_place{"--prefill", ""}, decode_place{"--decode", ""};
constexpr int most_gpus = 1 << 16;

int print_step(const ParsedOptions& parsed, const PricedPools& pools, const Iteration& iteration) {
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
    step.transfers.push_back(lone_transfer(pools, chunk.tokens + chunk.cached));
  step.sending = pools.plan.sending;
  if (step.decode)
    step.cost = token_cost(step.decode->tokens_per_s, static_cast<double>(pools.plan.decode.gpus()),
                           read_economics(pools.decode->setup.system.gpu.name,
                                          parsed.has("economics") ? parsed.text("economics") : ""));
  std::cout << (parsed.has("json") ? pooled_step_json(step) : pooled_step_text(step));
  return exit_ok;
}

}  // namespace

po::options_description pool_options() {
  po::options_description options{"Pools", 100};
  const auto text = [](const char* shown) { return po::value<std::string>()->value_name(shown); };
  options.add_options()  //
      ("prefill", text("LIST"),
       "a pool of its own for prompts, with these keys: tp=4,replicas=2 (docs/guides/serve.md)")  //
      ("decode", text("LIST"), "the pool that goes on with them")                                 //
      ("pools", text("xPyD"),
       "replicas of both: 2P1D; of a search all or only: deployments with pools, too")  //
      ("kv-transfer", text("whole|chunks|layers"),
       "keys and values go when a prompt is computed, or each part of it, or each layer "
       "(default: as the engine does)")  //
      ("pools-apart", "the pools share no NVLink domain");
  return options;
}

std::optional<PoolsRequest> read_pools(const ParsedOptions& parsed, const DeploymentRequest& both) {
  if (!parsed.has("prefill") && !parsed.has("decode") && !parsed.has("pools")) {
    for (const char* option : {"kv-transfer", "pools-apart"})
      if (parsed.has(option)) fail_input(command_line / option, "is for pools", "add --pools 1P1D");
    return std::nullopt;
  }
  PoolsRequest request;
  request.prefill = request.decode = both;
  if (parsed.has("pools")) {
    if (both.replicas)
      fail_input(command_line / "replicas", "is said by --pools, too", "keep one of them");
    parse_pool_counts(parsed.text("pools"), request, command_line / "pools");
  }
  const auto pool = [&](const char* option, DeploymentRequest& of) {
    if (!parsed.has(option)) return;
    const std::optional<int> counted = of.replicas;
    of.replicas.reset();
    parse_pool(parsed.text(option), of, command_line / option);
    if (parsed.has("pools") && of.replicas)
      fail_input(command_line / option, "says replicas, as --pools does", "keep one of them");
    if (!of.replicas) of.replicas = counted;
  };
  pool("prefill", request.prefill);
  pool("decode", request.decode);
  if (parsed.has("kv-transfer"))
    request.sending = parse_kv_sending(parsed.text("kv-transfer"), command_line / "kv-transfer");
  request.apart = parsed.has("pools-apart");
  return request;
}

int serve_pools(const ParsedOptions& parsed, const PoolsRequest& request,
                const std::optional<Iteration>& iteration) {
  const Stopwatch watch;
  const PricedPools pools = price_pools(required(parsed, "model", "name one: orrery list models"),
                                        required(parsed, "system", "name one: orrery list systems"),
                                        required(parsed, "engine", "name one: orrery list engines"),
                                        request, command_line, prefill_place, decode_place);
  if (parsed.has("gpus")) {
    const int gpus = parse_count(parsed.text("gpus"), "gpus", 1, most_gpus);
    if (gpus != pools.plan.gpus())
      fail_input(command_line / "gpus",
                 "is not the " + std::to_string(pools.plan.gpus()) + " of the pools",
                 "leave it out, or give the pools other keys");
  }
  if (iteration) return print_step(parsed, pools, *iteration);
  const auto serve = [&](const ServingLoad& load) {
    need_prefixes(pools.plan.prefill, load, command_line);
    need_room(pools, longest_of(load.list), prefill_place, decode_place);
    return serve_pools(pools, load);
  };
  return serve_traffic(parsed, {pools.prefill->setup.system, pools.plan.gpus(), serve, watch});
}

}  // namespace orrery
