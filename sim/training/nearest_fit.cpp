#include <functional>
#include <vector>

#include "sim/layers/memory.hpp"
#include "sim/plan/plan_keys.hpp"
#include "sim/training/estimate.hpp"

namespace orrery {
namespace {

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
    PlanRequest request = plan_again(scenario.plan);
    change.apply(request);
    try {
      const Scenario changed =
          make_scenario(scenario, request, scenario.plan.gpus() * change.times_gpus, {});
      if (least_memory_of(changed).fits() && memory_of(changed).fits()) return change.words;
    } catch (const Error&) {
      // Does not divide: no remedy.
    }
  }
  return "";
}

}  // namespace orrery
