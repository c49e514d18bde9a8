#include "sim/serving/pools_text.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/core/number_text.hpp"
#include "sim/core/table.hpp"
#include "sim/serving/serving_json.hpp"
#include "sim/serving/serving_run_text.hpp"
#include "sim/serving/serving_step_text.hpp"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

// Ratio of the transfers' time to that on idle links.
double slowed(const TransferCounts& transfers) {
  return transfers.alone > Seconds{} ? transfers.moving / transfers.alone : 1.0;
}

void pool_row(Table& table, const std::string& role, const PoolOutcome& pool) {
  const ReplayTotals& totals = pool.counts.totals;
  table.add_row({"  " + role, pool_text(pool.setup.deployment, pool.setup.model),
                 grouped(pool.setup.deployment.gpus()), percent(1.0 - pool.busy), name(pool.bound),
                 grouped(pool.kv.tokens), percent(totals.mean_kv_share()), percent(totals.kv_peak),
                 grouped(totals.preemptions)});
}

std::string format_text(const std::string& prefill, const std::string& decode) {
  return prefill == decode ? prefill : prefill + " and " + decode;
}

Json pool_json(const std::string& role, const PoolOutcome& pool, const std::vector<int>& first_gpus,
               double hit_share) {
  const ReplayTotals& totals = pool.counts.totals;
  return {{"role", role},
          {"gpus", pool.setup.deployment.gpus()},
          {"first_gpus", first_gpus},
          {"deployment", deployment_json(pool.setup.deployment, pool.setup.model)},
          {"memory", memory_json(pool.kv, pool.setup.deployment)},
          {"idle_share", rounded(1.0 - pool.busy)},
          {"bound", name(pool.bound)},
          {"kv",
           {{"mean_share", rounded(totals.mean_kv_share())},
            {"peak_share", rounded(totals.kv_peak)},
            {"preemptions", totals.preemptions},
            {"prefix_hit_share", rounded(hit_share)}}}};
}

}  // namespace

std::string pool_text(const Deployment& plan, const Model& model) {
  std::string text = plan.replicas > 1 ? grouped(plan.replicas) + " x " : "";
  text += "tp " + std::to_string(plan.tp);
  const auto degree = [&](const char* what, int value) {
    if (value > 1) text += std::string{" "} + what + " " + std::to_string(value);
  };
  degree("pp", plan.pp);
  degree("dp", plan.dp);
  degree("ep", plan.ep);
  if (model.experts && plan.moe_tp != plan.tp) degree("moe_tp", plan.moe_tp);
  return text;
}

std::string pools_text(const ServingSetup& prefill, const ServingSetup& decode) {
  const Deployment& p = prefill.deployment;
  const Deployment& d = decode.deployment;
  std::string text = prefill.engine.name + ", prefill " + pool_text(p, prefill.model) +
                     ", decode " + pool_text(d, decode.model) + ", weights " +
                     format_text(name(p.weights), name(d.weights));
  if (prefill.model.experts && (p.experts != p.weights || d.experts != d.weights))
    text += ", experts " + format_text(name(p.experts), name(d.experts));
  return text + ", kv " + name(p.kv) + speculation_words(d);
}

std::vector<PoolLatency> pool_latencies(const TransferCounts& transfers) {
  return {
      {"prefill", transfers.prefill}, {"place", transfers.place}, {"transfer", transfers.transfer}};
}

std::string pooled_outcome_text(const ServingRun& run) {
  const PooledOutcome& pools = *run.pools;
  Table table{{{"Pools", Align::left},
               {"", Align::left},
               {"GPUs"},
               {"idle"},
               {"bound", Align::left},
               {"KV tokens"},
               {"mean"},
               {"peak"},
               {"preempted"}},
              0};
  pool_row(table, "prefill", pools.prefill);
  pool_row(table, "decode", pools.decode);
  std::string text = table.text();
  const TransferCounts& transfers = pools.transfers;
  if (transfers.requests == 0) return text + "Nothing was sent from pool to pool\n";
  const auto requests = static_cast<double>(transfers.requests);
  text += "\nTransfers: " + grouped(transfers.requests) + " of " +
          bytes_text(transfers.kv / requests) + " on average, sent " +
          kv_sending_text(pools.plan.sending) + ", " + bytes_text(transfers.sent) + " in all;\n  " +
          duration_text(transfers.moving / requests) + " each on the links";
  if (slowed(transfers) > 1.0005)
    text += ", " + fixed(slowed(transfers), 2) + " times as long as on idle links";
  text += "\n";
  const auto& prompts = run.replay.counts.totals;
  if (prompts.prefix_hit_tokens > 0)
    text += percent(prompts.prefix_hit_share()) +
            " of the prompts' tokens were in the cache of the prefill pool\n";
  const PoolOutcome& first = pools.prefill;
  return text + tier_lines(first.setup.deployment,
                           tier_uses(first.setup, first.kv, first.counts.totals, 1.0, run.span()));
}

std::string kv_sending_text(KvSending sending) {
  switch (sending) {
    case KvSending::chunks:
      return "chunk by chunk";
    case KvSending::layers:
      return "layer by layer";
    case KvSending::whole:
      break;
  }
  return "when the prompt is computed";
}

Json pools_json(const ServingRun& run) {
  const PooledOutcome& pools = *run.pools;
  const auto sent = static_cast<double>(pools.transfers.tokens);
  const double known = pools.transfers.requests > 0
                           ? 1.0 - sent / static_cast<double>(pools.transfers.prompts)
                           : 0.0;
  Json prefill = pool_json("prefill", pools.prefill, pools.plan.prefill_gpus,
                           run.replay.counts.totals.prefix_hit_share());
  const PoolOutcome& first = pools.prefill;
  if (first.setup.deployment.has_kv_tiers())
    prefill["kv"]["tiers"] =
        tiers_json(tier_uses(first.setup, first.kv, first.counts.totals, 1.0, run.span()));
  return Json::array(
      {std::move(prefill), pool_json("decode", pools.decode, pools.plan.decode_gpus, known)});
}

Json transfers_json(const PooledOutcome& pools) {
  const TransferCounts& transfers = pools.transfers;
  Json json{{"sending", name(pools.plan.sending)},
            {"requests", transfers.requests},
            {"tokens", transfers.tokens},
            {"kv_bytes", whole(transfers.kv)},
            {"sent_bytes", whole(transfers.sent)},
            {"moving_s", rounded(transfers.moving.si())},
            {"alone_s", rounded(transfers.alone.si())}};
  for (const PoolLatency& latency : pool_latencies(transfers))
    json[latency.name + "_ms"] = latency_json(latency.histogram);
  return json;
}

std::string isolated_transfer_text(const IsolatedTransfer& transfer, KvSending sending) {
  std::string text = "Keys and values of " + grouped(transfer.tokens) +
                     " tokens: " + bytes_text(transfer.kv) + " over " +
                     (transfer.inside ? "NVLink" : "the network");
  text += ", " + grouped(transfer.flows) + (transfer.flows == 1 ? " flow" : " flows");
  if (transfer.sent.si() > 1.0001 * transfer.kv.si())
    text += " with " + bytes_text(transfer.sent) + " for ranks that hold the same";
  return text + "\n  alone " + duration_text(transfer.time) + ", " +
         fixed((transfer.kv / transfer.time).si() / 1e9, 1) + " GB/s, sent " +
         kv_sending_text(sending) + "\n";
}

Json isolated_transfer_json(const IsolatedTransfer& transfer, KvSending sending) {
  return {{"sending", name(sending)},
          {"tokens", transfer.tokens},
          {"kv_bytes", whole(transfer.kv)},
          {"sent_bytes", whole(transfer.sent)},
          {"flows", transfer.flows},
          {"inside_domain", transfer.inside},
          {"alone_s", rounded(transfer.time.si() * 1e3) / 1e3}};
}

std::string pooled_step_text(const PooledStep& step) {
  std::string text;
  const auto section = [&](const std::string& title, const std::string& body) {
    text += (text.empty() ? "" : "\n") + title + "\n" + body;
  };
  if (step.prefill) section("Prefill pool", serving_step_text(*step.prefill, {}));
  if (step.decode) section("Decode pool", serving_step_text(*step.decode, step.cost));
  for (const IsolatedTransfer& transfer : step.transfers)
    text += "\n" + isolated_transfer_text(transfer, step.sending);
  return text;
}

std::string pooled_step_json(const PooledStep& step) {
  const auto pool = [](const std::string& role, const ServingStep& of) {
    Json json = Json::parse(serving_step_json(of, {}));
    Json entry{{"role", role}};
    for (const char* key : {"gpus", "deployment", "memory", "step"}) entry[key] = json[key];
    return entry;
  };
  const ServingStep& one = step.prefill ? *step.prefill : *step.decode;
  Json json = serving_head_json(one.setup, one.kv);
  json["deployment"] = json["memory"] = json["gpus"] = nullptr;
  json["pools"] = Json::array();
  if (step.prefill) json["pools"].push_back(pool("prefill", *step.prefill));
  if (step.decode) json["pools"].push_back(pool("decode", *step.decode));
  json["transfers"] = Json::array();
  for (const IsolatedTransfer& transfer : step.transfers)
    json["transfers"].push_back(isolated_transfer_json(transfer, step.sending));
  return json.dump(2) + "\n";
}

}  // namespace orrery
