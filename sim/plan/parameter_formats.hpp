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

/// Takes unfused attention in fp32 and tf32 if the software has no other and none was requested.
/// Refuses these formats if the software lacks what the plan needs.
MaybeRefused settle_fp32(Plan& plan, const PlanRequest& request, const Software& software);

/// There are fused kernels of attention for the GPU. Those that are priced, FlashAttention's and
/// cuDNN's, are for sm_80 and later (FlashAttention 2's README; cuDNN's support matrix).
bool fuses_attention(const Gpu& gpu);
/// Unfused attention where the GPU has no other. Infeasible: the request says flash there.
MaybeRefused settle_attention(Plan& plan, const PlanRequest& request, const Gpu& gpu);

/// Refuses incompatible formats.
MaybeRefused refuse_formats(const Plan& plan);
/// Refuses adapters that no layer gets, formats of frozen weights that products cannot read, and
/// what is not modelled beside frozen weights.
MaybeRefused refuse_finetuning(const Plan& plan, const PlanRequest& request, const Model& model);

/// Refuses an optimizer or weights on the host where nothing prices it: a system whose host is not
/// described, masters that are not fp32, experts that are not sharded; and one without the other
/// where the software has both or none.
MaybeRefused refuse_offloading_to_host(const Plan& plan, const System& system,
                                       const Software& software);

/// Refuses copies of shards (Sharding::dp_replicate) that do not divide the ranks of weights or of
/// experts, or that leave nothing to shard.
MaybeRefused refuse_copies_of_shards(const Plan& plan);

}  // namespace orrery
