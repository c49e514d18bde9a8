#include "sim/analysis/estimate/plan_again.hpp"

namespace orrery {

PlanRequest plan_again(const Scenario& scenario) {
  const Plan& plan = scenario.plan;
  PlanRequest request;
  request.tp = plan.tp;
  request.pp = plan.pp;
  request.vpp = plan.vpp;
  request.ep = plan.ep;
  request.etp = plan.etp;
  request.moe_dispatcher = plan.moe_dispatcher;
  request.routing = plan.routing;
  request.shared_expert_overlap = plan.shared_expert_overlap;
  const bool by_itself = plan.schedule->pairing(plan.pp, plan.vpp) == Pairing::by_itself;
  request.ep_overlap = plan.ep_overlap && !by_itself;
  request.delay_wgrad = plan.delay_wgrad;
  request.cp = plan.cp;
  request.cp_comm = plan.cp_comm;
  request.mbs = plan.mbs;
  request.gbs = plan.gbs;
  request.seq = plan.seq;
  request.schedule = plan.schedule;
  request.recompute = plan.recompute;
  request.zero = plan.zero;
  if (plan.zero == 3 && plan.reshard != (plan.pp == 1)) request.reshard = plan.reshard;
  request.sp = plan.sp;
  request.dtype = plan.dtype;
  request.fused_attention = plan.fused_attention;
  request.tp_overlap = plan.overlap_tp_gradients || plan.tp_hidden > 0.0;
  request.dp_overlap = plan.dp_overlap;
  request.software = scenario.software.name;
  if (plan.tp == 1) request.sp.reset(), request.tp_overlap.reset();
  if (plan.pp == 1) request.schedule.reset(), request.vpp.reset();
  if (plan.gpus() == plan.tp * plan.pp) request.zero.reset(), request.dp_overlap.reset();
  return request;
}

}  // namespace orrery
