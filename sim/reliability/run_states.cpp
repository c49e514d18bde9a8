#include "sim/reliability/run_states.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "sim/core/error.hpp"
#include "sim/core/worker_pool.hpp"
#include "sim/layers/memory.hpp"
#include "sim/layers/rank_parameters.hpp"
#include "sim/model/model.hpp"
#include "sim/plan/placement.hpp"
#include "sim/plan/plan_keys.hpp"
#include "sim/training/waiting.hpp"

namespace orrery {
namespace {

// Ranks of a stage that save, each equally much.
int writing_ranks(const Plan& plan, bool every_replica) {
  return every_replica ? plan.gpus() / plan.pp : plan.tp;
}

// All of the model, or adapters alone. Tensor ranks have copies of a part of these, which are not
// saved twice: those of one rank, times the ranks, are a little too much.
std::int64_t trained_parameters(const Scenario& scenario) {
  const Plan& plan = scenario.plan;
  if (plan.trains_weights()) return count_parameters(scenario.model).total;
  std::int64_t sum = 0;
  for (const RankParameters& stage : parameters_by_stage(scenario))
    sum += plan.tp * stage.dense + plan.ep * plan.etp * stage.experts;
  return sum;
}

}  // namespace

CheckpointSize checkpoint_size(const Scenario& scenario) {
  const MemoryReport memory = memory_of(scenario);
  CheckpointSize size;
  // BLOOM's checkpoints have 14 bytes a parameter, 2 and 12 (bigscience-workshop,
  // tr11-176B-ml/README.md). Where weights are shards, the optimizer's state has them.
  const double state = scenario.software.state_bytes;
  const double saved =
      state + (scenario.plan.shards_weights() ? 0.0 : scenario.software.held_weight_bytes);
  size.total = Bytes{static_cast<double>(trained_parameters(scenario)) * saved};
  Bytes optimizer;
  for (const StageMemory& stage : memory.stages) optimizer = std::max(optimizer, stage.optimizer);
  size.a_gpu = optimizer * (saved / state);
  // Experts are sharded over several replicas, all of which save.
  const Plan& plan = scenario.plan;
  size.every_replica = plan.zero >= 1 || plan.ep > 1;
  Bytes saved_by_all;
  for (const StageMemory& stage : memory.stages)
    saved_by_all += writing_ranks(plan, size.every_replica) * stage.optimizer;
  // Both ends of a tied embedding hold it, and it is saved once.
  for (const StageMemory& stage : memory.stages)
    size.a_rank.push_back(size.total * (stage.optimizer / saved_by_all));
  // Ranks of a unit lie in one stage, or hold no more than as if they did.
  size.a_unit = std::min(size.total, size.a_gpu * gpus_of_unit(scenario));
  return size;
}

int gpus_of_unit(const Scenario& scenario) {
  return std::min(scenario.system.gpus_per_node, scenario.plan.gpus());
}

namespace {

int rounded_up(int whole, int part) { return (whole + part - 1) / part; }

// GPUs of the job in each of its racks, and nodes of a rack. What a job of one rack leaves of it
// belongs to others.
int used_of_rack(const Scenario& scenario) {
  return std::min(scenario.system.nvlink_domain, scenario.plan.gpus());
}
int units_of_rack(const Scenario& scenario) {
  const int of_rack = used_of_rack(scenario) + scenario.system.idle_of_domain;
  return rounded_up(of_rack, gpus_of_unit(scenario));
}

}  // namespace

Racks racks_of(const Scenario& scenario) {
  const Plan& plan = scenario.plan;
  const int used = used_of_rack(scenario), unit = gpus_of_unit(scenario);
  int together = unit;
  for (const int ranks : {plan.tp, plan.tp * plan.cp, plan.experts ? plan.ep * plan.etp : 1})
    if (used % ranks == 0) together = std::max(together, ranks);
  Racks racks;
  racks.island = rounded_up(together, unit);
  if (racks.island == 1) {
    racks.surplus = idle_units(scenario);
    return racks;
  }
  racks.count = rounded_up(plan.gpus(), used);
  racks.size = units_of_rack(scenario);
  racks.surplus = racks.count * (racks.size / racks.island - used / unit / racks.island);
  return racks;
}

int idle_units(const Scenario& scenario) {
  const int racks = rounded_up(scenario.plan.gpus(), used_of_rack(scenario));
  return racks * scenario.system.idle_of_domain / gpus_of_unit(scenario);
}

CheckpointTimes checkpoint_times(const Scenario& scenario, const CheckpointSize& size,
                                 const Reliability& profile, CheckpointTier tier,
                                 BytesPerSecond store) {
  const System& system = scenario.system;
  const Seconds copy = size.a_gpu / system.gpu.host;
  CheckpointTimes times;
  times.stall = profile.stall(tier) + copy;
  if (tier == CheckpointTier::local) {
    times.load = copy;
    return times;
  }
  const double nics =
      static_cast<double>(system.nics_per_node) * gpus_of_unit(scenario) / system.gpus_per_node;
  const BytesPerSecond line = system.nic * (nics * system.network_efficiency);
  const Seconds over_nics = size.a_unit / line;
  const Seconds in_store = tier == CheckpointTier::store ? size.total / store : Seconds{};
  times.write = std::max({over_nics, in_store, copy});
  times.load = times.write;
  return times;
}

CheckpointWrite checkpoint_write(const Scenario& scenario, const CheckpointSize& size,
                                 CheckpointTier tier, BytesPerSecond store) {
  CheckpointWrite write{size.a_rank, size.every_replica, {}, scenario.system.gpu.host};
  if (tier == CheckpointTier::store) write.store = store;
  return write;
}

namespace {

// The job that is left, and its step.
AwayState state_without(const Scenario& scenario, int away, EstimateContext& context) {
  const Plan& plan = scenario.plan;
  const int left = plan.dp - away;
  PlanRequest request = plan_again(plan);
  request.gbs = plan.gbs / plan.dp * left;
  // Copies of shards leave whole.
  if (plan.dp_replicate > 1) request.dp_replicate = plan.dp_replicate * left / plan.dp;
  const Scenario smaller = make_scenario(scenario, request, plan.gpus() / plan.dp * left, {});
  const MemoryReport memory = memory_of(smaller, *context.loads(smaller));
  // The error of an estimate states how much memory is missing.
  if (memory.peak() > memory.capacity) estimate(smaller, context);
  return {step_time(smaller, context), smaller.plan.gbs};
}

}  // namespace

int replicas_of_group(const Scenario& scenario) {
  // rank = ((stage dp + data) cp + context) tp + tensor: replicas lie tp x cp ranks apart.
  const Plan& plan = scenario.plan;
  const int apart = plan.tp * plan.cp;
  int replicas = std::max(1, gpus_of_unit(scenario) / apart);
  const auto with = [&](int ranks) {
    replicas = std::lcm(replicas, std::lcm(apart, ranks) / apart);
  };
  if (plan.experts) with(plan.ep * plan.etp);
  if (plan.dp_replicate > 1) with(plan.gpus() / plan.pp / plan.dp_replicate);
  return std::min(plan.dp, replicas);
}

int groups_of_job(const Scenario& scenario) {
  return rounded_up(scenario.plan.dp, replicas_of_group(scenario));
}

bool replicas_hold_all(const Plan& plan) {
  return (plan.zero == 0 && plan.dp > 1) || plan.dp_replicate > 1;
}

namespace {

// The step of which waiting for others, which grows with it, makes `step`.
Seconds without_waiting(const Scenario& scenario, Seconds step) {
  const Seconds fixed = waiting_for_others(scenario, {});
  const double share = (waiting_for_others(scenario, Seconds{1.0}) - fixed).si();
  return (step - fixed) / (1.0 + share);
}

// States up to that without the last multiple of `stride` groups that runs. Steps between two that
// are simulated lie on a line; what ranks wait for others follows from their number.
std::vector<AwayState> states_by(int stride, const Scenario& scenario, Seconds whole) {
  Scenario alone = scenario;
  alone.plan.wait_for_others = false;
  const int replicas = replicas_of_group(scenario);
  const int of_replica = scenario.plan.gpus() / scenario.plan.dp;
  const std::int64_t samples = scenario.plan.gbs / scenario.plan.dp * replicas;
  const int most = (groups_of_job(scenario) - 1) / stride;
  std::vector<AwayState> states{{without_waiting(scenario, whole), scenario.plan.gbs}};
  EstimateContext context{scenario.system};
  int without = most + 1;  // The least number of strides without which nothing runs.
  for (int known = 0, next = 1; next > known && next < without;) {
    try {
      const Seconds step = state_without(alone, next * stride * replicas, context).step;
      const AwayState from = states.back();
      const int between = (next - known) * stride;
      for (int more = 1; more <= between; ++more)
        states.push_back({from.step + (step - from.step) * (static_cast<double>(more) / between),
                          from.samples - samples * more});
      known = next;
    } catch (const Error&) {
      if (next == 1) throw;
      without = next;
    }
    next = without > most ? std::min(2 * known, most) : (known + without) / 2;
  }
  for (std::size_t away = 0; away < states.size(); ++away) {
    const int gpus = scenario.plan.gpus() - static_cast<int>(away) * replicas * of_replica;
    states[away].step += waiting_for_others(scenario, states[away].step, gpus);
  }
  return states;
}

}  // namespace

std::vector<AwayState> away_states(const Scenario& scenario, Seconds whole) {
  const int replicas = replicas_of_group(scenario);
  const int of_stage = replicas * scenario.plan.tp * scenario.plan.cp;
  const int of_racks = std::lcm(of_stage, used_of_rack(scenario)) / of_stage;
  try {
    if (of_racks < groups_of_job(scenario)) return states_by(of_racks, scenario, whole);
  } catch (const Error&) {  // Fewer may run.
  }
  try {
    return states_by(1, scenario, whole);
  } catch (const Error& error) {
    fail_infeasible({"", "--elastic"},
                    "without " + std::to_string(replicas) +
                        " of its replicas the job cannot run: " + error.what(),
                    "leave --elastic out, or choose a plan that can");
  }
}

Seconds step_with_slow_gpu(const Scenario& scenario, int stage, double slower) {
  Scenario slow = scenario;
  const int rank = Placement{scenario.plan, scenario.system}.rank({stage, 0, 0, 0}).value;
  const int nodes_gpus = scenario.system.gpus_per_node;
  slow.system.gpu_overrides.push_back({rank / nodes_gpus, rank % nodes_gpus, 1.0 / (1.0 + slower)});
  EstimateContext context{slow.system};
  return step_time(slow, context);
}

std::vector<std::vector<double>> slow_step_ratios(const Scenario& scenario,
                                                  const std::vector<double>& slower, int workers) {
  EstimateContext context{scenario.system};
  const Seconds whole = step_time(scenario, context);
  std::vector<std::vector<double>> ratios(static_cast<std::size_t>(scenario.plan.pp),
                                          std::vector<double>(slower.size(), 1.0));
  const auto each = static_cast<std::int64_t>(slower.size());
  const std::int64_t tasks = scenario.plan.pp * each;
  std::int64_t next = 0;
  run_tasks(
      workers, {}, [&] { return next < tasks ? std::optional{next++} : std::nullopt; },
      [&](std::int64_t task) {
        AnswerWriter answer;
        answer.put(step_with_slow_gpu(scenario, static_cast<int>(task / each),
                                      slower[static_cast<std::size_t>(task % each)])
                       .si());
        return Answer{answer.take(), false};
      },
      [&](const Outcome& outcome) {
        if (!outcome.failure.empty()) throw std::runtime_error{"a worker: " + outcome.failure};
        const double step = AnswerReader{outcome.bytes}.get<double>();
        ratios[static_cast<std::size_t>(outcome.task / each)]
              [static_cast<std::size_t>(outcome.task % each)] = std::max(1.0, step / whole.si());
        return true;
      });
  return ratios;
}

}  // namespace orrery
