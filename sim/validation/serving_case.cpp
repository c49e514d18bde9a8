#include "sim/validation/serving_case.hpp"

#include "sim/validation/collected_case.hpp"

namespace orrery {
namespace {

constexpr int most_serving_gpus = 1 << 20;
constexpr double most_measured = 1e15;

// Collections say "e2e_mean" and "ttft_p90" of peers, in the milliseconds of "e2e_ms".
std::string quantity_of(const std::string& said) {
  if (said.ends_with("_mean")) return said.substr(0, said.size() - 5) + "_ms";
  for (const char* percentile : {"_p50", "_p90", "_p95", "_p99"})
    if (said.ends_with(percentile)) return said + "_ms";
  return said;
}

// Of peers {"simulator": {"quantity": predicted}}.
void read_peers(const JsonValue& json, ServingCase& one) {
  for (const std::string& peer : json.keys()) {
    const JsonValue said = json.at(peer);
    for (const std::string& quantity : said.keys())
      if (const JsonValue value = said.at(quantity); value.is_number())
        one.peers[peer][quantity_of(quantity)] = value.number(-most_measured, most_measured);
  }
}

// "prefill": {"tp": 1, "attention_dp": 4, "workers": 2, "batch": 1}. The batch is what a worker had
// at a time, which follows from the load.
DeploymentRequest read_pool(DeploymentRequest pool, const JsonValue& json) {
  json.allow_only({"tp", "pp", "attention_dp", "moe_tp", "ep", "workers", "batch"});
  const auto number = [&](const char* key, std::optional<int>& of) {
    if (json.has(key)) of = static_cast<int>(json.at(key).integer(1, most_serving_gpus));
  };
  number("tp", pool.tp);
  number("pp", pool.pp);
  number("attention_dp", pool.dp);
  number("workers", pool.replicas);
  // Of dense models such cases say ep 1, which means nothing.
  number("moe_tp", pool.moe_tp);
  number("ep", pool.ep);
  return pool;
}

// "speculative": {"method": "eagle3", "draft_tokens": 3, "acceptance": 0.37}: accepted over drafted
// tokens, or a list by position.
Speculation read_speculation(const JsonValue& json) {
  json.allow_only({"method", "draft_tokens", "acceptance"});
  std::string rates;
  const JsonValue acceptance = json.at("acceptance");
  const auto add = [&](const JsonValue& rate) {
    rates += (rates.empty() ? "" : "/") + std::to_string(rate.number(0.0, 1.0));
  };
  if (acceptance.is_number())
    add(acceptance);
  else
    for (const JsonValue& rate : acceptance.elements()) add(rate);
  return parse_speculation(json.at("method").text() + ":" +
                               std::to_string(json.at("draft_tokens").integer(1, 16)) + "@" + rates,
                           json.place());
}

PoolsRequest read_pools(const DeploymentRequest& both, const JsonValue& json) {
  json.allow_only({"prefill", "decode"});
  PoolsRequest pools;
  pools.prefill = read_pool(both, json.at("prefill"));
  pools.decode = read_pool(both, json.at("decode"));
  return pools;
}

}  // namespace

bool is_serving_case(const JsonValue& entry) {
  return is_collected_case(entry) ||
         (entry.is_object() && entry.has("deployment") && entry.has("engine"));
}

void read_what_all_have(const JsonValue& entry, ServingCase& one) {
  one.place = entry.place();
  one.id = entry.at("id").text();
  one.system = entry.at("system").text();
  one.gpus = static_cast<int>(entry.at("gpus").integer(1, most_serving_gpus));
  one.workload = entry.find("workload");
  const JsonValue measured = entry.at("measured");
  for (const std::string& quantity : measured.keys())
    one.measured[quantity] = measured.at(quantity).number(0.0, most_measured);
  if (const auto peers = entry.find("peers")) read_peers(*peers, one);
}

void read_serving_options(const JsonValue& serving, ServingCase& one) {
  one.serving = serving;
  if (serving.has("speculative"))
    one.deployment.speculate = read_speculation(serving.at("speculative"));
  if (serving.has("disaggregated"))
    one.pools = read_pools(one.deployment, serving.at("disaggregated"));
}

ServingCase read_serving_case(const JsonValue& entry) {
  if (is_collected_case(entry)) return read_collected_case(entry);
  entry.allow_only({"id", "source", "system", "gpus", "model", "engine", "deployment", "workload",
                    "serving", "measured", "peers", "notes"});
  ServingCase one;
  read_what_all_have(entry, one);
  const JsonValue model = entry.at("model");
  one.model = read_model(model.text(), model.place());
  one.engine = entry.at("engine").text();
  read_deployment(one.deployment, entry.at("deployment"));
  if (const auto serving = entry.find("serving")) read_serving_options(*serving, one);
  return one;
}

ServingSetup setup_of(const ServingCase& one) {
  return make_serving_setup(one.model, one.system, one.engine, one.deployment, one.gpus, one.place);
}

PricedPools pools_of(const ServingCase& one) {
  PricedPools pools =
      price_pools(one.model, one.system, one.engine, *one.pools, one.place, one.place, one.place);
  if (pools.plan.gpus() != one.gpus)
    fail_input(one.place / "gpus",
               "is not the " + std::to_string(pools.plan.gpus()) + " of its pools",
               "count those of all workers");
  return pools;
}

}  // namespace orrery
