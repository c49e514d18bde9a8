#pragma once

#include "sim/cluster/system.hpp"
#include "sim/core/error.hpp"
#include "sim/plan/plan.hpp"
#include "sim/plan/software.hpp"

namespace orrery {

/// 16-bit weights, masters and moments in fp32: what software files describe.
bool has_formats_of_files(const Plan& plan);

/// Gives `software` the bytes that weights, gradients and the optimizer's state take in this plan's
/// formats on such a GPU. It must be as its file has it; it stays so where has_formats_of_files().
void set_formats(const Plan& plan, const Gpu& gpu, Software& software);

/// Takes unfused attention in fp32 and tf32 where the software has no other and nobody asked.
/// Refuses these formats where it has not what the plan asks for.
MaybeRefused settle_fp32(Plan& plan, const PlanRequest& request, const Software& software);

/// Formats that do not go together.
MaybeRefused refuse_formats(const Plan& plan);

/// Copies of shards (PlanChoices::dp_replicate) that do not come out even, of weights or of
/// experts, or of which nothing is left to shard.
MaybeRefused refuse_copies_of_shards(const Plan& plan);

}  // namespace orrery
