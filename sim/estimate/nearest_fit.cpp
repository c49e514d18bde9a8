#include <functional>
#include <vector>

#include "sim/cost/memory.hpp"
#include "sim/estimate/estimate.hpp"

namespace orrery {
namespace {

// The scenario's own plan as a request, for changing one key of it.
PlanRequest request_of(const Scenario& scenario) {
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
  request.ep_overlap = plan.ep_overlap;
  request.delay_wgrad = plan.delay_wgrad;
  request.cp = plan.cp;
  request.cp_comm = plan.cp_comm;
  request.mbs = plan.mbs;
  request.gbs = plan.gbs;
  request.seq = plan.seq;
  request.schedule = plan.schedule;
  request.recompute = plan.recompute;
  request.zero = plan.zero;
  if (plan.zero == 3) request.reshard = plan.reshard;
  request.sp = plan.sp;
  request.dtype = plan.dtype;
  request.fused_attention = plan.fused_attention;
  request.dp_overlap = plan.dp_overlap;
  request.software = scenario.software.name;
  return request;
}

struct Change {
  std::string words;
  std::function<void(PlanRequest&)> apply;
  int times_gpus = 1;
};

// From the cheapest to the dearest in time.
std::vector<Change> changes(const Plan& plan) {
  std::vector<Change> list;
  if (plan.zero == 0 && plan.data_ranks() > 1)
    list.push_back({"use --zero 1", [](PlanRequest& r) { r.zero = 1; }});
  if (plan.zero < 3 && plan.data_ranks() > 1 && plan.pp == 1)
    list.push_back({"use --zero 3", [](PlanRequest& r) { r.zero = 3; }});
  if (!plan.sp && plan.tp > 1)
    list.push_back({"use --sp true", [](PlanRequest& r) { r.sp = true; }});
  if (plan.recompute.kind == Recompute::none)
    list.push_back(
        {"use --recompute selective", [](PlanRequest& r) { r.recompute = Recompute::selective; }});
  for (std::int64_t mbs = plan.mbs / 2; mbs >= 1; mbs /= 2)
    list.push_back({"use --mbs " + std::to_string(mbs), [mbs](PlanRequest& r) { r.mbs = mbs; }});
  if (plan.recompute.kind != Recompute::full)
    list.push_back({"use --recompute full", [](PlanRequest& r) { r.recompute = Recompute::full; }});
  for (int factor : {2, 4, 8, 16, 32}) {
    list.push_back({"use --pp " + std::to_string(plan.pp * factor),
                    [factor](PlanRequest& r) { r.pp *= factor; }});
    list.push_back({"use --tp " + std::to_string(plan.tp * factor),
                    [factor](PlanRequest& r) { r.tp *= factor; }});
    list.push_back({"use --pp " + std::to_string(plan.pp * factor) + " --recompute full",
                    [factor](PlanRequest& r) { r.pp *= factor, r.recompute = Recompute::full; }});
    list.push_back({"use --tp " + std::to_string(plan.tp * factor) + " --recompute full",
                    [factor](PlanRequest& r) { r.tp *= factor, r.recompute = Recompute::full; }});
  }
  for (int factor : {2, 4, 8, 16, 32, 64})
    for (bool full : {false, true})
      list.push_back({"use --gpus " + std::to_string(plan.gpus() * factor) + " --pp " +
                          std::to_string(plan.pp * factor) + (full ? " --recompute full" : ""),
                      [factor, full](PlanRequest& r) {
                        r.pp *= factor;
                        if (full) r.recompute = Recompute::full;
                      },
                      factor});
  return list;
}

}  // namespace

std::string nearest_fit(const Scenario& scenario) {
  for (const Change& change : changes(scenario.plan)) {
    PlanRequest request = request_of(scenario);
    change.apply(request);
    try {
      const Scenario changed = make_scenario(scenario.model, scenario.system, request,
                                             scenario.plan.gpus() * change.times_gpus, {});
      if (memory_of(changed).fits()) return change.words;
    } catch (const Error&) {
      // Does not divide: no remedy.
    }
  }
  return "";
}

}  // namespace orrery
