#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/core/field.hpp"
#include "sim/plan/scenario.hpp"
#include "sim/plan/software.hpp"

namespace orrery {

/// One key of a software's file.
using SoftwareKey = Field<Software>;

/// All but name, title and source, in the order in which they are read.
const std::vector<SoftwareKey>& software_keys();

/// Reads {"granularity": ..., "gemm_efficiency": ...}, each with its source.
Fp8Scaling read_fp8_scaling(const JsonValue& json);
/// Reads {"fused_attention": ..., "logit_forward_bytes": ...}, each with its source. `shards`: true
/// requires the copies of sharded weights.
Fp32Training read_fp32_training(const JsonValue& json, bool shards);

/// The software that a plan which names none is taken to run on: eager Megatron of 2021 for fp16 on
/// Volta, which has no other 16-bit format and no fused attention of today, else Megatron-Core.
std::string default_software(const PlanRequest& request, const System& system);

/// The catalog without `like`, the nearest first: software that differs from it in the fewest
/// figures; of equals in the order of names.
std::vector<Software> software_near(const Software& like);

/// make_scenario() for callers that keep what they have read: `software` is the requested or
/// default one, and `near` returns software_near(software) when it is needed.
Scenario make_scenario(const Model& model, const System& system, const Software& software,
                       const std::function<const std::vector<Software>&()>& near,
                       const PlanRequest& request, int gpus, const Place& at);

}  // namespace orrery
