#include "sim/serving/pools.hpp"

#include <algorithm>
#include <charconv>
#include <numeric>

#include "sim/core/nearest.hpp"
#include "sim/core/value_list.hpp"

namespace orrery {
namespace {

Deployment make_pool(const Model& model, const System& system, const ServingEngine& engine,
                     DeploymentRequest request, const Place& at) {
  request.tp = request.tp.value_or(1);
  request.replicas = request.replicas.value_or(1);
  const std::int64_t gpus = std::int64_t{*request.tp} * request.pp.value_or(1) *
                            request.dp.value_or(1) * *request.replicas;
  constexpr std::int64_t most_gpus = 1 << 16;
  if (gpus > most_gpus)
    fail_input(at, "has " + std::to_string(gpus) + " GPUs", "use no more than 65,536");
  return make_deployment(model, system, engine, request, static_cast<int>(gpus), at);
}

int round_up(int value, int to) { return (value + to - 1) / to * to; }

// Returns the first GPU of a replica of `size` if all before `next` are taken: within a node if one
// can hold it, else from the beginning of a node, and within a domain likewise.
int first_gpu(const System& system, int next, int size) {
  const int node = system.gpus_per_node, domain = system.nvlink_domain;
  const auto crosses = [&](int whole) { return next / whole != (next + size - 1) / whole; };
  if (size > node || crosses(node)) next = round_up(next, node);
  if (size <= domain && crosses(domain)) next = round_up(next, domain);
  return next;
}

void place_replicas(const System& system, PoolsPlan& plan) {
  struct Replicas {
    const Deployment* pool;
    std::vector<int>* gpus;
    int size() const { return static_cast<int>(pool->replica_gpus()); }
  };
  Replicas order[] = {{&plan.prefill, &plan.prefill_gpus}, {&plan.decode, &plan.decode_gpus}};
  if (!plan.apart && order[0].size() < order[1].size()) std::swap(order[0], order[1]);
  int next = 0;
  for (const Replicas& replicas : order) {
    for (int r = 0; r < replicas.pool->replicas; ++r) {
      const int first = first_gpu(system, next, replicas.size());
      replicas.gpus->push_back(first);
      next = first + replicas.size();
    }
    if (plan.apart) next = round_up(next, system.nvlink_domain);
  }
  if (system.max_gpus > 0 && plan.last_gpu() >= system.max_gpus)
    fail_infeasible({"", "--pools"},
                    system.name + " has " + std::to_string(system.max_gpus) +
                        " GPUs, and these pools reach to the " +
                        std::to_string(plan.last_gpu() + 1) + "th",
                    "use fewer or smaller replicas");
}

}  // namespace

int PoolsPlan::last_gpu() const {
  return static_cast<int>(std::max(prefill_gpus.back() + prefill.replica_gpus(),
                                   decode_gpus.back() + decode.replica_gpus())) -
         1;
}

void parse_pool_counts(const std::string& text, PoolsRequest& request, const Place& at) {
  const char* next = text.data();
  const char* const end = next + text.size();
  const auto count = [&](char letter) {
    int value = 0;
    const auto [rest, error] = std::from_chars(next, end, value);
    constexpr int most_replicas = 1 << 16;
    if (error != std::errc{} || value < 1 || value > most_replicas || rest == end ||
        (*rest != letter && *rest != letter - 'A' + 'a'))
      fail_input(at, "'" + text + "' says no replicas of two pools",
                 "write 2P1D: two that prefill and one that decodes");
    next = rest + 1;
    return value;
  };
  request.prefill.replicas = count('P');
  request.decode.replicas = count('D');
  if (next != end) fail_input(at, "'" + text + "' goes on behind its pools", "write it like 2P1D");
}

void parse_pool(const std::string& text, DeploymentRequest& pool, const Place& at) {
  std::vector<std::string> seen;
  for (const std::string& item : split_list(text, at)) {
    const std::size_t sign = item.find('=');
    if (sign == item.npos || sign == 0 || sign + 1 == item.size())
      fail_input(at, "'" + item + "' says nothing of the pool", "write it like tp=4,replicas=2");
    const std::string key = item.substr(0, sign);
    if (std::find(seen.begin(), seen.end(), key) != seen.end())
      fail_input(at, "says '" + key + "' twice", "keep one of them");
    seen.push_back(key);
    const auto& keys = deployment_keys();
    keys[choice<std::size_t>(key, at, "is no key of a pool", names_of(keys))].read(
        pool, value_of_text(item.substr(sign + 1), at.pointer + " " + key));
  }
}

KvSending parse_kv_sending(const std::string& text, const Place& at) {
  return choice<KvSending>(text, at, "is no way to send keys and values");
}

PoolsPlan make_pools(const Model& model, const System& system, const ServingEngine& engine,
                     const PoolsRequest& request, const Place& prefill, const Place& decode) {
  if (!engine.pools)
    fail_infeasible({"", "--engine"},
                    "the engine '" + engine.name + "' has no pools of its own for prompts",
                    "use " + schedulers_with(&SchedulerKind::continuous));
  for (const auto& [pool, at] : {std::pair{&request.prefill, prefill}, {&request.decode, decode}})
    if (pool->receive_interval.value_or(1) > 1)
      fail_infeasible(at,
                      "looks for new requests in some steps only (receive_interval), which is "
                      "modelled without pools",
                      "leave it out");
    else if (pool->prefill_delay.value_or(0) > 0)
      fail_infeasible(at,
                      "delays prompts until all ranks can begin one (prefill_delay), which is "
                      "modelled beside decodes alone",
                      "leave it out");
  DeploymentRequest prompts = request.prefill;
  prompts.speculate.reset();  // Prefill makes no tokens to draft.
  DeploymentRequest answers = request.decode;
  if ((answers.host_kv && !prompts.host_kv) || (answers.kv_tiers && !prompts.kv_tiers))
    fail_input(decode,
               std::string{"says "} + (answers.host_kv ? "host_kv" : "kv_tiers") +
                   ", but what it needs of a prompt comes from the other pool",
               "say it of the prefill pool");
  answers.host_kv.reset();
  answers.kv_tiers.reset();
  answers.kv_prefetch.reset();
  answers.kv_write.reset();
  return join_pools(system, make_pool(model, system, engine, prompts, prefill),
                    make_pool(model, system, engine, answers, decode),
                    request.sending.value_or(engine.pools->sending), request.apart, decode);
}

PoolsPlan join_pools(const System& system, const Deployment& prefill, const Deployment& decode,
                     KvSending sending, bool apart, const Place& at) {
  PoolsPlan plan;
  plan.prefill = prefill;
  plan.decode = decode;
  plan.sending = sending;
  plan.apart = apart;
  if (plan.prefill.kv != plan.decode.kv)
    fail_infeasible(at,
                    "keeps keys and values in " + name(plan.decode.kv) +
                        ", and the prefill pool in " + name(plan.prefill.kv) +
                        ": what is sent would have to be converted",
                    "give both the same kv");
  if (plan.prefill.block != plan.decode.block)
    fail_infeasible(
        at,
        "has blocks of " + std::to_string(plan.decode.block) + " tokens, and the prefill pool of " +
            std::to_string(plan.prefill.block) + ": blocks are sent as they are",
        "give both block=" + std::to_string(std::max(plan.prefill.block, plan.decode.block)));
  place_replicas(system, plan);
  return plan;
}

}  // namespace orrery
