#include "sim/posttraining/rl_framework.hpp"

#include "sim/core/catalog.hpp"
#include "sim/core/field.hpp"
#include "sim/plan/plan_keys.hpp"

namespace orrery {
namespace {

const auto duration = quantity(&JsonValue::duration);
const auto bandwidth = quantity(&JsonValue::bandwidth);

std::vector<Field<WeightTransfer>> transfer_keys() {
  using W = WeightTransfer;
  return {figure("start", &W::start, duration), figure("each_tensor", &W::each_tensor, duration),
          figure("rate", &W::rate, bandwidth)};
}

std::vector<Field<RolloutMode>> mode_keys() {
  using M = RolloutMode;
  const auto amount = whole(1, 1 << 30);
  return {figure("routing", &M::routing, one_of<SampleRouting>()),
          figure("each_token", &M::each_token, duration),
          optional(figure("max_seqs", &M::max_seqs, amount)),
          optional(figure("budget", &M::budget, amount))};
}

Field<RlFramework> recomputation() {
  Field<RlFramework> key{"recompute", [](RlFramework& framework, const JsonValue& v) {
                           PlanRequest plan;
                           set_plan_key(plan, "recompute", v);
                           framework.recompute = plan.recompute;
                         }};
  key.sourced = true;
  return key;
}

std::vector<Field<RlFramework>> framework_keys() {
  using F = RlFramework;
  return {field("name", &F::name, some_text("name")),
          field("title", &F::title, some_text("title")),
          source_of<F>(),
          figure("software", &F::software, some_text("software")),
          recomputation(),
          figure("engine", &F::engine, some_text("engine")),
          figure("kv_share", &F::kv_share, real(0.01, 1.0)),
          field("in_process", &F::in_process, object(mode_keys())),
          field("asynchronous", &F::asynchronous, object(mode_keys())),
          figure("async_engine", &F::async_engine, truth()),
          figure("whole_batches", &F::whole_batches, truth()),
          figure("packing", &F::packing, one_of<SamplePacking>()),
          figure("round_tokens", &F::round_tokens, whole(1, 1 << 20)),
          figure("old_logprobs", &F::old_logprobs, truth()),
          figure("reference", &F::reference, truth()),
          figure("frees_weights", &F::frees_weights, truth()),
          figure("frees_optimizer", &F::frees_optimizer, truth()),
          figure("swaps_reference", &F::swaps_reference, truth()),
          figure("reference_stays", &F::reference_stays, truth()),
          figure("host_copies", &F::host_copies, bandwidth),
          figure("optimizer_step", &F::optimizer_step, duration),
          {"transfers",
           [](F& framework, const JsonValue& v) {
             for (const std::string& name : v.keys())
               framework.transfers[name] = object(transfer_keys()).read(v.at(name));
           }},
          figure("colocated", &F::colocated, some_text("transfer")),
          figure("apart", &F::apart, some_text("transfer")),
          figure("loop", &F::loop, duration),
          figure("loop_share", &F::loop_share, real(0.0, 1.0))};
}

}  // namespace

RlFramework parse_rl_framework(const JsonValue& json) {
  require_schema(json, "orrery.rl-framework/1");
  RlFramework framework;
  read_fields(json, framework_keys(), framework, {"schema"});
  for (const auto& [key, name] :
       {std::pair{"colocated", framework.colocated}, {"apart", framework.apart}})
    if (!framework.transfers.contains(name))
      json.at(key).fail("'" + shown_text(name) + "' is none of its transfers",
                        "name one of the keys of \"transfers\"");
  framework.document = json;
  return framework;
}

RlFramework read_rl_framework(const std::string& word, const Place& at) {
  return parse_rl_framework(
      JsonValue::read_file(find_in_catalog("workloads/frameworks", word, at)));
}

}  // namespace orrery
