#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>

#include "sim/core/error.hpp"
#include "sim/training/estimate.hpp"
#include "tests/support/scenarios.hpp"

namespace orrery {

/// "tp=2 pp=4 dp=2 vpp=1 zero=0 overlap=1 sp=0 megatron-2021": a failure names itself.
inline std::string describe(const Scenario& scenario) {
  const Plan& plan = scenario.plan;
  const auto part = [](const char* key, int value) {
    return std::string{key} + "=" + std::to_string(value) + " ";
  };
  return part("tp", plan.tp) + part("pp", plan.pp) + part("dp", plan.dp) + part("vpp", plan.vpp) +
         part("zero", plan.zero) + part("overlap", plan.dp_overlap) + part("sp", plan.sp) +
         scenario.software.name;
}

/// Visits every plan of `gpus` ranks that divides: tp x pp x dp, and of each vpp 1 and 2, ZeRO 0
/// and 1, data-parallel overlap off and on, sequence parallelism off and on, on a software that
/// waits for its pipeline transfers and on one that does not. Two micro-batches a stage; flash
/// attention, so that kernels are short and links matter. Returns how many there are.
inline int for_each_plan(const Model& model, const System& system, int gpus,
                         const std::function<void(const Scenario&)>& visit) {
  int visited = 0;
  for (int tp = 1; tp <= gpus; ++tp)
    for (int pp = 1; tp * pp <= gpus; ++pp) {
      if (gpus % (tp * pp) != 0) continue;
      const int dp = gpus / (tp * pp);
      for (int variant = 0; variant < 32; ++variant) {
        const bool sp = variant & 1, zero = variant & 2, overlap = variant & 4, vpp = variant & 8;
        if ((sp && tp == 1) || ((zero || overlap) && dp == 1) || (vpp && pp == 1)) continue;
        const bool waits = variant & 16;
        PlanRequest request =
            plan_request(tp, pp, 1, 2 * pp * dp, 240, waits ? "megatron-2021" : "megatron-core");
        request.sp = sp;
        request.zero = zero ? 1 : 0;
        request.dp_overlap = overlap;
        request.vpp = vpp ? 2 : 1;
        request.fused_attention = true;
        try {
          visit(scenario_of(model, system, request, gpus));
          ++visited;
        } catch (const Error& error) {
          if (error.kind() != Error::Kind::infeasible) throw;  // Does not divide.
        }
      }
    }
  return visited;
}

inline double difference(Seconds a, Seconds b) { return std::abs(a / b - 1.0); }

/// A step takes the same time folded, with every rank and collective simulated, and by fused tasks
/// and steady-state extrapolation.
inline void expect_one_time(const Scenario& scenario, EstimateContext& context) {
  const Seconds time = estimate(scenario, context).result.step_time;
  const Detail whole{.unfolded = true, .expanded = true};
  EXPECT_LT(difference(estimate(scenario, context, whole).result.step_time, time), 1e-3);
  EXPECT_LT(difference(step_time(scenario, context), time), 1e-3);
}

}  // namespace orrery
