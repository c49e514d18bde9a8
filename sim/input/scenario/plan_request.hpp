#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/core/dtype.hpp"
#include "sim/base/text/json_value.hpp"
#include "sim/input/scenario/expert_dispatcher.hpp"
#include "sim/input/scenario/recompute.hpp"
#include "sim/input/schedule/schedule.hpp"

namespace orrery {

/// How ranks that share a sequence meet each other's keys and values, by Megatron's names
/// (--cp-comm-type): around a ring beside the attention of what has come; gathered before it; or
/// heads swapped for tokens (Ulysses, arXiv 2309.14509).
enum class ContextExchange { p2p, all_gather, a2a };

const std::vector<std::string>& context_exchange_names();  ///< "p2p", "all_gather", "a2a"
const std::string& name(ContextExchange exchange);

/// How a model is spread over GPUs, in Megatron's short words. What the user left out is empty here
/// and filled in by Scenario, which knows the model and the cluster.
struct PlanRequest {
  int tp = 1, pp = 1, cp = 1, ep = 1, etp = 1;
  std::optional<int> vpp;
  std::optional<int> dp;  ///< Given: must agree with gpus / (tp pp cp).
  std::optional<std::int64_t> mbs;
  std::optional<std::int64_t> gbs;
  std::optional<std::int64_t> seq;
  std::optional<const Schedule*> schedule;
  RecomputeChoice recompute;
  std::optional<int> zero;
  std::optional<bool> reshard;
  std::optional<bool> sp;
  std::optional<Dtype> dtype;
  std::optional<bool> fused_attention;
  ContextExchange cp_comm = ContextExchange::p2p;
  std::string routing = "uniform";  ///< A name in workloads/routing, a file or a shape.
  ExpertDispatcher moe_dispatcher = ExpertDispatcher::all_to_all;
  bool shared_expert_overlap = false;  ///< Megatron-LM's --moe-shared-expert-overlap.
  bool ep_overlap = false;             ///< Its --overlap-moe-expert-parallel-comm.
  bool delay_wgrad = false;            ///< Its --delay-wgrad-compute.
  std::optional<bool> tp_overlap;
  std::optional<bool> dp_overlap;
  std::string software;  ///< Name in workloads/software; empty: chosen by default_software().
};

/// One key of a plan and what it means, for JSON, flags and --help alike.
struct PlanKey {
  std::string name;
  std::string value;  ///< "N", "0|1|2|3", "true|false"
  std::string help;
};
const std::vector<PlanKey>& plan_keys();

/// Sets one key from a JSON value. Errors: unknown key (with the nearest), wrong type, range.
void set_plan_key(PlanRequest& plan, const std::string& key, const JsonValue& value);
/// What a flag's text says, as the value that a JSON file would hold; its place is the flag.
JsonValue value_of_flag(const std::string& key, const std::string& text);
/// The same of a text that stands elsewhere; `place` is what messages name.
JsonValue value_of_text(const std::string& text, const std::string& place);
/// Sets one key from a flag's text.
void set_plan_flag(PlanRequest& plan, const std::string& key, const std::string& text);

/// Reads an object of plan keys on top of `plan`.
void read_plan(PlanRequest& plan, const JsonValue& json);

}  // namespace orrery
