#include "sim/serving/deployment.hpp"

#include <algorithm>

#include "sim/core/nearest.hpp"

namespace orrery {
namespace {

std::string listed(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

void need_format(const Place& at, const ServingEngine& engine, const std::string& word,
                 const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), word) == known.end())
    fail_infeasible(at, "the engine '" + engine.name + "' has no " + word,
                    known.empty() ? "leave it out" : "it has " + listed(known));
}

// vLLM gives GPUs below 70 GiB and A100 smaller batches (vllm/engine/arg_utils.py).
bool is_small(const Gpu& gpu) {
  return gpu.memory.si() < 70.0 * 1024 * 1024 * 1024 || gpu.name.starts_with("a100");
}

std::string largest_divisor(std::int64_t of, std::int64_t below) {
  std::int64_t d = std::min(of, below);
  while (d > 1 && of % d != 0) --d;
  return std::to_string(d);
}

void need_divides(const Place& at, const char* what, std::int64_t whole, std::int64_t part) {
  if (whole % part == 0) return;
  fail_infeasible(
      at, std::to_string(whole) + " " + what + " cannot be cut into " + std::to_string(part),
      "use " + largest_divisor(whole, part));
}

void cut_attention(const Model& model, const Deployment& plan, const Place& at) {
  need_divides(at / "tp", "heads", model.heads, plan.tp);
  if (!model.latent && model.kv_heads % plan.tp != 0 && plan.tp % model.kv_heads != 0)
    fail_infeasible(at / "tp",
                    std::to_string(model.kv_heads) + " key heads cannot be cut or copied over " +
                        std::to_string(plan.tp) + " ranks",
                    "use " + largest_divisor(model.kv_heads, plan.tp));
  if (model.ffn > 0) need_divides(at / "tp", "columns of the MLP", model.ffn, plan.tp);
}

void cut_experts(const Model& model, const Deployment& plan, const Place& at) {
  if (!model.experts) {
    if (plan.ep > 1 || plan.moe_tp > 1)
      fail_input(at / (plan.ep > 1 ? "ep" : "moe_tp"), "the model has no experts", "leave it out");
    if (plan.dp > 1)
      fail_input(at / "dp",
                 "the model has no experts, so that copies of its attention share nothing",
                 "use replicas");
    return;
  }
  if (std::int64_t{plan.moe_tp} * plan.ep != plan.stage_gpus())
    fail_input(at / "ep",
               "moe_tp x ep (" + std::to_string(plan.moe_tp) + " x " + std::to_string(plan.ep) +
                   ") is not tp x dp (" + std::to_string(plan.tp) + " x " +
                   std::to_string(plan.dp) + ")",
               "leave moe_tp out, or make both products equal");
  need_divides(at / "ep", "experts", model.experts->count, plan.ep);
  need_divides(at / "moe_tp", "columns of an expert", model.experts->ffn, plan.moe_tp);
}

// Degrees that are open follow from the GPUs and the others.
void settle_degrees(const Model& model, const DeploymentRequest& request, int gpus, const Place& at,
                    Deployment& plan) {
  plan.pp = request.pp.value_or(1);
  plan.dp = request.dp.value_or(1);
  plan.replicas = request.replicas.value_or(1);
  const std::int64_t others = std::int64_t{plan.pp} * plan.dp * plan.replicas;
  if (request.tp) {
    plan.tp = *request.tp;
  } else {
    if (gpus % others != 0)
      fail_infeasible({"", "--gpus"},
                      std::to_string(gpus) + " GPUs cannot be shared by pp x dp x replicas = " +
                          std::to_string(others),
                      "use a multiple of " + std::to_string(others));
    plan.tp = static_cast<int>(gpus / others);
  }
  const std::int64_t replica = plan.replica_gpus();
  if (!request.replicas) {
    if (gpus % replica != 0)
      fail_infeasible({"", "--gpus"},
                      std::to_string(gpus) + " GPUs are no whole number of replicas of " +
                          std::to_string(replica),
                      "use a multiple of " + std::to_string(replica));
    plan.replicas = static_cast<int>(gpus / replica);
  }
  if (plan.gpus() != gpus)
    fail_input(at / "replicas",
               "tp x pp x dp x replicas is " + std::to_string(plan.gpus()) + ", not the " +
                   std::to_string(gpus) + " of --gpus",
               "leave replicas out");
  if (!model.experts) {
    plan.ep = request.ep.value_or(1);
    plan.moe_tp = request.moe_tp.value_or(1);
    return;
  }
  // Copies of attention share experts by expert parallelism (DeepSeek-V3, section 3.4).
  const auto stage = static_cast<int>(plan.stage_gpus());
  plan.ep = request.ep.value_or(request.moe_tp ? std::max(1, stage / *request.moe_tp)
                                : plan.dp > 1  ? stage
                                               : 1);
  plan.moe_tp = request.moe_tp.value_or(std::max(1, stage / plan.ep));
}

void settle_formats(const Model& model, const System& system, const ServingEngine& engine,
                    const DeploymentRequest& request, const Place& at, Deployment& plan) {
  plan.weights = request.weights.value_or(WeightFormat::bf16);
  plan.experts = request.experts.value_or(plan.weights);
  plan.kv = request.kv.value_or(KvFormat::bf16);
  if (request.experts && !model.experts)
    fail_input(at / "experts", "the model has no experts", "leave it out");
  need_format(at / "weights", engine, name(plan.weights), engine.weights);
  if (model.experts) need_format(at / "experts", engine, name(plan.experts), engine.experts);
  need_format(at / "kv", engine, name(plan.kv), engine.kv);
  if (const auto no = lacks_units(system.gpu, plan.weights)) throw no->error(at);
  if (model.experts)
    if (const auto no = lacks_units(system.gpu, plan.experts))
      fail_infeasible(at / "experts", no->problem, no->remedy);
}

// Of these schedulers only sglang's can do both.
void settle_mixing(const ServingEngine& engine, const DeploymentRequest& request, const Place& at,
                   Deployment& plan) {
  const bool usual =
      engine.scheduler == SchedulerKind::vllm || engine.scheduler == SchedulerKind::trtllm;
  plan.mixed = request.mixed.value_or(usual);
  if (plan.mixed != usual && engine.scheduler != SchedulerKind::sglang)
    fail_infeasible(at / "mixed",
                    "the engine '" + engine.name + "' " +
                        (usual ? "always computes prompts beside decodes"
                               : "computes no prompts beside decodes"),
                    "leave it out, or use sglang");
}

void settle_speculation(const Model& model, const ServingEngine& engine, const Speculation& asked,
                        const Place& at, Deployment& plan) {
  need_format(at / "speculate", engine,
              draft_method_names()[static_cast<std::size_t>(asked.method)], engine.drafts);
  plan.speculation = asked;
  plan.drafter = drafting_model(model, asked, at / "speculate");
  if (plan.drafter)
    need_divides(at / "speculate", "heads of what drafts", plan.drafter->heads, plan.tp);
}

}  // namespace

Deployment make_deployment(const Model& model, const System& system, const ServingEngine& engine,
                           const DeploymentRequest& request, int gpus, const Place& at) {
  Deployment plan;
  settle_degrees(model, request, gpus, at, plan);
  if (system.max_gpus > 0 && gpus > system.max_gpus)
    fail_infeasible({"", "--gpus"}, system.name + " has " + std::to_string(system.max_gpus),
                    "use no more");
  if (plan.pp > model.layers)
    fail_infeasible(at / "pp",
                    "the model has " + std::to_string(model.layers) + " layers for " +
                        std::to_string(plan.pp) + " stages",
                    "use " + std::to_string(model.layers));
  cut_attention(model, plan, at);
  cut_experts(model, plan, at);
  settle_formats(model, system, engine, request, at, plan);
  const bool small = is_small(system.gpu);
  const EngineDefaults& usual = engine.defaults;
  plan.budget = request.budget.value_or(small ? usual.small_gpu_budget : usual.budget);
  plan.max_seqs = request.max_seqs.value_or(small ? usual.small_gpu_max_seqs : usual.max_seqs);
  plan.block = request.block.value_or(usual.block);
  plan.kv_share = request.kv_share.value_or(engine.memory.share);
  plan.chunked = request.chunked.value_or(usual.chunked);
  settle_mixing(engine, request, at, plan);
  plan.host_kv = request.host_kv.value_or(Bytes{});
  if (plan.host_kv > Bytes{} && !engine.host_kv)
    fail_infeasible(at / "host_kv",
                    "the engine '" + engine.name + "' keeps no keys and values on the host",
                    "leave it out, or use vllm, sglang or trtllm");
  if (request.speculate) settle_speculation(model, engine, *request.speculate, at, plan);
  return plan;
}

bool hides_host(const Model& model, const ServingEngine& engine, const Deployment& plan) {
  return plan.dp > 1 && model.experts ? engine.host.hidden_with_copies : engine.host.hidden;
}

std::int64_t most_of_a_batch(const ServingEngine& engine, const Deployment& plan) {
  if (engine.pipeline.limits_a_batch) return plan.max_seqs;
  return std::max<std::int64_t>(1, plan.max_seqs / plan.pp);
}

}  // namespace orrery
